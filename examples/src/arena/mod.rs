//! The flag `--arena`: the work is a task set in memory that the processes of a host share, and
//! that outlives them.
//!
//! Each unit of work is a task. Its result is what the unit came to; what it leaves to do are
//! further tasks. A unit that runs again leaves the same, under the same numbers, so nothing is
//! counted twice: the tasks are idempotent. The continuation of the set adds all results up.
//!
//! A worker may meet tasks of other sets in the file, which a job with other parameters has left.
//! So each set keeps its parameters in a cell, and is named by them.
//!
//! A unit in which worker after worker dies is given up: its result, and that of its set, says so.
//! It is no error of the worker that meets it, or a set that was left would fail other jobs.

mod near;

pub use near::nearest_first;

use crate::{Job, Report};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::taskset::{Arena, Call, Code, Error as ArenaError, Options, TaskSet};
use ultramarine::{Error, Result, Topology};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Where the task set is, if there is to be one.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ArenaFlags {
    /// Work as a task set in this file, best in /dev/shm: processes that are killed lose nothing,
    /// and a job that is started again goes on. All PEs must be on one host. The file stays; remove
    /// it when it is not needed any more.
    #[arg(
        long = "arena",
        value_name = "FILE",
        id = "arena",
        conflicts_with_all = ["journal", "skeleton", "progress"]
    )]
    pub(crate) file: Option<PathBuf>,
}

/// Work in units. Its parameters are its fields.
pub(crate) trait Units: Serialize + DeserializeOwned + 'static {
    /// What units come to, alone or together.
    type Found: Default + Serialize + DeserializeOwned;

    /// The unit that all others come from.
    fn whole(&self) -> Vec<u8>;

    /// Does a unit, and says what of it is left for further units: the same each time. `None` if it
    /// is no unit.
    fn run(&self, unit: &[u8], left: &mut Vec<Vec<u8>>) -> Option<Self::Found>;

    /// Adds up what units came to.
    fn add(found: &mut Self::Found, more: Self::Found);
}

/// A unit of numbers.
pub(crate) fn unit_of<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    numbers.map(u64::to_le_bytes).concat()
}

/// The numbers of a unit, if it has as many.
pub(crate) fn numbers_in<const N: usize>(unit: &[u8]) -> Option<[u64; N]> {
    let (numbers, []) = unit.as_chunks() else { return None };
    let numbers: &[_; N] = numbers.try_into().ok()?;
    Some(numbers.map(u64::from_le_bytes))
}

/// Work that has ended.
pub(crate) struct ArenaRun<F> {
    pub(crate) found: F,
    start: Instant,
    /// The number of units that had been done before.
    kept: usize,
    /// The number of units that were done, but for those by processes that died.
    computed: u64,
}

impl<F> ArenaRun<F> {
    /// The report of the work, which has just ended with this `result`.
    ///
    /// # Errors
    ///
    /// The statistics cannot be gathered.
    pub(crate) async fn report(&self, job: &Job, result: impl Serialize) -> Result<Report> {
        let report = job.report("task-set", self.start, result).await?;
        Ok(report.with("kept", self.kept).with("computed", self.computed))
    }
}

/// Does the work in the arena in this file, on all PEs.
///
/// # Errors
///
/// The PEs are on several hosts, or the arena cannot be used.
pub(crate) async fn run_in_arena<U: Units>(
    job: &Job,
    file: &Path,
    units: &U,
) -> Result<ArenaRun<U::Found>> {
    // What a dead PE had to do, others take over in the arena.
    let cx = job.cx.unsupervised();
    require_one_host(cx.topology())?;
    let start = Instant::now();
    // Open until the result is read: no other job may have it before.
    let (place, arena) = Place::new(job, file, units).await?;
    let kept = place.prepare(&arena, units)?;
    let mut computed = 0;
    let mut failed = Vec::new();
    if outcome::<U>(&arena, &place)?.is_none() {
        let work = async |cx, place: Place| place.work::<U>(&cx).map_err(Failure::from);
        let mut workers = Vec::new();
        for pe in (0..cx.pes()).map(Pe::new) {
            // None of a PE that is dead.
            let threads = cx.ask(pe, async |cx: Context, ()| cx.threads(), ()).await.unwrap_or(0);
            workers.extend((0..threads).map(|_| cx.spawn_at(pe, work, place.clone())));
        }
        for worker in workers {
            match worker.await {
                Ok(Ok(units)) => computed += units,
                Ok(Err(failure)) => failed.push(Error::from(failure)),
                Err(TaskError::Lost { .. }) => {}
                Err(error) => failed.push(error.into()),
            }
        }
    }
    let Some(found) = outcome::<U>(&arena, &place)? else {
        let first = failed.into_iter().next();
        return Err(first.unwrap_or_else(|| Error::other("--arena: no worker was left")));
    };
    // The others have done its work.
    for error in failed {
        eprintln!("--arena: a worker has left: {error}");
    }
    Ok(ArenaRun { found, start, kept, computed })
}

/// Refuses a job whose processes have no memory that all of them can see.
///
/// # Errors
///
/// The PEs are on several hosts.
pub fn require_one_host(topology: &Topology) -> Result<()> {
    match topology.hosts() {
        0..=1 => Ok(()),
        hosts => Err(Error::other(format!(
            "--arena: the PEs are on {hosts} hosts, and an arena is in the memory of one: start \
             all of them on one host"
        ))),
    }
}

/// What a set comes to: the sum of its units, or the number of one that was given up.
type Outcome<U> = std::result::Result<<U as Units>::Found, u64>;

/// What the set has come to, if it has finished.
fn outcome<U: Units>(arena: &Arena, place: &Place) -> Result<Option<U::Found>> {
    let Some(outcome) = arena.join()?.set(&place.set)?.outcome()? else { return Ok(None) };
    let found = serde_json::from_slice::<Outcome<U>>(&outcome)?.map_err(|unit| {
        let file = place.file.display();
        Error::other(format!(
            "--arena: more than {DEATHS_MAX} workers have died in the unit {unit}, and it was \
             given up: to try it again, remove `{file}`"
        ))
    });
    found.map(Some)
}

/// The cell of a set with its parameters.
const PARAMETERS: u64 = 0;
/// The code of a set's first task. That of any other is drawn from its parent's.
const WHOLE: Code = [0; 16];
/// The code of the continuation.
const SUM: Code = [0xff; 16];

/// The most workers that may die in a unit while others live. (Some may be killed from outside in
/// the same one.)
const DEATHS_MAX: u16 = 10;

/// How long a new root waits until it can open the arena: the processes that the old root told to
/// are about to open it, and a process that has died keeps it for a moment.
const OPENS_WITHIN: Duration = Duration::from_secs(10);
const TRIES_EVERY: Duration = Duration::from_millis(50);

/// The number of the job for its processes, as soon as this one has opened the arena.
static JOB: OnceLock<u64> = OnceLock::new();

/// The arena, while a thread of this process has it.
static OPEN: Mutex<Weak<Arena>> = Mutex::new(Weak::new());

/// Where the work is, for all PEs.
#[derive(Clone, Serialize, Deserialize)]
struct Place {
    file: PathBuf,
    job: u64,
    build: u64,
    /// The name of the set.
    set: String,
    parameters: Vec<u8>,
}

impl Place {
    /// Where that is, and the arena.
    ///
    /// # Errors
    ///
    /// The arena cannot be opened.
    async fn new(job: &Job, file: &Path, units: &impl Units) -> Result<(Place, Arc<Arena>)> {
        let cx = &job.cx;
        let parameters = serde_json::to_vec(units)?;
        let set = format!("{} {:032x}", job.program, xxh3_128(&parameters));
        let (file, build) = (std::path::absolute(file)?, ultramarine::build::of_this_program()?);
        let begun = Instant::now();
        let mut place = Place { file, job: job_number(cx).await, build, set, parameters };
        loop {
            match place.open() {
                Err(ArenaError::Busy(_)) if cx.attempt() > 1 && begun.elapsed() < OPENS_WITHIN => {
                    cx.sleep(TRIES_EVERY).await;
                    place.job = job_number(cx).await;
                }
                opened => return Ok((place, opened?)),
            }
        }
    }

    fn open(&self) -> std::result::Result<Arc<Arena>, ArenaError> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(arena) = open.upgrade() {
            return Ok(arena);
        }
        let arena = Arc::new(Arena::open(&self.file, &Options::new(self.job, self.build))?);
        // Another PE of this process may have said the same.
        let _ = JOB.set(self.job);
        *open = Arc::downgrade(&arena);
        Ok(arena)
    }

    /// Makes the set, if there is none; returns the number of its units that have been done.
    fn prepare(&self, arena: &Arena, units: &impl Units) -> Result<usize> {
        let worker = arena.join()?;
        let set = worker.set(&self.set)?;
        let cell = set.cell(PARAMETERS)?;
        if cell.read()? != self.parameters {
            // Before there is a task that needs them.
            cell.update(|_| self.parameters.clone())?;
        }
        set.then(SUM, &[])?;
        set.add(0, WHOLE, &units.whole())?;
        set.results().try_fold(0, |count, unit| Ok(unit.map(|_| count + 1)?))
    }

    /// Works until the set has finished; returns the number of its units that it has done.
    fn work<U: Units>(&self, cx: &Context) -> Result<u64> {
        let arena = self.open()?;
        let worker = match arena.join() {
            // There are enough others.
            Err(ArenaError::NoSlot(_)) => return Ok(0),
            joined => joined?,
        };
        let set = worker.set(&self.set)?;
        if set.cell(PARAMETERS)?.read()? != self.parameters {
            let file = self.file.display();
            return Err(Error::other(format!("--arena: `{file}` is not the root's file")));
        }
        near::say_where(&worker, &set, cx.pe())?;
        near::rob_nearest(&worker, &set, cx)?;
        let mut computed: u64 = 0;
        set.try_run(|call| -> Result<_> {
            // Some join later.
            if computed.is_power_of_two() {
                near::rob_nearest(&worker, &set, cx)?;
            }
            let set = call.set()?;
            if call.code() == SUM {
                return sum::<U>(&set);
            }
            if call.deaths() > DEATHS_MAX {
                return Ok(serde_json::to_vec(&None::<U::Found>)?);
            }
            let parameters = set.cell(PARAMETERS)?.read()?;
            computed += u64::from(parameters == self.parameters);
            run_unit(&serde_json::from_slice::<U>(&parameters)?, call, &set)
        })?;
        Ok(computed)
    }
}

fn sum<U: Units>(set: &TaskSet<'_>) -> Result<Vec<u8>> {
    let mut sum = U::Found::default();
    for unit in set.results() {
        let (number, found) = unit?;
        let Some(found) = serde_json::from_slice(&found)? else {
            return Ok(serde_json::to_vec(&Outcome::<U>::Err(number))?);
        };
        U::add(&mut sum, found);
    }
    Ok(serde_json::to_vec(&Outcome::<U>::Ok(sum))?)
}

/// Does a unit, and adds to the set what it leaves.
///
/// The code of a task is a hash of the way to it from the whole, and so is its number. Numbers have
/// 64 bits: if one is another's, the task has the next one, as it will when it is added again.
fn run_unit<U: Units>(units: &U, call: &Call<'_>, set: &TaskSet<'_>) -> Result<Vec<u8>> {
    let mut left = Vec::new();
    let found = units.run(&call.argument()?, &mut left);
    let found = found.ok_or_else(|| Error::other("--arena: a task that this program has not"))?;
    let parent = call.code();
    let first = xxh3_64(&parent);
    for (index, unit) in (0_u64..).zip(left) {
        let code = xxh3_128(&[&parent[..], &index.to_le_bytes()].concat()).to_le_bytes();
        let mut number = first.wrapping_add(index);
        loop {
            match set.add(number, code, &unit) {
                Err(ArenaError::OtherTask(_) | ArenaError::Number(_)) => {
                    number = number.wrapping_add(1);
                }
                added => {
                    added?;
                    break;
                }
            }
        }
    }
    Ok(serde_json::to_vec(&Some(found))?)
}

/// A number that no other job has. A root that has taken another's place has that one's, if any
/// process has opened the arena by then.
async fn job_number(cx: &Context) -> u64 {
    if cx.attempt() > 1 {
        for pe in (0..cx.pes()).map(Pe::new) {
            if let Ok(Some(job)) = cx.ask(pe, async |_, ()| JOB.get().copied(), ()).await {
                return job;
            }
        }
    }
    RandomState::new().hash_one(())
}
