//! A job whose PEs are processes that MPI connects.
//!
//! Start-up exchanges, over MPI: a hash of the program's file; the passports; and for the lane `tcp`
//! the addresses. What is wrong on one process becomes an
//! error on all, so that nobody waits for it.

mod calibration;
mod deadline;
mod identity;
mod passport;

use self::deadline::StartDeadline;
use self::passport::Passport;
use crate::error::{Error, Result, StartError};
use crate::faults::plan::Fuse;
use crate::guard;
use crate::launcher::Launched;
use crate::options::Options;
use mpi::Threading;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::{Communicator, CommunicatorCollectives};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::executor::{Context, Job, Leave, lead, serve};
use ultramarine_runtime::settings::Settings;
use ultramarine_runtime::transport::mpi::MpiLane;
use ultramarine_runtime::transport::tcp::{JobKey, TcpEndpoint};
use ultramarine_runtime::transport::{Lane, LaneError};
use ultramarine_runtime::wire;
use ultramarine_topology::{Pe, Topology};

/// Runs this process's part of the job. The others hear of it if its options are wrong.
pub(crate) fn run<F, T>(
    options: Result<Options, StartError>,
    launched: Launched,
    main: F,
) -> Result<()>
where
    F: FnOnce(Context) -> T,
    T: Future<Output = Result<()>> + Send + 'static,
{
    let ward = guard::stand(options.as_ref().ok(), launched);
    let deadline = StartDeadline::set(start_deadline(options.as_ref().ok()), launched);
    let universe = initialise()?;
    let world = universe.world();
    let (job, _fuse) = match job(&world, options, launched) {
        // Rank 0 knows and says it. If this process failed too, some launchers would end rank 0
        // before it has.
        Err(StartError::SaidElsewhere) => return Ok(()),
        job => job?,
    };
    drop(deadline);
    // Whoever watches the job from outside learns from this which process is which PE.
    let (pes, process) = (job.topology.pes(), std::process::id());
    tracing::info!("the job begins: {} of {pes} is process {process}", job.me);
    ward.joined();
    let root = job.me == Pe::ROOT;
    let (result, leave) = if root {
        let (result, parting) = lead(job, main);
        (result.map_err(Error::from).and_then(|result| result), parting.leave)
    } else {
        let (result, parting) = serve(job);
        (result.map_err(Error::from), parting.leave)
    };
    match leave {
        Leave::Orderly if root => result,
        // The root was told, and ends with the same reason.
        Leave::Orderly => Ok(()),
        Leave::Bereaved | Leave::Hasty => {
            // Finalising is collective, and some process does not answer.
            let _ = std::io::stdout().flush();
            let rank = world.rank();
            match result {
                Ok(()) => {
                    eprintln!(
                        "ultramarine: rank {rank} leaves without the others: one does not answer"
                    );
                    ward.leave(0);
                }
                Err(reason) => {
                    eprintln!("ultramarine: rank {rank} ends the job: {reason}");
                    world.abort(1);
                }
            }
        }
    }
}

/// How long the other processes may take to start: the default if this one cannot start.
fn start_deadline(options: Option<&Options>) -> Duration {
    let threads = |options: &Options| options.thread_count().unwrap_or(1);
    let given = options.and_then(|options| options.settings(threads(options)).ok());
    given.unwrap_or_else(|| Settings::for_threads(1)).start_deadline
}

/// Starts MPI.
fn initialise() -> Result<Universe, StartError> {
    let Some((universe, granted)) = mpi::initialize_with_threading(Threading::Serialized) else {
        return Err(StartError::Mpi(
            "it was started before: a process can be part of one job only".into(),
        ));
    };
    if granted < Threading::Serialized {
        return Err(StartError::Mpi(format!(
            "this library grants {granted:?} threads, and a PE needs at least MPI_THREAD_SERIALIZED"
        )));
    }
    Ok(universe)
}

/// Makes up the job together with all other processes. If this one is to be killed in it, the time
/// begins.
fn job(
    world: &SimpleCommunicator,
    options: Result<Options, StartError>,
    launched: Launched,
) -> Result<(Job, Option<Fuse>), StartError> {
    if world.size() == 1 && launched.processes > 1 {
        options?;
        let Launched { variable, processes: expected, .. } = launched;
        return Err(StartError::WorldOfOne { variable, expected, hint: launcher_hint() });
    }
    compare_programs(world)?;
    let (options, own) = match options {
        Ok(options) => {
            let own = Passport::own(&options);
            (Some(options), own)
        }
        Err(error) => (None, Err(error)),
    };
    let passports = agree(world, own)?;
    let options = options.ok_or(StartError::SaidElsewhere)?;
    said_once(world, passport::compare(&passports))?;
    let (places, powers) = (Passport::places(&passports), Passport::powers(&passports));
    let topology = Topology::new(&places, &powers).map_err(StartError::from);
    let topology = Arc::new(said_once(world, topology)?);

    let rank = world.rank() as usize;
    let me = topology.pe_of(rank as u32);
    let settings = options.settings(Passport::worker_threads(&passports)[rank])?;
    let lane: Box<dyn Lane> = if passports[rank].over_tcp {
        tcp_lane(world, &passports, &topology, me)?
    } else {
        // Ranks of the new communicator are PEs.
        let comm = world.split_by_color_with_key(Color::with_value(0), me.number() as i32);
        let comm = comm.ok_or_else(|| StartError::Mpi("no communicator was made".to_owned()))?;
        Box::new(MpiLane::new(comm)?)
    };
    let fuse = fuse(world, &passports, me)?;
    Ok((Job { me, topology, lane, settings, watch: None }, fuse))
}

/// Begins to wait for this process's death, if it was asked for one. The root says who is to die.
fn fuse(
    world: &SimpleCommunicator,
    passports: &[Passport],
    me: Pe,
) -> Result<Option<Fuse>, StartError> {
    let Some(faults) = &passports[0].faults else { return Ok(None) };
    let plan = said_once(world, faults.plan(passports.len() as u32))?;
    if me == Pe::ROOT {
        eprintln!("ultramarine: {plan}");
    }
    plan.death_of(me).map(|after| Fuse::light(me, after)).transpose()
}

/// A result that all processes have alike, of which only rank 0 says what is wrong.
fn said_once<T>(
    world: &SimpleCommunicator,
    result: Result<T, StartError>,
) -> Result<T, StartError> {
    result.map_err(|error| if world.rank() == 0 { error } else { StartError::SaidElsewhere })
}

/// An error on all processes unless all run the same program.
fn compare_programs(world: &SimpleCommunicator) -> Result<(), StartError> {
    // A process that cannot read its own file is different from all.
    let own = identity::of_this_program();
    let mut all = vec![0u64; world.size() as usize];
    world.all_gather_into(own.as_ref().unwrap_or(&0), &mut all[..]);
    own?;
    if all.iter().all(|other| *other == all[0] && *other != 0) {
        return Ok(());
    }
    if world.rank() != 0 {
        return Err(StartError::SaidElsewhere);
    }
    let mut text = String::new();
    for (rank, identity) in all.iter().enumerate() {
        let separator = if rank == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}rank {rank} build {identity:016x}");
    }
    Err(StartError::MixedPrograms(text))
}

/// What all processes have, by rank; or the first one's error, on all.
fn agree<T>(world: &SimpleCommunicator, own: Result<T, StartError>) -> Result<Vec<T>, StartError>
where
    T: Serialize + DeserializeOwned,
{
    let said = (own.map_err(|error| error.to_string()), host_name());
    let bytes = wire::encode(&said).map_err(|error| StartError::Mpi(error.to_string()))?;
    let mut lengths = vec![0i32; world.size() as usize];
    world.all_gather_into(&(bytes.len() as i32), &mut lengths[..]);
    let starts: Vec<i32> = lengths
        .iter()
        .scan(0, |end, n| {
            let start = *end;
            *end += n;
            Some(start)
        })
        .collect();
    let mut all = vec![0u8; lengths.iter().sum::<i32>() as usize];
    world.all_gather_varcount_into(
        &bytes[..],
        &mut PartitionMut::new(&mut all[..], &lengths[..], &starts[..]),
    );
    let mut values = Vec::with_capacity(lengths.len());
    for (rank, (start, length)) in starts.iter().zip(&lengths).enumerate() {
        let bytes = &all[*start as usize..(start + length) as usize];
        let (value, host): (Result<T, String>, String) =
            wire::decode(bytes).map_err(|error| StartError::Mpi(error.to_string()))?;
        match value {
            Ok(value) => values.push(value),
            Err(_) if world.rank() != 0 => return Err(StartError::SaidElsewhere),
            Err(reason) => return Err(StartError::Rank { rank, host, reason }),
        }
    }
    Ok(values)
}

/// A lane of TCP connections between the processes.
fn tcp_lane(
    world: &SimpleCommunicator,
    passports: &[Passport],
    topology: &Topology,
    me: Pe,
) -> Result<Box<dyn Lane>, StartError> {
    let one_host = passports.iter().all(|other| other.host == passports[0].host);
    let host = &passports[world.rank() as usize].host;
    let bound = own_address(host, one_host)
        .and_then(|(listen, advertise)| Ok((TcpEndpoint::bind(listen, None)?, advertise)));
    let (endpoint, own) = match bound {
        Ok((endpoint, advertise)) => {
            let address = SocketAddr::new(advertise, endpoint.address().port());
            (Some(endpoint), Ok((address, JobKey::random()?)))
        }
        Err(error) => (None, Err(StartError::from(error))),
    };
    let all: Vec<(SocketAddr, JobKey)> = agree(world, own)?;
    let addresses = (0..topology.pes()).map(|n| all[topology.rank_of(Pe::new(n)) as usize].0);
    let endpoint = endpoint.ok_or(StartError::SaidElsewhere)?;
    Ok(Box::new(endpoint.into_lane(me, addresses.collect(), all[0].1)?))
}

/// Where to listen, and the address that others reach that by.
fn own_address(host: &str, one_host: bool) -> Result<(IpAddr, IpAddr), LaneError> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if one_host {
        return Ok((here, here));
    }
    let io = |source| LaneError::Io { doing: format!("looking up the address of {host}"), source };
    let mut found = (host, 0).to_socket_addrs().map_err(io)?.map(|address| address.ip());
    let usable = found.find(|ip| !ip.is_loopback()).ok_or_else(|| {
        io(std::io::Error::other("its name stands only for addresses that no other host can reach"))
    })?;
    Ok((usable, usable))
}

fn host_name() -> String {
    mpi::environment::processor_name().unwrap_or_else(|_| "an unnamed host".to_owned())
}

fn launcher_hint() -> String {
    let library = mpi::environment::library_version().unwrap_or_default();
    let library = library.lines().next().unwrap_or("an unknown library");
    let library = library.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "The program was built with {library}: start it with that library's own mpiexec, or with \
         `srun --mpi=pmi2` (MPICH) or `srun --mpi=pmix` (Open MPI)"
    )
}
