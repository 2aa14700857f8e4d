//! One PE's part of a run: its machine, the work that is to be done, and the program that waits.

use super::comm::Comm;
use super::error::BspError;
use super::kind::{Bytes, Run, Tagged};
use super::machine::{
    Effect, JobOf, Letter, Machine, Next as MachineNext, Step, Told, Waste, Work,
};
use super::program::{Next, Program, Start};
use super::run::RunInvitation;
use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::task::Waker;
use ultramarine_group::{GroupId, Groups, Hosted, Member, Name, Opening, Part, Site};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, caught, discard};
use ultramarine_topology::{Distance, Pe};

/// The most tags and stages that are said to have left messages.
const UNREAD_MAX: usize = 16;

/// Something that user code does.
enum Task<P: Program> {
    Step(Work, JobOf<Run<P>>),
    Restore(Work, u32, Option<Bytes>),
}

/// See the [module](self).
pub(super) struct RunPart<P: Program> {
    machine: Machine<Run<P>>,
    argument: Arc<P::Argument>,
    ranks: u32,
    tasks: VecDeque<Task<P>>,
    /// What is to be sent, in this order.
    sends: Vec<(Pe, Told<Run<P>>)>,
    /// Whether a thread is sending what the machine said before: one at a time, or messages could
    /// overtake each other.
    is_sending: bool,
    /// What was sent and not taken: tags, and the stages that have left them.
    unread: BTreeSet<(u32, String)>,
    /// The outputs, once all ranks have ended.
    pub(super) ended: Option<BTreeMap<u32, Bytes>>,
    pub(super) waiting: Vec<Waker>,
}

/// What is to be done outside of the part's lock.
pub(super) struct Todo<P: Program> {
    sends: Vec<(Pe, Told<Run<P>>)>,
    /// The number of tasks that have come.
    tasks: usize,
    /// Whether these are only steps, and not ranks to be restored.
    are_steps: bool,
    failure: Option<BspError>,
    lost: Option<u64>,
    wakers: Vec<Waker>,
    waste: Waste<Run<P>>,
}

impl<P: Program> RunPart<P> {
    pub(super) fn new(machine: Machine<Run<P>>, ranks: u32, argument: Arc<P::Argument>) -> Self {
        let (tasks, sends) = (VecDeque::new(), Vec::new());
        RunPart {
            machine,
            argument,
            ranks,
            tasks,
            sends,
            is_sending: false,
            unread: BTreeSet::new(),
            ended: None,
            waiting: Vec::new(),
        }
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
        let (mut failure, mut lost, mut wakers) = (None, None, Vec::new());
        for effect in self.machine.take_effects() {
            match effect {
                Effect::Send(to, told) => self.sends.push((to, told)),
                Effect::Run(work, jobs) => {
                    self.tasks.extend(jobs.into_iter().map(|job| Task::Step(work, job)));
                }
                Effect::Restore(work, ranks) => {
                    are_steps = false;
                    let task = |(rank, saved)| Task::Restore(work, rank, saved);
                    self.tasks.extend(ranks.into_iter().map(task));
                }
                Effect::Fail(error) => failure = Some(error),
                Effect::Lost(superstep) => lost = Some(superstep),
                Effect::End(outputs) => {
                    self.ended = Some(outputs);
                    wakers.append(&mut self.waiting);
                }
            }
        }
        let sends = if self.is_sending { Vec::new() } else { self.next_to_send() };
        let (tasks, waste) = (self.tasks.len() - before, self.machine.take_waste());
        Box::new(Todo { sends, tasks, are_steps, failure, lost, wakers, waste })
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
        for (tag, stage) in self.unread {
            tracing::warn!("messages with tag {tag} were not taken in stage {stage}, and dropped");
        }
        discard((self.machine, self.tasks, self.sends));
    }
}

/// Sends what is to be sent, and all else, but for what user code does.
fn carry_out_but_tasks<P: Program>(
    cx: &Context,
    member: &Member<RunPart<P>>,
    id: GroupId,
    todo: Box<Todo<P>>,
) {
    let Todo { sends, tasks, failure, lost, wakers, waste, .. } = *todo;
    // Others wait for what is sent, and must not wait for the tasks, too.
    let is_urgent = tasks > 0 && !sends.is_empty();
    wakers.into_iter().for_each(Waker::wake);
    discard(waste);
    if let Some(superstep) = lost {
        tracing::warn!(
            "no checkpoint is whole: the results of {superstep} supersteps are computed again"
        );
    }
    let mut error = failure;
    let mut next = Some((id, sends)).filter(|(_, sends)| !sends.is_empty());
    while let Some((id, sends)) = next {
        for (to, told) in sends {
            let sent = send::<P>(cx, id, to, told);
            error = error.or(sent.err().map(BspError::from));
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

fn send<P: Program>(
    cx: &Context,
    id: GroupId,
    to: Pe,
    told: Told<Run<P>>,
) -> Result<(), TaskError> {
    let receive = async |cx: Context, (id, from, told): (GroupId, Pe, Told<Run<P>>)| {
        Groups::<RunPart<P>>::on(&cx).receive(id, from, [told]);
    };
    cx.tell(to, receive, (id, cx.pe(), told))
}

/// Makes tasks of this PE which do what user code is to do.
fn spawn_some<P: Program>(cx: &Context, name: Name, tasks: usize) {
    for _ in 0..tasks.min(cx.threads()) {
        drop(cx.spawn(Distance::ZERO, take_tasks::<P>, name));
    }
}

/// Does what user code is to do, for as long as there is anything.
#[expect(
    clippy::manual_async_fn,
    reason = "it spawns itself, so its type must say that it is Send"
)]
fn take_tasks<P: Program>(cx: Context, name: Name) -> impl Future<Output = ()> + Send {
    async move {
        let Some(member) = Groups::<RunPart<P>>::on(&cx).get(name) else { return };
        while let Some((id, todo)) = take_task(&cx, &member) {
            let tasks = todo.tasks;
            carry_out_but_tasks(&cx, &member, id, todo);
            spawn_some::<P>(&cx, name, tasks.saturating_sub(1));
            if cx.poll_runtime().is_some_and(|demand| demand.is_turn_wanted) {
                cx.yield_now().await;
            }
        }
    }
}

/// Does the first thing that user code is to do, if there is any.
fn take_task<P: Program>(
    cx: &Context,
    member: &Member<RunPart<P>>,
) -> Option<(GroupId, Box<Todo<P>>)> {
    let take = |_, part: &mut RunPart<P>| {
        Some((part.tasks.pop_front()?, part.ranks, part.argument.clone()))
    };
    let (task, ranks, argument) = member.with(take)??;
    match task {
        Task::Step(work, job) => take_step(cx, member, ranks, work, job),
        Task::Restore(work, rank, saved) => {
            restore(member, Start { rank, ranks }, &argument, work, saved)
        }
    }
}

/// What is saved of a rank.
type SavedRank<P, S, M> = (P, S, Vec<Letter<Tagged<M>>>, Vec<Option<super::kind::Value>>);

/// Saves a rank if need be, and has it take its step.
fn take_step<P: Program>(
    cx: &Context,
    member: &Member<RunPart<P>>,
    ranks: u32,
    work: Work,
    job: JobOf<Run<P>>,
) -> Option<(GroupId, Box<Todo<P>>)> {
    let JobOf::<Run<P>> { rank, state, letters, results, is_stepping } = job;
    let Work { superstep, .. } = work;
    let panicked = |stage: String, message| BspError::Panicked { rank, superstep, stage, message };
    let mut saved = None;
    if work.is_saved {
        let (state, stage) = &*state;
        let encode = || Bytes::of(&(state, stage, &letters, &results));
        let encoded = match caught(type_name::<P>(), encode) {
            Ok(encoded) => encoded.map_err(|message| BspError::Codec { rank, superstep, message }),
            Err(message) => Err(panicked("while it was saved".into(), message)),
        };
        match encoded {
            Ok(bytes) => saved = Some(bytes),
            Err(error) => return member.act(|part| part.machine.fail(error)),
        }
    }
    if !is_stepping {
        let saved = saved?;
        return member.act(|part| part.machine.saved(work, rank, saved, Some(state)));
    }
    if let Some(saved) = saved {
        // It travels while the rank takes its step.
        if let Some((id, todo)) = member.act(|part| part.machine.saved(work, rank, saved, None)) {
            carry_out_but_tasks(cx, member, id, todo);
        }
    }
    let (mut program, stage) = *state;
    let mut comm = Comm::new(Start { rank, ranks }, (superstep, work.is_quiet), letters, results);
    let label = || format!("{stage:?}");
    let next = match caught(type_name::<P>(), || program.step(stage.clone(), &mut comm)) {
        Ok(next) => next,
        Err(message) => {
            discard((program, comm));
            let error = panicked(format!("stage {}", label()), message);
            return member.act(|part| part.machine.fail(error));
        }
    };
    if let Some(tag) = comm.left() {
        let left = (tag, label());
        member.with(|_, part| {
            // A stage may be another in each superstep.
            if part.unread.len() < UNREAD_MAX {
                part.unread.insert(left);
            }
        });
    }
    let next = match next {
        Next::Stage(stage) => MachineNext::Awake(Box::new((program, stage))),
        Next::Sleep(stage) => MachineNext::Asleep(Box::new((program, stage))),
        Next::End(output) => {
            discard(program);
            match caught(type_name::<P::Output>(), || Bytes::of(&output)) {
                Ok(Ok(output)) => MachineNext::Ended(output),
                Ok(Err(message)) | Err(message) => {
                    let error = BspError::Codec { rank, superstep, message };
                    return member.act(|part| part.machine.fail(error));
                }
            }
        }
    };
    let (letters, offered) = (std::mem::take(&mut comm.sent), std::mem::take(&mut comm.offered));
    discard(comm);
    member.act(|part| part.machine.stepped(work, rank, Step { next, letters, offered }))
}

/// Makes a rank, or reads it from what was saved.
fn restore<P: Program>(
    member: &Member<RunPart<P>>,
    start: Start,
    argument: &P::Argument,
    work: Work,
    saved: Option<Bytes>,
) -> Option<(GroupId, Box<Todo<P>>)> {
    let (rank, superstep) = (start.rank, work.superstep);
    let make = || match saved {
        None => Ok((P::new(&start, argument), P::Stage::default(), Vec::new(), Vec::new())),
        Some(saved) => {
            let mut saved: SavedRank<P, P::Stage, P::Message> = saved.get()?;
            saved.0.restored(&start, argument);
            Ok(saved)
        }
    };
    let made = match caught(type_name::<P>(), make) {
        Ok(made) => made.map_err(|message| BspError::Codec { rank, superstep, message }),
        Err(message) => {
            let stage = "while it was made".into();
            Err(BspError::Panicked { rank, superstep, stage, message })
        }
    };
    match made {
        Ok((state, stage, letters, results)) => {
            let state = Box::new((state, stage));
            member.act(|part| part.machine.restored(work, rank, state, letters, results))
        }
        Err(error) => member.act(|part| part.machine.fail(error)),
    }
}
