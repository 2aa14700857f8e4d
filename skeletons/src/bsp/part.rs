//! One PE's part of a run: its machine, the work that is to be done, and the program that waits.

use super::disk::{Errand, do_errands};
use super::error::BspError;
use super::folder::{Folder, Lock};
use super::kind::{Left, Run};
use super::machine::{Effect, JobOf, Machine, Message, MessageOf, Told, Waste, Work};
use super::pace::Pace;
use super::program::Program;
use super::run::RunInvitation;
use super::work::{spawn_some, take_task};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;
use ultramarine_group::{GroupId, Groups, Hosted, Member, Opening, Part, Site};
use ultramarine_runtime::array::Encoded;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, discard};
use ultramarine_topology::Pe;

/// The most tags and stages that are said to have left messages.
const UNREAD_MAX: usize = 16;

/// Others are waited for without a pause for this many times as long as the ranks of this PE took.
const PATIENCE: u32 = 10;

/// Something that user code does.
pub(super) enum Task<P: Program> {
    Step(Work, JobOf<Run<P>>),
    Restore(Work, u32, Option<Encoded>),
}

/// See the [module](self).
pub(super) struct RunPart<P: Program> {
    pub(super) machine: Machine<Run<P>>,
    pub(super) argument: Arc<P::Argument>,
    pub(super) ranks: u32,
    pub(super) pace: Pace,
    /// When the first rank began its step in this superstep, unless none has.
    begun: Option<Instant>,
    /// The superstep in which the clock was looked at last.
    looked_in: Option<u64>,
    pub(super) tasks: VecDeque<Task<P>>,
    /// The directory for checkpoints, and what is to be done there.
    pub(super) folder: Option<Folder>,
    pub(super) errands: VecDeque<Errand>,
    /// Whether a task does that already: one thing at a time.
    pub(super) is_on_errand: bool,
    /// The directory is locked by this PE.
    pub(super) lock: Option<Lock>,
    /// What is to be sent, in this order.
    sends: Vec<(Pe, Told<Run<P>>)>,
    /// Whether a thread is sending what the machine said before: one at a time, or messages could
    /// overtake each other.
    is_sending: bool,
    /// No outputs will say what is unread.
    has_failed: bool,
    /// What was sent and not taken: tags, and stages.
    pub(super) unread: BTreeSet<(u32, String)>,
    /// What a rank has said of the progress last.
    pub(super) note: Option<String>,
    /// The outputs, once all ranks have ended.
    pub(super) ended: Option<BTreeMap<u32, Left>>,
    pub(super) waiting: Vec<Waker>,
}

/// What is to be done outside of the part's lock.
pub(super) struct Todo<P: Program> {
    sends: Vec<(Pe, Told<Run<P>>)>,
    /// The number of tasks that have come.
    pub(super) tasks: usize,
    /// Whether these are only steps, and not ranks to be restored.
    are_steps: bool,
    /// Whether there is something to be done in the directory, and no task does it.
    is_errand: bool,
    /// When the ranks began their steps, if others are waited for now.
    begun: Option<Instant>,
    failure: Option<BspError>,
    lost: Option<u64>,
    moved: Option<[u64; 2]>,
    wakers: Vec<Waker>,
    waste: Waste<Run<P>>,
}

impl<P: Program> RunPart<P> {
    pub(super) fn new(
        machine: Machine<Run<P>>,
        (ranks, argument): (u32, Arc<P::Argument>),
        pace: Pace,
        folder: Option<Folder>,
    ) -> Self {
        RunPart {
            machine,
            argument,
            ranks,
            pace,
            begun: None,
            looked_in: None,
            tasks: VecDeque::new(),
            folder,
            errands: VecDeque::new(),
            is_on_errand: false,
            lock: None,
            sends: Vec::new(),
            is_sending: false,
            has_failed: false,
            unread: BTreeSet::new(),
            note: None,
            ended: None,
            waiting: Vec::new(),
        }
    }

    /// Notes tags of what was sent and not taken.
    pub(super) fn note_unread(&mut self, tags: impl IntoIterator<Item = u32>, stage: &str) {
        // A stage may be another in each superstep.
        let room = UNREAD_MAX.saturating_sub(self.unread.len());
        self.unread.extend(tags.into_iter().map(|tag| (tag, stage.to_owned())).take(room));
    }

    /// A rank has taken a step, which began then and has ended now.
    pub(super) fn note_step(&mut self, begun: Instant, now: Instant) {
        self.begun.get_or_insert(begun);
        self.look_at_clock(now);
    }

    /// Says what is due.
    fn look_at_clock(&mut self, now: Instant) {
        self.looked_in = Some(self.machine.superstep());
        self.machine.set_cost(self.pace.cost());
        self.machine.set_due(self.pace.is_due(now, self.machine.cost_of_all()));
        self.machine.set_weighing_due(self.pace.is_weighing_due(now));
    }

    /// What a thread is to send next.
    fn next_to_send(&mut self) -> Vec<(Pe, Told<Run<P>>)> {
        self.is_sending = !self.sends.is_empty();
        std::mem::take(&mut self.sends)
    }
}

impl<P: Program> Part for RunPart<P> {
    type Invitation = RunInvitation<P>;
    type Message = Told<Run<P>>;
    type Effects = Box<Todo<P>>;
    type Error = BspError;

    fn begin(&mut self) {
        self.machine.begin();
    }

    fn receive(&mut self, from: Pe, message: Told<Run<P>>, _: bool) {
        // Its ranks may all sleep, or there are none.
        if self.looked_in != Some(self.machine.superstep()) {
            self.look_at_clock(Instant::now());
        }
        self.machine.receive(from, message);
    }

    fn died(&mut self, dead: Pe) {
        self.machine.died(dead);
    }

    fn renew(&mut self, opening: Opening) {
        self.machine.move_home(opening.by);
    }

    fn take_effects(&mut self) -> Box<Todo<P>> {
        let (before, mut are_steps) = (self.tasks.len(), true);
        let (mut failure, mut lost, mut moved, mut wakers) = (None, None, None, Vec::new());
        for effect in self.machine.take_effects() {
            match effect {
                Effect::Send(to, told) => self.sends.push((to, told)),
                Effect::Run(work, jobs) => {
                    self.begun = None;
                    self.tasks.extend(jobs.into_iter().map(|job| Task::Step(work, job)));
                }
                Effect::Restore(work, ranks) => {
                    are_steps = false;
                    let task = |(rank, saved)| Task::Restore(work, rank, saved);
                    self.tasks.extend(ranks.into_iter().map(task));
                }
                Effect::Look(work, ranks) => self.errands.push_back(Errand::Look(work, ranks)),
                Effect::Load(work, key, ranks) => {
                    self.errands.push_back(Errand::Load(work, key, ranks));
                }
                Effect::Store(work, key, copies) => {
                    self.errands.push_back(Errand::Store(work, key, copies));
                }
                Effect::Prune(key, generation) => {
                    self.errands.push_back(Errand::Prune(key, generation));
                }
                Effect::Discard(key) => self.errands.push_back(Errand::Discard(key)),
                Effect::Fail(error) => {
                    self.has_failed = true;
                    failure = Some(error);
                }
                Effect::Lost(superstep) => lost = Some(superstep),
                Effect::Weighed(shares) => {
                    self.pace.weighed(shares.is_some());
                    moved = shares.filter(|[was, will_be]| will_be < was);
                }
                Effect::End(outputs) => {
                    self.ended = Some(outputs);
                    wakers.append(&mut self.waiting);
                }
            }
        }
        self.pace.see(self.machine.saving_now.map(|(key, _)| key));
        if !self.machine.has(0) {
            // The PE that has the first rank waits for it.
            self.lock = None;
        }
        let sends = if self.is_sending { Vec::new() } else { self.next_to_send() };
        let (tasks, waste) = (self.tasks.len() - before, self.machine.take_waste());
        let is_errand = !self.errands.is_empty() && !self.is_on_errand;
        self.is_on_errand |= is_errand;
        let begun = self.begun.filter(|_| self.machine.is_waiting());
        Box::new(Todo {
            sends,
            tasks,
            are_steps,
            is_errand,
            begun,
            failure,
            lost,
            moved,
            wakers,
            waste,
        })
    }
}

impl<P: Program> Hosted for RunPart<P> {
    fn carry_out(cx: &Context, member: &Member<Self>, id: GroupId, todo: Box<Todo<P>>) {
        // A step that is alone is taken here, in the time of the message that has led to it.
        let is_taken_here = todo.are_steps && todo.tasks > 0;
        let tasks = todo.tasks - usize::from(is_taken_here);
        carry_out_but_tasks(cx, member, id, todo);
        spawn_some::<P>(cx, id.name, tasks);
        if is_taken_here && let Some((id, next)) = take_task(cx, member) {
            let tasks = next.tasks;
            carry_out_but_tasks(cx, member, id, next);
            spawn_some::<P>(cx, id.name, tasks);
        }
    }

    fn end(self) {
        self.waiting.into_iter().for_each(Waker::wake);
        if self.has_failed {
            warn_of_unread(&self.unread);
        }
        discard((self.machine, self.tasks, self.errands, self.sends));
    }
}

/// Says what was sent and not taken.
pub(super) fn warn_of_unread(unread: &BTreeSet<(u32, String)>) {
    for (tag, stage) in unread.iter().take(UNREAD_MAX) {
        tracing::warn!("messages with tag {tag} were not taken in stage {stage}, and dropped");
    }
    if unread.len() > UNREAD_MAX {
        tracing::warn!("nor were others, with {} other tags or stages", unread.len() - UNREAD_MAX);
    }
}

/// Sends what is to be sent, and all else, but for what user code does.
pub(super) fn carry_out_but_tasks<P: Program>(
    cx: &Context,
    member: &Member<RunPart<P>>,
    id: GroupId,
    todo: Box<Todo<P>>,
) {
    let Todo { sends, tasks, is_errand, begun, failure, lost, moved, wakers, waste, .. } = *todo;
    if let Some(begun) = begun {
        cx.expect_soon(begun.elapsed() * PATIENCE);
    }
    // Others wait for what is sent now, or was sent last, and must not wait for the tasks, too.
    let is_urgent = tasks > 0;
    wakers.into_iter().for_each(Waker::wake);
    discard(waste);
    if is_errand {
        // Placed here it begins although this PE's ranks have something to do all the time.
        drop(cx.spawn_at(cx.pe(), do_errands::<P>, id.name));
    }
    if let Some(superstep) = lost {
        tracing::warn!(
            "no checkpoint is whole: the results of {superstep} supersteps are computed again"
        );
    }
    if let Some([was, will_be]) = moved {
        let percent = 100 - 100 * will_be / was.max(1);
        tracing::info!("ranks move, so that the busiest PE has {percent} % less to do");
    }
    let mut error = failure;
    let mut next = Some((id, sends)).filter(|(_, sends)| !sends.is_empty());
    while let Some((id, sends)) = next {
        for (to, told) in sends {
            let what = what_is_told::<P>(&told.1);
            let is_copy = matches!(told.1, MessageOf::Kept { .. });
            let begun = is_copy.then(Instant::now);
            let refused = send::<P>(cx, id, to, told).err();
            if let Some(begun) = begun {
                member.with(|_, part| part.pace.spend(begun.elapsed()));
            }
            let Some(refused) = refused else { continue };
            let is_too_long = matches!(refused, TaskError::TooLarge { .. });
            let refused = not_sent(cx.pe(), to, what, refused);
            if !is_copy || !is_too_long {
                error.get_or_insert(refused);
            } else if member.with(|_, part| part.machine.cannot_keep()) == Some(true) {
                tracing::warn!("from now on no checkpoints are kept in memory: {refused}");
            }
        }
        let more = member.with(|id, part| (id, part.next_to_send()));
        next = more.filter(|(_, sends)| !sends.is_empty());
    }
    if is_urgent {
        cx.send_now();
    }
    if let Some(error) = error {
        let groups = Groups::<RunPart<P>>::on(cx);
        groups.tell_failed(groups.with_table(|table| table.newest(id)), error);
    }
}

/// What a message holds, for error texts; and the superstep, but at the end.
fn what_is_told<P: Program>(message: &Message<Run<P>>) -> (&'static str, Option<u64>) {
    let (what, superstep) = match message {
        MessageOf::Batch { superstep, .. } => {
            ("what ranks of one PE send to those of another", *superstep)
        }
        MessageOf::Kept { key, .. } | MessageOf::Moved { key, .. } => {
            ("the state of a rank, which was saved,", key.superstep)
        }
        MessageOf::Round { superstep, .. } => ("what collective operations combine", *superstep),
        _ => return ("what the ranks of a PE leave at the end", None),
    };
    (what, Some(superstep))
}

fn not_sent(
    from: Pe,
    to: Pe,
    (what, superstep): (&str, Option<u64>),
    error: TaskError,
) -> BspError {
    let TaskError::TooLarge { bytes, limit, .. } = error else { return error.into() };
    let (when, advice) = match superstep {
        Some(superstep) => (
            format!(" in superstep {superstep}"),
            "send less in a superstep, have more ranks with less state each",
        ),
        None => (String::new(), "let the ranks write it to files, or leave less"),
    };
    BspError::Program {
        message: format!(
            "from {from} to {to}{when}: {what} takes {bytes} bytes, more than the limit of \
             {limit}: {advice}, or raise `message_bytes_max`"
        ),
    }
}

fn send<P: Program>(
    cx: &Context,
    id: GroupId,
    to: Pe,
    told: Told<Run<P>>,
) -> Result<(), TaskError> {
    let receive = |cx: &Context, (id, from, told): (GroupId, Pe, Told<Run<P>>)| {
        Groups::<RunPart<P>>::on(cx).receive(id, from, [told]);
    };
    cx.tell_fn(to, receive, (id, cx.pe(), told))
}
