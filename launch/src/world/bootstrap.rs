//! Making up the job: everything is exchanged over MPI, and what is wrong on one process becomes an
//! error on all, so that nobody waits for it.

use super::gathering::Gathering;
use super::passport::{self, Passport};
use super::{identity, ways};
use crate::error::StartError;
use crate::launcher::Launched;
use crate::log;
use crate::options::Options;
use mpi::topology::SimpleCommunicator;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Write as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use ultramarine_runtime::executor::Job;
use ultramarine_runtime::wire;
use ultramarine_topology::{Pe, Topology};

/// How much later than the first the others say that they are alone.
const FIRST_SAYS_WITHIN: Duration = Duration::from_secs(1);

/// This process's part in a job that is made up.
pub(super) struct Start {
    pub(super) job: Job,
    /// When this process is to be killed, if it was asked for that.
    pub(super) dies_after: Option<Duration>,
}

/// Makes up the job together with all other processes.
pub(super) fn join(
    world: &SimpleCommunicator,
    options: Result<Options, StartError>,
    launched: Launched,
) -> Result<Start, StartError> {
    let all = &Gathering::of(world);
    if all.size() == 1 && launched.processes > 1 {
        options?;
        if launched.rank != 0 {
            // Some launchers end all when one has failed.
            thread::sleep(FIRST_SAYS_WITHIN);
        }
        return Err(world_of_one(launched));
    }
    compare_programs(all)?;
    let (options, own) = match options {
        Ok(options) => {
            let own = Passport::own(&options);
            (Some(options), own)
        }
        Err(error) => (None, Err(error)),
    };
    let passports = agree(all, own)?;
    let options = options.ok_or(StartError::SaidElsewhere)?;
    said_once(all, passport::compare(&passports))?;
    let (places, powers) = (Passport::places(&passports), Passport::powers(&passports));
    let topology = Topology::new(&places, &powers).map_err(StartError::from);
    let topology = Arc::new(said_once(all, topology)?);

    let rank = all.rank();
    let me = topology.pe_of(rank as u32);
    let threads = Passport::worker_threads(&passports)[rank];
    if rank == 0 {
        passports[0].allowance.remark(threads);
    }
    let settings = options.settings(threads)?;
    let dies_after = death(all, &passports, me)?;
    let (lane, watch) = ways::open(all, &passports, &topology, me, &options, &settings)?;
    let job = Job { me, topology, lane, settings, watch, bootstrap: all.exchanged() };
    Ok(Start { job, dies_after })
}

/// When this process is to be killed. The root says who is to die.
fn death(
    all: &Gathering<'_>,
    passports: &[Passport],
    me: Pe,
) -> Result<Option<Duration>, StartError> {
    let Some(faults) = &passports[0].faults else { return Ok(None) };
    let plan = said_once(all, faults.plan(passports.len() as u32))?;
    if me == Pe::ROOT {
        log::say(&plan);
    }
    Ok(plan.death_of(me))
}

/// A result that all processes have alike, of which only rank 0 says what is wrong.
fn said_once<T>(all: &Gathering<'_>, result: Result<T, StartError>) -> Result<T, StartError> {
    result.map_err(|error| if all.rank() == 0 { error } else { StartError::SaidElsewhere })
}

/// An error on all processes unless all run the same program.
fn compare_programs(all: &Gathering<'_>) -> Result<(), StartError> {
    // A process that cannot read its own file is different from all.
    let own = identity::of_this_program();
    let identities = all.numbers(*own.as_ref().unwrap_or(&0));
    own?;
    if identities.iter().all(|other| *other == identities[0] && *other != 0) {
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

/// What all processes have, by rank; or the first one's error, on all.
pub(super) fn agree<T>(
    all: &Gathering<'_>,
    own: Result<T, StartError>,
) -> Result<Vec<T>, StartError>
where
    T: Serialize + DeserializeOwned,
{
    let said = (own.map_err(|error| error.to_string()), host_name());
    let bytes = wire::encode(&said).map_err(|error| StartError::Mpi(error.to_string()))?;
    let mut values = Vec::with_capacity(all.size());
    for (rank, bytes) in all.bytes(&bytes).iter().enumerate() {
        let (value, host): (Result<T, String>, String) =
            wire::decode(bytes).map_err(|error| StartError::Mpi(error.to_string()))?;
        match value {
            Ok(value) => values.push(value),
            Err(_) if all.rank() != 0 => return Err(StartError::SaidElsewhere),
            Err(reason) => return Err(StartError::Rank { rank, host, reason }),
        }
    }
    Ok(values)
}

fn host_name() -> String {
    mpi::environment::processor_name().unwrap_or_else(|_| "an unnamed host".to_owned())
}

/// Why each process is alone, and what to do, which the first of them says. (MPI calls all of them
/// the first.)
fn world_of_one(Launched { variable, processes: expected, rank }: Launched) -> StartError {
    if rank != 0 {
        let why = format!("MPI sees only this one, rank {rank} (rank 0 says more)");
        return StartError::Unconnected { variable, expected, why };
    }
    let text = mpi::environment::library_version().unwrap_or_default();
    let line = text.lines().next().unwrap_or_default().split(',').next().unwrap_or_default();
    let library = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let plugin = if library.starts_with("Open MPI") { "pmix" } else { "pmi2" };
    StartError::WorldOfOne { variable, expected, library, plugin }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_that_is_alone_fails() {
        let why = world_of_one(Launched { variable: "PMI_SIZE", processes: 4, rank: 3 });
        let said = "PMI_SIZE says that 4 processes were started, but MPI sees only this one, rank 3 \
                    (rank 0 says more)";
        assert_eq!(why.to_string(), said);
    }
}
