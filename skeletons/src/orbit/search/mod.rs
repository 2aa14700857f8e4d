//! The search, level by level.

use super::moves::Moves;
use super::origin::{By, From, Origin};
use crate::join_set::JoinSet;
use crate::table::{Table, TableError, TableKey, TableRef, table};
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::marker::PhantomData;
use std::mem::replace;
use ultramarine_journal::Digest;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Future, Portable, Shared};
use ultramarine_runtime::wire::encode;
use ultramarine_topology::{Distance, Pe};

/// The number of states from which a task goes on, unless the program says another.
const STATES_AT_ONCE: usize = 1024;

/// What the table has of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Found<O> {
    /// The distance from the start.
    pub level: u32,
    /// How it was found.
    pub origin: O,
}

/// How far a search is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The number of states of each level that is complete.
    pub levels: Vec<u64>,
}

type Tell = Box<dyn FnMut(&Progress) + Send>;

/// A search that is yet to begin; see [`reachable`](super::reachable),
/// [`reachable_batched`](super::reachable_batched) and [`orbit`](super::orbit).
#[must_use = "nothing is searched until it is told to"]
pub struct Reachable<M, D, S, O> {
    moves: M,
    data: D,
    start: S,
    name: Option<String>,
    copies: usize,
    memory_max: Option<usize>,
    batch: usize,
    tell: Option<Tell>,
    origins: PhantomData<fn() -> O>,
}

impl<M, D, S, O> std::fmt::Debug for Reachable<M, D, S, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Reachable");
        shown.field("name", &self.name).field("copies", &self.copies).finish_non_exhaustive()
    }
}

/// All states that can be reached.
#[derive(Debug)]
pub struct Reached<S: TableKey, O: Origin<S>> {
    /// The number of states of each level: those whose distance from the start is its index.
    pub levels: Vec<u64>,
    /// The states.
    pub table: Table<S, Found<O>>,
}

impl<S: TableKey, O: Origin<S>> Reached<S, O> {
    /// The number of states.
    pub fn count(&self) -> u64 {
        self.levels.iter().sum()
    }
}

impl<S: TableKey> Reached<S, By> {
    /// The numbers of the successors that lead from the start to a state, on a shortest way. `undo`
    /// gives the state before, from a state and such a number. `None`: the state is not reached.
    ///
    /// # Errors
    ///
    /// Any [`TableError`].
    pub async fn way_to(
        &self,
        mut state: S,
        undo: impl Fn(&S, u32) -> S,
    ) -> Result<Option<Vec<u32>>, TableError> {
        let mut way = Vec::new();
        while let Some(found) = self.table.get(state.clone()).await? {
            let By(Some(number)) = found.origin else {
                way.reverse();
                return Ok(Some(way));
            };
            state = undo(&state, number);
            way.push(number);
        }
        Ok(None)
    }
}

impl<S: TableKey> Reached<S, From<S>> {
    /// The states that lead from the start to a state, both among them, on a shortest way. `None`:
    /// the state is not reached.
    ///
    /// # Errors
    ///
    /// Any [`TableError`].
    pub async fn way_to(&self, state: S) -> Result<Option<Vec<S>>, TableError> {
        let (mut way, mut next) = (Vec::new(), Some(state));
        while let Some(state) = next {
            let Some(found) = self.table.get(state.clone()).await? else { return Ok(None) };
            way.push(state);
            From(next) = found.origin;
        }
        way.reverse();
        Ok(Some(way))
    }
}

impl<M, D, S> Reachable<M, D, S, ()> {
    pub(super) fn new(moves: M, data: D, start: S) -> Self {
        let (name, memory_max, tell) = (None, None, None);
        let (copies, batch, origins) = (1, STATES_AT_ONCE, PhantomData);
        Reachable { moves, data, start, name, copies, memory_max, batch, tell, origins }
    }

    /// Of each state is kept by which successor it was found: a Schreier vector.
    pub fn by(self) -> Reachable<M, D, S, By> {
        self.with_origins()
    }

    /// Of each state the one before is kept.
    pub fn from(self) -> Reachable<M, D, S, From<S>> {
        self.with_origins()
    }

    fn with_origins<O>(self) -> Reachable<M, D, S, O> {
        let Reachable { moves, data, start, name, copies, memory_max, batch, tell, .. } = self;
        let origins = PhantomData;
        Reachable { moves, data, start, name, copies, memory_max, batch, tell, origins }
    }
}

impl<M, D, S, O> Reachable<M, D, S, O>
where
    M: Moves<D, S>,
    D: Portable + Sync,
    S: TableKey,
    O: Origin<S>,
{
    /// The name of the table. Default: one that follows from the function, its data and the start.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// [Copies](crate::table::Opening::copies) of the table's entries. Default 1.
    pub fn copies(mut self, copies: usize) -> Self {
        self.copies = copies;
        self
    }

    /// The most that states may take [on a PE](crate::table::Opening::memory_max).
    pub fn memory_max(mut self, bytes: usize) -> Self {
        self.memory_max = Some(bytes);
        self
    }

    /// A task goes on from this number of states, at least 1. Default 1024: fewer spread the work
    /// better where each takes long.
    pub fn batch(mut self, states: usize) -> Self {
        self.batch = states.max(1);
        self
    }

    /// Calls `f` on this PE as each level is complete.
    pub fn progress(mut self, f: impl FnMut(&Progress) + Send + 'static) -> Self {
        self.tell = Some(Box::new(f));
        self
    }

    /// Searches. The main task that a root's death has started anew goes on from what is found.
    ///
    /// # Errors
    ///
    /// Any [`TableError`]: all that held some states have died, the memory is full, a function
    /// panicked, or the job ends.
    pub async fn run(self, cx: &Context) -> Result<Reached<S, O>, TableError> {
        let Reachable { moves, data, start, name, copies, memory_max, batch, mut tell, .. } = self;
        let name = match name {
            Some(name) => name,
            None => name_of::<M, D, S>(&data, &start)?,
        };
        let mut opening = table::<S, Found<O>>(cx, name).copies(copies).noting_new();
        if let Some(bytes) = memory_max {
            opening = opening.memory_max(bytes);
        }
        let table = opening.open()?;
        let data = cx.share(data);
        let search = Search::<M, D, S, O> { cx, table: &table, data: &data, moves, batch };
        let mut heard = cx.dead();
        let is_new =
            table.insert_if_absent(start, Found { level: 0, origin: O::of_start() }).await?;
        let mut levels = if is_new { Vec::new() } else { search.known().await? };
        // The last level may be incomplete, and the one before is done again.
        levels.truncate(levels.len().saturating_sub(2));
        // What is new is not noted where a PE has died: in that level and the next the table says.
        let mut from_table_until = if is_new { None } else { Some(levels.len() + 1) };
        loop {
            let (level, dead) = (levels.len(), cx.dead());
            // Also between two levels, or before the start was known to be there.
            if replace(&mut heard, dead) != dead {
                from_table_until = Some(level + 1);
            }
            let is_from_table = from_table_until.is_some_and(|last| level <= last);
            if is_from_table {
                // It asks all shares: one that is lost must not be taken for an empty one.
                table.len().await?;
            }
            let count = search.level(level, is_from_table).await?;
            match count.filter(|_| cx.dead() == dead) {
                None => from_table_until = Some(level + 1),
                Some(0) => {
                    search.forget_seen().await?;
                    return Ok(Reached { levels, table });
                }
                Some(count) => {
                    levels.push(count);
                    if let Some(tell) = &mut tell {
                        tell(&Progress { levels: levels.clone() });
                    }
                }
            }
        }
    }
}

/// A search that has begun.
struct Search<'a, M, D: Portable + Sync, S: TableKey, O: Origin<S>> {
    cx: &'a Context,
    table: &'a Table<S, Found<O>>,
    data: &'a Shared<D>,
    moves: M,
    batch: usize,
}

/// What a PE needs to go on from the states of a level.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct LevelTask<S: TableKey, O: Origin<S>, D: Portable + Sync> {
    states: TableRef<S, Found<O>>,
    data: Shared<D>,
    batch: usize,
    level: u32,
    /// The table says which these states are, once the PE has heard of these deaths.
    from_table: Option<Vec<Pe>>,
}

impl<M, D, S, O> Search<'_, M, D, S, O>
where
    M: Moves<D, S>,
    D: Portable + Sync,
    S: TableKey,
    O: Origin<S>,
{
    /// The number of states of each level in the table.
    async fn known(&self) -> Result<Vec<u64>, TableError> {
        loop {
            let dead = self.cx.dead();
            self.table.len().await?;
            let argument = || (self.table.reference(), dead_of(self.cx));
            let counts = self.on_all(|cx, pe| cx.spawn_at(pe, count_levels, argument()));
            if let Some(counts) = counts.await?.filter(|_| self.cx.dead() == dead) {
                let longest = counts.iter().map(Vec::len).max().unwrap_or(0);
                let of = |level| counts.iter().filter_map(move |counts| counts.get(level)).sum();
                return Ok((0..longest).map(of).collect());
            }
        }
    }

    /// Goes on from all states of a level. Returns how many there are; `None`: a PE has died.
    async fn level(&self, level: usize, is_from_table: bool) -> Result<Option<u64>, TableError> {
        let level = u32::try_from(level).unwrap_or(u32::MAX);
        let moves = self.moves;
        let go_on = move |cx: Context, argument| go_on_from_level(moves, cx, argument);
        let from_table = is_from_table.then(|| dead_of(self.cx));
        let spawn = |cx: &Context, pe| {
            let (states, data) = (self.table.reference(), self.data.clone());
            let (batch, from_table) = (self.batch, from_table.clone());
            cx.spawn_at(pe, go_on, LevelTask { states, data, batch, level, from_table })
        };
        let counts = self.on_all(spawn).await?;
        Ok(counts.map(|counts| counts.into_iter().sum()))
    }

    /// Has all PEs forget what they have inserted, which may be much.
    async fn forget_seen(&self) -> Result<(), TableError> {
        let forget = async |cx: Context, table: TableRef<S, Found<O>>| {
            table.on(&cx)?.forget_seen();
            Ok::<_, TableError>(())
        };
        self.on_all(|cx, pe| cx.spawn_at(pe, forget, self.table.reference())).await.map(drop)
    }

    /// Has a task done on each PE that lives. `None`: one has died.
    async fn on_all<R: Portable>(
        &self,
        spawn: impl Fn(&Context, Pe) -> Future<Result<R, TableError>>,
    ) -> Result<Option<Vec<R>>, TableError> {
        let cx = self.cx.unsupervised();
        let living = (0..cx.pes()).map(Pe::new).filter(|pe| !cx.is_dead(*pe));
        // A search that is dropped ends them.
        let tasks: Vec<_> = living.map(|pe| AbortOnDrop::new(spawn(&cx, pe))).collect();
        let (mut results, mut is_lost) = (Vec::new(), false);
        // Each is awaited: none may add states when the next level has begun.
        for task in tasks {
            match task.await {
                Ok(result) => results.push(result),
                Err(TaskError::Lost { .. }) => is_lost = true,
                Err(error) => results.push(Err(error.into())),
            }
        }
        let results = results.into_iter().collect::<Result<Vec<R>, TableError>>()?;
        Ok((!is_lost).then_some(results))
    }
}

/// The PEs of whose deaths this one has heard.
fn dead_of(cx: &Context) -> Vec<Pe> {
    (0..cx.pes()).map(Pe::new).filter(|pe| cx.is_dead(*pe)).collect()
}

/// The number of states of each level that this PE owns, once it has heard of these deaths.
async fn count_levels<S: TableKey, O: Origin<S>>(
    cx: Context,
    (table, dead): (TableRef<S, Found<O>>, Vec<Pe>),
) -> Result<Vec<u64>, TableError> {
    let table = table.on(&cx)?;
    table.forget_seen();
    table.hear_of(&dead).await;
    let mut counts: Vec<u64> = Vec::new();
    let count = |_: &S, found: &Found<O>| {
        let level = found.level as usize;
        counts.resize(counts.len().max(level + 1), 0);
        counts[level] += 1;
    };
    table.for_each_local(count).await;
    Ok(counts)
}

/// Goes on from those states of a level that this PE owns. Returns how many there are.
async fn go_on_from_level<M, D, S, O>(
    moves: M,
    cx: Context,
    LevelTask { states, data, batch, level, from_table }: LevelTask<S, O, D>,
) -> Result<u64, TableError>
where
    M: Moves<D, S>,
    D: Portable + Sync,
    S: TableKey,
    O: Origin<S>,
{
    let table = states.on(&cx)?;
    let mut of_level = table.take_new(|found| found.level <= level);
    if let Some(dead) = from_table {
        table.hear_of(&dead).await;
        of_level.clear();
        let add = |state: &S, found: &Found<O>| {
            if found.level == level {
                of_level.push(state.clone());
            }
        };
        table.for_each_local(add).await;
    }
    let count = of_level.len() as u64;
    let go_on = move |cx: Context, argument| go_on_from(moves, cx, argument);
    let mut tasks = JoinSet::new().window(2 * cx.threads() + 1);
    while !of_level.is_empty() {
        let some = of_level.split_off(of_level.len().saturating_sub(batch));
        let argument = (states.clone(), data.clone(), level, some);
        tasks.spawn(&cx, Distance::ZERO, go_on, argument);
        if tasks.is_full()
            && let Some(done) = tasks.next().await
        {
            done??;
        }
    }
    while let Some(done) = tasks.next().await {
        done??;
    }
    Ok(count)
}

/// Goes on from some states of a level.
async fn go_on_from<M, D, S, O>(
    moves: M,
    cx: Context,
    (table, data, level, states): (TableRef<S, Found<O>>, Shared<D>, u32, Vec<S>),
) -> Result<(), TableError>
where
    M: Moves<D, S>,
    D: Portable + Sync,
    S: TableKey,
    O: Origin<S>,
{
    let table = table.on(&cx)?;
    let mut found = Vec::new();
    let add = |state: &S, number, next| {
        found.push((next, Found { level: level + 1, origin: O::of(state, number) }));
    };
    moves.follow(&cx, &data, states, add).await?;
    table.insert_unless_seen(found).await
}

/// The name of a search's table, if it is not given one.
fn name_of<M, D: Serialize, S: Serialize>(data: &D, start: &S) -> Result<String, TableError> {
    let mut digest = Digest::default();
    let encoded = encode(&(data, start)).map_err(|error| TaskError::Codec {
        what: "data or the start of a search".into(),
        reason: error.to_string(),
    })?;
    digest.add(&encoded);
    Ok(format!("{} {:x}", type_name::<M>(), digest.finish()))
}

#[cfg(test)]
mod tests;
