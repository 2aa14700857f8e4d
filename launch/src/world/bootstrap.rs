//! Making up the job: rank 0 hears over MPI what each process has, and says what becomes of it.
//! What is wrong on one process is an error on all, so that no process waits for it.

use super::collectives::{Collectives, decide};
use super::connect::{Connected, Presence};
use super::mpi_thread::library_version;
use super::rank_info::RankInfo;
use super::roster::Roster;
use super::{connect, cpu};
use crate::error::StartError;
use crate::log;
use crate::options::Options;
use mpi::topology::SimpleCommunicator;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_environment::launcher::Launched;
use ultramarine_runtime::build;
use ultramarine_runtime::executor::Job;

/// If each process is alone, the others wait this long for the launcher's first to say so.
const FIRST_SAYS_WITHIN: Duration = Duration::from_secs(2);

/// This process's part in a job that is made up.
pub(super) struct Joined {
    pub(super) job: Job,
    pub(super) presence: Presence,
    /// When this process is to be killed, if it was asked for that.
    pub(super) dies_after: Option<Duration>,
}

/// Makes up the job together with all other processes.
pub(super) fn join(
    world: &SimpleCommunicator,
    options: Result<Options, StartError>,
    launched: Launched,
) -> Result<Joined, StartError> {
    let all = &Collectives::of(world);
    if all.size() == 1 && launched.processes > 1 {
        // MPI calls each of them the first; the launcher knows better. The first one says it first,
        // after which most launchers end the others. It may not be there, if this program was
        // started by a process of another job, whose variables it has.
        if launched.rank != 0 {
            std::thread::sleep(FIRST_SAYS_WITHIN);
            let Launched { variable, rank, processes } = launched;
            return Err(StartError::AloneAsRank { variable, rank, expected: processes });
        }
        options?;
        return Err(world_of_one(launched));
    }
    compare_programs(all)?;
    let (options, own) = match options {
        Ok(options) => match RankInfo::own(&options) {
            Ok(own) => (Some(options), Ok(own)),
            Err(error) => (None, Err(error)),
        },
        Err(error) => (None, Err(error)),
    };
    let roster = decide(all, &own, |infos| {
        let roster = Roster::of(&infos)?;
        let cpus = infos.iter().map(|own| (&*own.host, own.cpu));
        cpu::differences(cpus).iter().for_each(|text| tracing::warn!("{text}"));
        Ok(roster)
    })?;
    let (Some(options), Ok(own)) = (options, own) else { return Err(StartError::SaidElsewhere) };
    let topology = Arc::new(roster.topology()?);

    let rank = all.rank();
    let me = topology.pe_of(rank as u32);
    let threads = roster.worker_threads(rank);
    let settings = options.settings(threads)?;
    if rank == 0 {
        own.cpu_budget.warn_of_mismatch(threads);
        roster.faults.iter().for_each(log::log_runtime_line);
    }
    let dies_after = roster.faults.as_ref().and_then(|plan| plan.death_of(me));
    let Connected { lane, detector, boards, presence } =
        connect::open(all, (&own, &roster), &topology, &options, &settings)?;
    let bootstrap = all.traffic();
    let job = Job { me, topology, lane, settings, detector, bootstrap, boards };
    Ok(Joined { job, presence, dies_after })
}

/// An error on all processes unless all run the same program.
fn compare_programs(all: &Collectives<'_>) -> Result<(), StartError> {
    // A process that cannot read its own file is different from all.
    let own = build::of_this_program().map_err(|source| StartError::Io {
        doing: format!("reading the program's own file {}", build::PROGRAM_FILE),
        source,
    });
    let identities = all.gather_numbers(*own.as_ref().unwrap_or(&0));
    let are_equal = identities.iter().all(|other| *other == identities[0] && *other != 0);
    let are_equal = all.broadcast(vec![u8::from(are_equal)]) == [1];
    own?;
    if are_equal {
        return Ok(());
    }
    if all.rank() != 0 {
        return Err(StartError::SaidElsewhere);
    }
    let mut text = String::new();
    for (rank, identity) in identities.iter().enumerate() {
        let separator = if rank == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}rank {rank} build {identity:016x}");
    }
    Err(StartError::MixedPrograms(text))
}

/// Why each process is alone, and what to do.
fn world_of_one(Launched { variable, processes: expected, .. }: Launched) -> StartError {
    let text = library_version();
    let line = text.lines().next().unwrap_or_default().split(',').next().unwrap_or_default();
    let library = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let plugin = if library.starts_with("Open MPI") { "pmix" } else { "pmi2" };
    StartError::WorldOfOne { variable, expected, library, plugin }
}
