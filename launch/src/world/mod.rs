//! A job whose PEs are processes that MPI connects.
//!
//! | file | what |
//! |---|---|
//! | `mpi_thread` | the thread that starts and finalises MPI |
//! | `bootstrap` | making up the job together: programs compared, infos shown |
//! | `collectives` | what they tell the first for that, and it tells all; counted |
//! | `connect` | how the PEs reach each other: the lane, the fallback lane, the detector |
//! | `rank_info` | what each process tells about itself |
//! | `roster` | what all have to know of all of these |
//! | `binding` | whether it is bound as was asked for |
//! | `calibration` | how fast it is |
//! | `cpu` | whether all hosts have the same kind of CPU |
//! | `deadline` | an end to waiting for processes that never start |
//! | `early_end` | what a process tells the others that fails before it takes part |

mod binding;
mod bootstrap;
mod calibration;
mod collectives;
mod connect;
mod cpu;
mod deadline;
pub(crate) mod early_end;
mod mpi_thread;
mod rank_info;
mod roster;

use self::bootstrap::Joined;
use self::connect::{Presence, testify};
use self::deadline::{StartDeadline, start_deadline};
use self::mpi_thread::{FAILED_WITHIN, MpiThread, library_version};
use crate::error::{Error, Result, StartError};
use crate::faults::DeathTimer;
use crate::log;
use crate::main_task::MainTask;
use crate::options::Options;
use crate::request::{self, ShutdownRequest};
use crate::trace;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_environment::launcher::Launched;
use ultramarine_guard::{self as guard, GuardedChild};
use ultramarine_runtime::executor::{Job, JobError, Leave, Parting};
use ultramarine_topology::Pe;

/// Finalising takes milliseconds, though tens of seconds on a starved machine. After this
/// time something is wrong that no PE has noticed.
const FINALISE_WITHIN: Duration = Duration::from_mins(1);

/// How soon after the death of a process its guard asks whether others are there. Meanwhile these
/// stay, though the job is over.
const ASKED_WITHIN: Duration = Duration::from_secs(1);

/// What is to be said if the job was asked to end, and its root cannot say anything.
const ASKED: &str = "the job was asked to end, by Ctrl-C or SIGTERM, and its root has ended \
                     without a result";

/// How long a process that has lost the root waits for the signal that may have ended it: launchers
/// send it to all processes, one after the other.
const RUMOUR: Duration = Duration::from_millis(200);

/// Runs this process's part of the job. The others hear of it if its options are wrong.
pub(crate) fn run(
    options: Result<Options, StartError>,
    launched: Launched,
    main: MainTask<'_>,
) -> Result<()> {
    static HAS_RUN: AtomicBool = AtomicBool::new(false);
    if HAS_RUN.swap(true, Ordering::Relaxed) {
        return Err(StartError::OneJobOnly.into());
    }
    early_end::mark_as_joining();
    // Before there is a guard: for that the program may be started anew, and no launcher lets a
    // process start MPI twice.
    mpi_thread::is_not_started()?;
    let is_wanted = options.as_ref().map_or(true, Options::is_guarded);
    let deadline = start_deadline(options.as_ref().ok());
    let child = guard::install(launched, is_wanted, deadline, library_version, testify);
    let shared_memory = child.lacks_shared_memory(launched);
    if let Some(reason) = shared_memory.as_ref().filter(|_| launched.rank == 0) {
        tracing::warn!("MPI goes without shared memory, and is slower within a host: {reason}");
    }
    options.iter().for_each(|options| options.raise_descriptor_limit(Some(launched)));
    let deadline = StartDeadline::set(deadline, launched);
    let trace = options.iter().find_map(|options| options.trace_folder().map(Path::to_owned));
    // Before another process can have begun its part.
    trace.iter().filter(|_| launched.rank == 0).for_each(|folder| trace::remove_former(folder));
    let (mpi, start) = MpiThread::start(move |world| bootstrap::join(world, options, launched))?;
    match start {
        Ok(joined) => {
            drop(deadline);
            take_part(child, mpi, joined, trace.as_deref(), main)
        }
        Err(error) => {
            // All processes have failed, and finalise together, if they can. The deadline still
            // holds.
            if mpi.finalise(FAILED_WITHIN, || true) {
                child.finalised();
            } else {
                child.leaves();
            }
            // Rank 0 knows and says it. If this process failed too, some launchers would end
            // rank 0 before it has.
            let said_elsewhere = matches!(error, StartError::SaidElsewhere);
            if said_elsewhere { Ok(()) } else { Err(error.into()) }
        }
    }
}

/// How this process's part of the job has come out.
struct End {
    me: Pe,
    result: Result<()>,
    parting: Parting,
    /// It is the root.
    is_root: bool,
    /// The job goes on when its root has died.
    outlives_root: bool,
    /// To the others it is as one that has died.
    is_as_dead: bool,
    /// How it hears that the user ends the job, if it is not the root's.
    shutdown: Option<ShutdownRequest>,
}

/// Runs this process's part of a job that is made up.
fn take_part(
    mut child: GuardedChild,
    mpi: MpiThread,
    joined: Joined,
    trace: Option<&Path>,
    main: MainTask<'_>,
) -> Result<()> {
    let Joined { job, presence, dies_after } = joined;
    let outlives_root = job.settings.detector.succession;
    let Presence { others, listens: _listens, testimony } = presence;
    child.joined(patience_with(&job), if outlives_root { &others } else { &[] }, testimony);
    // An observer outside of the job learns from this which process is which PE, and that
    // from now on it may die.
    let (pes, process) = (job.topology.pes(), std::process::id());
    tracing::info!("the job begins: {} of {pes} is process {process}", job.me);
    let _death_timer = dies_after.map(|after| DeathTimer::start(job.me, after)).transpose()?;
    let me = job.me;
    let recording = trace::record(trace, me, &job.topology);
    let shutdown = (me != Pe::ROOT).then(request::leave_to_the_root);
    // MPI should be finalised; but not between hosts, nor without shared memory: there a process
    // may wait for an answer on a connection to one that, in the launcher's barrier, looks at no
    // connection any more. (MPICH 4.0 over UCX's TCP did in two of three short jobs on four hosts.)
    // All have agreed on the end before, and their guards can take leave of the launcher.
    let is_safe = job.topology.is_on_one_host() && !child.goes_without_shared_memory();
    let may_finalise = is_safe || !child.is_guarded();
    let asked = shutdown.clone();
    let may_go_on = move |root| match &asked {
        // The user does not want it to go on.
        Some(asked) if asked.has_come() => false,
        Some(asked) if root == me => asked.is_ours_now(),
        _ => true,
    };
    let (outcome, parting) = main.take_part(job, may_go_on, guard::job_ended_elsewhere);
    drop(recording);
    let is_as_dead = matches!(&outcome, Err(error) if error.is_of_own_lane());
    let is_replaced = match &outcome {
        // The others have outvoted it.
        Err(JobError::Expelled { .. }) => true,
        // They are about to hear of it.
        Err(error) => error.is_of_own_lane() && outlives_root && !parting.is_alone(),
        Ok(_) => false,
    };
    let is_root = me == parting.root() && !is_replaced;
    let result = match outcome {
        Ok(returned) => returned.unwrap_or(Ok(())),
        Err(error) => Err(error.into()),
    };
    if outlives_root && !(is_root && result.is_ok()) {
        child.job_is_over(is_root);
    }
    // The root leaves at once if others can stay: were it killed meanwhile, its exit code would be
    // lost.
    if outlives_root && result.is_ok() && (!is_root || parting.is_alone()) {
        parting.stay_after_deaths(ASKED_WITHIN);
    }
    let finalises = may_finalise && parting.leave == Leave::Orderly;
    let end = End { me, result, parting, is_root, outlives_root, is_as_dead, shutdown };
    leave(child, mpi, end, finalises)
}

/// Finalises MPI together with all others, if this one `finalises`, or else leaves without. Returns
/// what the process ends with.
fn leave(child: GuardedChild, mpi: MpiThread, end: End, finalises: bool) -> Result<()> {
    let is_root = end.is_root;
    // The root was told what went wrong elsewhere, and ends with that.
    let ending = |result| if is_root { result } else { Ok(()) };
    if finalises && end.outlives_root && end.result.is_ok() {
        // Its result counts, whatever becomes of it from now on.
        child.job_is_over(false);
    }
    if finalises && mpi.finalise(FINALISE_WITHIN, || end.parting.are_others_there()) {
        child.finalised();
        end.parting.goodbye();
        return ending(end.result);
    }
    // Finalising is collective, and another process does not answer, or may not: so this one never
    // finalises.
    if end.parting.leave == Leave::Hasty && is_root && end.result.is_err() {
        log::flush();
        child.aborts();
        mpi.abort();
    }
    tracing::info!("{} ends without finalising MPI", end.me);
    if end.result.is_err() {
        child.gives_up(end.is_as_dead);
    }
    child.leaves();
    mpi.abandon();
    if finalises {
        // A PE died when all had left. Others may not have heard of it, and wait for it in
        // `MPI_Finalize`. They do hear that this one goes without a goodbye, and then go, too.
        drop(end.parting);
        return ending(end.result);
    }
    leave_without_the_others(end)
}

/// What a process ends with when it does not end together with all others.
fn leave_without_the_others(end: End) -> Result<()> {
    let End { result, parting, is_root, outlives_root, shutdown, .. } = end;
    match result {
        // That is all that is left to say to others.
        Err(Error::Job(error @ JobError::RootLost { .. })) => {
            if outlives_root {
                // A goodbye would say that the job is over. It may go on without this process.
                drop(parting);
            } else {
                parting.goodbye();
            }
            // A user who has ended the job, by Ctrl-C say, does not want to hear this of each
            // process.
            match shutdown.is_some_and(|asked| comes_within(RUMOUR, &asked)) {
                // The root may have been killed on the way: one has to say so.
                true if outlives_root && is_root => Err(Error::other(ASKED)),
                true => Ok(()),
                false => Err(error.into()),
            }
        }
        // It has said why. The others go on without it (its tasks run again, as if it had died),
        // and the launcher must not end them.
        Err(Error::Job(_)) if !is_root => Ok(()),
        result => {
            parting.goodbye();
            result
        }
    }
}

/// Whether the job was asked to end, or is in time.
fn comes_within(limit: Duration, asked: &ShutdownRequest) -> bool {
    let start = Instant::now();
    while !asked.has_come() && start.elapsed() < limit {
        thread::sleep(RUMOUR / 20);
    }
    asked.has_come()
}

/// How long the others bear with this PE while it is stopped.
fn patience_with(job: &Job) -> Duration {
    let settings = &job.settings.detector;
    let is_needed = job.me == Pe::ROOT && !settings.succession;
    let own = if is_needed { settings.root_after } else { settings.stalled_after };
    own.max(settings.dead_after)
}
