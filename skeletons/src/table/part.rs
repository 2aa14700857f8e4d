//! One PE's part of a table: its machine, what is to be done with its entries, and who waits for
//! answers.

use super::error::TableError;
use super::kind::{Answer, Batch, Of, TableKey, TableValue};
use super::machine::{Effect, Machine, MessageOf, Request, Told, Work};
use super::open::{Head, TableInvitation};
use super::store::{Store, WorkOf};
use std::any::type_name;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use ultramarine_group::{GroupId, Groups, Hosted, Member, Name, Opening, Part, Site};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, caught, discard};
use ultramarine_topology::{Distance, Pe};

/// So many things are done with entries before other tasks have their turn.
const WORKS_AT_ONCE: usize = 32;

/// What a program has asked for.
enum Asked<V> {
    Waiting(Waker),
    Answered(Result<Answer<V>, TableError>),
}

/// See the [module](self).
pub(super) struct TablePart<K: TableKey, V: TableValue> {
    machine: Machine<Of<K, V>>,
    pub(super) head: Arc<Head>,
    pub(super) store: Arc<Mutex<Store<K, V>>>,
    /// What is to be done with the entries, in this order, and whether a thread does it: one at a
    /// time.
    works: VecDeque<(Pe, WorkOf<K, V>)>,
    is_working: bool,
    /// What is to be sent, in this order, and whether a thread does it.
    sends: VecDeque<(Pe, Told<Of<K, V>>)>,
    is_sending: bool,
    asked: HashMap<(Pe, u64), Option<Asked<V>>>,
}

/// What is to be done outside of the part's lock.
pub(super) struct Todo<V> {
    is_sender: bool,
    is_worker: bool,
    is_lost: bool,
    wakers: Vec<Waker>,
    /// Answers that nobody waits for.
    waste: Vec<Answer<V>>,
}

impl<K: TableKey, V: TableValue> TablePart<K, V> {
    pub(super) fn new(machine: Machine<Of<K, V>>, head: Arc<Head>) -> Self {
        TablePart {
            machine,
            store: Arc::new(Mutex::new(Store::new(head.memory_max))),
            head,
            works: VecDeque::new(),
            is_working: false,
            sends: VecDeque::new(),
            is_sending: false,
            asked: HashMap::new(),
        }
    }

    /// Asks something of a share. Returns the number of the answer.
    pub(super) fn ask(&mut self, share: Pe, batch: Batch<K, V>) -> u64 {
        let number = self.machine.ask(share, batch);
        self.asked.insert((share, number), None);
        number
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
        if let Some(Some(Asked::Answered(answer))) = self.asked.remove(&asked) {
            return Poll::Ready(answer);
        }
        self.asked.insert(asked, Some(Asked::Waiting(waker.clone())));
        Poll::Pending
    }

    /// Nobody waits for that answer any more.
    pub(super) fn forget(&mut self, asked: (Pe, u64)) -> impl Sized + use<K, V> {
        self.asked.remove(&asked)
    }

    /// Something is answered. Returns who waits for it, or the answer, if nobody does.
    fn answer(
        &mut self,
        asked: (Pe, u64),
        answer: Result<Answer<V>, TableError>,
    ) -> Result<Option<Waker>, Result<Answer<V>, TableError>> {
        match self.asked.get_mut(&asked) {
            Some(place) => match place.replace(Asked::Answered(answer)) {
                Some(Asked::Waiting(waker)) => Ok(Some(waker)),
                _ => Ok(None),
            },
            None => Err(answer),
        }
    }

    /// The next thing to send, if there is one. Else nobody sends any more.
    fn next_to_send(&mut self) -> Option<(Pe, Told<Of<K, V>>)> {
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
    type Message = Told<Of<K, V>>;
    type Effects = Todo<V>;
    type Error = TableError;

    fn receive(&mut self, from: Pe, message: Told<Of<K, V>>, _: bool) {
        self.machine.receive(from, message);
    }

    fn died(&mut self, dead: Pe) {
        self.machine.died(dead);
    }

    /// What was asked goes on: it is of no opening.
    fn renew(&mut self, _: Opening) {}

    fn take_effects(&mut self) -> Todo<V> {
        let (mut is_lost, mut wakers, mut waste) = (false, Vec::new(), Vec::new());
        for effect in self.machine.take_effects() {
            match effect {
                Effect::Send(to, told) => self.sends.push_back((to, told)),
                Effect::Do(share, work) => self.works.push_back((share, work)),
                Effect::Answered(share, number, answer) => {
                    match self.answer((share, number), Ok(answer)) {
                        Ok(waker) => wakers.extend(waker),
                        Err(answer) => waste.extend(answer),
                    }
                }
                Effect::Lost(_) => is_lost = true,
            }
        }
        let is_sender = !self.is_sending && !self.sends.is_empty();
        let is_worker = !self.is_working && !self.works.is_empty();
        self.is_sending |= is_sender;
        self.is_working |= is_worker;
        Todo { is_sender, is_worker, is_lost, wakers, waste }
    }
}

impl<K: TableKey, V: TableValue> Hosted for TablePart<K, V> {
    fn carry_out(cx: &Context, member: &Member<Self>, id: GroupId, todo: Todo<V>) {
        let Todo { is_sender, is_worker, is_lost, wakers, waste } = todo;
        if is_sender {
            send_all(cx, member, id);
        }
        wakers.into_iter().for_each(Waker::wake);
        discard(waste);
        if is_lost {
            let lost = |_, part: &mut Self| part.head.lost(cx);
            if let Some(error) = member.with(lost) {
                fail(cx, member, id, error);
            }
        }
        if is_worker {
            work_some(cx, member, id);
        }
    }

    fn end(self) {
        let wakers = self.asked.into_values().filter_map(|asked| match asked {
            Some(Asked::Waiting(waker)) => Some(waker),
            _ => None,
        });
        wakers.for_each(Waker::wake);
        discard((self.machine, self.works, self.sends, self.store));
    }
}

/// The table is over.
fn fail<K: TableKey, V: TableValue>(
    cx: &Context,
    _: &Member<TablePart<K, V>>,
    id: GroupId,
    error: TableError,
) {
    let groups = Groups::<TablePart<K, V>>::on(cx);
    let id = groups.with_table(|table| table.newest(id));
    // All that ask wait for an answer that may never come.
    groups.tell(None, id, ultramarine_group::Notice::Failed(error));
}

/// Sends what is to be sent.
fn send_all<K: TableKey, V: TableValue>(
    cx: &Context,
    member: &Member<TablePart<K, V>>,
    id: GroupId,
) {
    while let Some(Some((to, told))) = member.with(|_, part| part.next_to_send()) {
        let asked = match &told.1 {
            MessageOf::Ask(Request { number, .. }, _) => Some((told.0, *number)),
            _ => None,
        };
        let Err(error) = send::<K, V>(cx, id, to, told) else { continue };
        match asked {
            Some(asked) => {
                let answer = member.with(|_, part| part.answer(asked, Err(error.into())));
                if let Some(Ok(Some(waker))) = answer {
                    waker.wake();
                }
            }
            None => fail(cx, member, id, error.into()),
        }
    }
}

fn send<K: TableKey, V: TableValue>(
    cx: &Context,
    id: GroupId,
    to: Pe,
    told: Told<Of<K, V>>,
) -> Result<(), TaskError> {
    let receive = async |cx: Context, (id, from, told): (GroupId, Pe, Told<Of<K, V>>)| {
        Groups::<TablePart<K, V>>::on(&cx).receive(id, from, [told]);
    };
    cx.tell(to, receive, (id, cx.pe(), told))
}

/// Does some of what is to be done with the entries, and leaves the rest to a task.
fn work_some<K: TableKey, V: TableValue>(
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
        let act = match done {
            Ok(Some(done)) => done,
            Ok(None) => continue,
            Err(message) => {
                let panicked = |_, part: &mut TablePart<K, V>| part.head.panicked(message);
                if let Some(error) = member.with(panicked) {
                    fail(cx, member, id, error);
                }
                continue;
            }
        };
        let acted = member.act(|part| act(&mut part.machine));
        if let Some((id, todo)) = acted {
            TablePart::carry_out(cx, member, id, todo);
        }
    }
    let go_on = async |cx: Context, name: Name| {
        let Some(member) = Groups::<TablePart<K, V>>::on(&cx).get(name) else { return };
        if let Some(id) = member.with(|id, _| id) {
            work_some(&cx, &member, id);
        }
    };
    drop(cx.spawn(Distance::ZERO, go_on, id.name));
}

/// What the machine is told of something that was done.
type Done<K, V> = Box<dyn FnOnce(&mut Machine<Of<K, V>>)>;

fn do_work<K: TableKey, V: TableValue>(
    store: &mut Store<K, V>,
    share: Pe,
    work: WorkOf<K, V>,
) -> Option<Done<K, V>> {
    match work {
        Work::Apply(request, batch) => {
            let (change, answer) = store.apply(share, batch);
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
    }
}
