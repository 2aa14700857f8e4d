//! One PE's part of a table: its machine, what is to be done with its entries, and who waits for
//! answers.

use super::error::TableError;
use super::kind::{Answer, Batch, Of, TableKey, TableValue};
use super::letter::{Letter, Sent, send_all};
use super::machine::{Effect, Machine, MessageOf, Told, Work};
use super::open::{Head, TableInvitation};
use super::pieces::forget_of;
use super::seen::SeenKeys;
use super::store::{Store, WorkOf};
use foldhash::fast::FixedState;
use std::any::type_name;
use std::collections::{HashMap, VecDeque};
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use ultramarine_group::{GroupId, Groups, Hosted, Member, Opening, Part};
use ultramarine_runtime::executor::{Context, caught, discard};
use ultramarine_topology::Pe;

/// The number of things that are done with entries before other tasks have their turn.
const WORKS_AT_ONCE: usize = 32;

/// What comes of a request of a program.
pub(super) enum Reply<V> {
    Waiting(Waker),
    Answered(Result<Answer<V>, TableError>),
}

/// See the [module](self).
///
/// A table that is over has its part as before, which answers everything with the error: so all
/// that ask hear of it, also those that are late.
pub(super) struct TablePart<K: TableKey, V: TableValue> {
    pub(super) machine: Machine<Of<K, V>>,
    pub(super) head: Arc<Head>,
    /// As long as this is there, this PE knows what the table was opened with.
    _noted: Arc<()>,
    pub(super) store: Arc<Mutex<Store<K, V>>>,
    pub(super) seen: Arc<Mutex<SeenKeys<K>>>,
    /// What is to be done with the entries, in this order, and whether a thread does it: one at a
    /// time.
    works: VecDeque<(Pe, WorkOf<K, V>)>,
    is_working: bool,
    /// What is to be sent, in this order, and whether a thread does it.
    sends: VecDeque<(Pe, Letter<K, V>)>,
    is_sending: bool,
    /// The PEs that have died since this was last looked at.
    dead: Vec<Pe>,
    /// Why the table is over.
    over: Option<TableError>,
    /// Why it must end, which others have not heard.
    broken: Option<String>,
    /// What has come since.
    refused: Vec<Told<Of<K, V>>>,
    pub(super) asked: HashMap<(Pe, u64), Option<Reply<V>>, FixedState>,
}

/// What is to be done outside of the part's lock.
pub(super) struct Todo<K: TableKey, V: TableValue> {
    is_sender: bool,
    is_worker: bool,
    is_lost: bool,
    dead: Vec<Pe>,
    broken: Option<String>,
    wakers: Vec<Waker>,
    waste: Waste<K, V>,
}

/// What is needed no more. It has code of the user's, and is dropped when no lock is held.
struct Waste<K: TableKey, V: TableValue> {
    answers: Vec<Answer<V>>,
    works: VecDeque<(Pe, WorkOf<K, V>)>,
    refused: Vec<Told<Of<K, V>>>,
    batches: Vec<Batch<K, V>>,
}

impl<K: TableKey, V: TableValue> TablePart<K, V> {
    pub(super) fn new(machine: Machine<Of<K, V>>, head: Arc<Head>, noted: Arc<()>) -> Self {
        TablePart {
            machine,
            store: Arc::new(Mutex::new(Store::new(&head))),
            seen: Arc::new(Mutex::new(SeenKeys::new())),
            head,
            _noted: noted,
            works: VecDeque::new(),
            is_working: false,
            sends: VecDeque::new(),
            is_sending: false,
            dead: Vec::new(),
            over: None,
            broken: None,
            refused: Vec::new(),
            asked: HashMap::default(),
        }
    }

    /// Asks something of a share. Returns the number of the answer.
    ///
    /// # Errors
    ///
    /// The table is over; nothing is asked, and here is the batch.
    pub(super) fn ask(
        &mut self,
        share: Pe,
        batch: Batch<K, V>,
    ) -> Result<u64, (TableError, Batch<K, V>)> {
        if let Some(error) = &self.over {
            return Err((error.clone(), batch));
        }
        let number = self.machine.ask(share, batch);
        self.asked.insert((share, number), None);
        Ok(number)
    }

    /// The table is over, for this reason unless there was one before. All that wait hear of it,
    /// and other PEs if they are to be `told`.
    pub(super) fn end_with(&mut self, cx: &Context, error: TableError, told: bool) {
        if self.over.is_some() {
            return;
        }
        if told {
            let others = (0..cx.pes()).map(Pe::new).filter(|pe| *pe != cx.pe());
            self.sends.extend(others.map(|pe| (pe, Letter::Over(error.clone()))));
        }
        self.over = Some(error);
    }

    /// Nobody else does anything with the entries until [`release`](Self::release). `false`: a
    /// thread does, or there is something to be done first.
    pub(super) fn claim(&mut self) -> bool {
        let is_free = !self.is_working && self.works.is_empty();
        self.is_working |= is_free;
        is_free
    }

    /// See [`claim`](Self::claim).
    pub(super) fn release(&mut self) {
        self.is_working = false;
    }

    /// Whether it has heard of these deaths.
    pub(super) fn has_heard_of(&self, dead: &[Pe]) -> bool {
        self.over.is_some() || dead.iter().all(|pe| self.machine.has_heard_of(*pe))
    }

    /// The PE that owns a share.
    pub(super) fn owner(&self, share: Pe) -> Pe {
        self.machine.owner(share)
    }

    /// The shares that this PE owns, as far as they have begun.
    pub(super) fn owned(&self) -> Vec<Pe> {
        self.machine.owned_shares().collect()
    }

    /// The answer to that, once it is there.
    pub(super) fn poll_answer(
        &mut self,
        asked: (Pe, u64),
        waker: &Waker,
    ) -> Poll<Result<Answer<V>, TableError>> {
        if let Some(Some(Reply::Answered(answer))) = self.asked.remove(&asked) {
            return Poll::Ready(answer);
        }
        if let Some(error) = &self.over {
            return Poll::Ready(Err(error.clone()));
        }
        self.asked.insert(asked, Some(Reply::Waiting(waker.clone())));
        Poll::Pending
    }

    /// Nobody waits for that answer any more.
    pub(super) fn forget(&mut self, asked: (Pe, u64)) -> impl Sized + use<K, V> {
        self.asked.remove(&asked)
    }

    /// Keeps an answer for the task that has asked. Returns the waker of that task, if it waits; or
    /// the answer again, if no task wants it any more.
    pub(super) fn answer(
        &mut self,
        asked: (Pe, u64),
        answer: Result<Answer<V>, TableError>,
    ) -> Result<Option<Waker>, Result<Answer<V>, TableError>> {
        match self.asked.get_mut(&asked) {
            Some(place) => match place.replace(Reply::Answered(answer)) {
                Some(Reply::Waiting(waker)) => Ok(Some(waker)),
                _ => Ok(None),
            },
            None => Err(answer),
        }
    }

    /// The next thing to send, if there is one. If not, the thread that asks sends no more.
    pub(super) fn next_to_send(&mut self) -> Option<(Pe, Letter<K, V>)> {
        let next = self.sends.pop_front();
        self.is_sending = next.is_some();
        next
    }

    /// The next thing to do, likewise.
    fn next_work(&mut self) -> Option<(Pe, WorkOf<K, V>)> {
        let next = self.works.pop_front();
        self.is_working = next.is_some();
        next
    }
}

impl<K: TableKey, V: TableValue> Part for TablePart<K, V> {
    type Invitation = TableInvitation<K, V>;
    type Message = Letter<K, V>;
    type Effects = Todo<K, V>;
    type Error = TableError;

    fn begin(&mut self) {
        self.machine.begin();
    }

    fn receive(&mut self, from: Pe, message: Letter<K, V>, _: bool) {
        match (message, &self.over) {
            (Letter::Told(told), None) => self.machine.receive(from, told),
            (Letter::Told(told), Some(error)) => {
                self.sends.push_back((from, Letter::Over(error.clone())));
                self.refused.push(told);
            }
            (Letter::Over(error), over) => self.over = over.clone().or(Some(error)),
            (Letter::Unread(Sent::Request(share, number), reason), _) => {
                let told = (share, MessageOf::Answer { number, answer: Answer::Unread(reason) });
                self.sends.push_back((from, Letter::Told(told)));
            }
            (Letter::Unread(Sent::Answer(share, number), reason), _) => {
                let answer = Answer::Failed(reason);
                self.machine.receive(from, (share, MessageOf::Answer { number, answer }));
            }
            (Letter::Unread(Sent::Copy | Sent::Over, reason), _) => self.broken = Some(reason),
        }
    }

    fn died(&mut self, dead: Pe) {
        self.dead.push(dead);
        self.machine.died(dead);
    }

    /// What was asked goes on: it is of no opening.
    fn renew(&mut self, _: Opening) {}

    fn take_effects(&mut self) -> Todo<K, V> {
        let (mut is_lost, mut wakers, mut answers) = (false, Vec::new(), Vec::new());
        for effect in self.machine.take_effects() {
            match effect {
                Effect::Send(to, told) => self.sends.push_back((to, Letter::Told(told))),
                Effect::Do(share, work) => self.works.push_back((share, work)),
                Effect::Answered(share, number, answer) => {
                    match self.answer((share, number), Ok(answer)) {
                        Ok(waker) => wakers.extend(waker),
                        Err(answer) => answers.extend(answer),
                    }
                }
                Effect::Lost(_) => is_lost = true,
            }
        }
        let mut works = VecDeque::new();
        if self.over.is_some() {
            works = take(&mut self.works);
            let waiting = self
                .asked
                .values_mut()
                .filter_map(|asked| asked.take_if(|asked| matches!(asked, Reply::Waiting(_))));
            wakers.extend(waiting.filter_map(|asked| match asked {
                Reply::Waiting(waker) => Some(waker),
                Reply::Answered(_) => None,
            }));
        }
        let is_sender = !self.is_sending && !self.sends.is_empty();
        let is_worker = !self.is_working && !self.works.is_empty();
        self.is_sending |= is_sender;
        self.is_working |= is_worker;
        let (refused, broken) = (take(&mut self.refused), self.broken.take());
        let dead = take(&mut self.dead);
        let waste = Waste { answers, works, refused, batches: self.machine.take_waste() };
        Todo { is_sender, is_worker, is_lost, dead, broken, wakers, waste }
    }
}

impl<K: TableKey, V: TableValue> Hosted for TablePart<K, V> {
    fn carry_out(cx: &Context, member: &Member<Self>, id: GroupId, todo: Todo<K, V>) {
        let Todo { is_sender, is_worker, is_lost, dead, broken, wakers, waste } = todo;
        if !dead.is_empty() {
            forget_of(cx, &dead);
        }
        if is_sender {
            send_all(cx, member, id);
        }
        wakers.into_iter().for_each(Waker::wake);
        let Waste { answers, works, refused, batches } = waste;
        discard(answers);
        discard(works);
        discard(refused);
        discard(batches);
        if is_lost {
            member.act_at_once(cx, |part| part.end_with(cx, part.head.lost(cx), true));
        }
        if let Some(reason) = broken {
            let over = |part: &mut Self| part.end_with(cx, part.head.copies_not_told(reason), true);
            member.act_at_once(cx, over);
        }
        if is_worker {
            work_some(cx, member, id);
        }
    }

    fn end(self) {
        let asked = self.asked.into_values().flatten();
        let (wakers, answers): (Vec<_>, Vec<_>) =
            asked.partition(|asked| matches!(asked, Reply::Waiting(_)));
        for asked in wakers {
            if let Reply::Waiting(waker) = asked {
                waker.wake();
            }
        }
        answers.into_iter().for_each(discard);
        discard((self.machine, self.works, self.sends, self.store, self.seen));
    }
}

/// Does some of what is to be done with the entries, and leaves the rest to a task.
pub(super) fn work_some<K: TableKey, V: TableValue>(
    cx: &Context,
    member: &Member<TablePart<K, V>>,
    id: GroupId,
) {
    let Some(store) = member.with(|_, part| part.store.clone()) else { return };
    for _ in 0..WORKS_AT_ONCE {
        let Some(Some((share, work))) = member.with(|_, part| part.next_work()) else { return };
        let done = {
            // User code that panics here ends the table.
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            caught(type_name::<(K, V)>(), || do_work(&mut store, share, work))
        };
        match done.and_then(|done| done) {
            Ok(Some(act)) => member.act_at_once(cx, |part| act(&mut part.machine)),
            Ok(None) => {}
            Err(message) => {
                member.act_at_once(cx, |part| {
                    part.end_with(cx, part.head.panicked(message), true);
                });
            }
        }
    }
    let go_on = async |cx: Context, id: GroupId| {
        let Some(member) = Groups::<TablePart<K, V>>::on(&cx).find(id) else { return };
        work_some(&cx, &member, id);
    };
    // Placed: it comes before tasks on shelves, and in turn with those that yield.
    drop(cx.spawn_at(cx.pe(), go_on, id));
}

/// Tells the machine what was done.
type Report<K, V> = Box<dyn FnOnce(&mut Machine<Of<K, V>>)>;

fn do_work<K: TableKey, V: TableValue>(
    store: &mut Store<K, V>,
    share: Pe,
    work: WorkOf<K, V>,
) -> Result<Option<Report<K, V>>, String> {
    Ok(match work {
        Work::Apply(request, batch) => {
            let (change, answer) = store.apply(share, batch)?;
            Some(Box::new(move |machine| machine.applied(share, request, change, answer)))
        }
        Work::Follow(change) => {
            store.follow(share, change);
            None
        }
        Work::Fill { entries, is_first, is_last } => {
            store.fill(share, entries, is_first, is_last);
            None
        }
        Work::Copy(to) => {
            let pieces = store.copy(share);
            Some(Box::new(move |machine| machine.copied(share, to, pieces)))
        }
    })
}
