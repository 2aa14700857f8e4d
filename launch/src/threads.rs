//! A job whose PEs are threads of one process.

use crate::cpu_budget::CpuBudget;
use crate::error::{Error, Result, StartError};
use crate::main_task::MainTask;
use crate::network;
use crate::options::Options;
use crate::trace;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock, mpsc};
use ultramarine_environment::flags::{LaneKind, PES_MAX};
use ultramarine_environment::variables;
use ultramarine_runtime::executor::{
    BootstrapTraffic, Job, Leave, end_because_of, lead, serve_once_started,
};
use ultramarine_runtime::settings::Settings;
use ultramarine_runtime::transport::tcp::{self, TcpEndpoint};
use ultramarine_runtime::transport::{CONNECTIONS_MIN, Lane, descriptors, memory};
use ultramarine_topology::{Pe, Topology};

/// Runs the job.
pub(crate) fn run(options: &Options, main: MainTask<'_>) -> Result<()> {
    let mut jobs = jobs(options)?.into_iter();
    let root = jobs.next().expect("there is at least one PE");
    options.trace_folder().into_iter().for_each(trace::remove_former);
    let recording = trace::record(options.trace_folder(), root.me, &root.topology);
    let mut serving = Vec::new();
    let (started, outcomes) = mpsc::channel();
    let of_root = Arc::new(OnceLock::new());
    for job in jobs {
        let me = job.me;
        let name = format!("pe{}", me.number());
        let (started, of_root) = (started.clone(), of_root.clone());
        let serve = move || {
            let started = move |outcome| drop(started.send(outcome));
            serve_once_started(job, started, |error| end_because_of(of_root.wait(), me, error));
        };
        let thread = std::thread::Builder::new().name(name).spawn(serve);
        let io = |source| StartError::Io { doing: "starting a PE's thread".to_owned(), source };
        serving.push(thread.map_err(io)?);
    }
    drop(started);
    // The root would wait for `shutdown_grace` for one that is not there. The threads of the others
    // end by themselves, as their root is gone.
    outcomes.into_iter().collect::<Result<(), _>>()?;
    let (result, parting) = lead(root, |cx| {
        of_root.get_or_init(|| cx.clone());
        main.start(cx)
    });
    if parting.leave == Leave::Orderly {
        // Each PE has told the root what went wrong, or logged it.
        serving.into_iter().for_each(|thread| drop(thread.join()));
    }
    drop(recording);
    result.map_err(Error::from)?
}

/// What each PE has to do, that of the root first.
fn jobs(options: &Options) -> Result<Vec<Job>> {
    options.faults().refuse_among_threads()?;
    if options.interface().is_some() {
        // No other host is called here, but the next start may be on several.
        network::usable(options.interface())?;
    }
    options.raise_descriptor_limit(None);
    let pes = options.pe_count().unwrap_or(1);
    if pes == 0 {
        return Err(StartError::Options("a job needs at least one PE".to_owned()).into());
    }
    if pes > PES_MAX {
        let reason = format!("one process has at most {PES_MAX} PEs, not {pes}");
        return Err(StartError::Options(reason).into());
    }
    let cpu_budget = CpuBudget::own(options.thread_count(), variables::text);
    let threads = cpu_budget.worker_threads(1, pes as usize);
    cpu_budget.warn_of_mismatch(threads);
    let settings = options.settings_of_many(threads, cpu_budget.pes_per_core(pes))?;
    let places = match options.given_places() {
        Some(places) => places.to_vec(),
        None => vec![options.sources()?.place().map_err(StartError::from)?; pes as usize],
    };
    let powers = vec![threads as u64; pes as usize];
    let topology = Arc::new(Topology::new(&places, &powers).map_err(StartError::from)?);
    let lanes = lanes(options.lane_kind().unwrap_or(LaneKind::Memory), pes, &settings)?;

    let job = |(lane, number)| {
        let (topology, settings) = (topology.clone(), settings.clone());
        Job {
            me: Pe::new(number),
            topology,
            lane,
            settings,
            detector: None,
            bootstrap: BootstrapTraffic::default(),
            boards: None,
        }
    };
    Ok(lanes.into_iter().zip(0..).map(job).collect())
}

fn lanes(kind: LaneKind, pes: u32, settings: &Settings) -> Result<Vec<Box<dyn Lane>>, StartError> {
    match kind {
        LaneKind::Memory => Ok(memory::network(pes)
            .into_iter()
            .map(|lane| Box::new(lane) as Box<dyn Lane>)
            .collect()),
        LaneKind::Tcp => {
            let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let each = tcp::DESCRIPTORS + CONNECTIONS_MIN as u64;
            descriptors::require(u64::from(pes) * each)?;
            let endpoints: Vec<_> =
                (0..pes).map(|_| TcpEndpoint::bind(here, None)).collect::<Result<_, _>>()?;
            let addresses: Vec<_> = endpoints.iter().map(TcpEndpoint::address).collect();
            let key = tcp::new_job_key()?;
            let connections_max = settings.connection_shares(pes.into()).lane;
            let lane = |(endpoint, number): (TcpEndpoint, u32)| {
                let lane =
                    endpoint.into_lane(Pe::new(number), addresses.clone(), key, connections_max);
                Ok(Box::new(lane?) as Box<dyn Lane>)
            };
            endpoints.into_iter().zip(0..).map(lane).collect()
        }
        LaneKind::Mpi => Err(StartError::Options(
            "the lane `mpi` needs a launcher: start the program with mpiexec or srun, or choose \
             `memory` or `tcp`"
                .to_owned(),
        )),
    }
}
