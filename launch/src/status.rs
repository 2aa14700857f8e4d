//! Letting others see what the job does, while its main task runs.

use std::path::Path;
use std::time::{Duration, Instant};
use ultramarine_runtime::executor::{Context, Sample, Stolen};
use ultramarine_status::server::{Server, Ways};
use ultramarine_status::{self as status, JobStatus, PeStatus};
use ultramarine_topology::{Pe, Topology};

/// How long the PEs have to answer.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// Answers until what this returns is dropped.
pub(crate) fn serve(ways: &Ways, cx: Context) -> Option<Server> {
    let begun = Instant::now();
    let look = move || {
        let samples = pollster::block_on(cx.samples(LOOK_WITHIN));
        let samples = samples.map_err(|error| error.to_string())?;
        Ok(job_status(&cx, begun.elapsed(), &samples))
    };
    Server::start(ways, Box::new(look))
}

fn job_status(cx: &Context, took: Duration, samples: &[Sample]) -> JobStatus {
    let answered = |pe: &u32| samples.binary_search_by_key(pe, |it| it.pe.number()).is_ok();
    let missing = (0..cx.pes()).filter(|pe| !answered(pe));
    let (dead, silent) = missing.partition(|pe| cx.is_dead(Pe::new(*pe)));
    let program = std::env::args_os().next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
    JobStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program: program.into_owned(),
        process: std::process::id(),
        seconds: took.as_secs_f64(),
        is_running: true,
        dead,
        silent,
        pes: samples.iter().map(|sample| pe_status(cx.topology(), sample)).collect(),
    }
}

fn pe_status(topology: &Topology, sample: &Sample) -> PeStatus {
    let stolen = |row: &Stolen| status::Stolen {
        distance: row.distance.to_string(),
        tasks: row.tasks,
        bytes: row.bytes,
    };
    PeStatus {
        pe: sample.pe.number(),
        host: topology.place(sample.pe).host().unwrap_or_default().to_owned(),
        workers: sample.workers.into(),
        idle: sample.idle.into(),
        waiting: sample.waiting,
        away: sample.away,
        memory: sample.memory,
        started: sample.started,
        ended: sample.ended,
        again: sample.again,
        lost: sample.lost,
        orphans: sample.orphans,
        messages: sample.messages,
        moved_bytes: sample.moved_bytes,
        stolen: sample.stolen.iter().map(stolen).collect(),
    }
}
