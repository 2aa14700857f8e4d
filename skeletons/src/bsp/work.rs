//! What user code does in a run: ranks are made, take steps, and are saved.

use super::comm::Comm;
use super::error::BspError;
use super::kind::{Left, Run, Tagged, Value};
use super::machine::{JobOf, Letter, Next as MachineNext, Step, Work};
use super::part::{RunPart, Task, Todo, carry_out_but_tasks};
use super::program::{Next, Program, Start};
use serde::Serialize;
use std::any::type_name;
use std::collections::BTreeSet;
use std::future::Future;
use std::time::Instant;
use ultramarine_group::{GroupId, Groups, Member, Name};
use ultramarine_runtime::array::Encoded;
use ultramarine_runtime::executor::{Context, caught, discard};
use ultramarine_runtime::wire::WireError;
use ultramarine_topology::Distance;

/// What is to be done next, outside of the part's lock.
type Wanted<P> = Option<(GroupId, Box<Todo<P>>)>;

/// Makes tasks of this PE which do what user code is to do.
pub(super) fn spawn_some<P: Program>(cx: &Context, name: Name, tasks: usize) {
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
            // Other tasks have their turn, too, as where this PE is alone.
            cx.yield_now().await;
        }
    }
}

/// Does the first thing that user code is to do, if there is any.
pub(super) fn take_task<P: Program>(cx: &Context, member: &Member<RunPart<P>>) -> Wanted<P> {
    let take = |_, part: &mut RunPart<P>| {
        Some((part.tasks.pop_front()?, part.ranks, part.argument.clone()))
    };
    let (task, ranks, argument) = member.with(take)??;
    let (work, done) = match task {
        Task::Step(work, job) => (work, take_step(cx, member, ranks, work, job)),
        Task::Restore(work, rank, saved) => {
            (work, restore(member, Start { rank, ranks }, &argument, work, saved))
        }
    };
    done.unwrap_or_else(|error| member.act(|part| part.machine.fail_in(work, error)))
}

/// What is saved of a rank.
type SavedRank<P, S, M> = (P, S, Vec<Letter<Tagged<M>>>, Vec<Option<Value>>);

/// Has user code do something with a rank.
fn caught_in<P, R>(
    rank: u32,
    work: Work,
    stage: impl FnOnce() -> String,
    act: impl FnOnce() -> R,
) -> Result<R, BspError> {
    caught(type_name::<P>(), act).map_err(|message| {
        let (superstep, stage) = (work.superstep, stage());
        BspError::Panicked { rank, superstep, stage, message }
    })
}

/// Encodes something of a rank.
fn encode<P>(rank: u32, work: Work, value: &impl Serialize) -> Result<Encoded, BspError> {
    let encoded =
        caught_in::<P, _>(rank, work, || "while it was saved".into(), || Encoded::of(value))?;
    encoded.map_err(|error| codec(rank, work, &error))
}

fn codec(rank: u32, work: Work, error: &impl ToString) -> BspError {
    BspError::Codec { rank, superstep: work.superstep, message: error.to_string() }
}

/// Saves a rank if need be, and has it take its step.
fn take_step<P: Program>(
    cx: &Context,
    member: &Member<RunPart<P>>,
    ranks: u32,
    work: Work,
    job: JobOf<Run<P>>,
) -> Result<Wanted<P>, BspError> {
    let JobOf::<Run<P>> { rank, state, letters, results, is_stepping } = job;
    if work.is_saved {
        let begun = Instant::now();
        let (program, stage) = &*state;
        let saved = encode::<P>(rank, work, &(program, stage, &letters, &results))?;
        let took = begun.elapsed();
        let save = |part: &mut RunPart<P>, back| {
            let at_once = cx.threads().min(part.machine.own().len()).max(1);
            part.pace.spend(took / at_once as u32);
            part.machine.saved(work, rank, saved, back);
        };
        if !is_stepping {
            return Ok(member.act(|part| save(part, Some(state))));
        }
        // It travels while the rank takes its step.
        if let Some((id, todo)) = member.act(|part| save(part, None)) {
            carry_out_but_tasks(cx, member, id, todo);
        }
    }
    let (mut program, stage) = *state;
    let start = Start { rank, ranks };
    let mut comm = Comm::new(start, (work.superstep, work.is_quiet), letters, results);
    let label = || format!("{stage:?}");
    let step = || program.step(stage.clone(), &mut comm);
    let begun = Instant::now();
    let next = match caught_in::<P, _>(rank, work, || format!("stage {}", label()), step) {
        Ok(next) => next,
        Err(error) => {
            discard((program, comm));
            return Err(error);
        }
    };
    let now = Instant::now();
    let took = now - begun;
    let left = comm.left();
    if !left.is_empty() {
        let stage = label();
        member.with(|_, part| part.note_unread(left, &stage));
    }
    let next = match next {
        Next::Stage(stage) => MachineNext::Awake(Box::new((program, stage))),
        Next::Sleep(stage) => MachineNext::Asleep(Box::new((program, stage))),
        Next::End(output) => {
            discard(program);
            let (output, unread) = (encode::<P>(rank, work, &output)?, BTreeSet::new());
            MachineNext::Ended(Left { output, unread })
        }
    };
    let (letters, offered) = (std::mem::take(&mut comm.sent), std::mem::take(&mut comm.offered));
    let note = comm.note.take();
    discard(comm);
    Ok(member.act(|part| {
        part.note = note.or(part.note.take());
        part.note_step(begun, now);
        let mut step: Step<Run<P>> = Step { next, letters, offered, took };
        if let MachineNext::Ended(Left { unread, .. }) = &mut step.next {
            unread.clone_from(&part.unread);
        }
        part.machine.stepped(work, rank, step);
    }))
}

/// Makes a rank, or reads it from what was saved.
fn restore<P: Program>(
    member: &Member<RunPart<P>>,
    start: Start,
    argument: &P::Argument,
    work: Work,
    saved: Option<Encoded>,
) -> Result<Wanted<P>, BspError> {
    let rank = start.rank;
    let what = if saved.is_some() { "while it was restored" } else { "while it was made" };
    let make = || match saved {
        None => Ok((P::new(&start, argument), P::Stage::default(), Vec::new(), Vec::new())),
        Some(saved) => {
            let mut saved: SavedRank<P, P::Stage, P::Message> = saved.decode()?;
            saved.0.restored(&start, argument);
            Ok(saved)
        }
    };
    let made = caught_in::<P, _>(rank, work, || what.into(), make)?;
    let (state, stage, letters, results) =
        made.map_err(|error: WireError| codec(rank, work, &error))?;
    let state = Box::new((state, stage));
    Ok(member.act(|part| part.machine.restored(work, rank, state, letters, results)))
}
