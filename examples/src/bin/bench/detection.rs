//! The time until every survivor knows that a process has died (killed), or that its host no longer
//! answers (silent). The root kills the other PEs of its job one after another; on each survivor a
//! task checks ten thousand times a second whether its PE knows. A second job counts PEs that are
//! declared dead although they are only slow, because many PEs that compute share few cores.
//!
//! All PEs are on one host, so their clocks agree. A filter on each socket of a silent process
//! drops everything that it is sent, as if its host were cut off.

use crate::child::{now, on_each_pe, spin};
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit, cores};
use clap::ValueEnum;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open,
};
use serde::{Deserialize, Serialize};
use socket2::{SockFilter, SockRef, Type};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result, Settings};

const ROUNDS: usize = 12;
const ROUNDS_SILENT: usize = 3;
const PES: u32 = 8;
const LOOK_EVERY: Duration = Duration::from_micros(100);
/// A survivor checks at most for this time.
const PATIENCE: Duration = Duration::from_secs(20);
/// The number of PEs for each core in the crowd, and how long they compute.
const CROWD: usize = 5;
const CROWDED_SECONDS: u64 = 60;
const CROWDED_SECONDS_QUICK: u64 = 10;

/// Milliseconds from the signal until a survivor knew, for each survivor of each victim.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    millis: Sample,
}

/// How the victims die.
#[derive(Clone, Copy, ValueEnum)]
enum DeathKind {
    Killed,
    Silent,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    report.text(&format!("{PES} idle PEs on {} cores", cores()));
    let usual = Settings::for_threads(1).detector;
    let silence_millis = (usual.dead_after + usual.heartbeat).as_secs_f64() * 1e3;
    for (end, rounds, limit) in
        [("killed", ROUNDS, 20.0), ("silent", ROUNDS_SILENT, silence_millis)]
    {
        let millis = death_millis(bench, PES, end, rounds)?;
        let count = Sample::one(millis.len() as f64);
        report.figure(&format!("{end}: survivors asked"), &count, Unit::COUNT);
        for (what, part) in [("p50", 0.5), ("p99", 0.99), ("longest", 1.0)] {
            let goal = (what == "p99").then_some(Goal::AtMost(limit));
            let what = format!("{end}: known to a survivor after, {what}");
            report.goal(&what, &Sample::one(millis.quantile(part)), Unit::MILLIS, goal);
        }
    }
    let seconds = if bench.quick { CROWDED_SECONDS_QUICK } else { CROWDED_SECONDS };
    let pes = (CROWD * cores()) as u32;
    let crowd = bench.child(&format!("--threads 1 crowd --seconds {seconds}"));
    let FalseDeaths { dead } = launch::run_quietly(&mut bench.on(pes, &crowd))?.json()?;
    let what = format!("declared dead, of {pes} PEs that compute for {seconds} s");
    report.goal(&what, &Sample::one(f64::from(dead)), Unit::COUNT, Goal::AtMost(0.0));
    Ok(())
}

/// Milliseconds from the death of a process until a survivor knew, for each survivor of each victim
/// of jobs of this number of PEs, which end as [`DeathKind`] says.
pub(crate) fn death_millis(bench: &Bench, pes: u32, end: &str, rounds: usize) -> Result<Sample> {
    // One worker checks; the root needs another one to kill.
    let job = bench.child(&format!("--threads 2 detection --end {end}"));
    let found: Vec<Measurements> = bench.repeat_quietly(rounds, bench.on(pes, &job))?;
    Ok(found.iter().flat_map(|found| found.millis.values()).collect())
}

/// Kills all PEs but the root and one more, one after another.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long, value_enum)]
    end: DeathKind,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let processes = on_each_pe(cx, async |_, ()| std::process::id()).await?;
        let mut millis = Sample::new();
        // Not in the order of their numbers, because neighbours watch each other.
        let victims =
            (1..cx.pes()).filter(|n| n % 2 == 1).chain((1..cx.pes()).filter(|n| n % 2 == 0));
        for victim in victims.take(cx.pes() as usize - 2) {
            let survivors =
                (0..cx.pes()).map(Pe::new).filter(|pe| pe.number() != victim && !cx.is_dead(*pe));
            let ask = |pe| cx.spawn_at(pe, look_out, victim);
            let answers: Vec<_> = survivors.map(ask).collect();
            // Until all survivors check, and the PEs are idle again.
            cx.sleep(Duration::from_millis(200)).await;
            let signal = match self.end {
                DeathKind::Killed => Signal::KILL,
                DeathKind::Silent => Signal::STOP,
            };
            let process = number(processes[victim as usize])?;
            let at = now();
            if matches!(self.end, DeathKind::Silent) {
                hush(process)?;
            }
            send(process, signal)?;
            for answer in answers {
                let knew = answer.await?.ok_or_else(|| {
                    Error::other(format!("a survivor has not heard of PE {victim} in {PATIENCE:?}"))
                })?;
                millis.push(knew.saturating_sub(at).as_secs_f64() * 1e3);
            }
            if matches!(self.end, DeathKind::Silent) {
                send(process, Signal::KILL)?;
            }
        }
        Ok(Measurements { millis })
    }
}

/// Keeps all PEs computing, and counts those that are declared dead.
#[derive(clap::Args)]
pub(crate) struct CrowdJob {
    #[arg(long)]
    seconds: u64,
}

/// The number of PEs that were declared dead.
#[derive(Serialize, Deserialize)]
pub(crate) struct FalseDeaths {
    dead: u32,
}

impl CrowdJob {
    pub(crate) async fn run(&self, cx: &Context) -> Result<FalseDeaths> {
        let compute = |seconds: u64| spin(Duration::from_secs(seconds));
        let all = vec![self.seconds; cx.pes() as usize];
        push_map(&cx.supervised(), compute, all).await?;
        Ok(FalseDeaths { dead: cx.dead() })
    }
}

/// Waits until this PE knows of the victim's death; returns the time.
async fn look_out(cx: Context, victim: u32) -> Option<Duration> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if cx.is_dead(Pe::new(victim)) {
            return Some(now());
        }
        // The worker has nothing else to do. A timer would be as coarse as the PE's driver.
        std::thread::sleep(LOOK_EVERY);
    }
    None
}

fn number(process: u32) -> Result<Pid> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| Error::other("a process has no number"))
}

fn send(process: Pid, signal: Signal) -> Result<()> {
    kill_process(process, signal).map_err(|error| Error::Io(error.into()))
}

/// Makes the system drop everything that a process is sent over TCP, connection attempts included.
fn hush(process: Pid) -> Result<()> {
    let all = pidfd_open(process, PidfdFlags::empty()).map_err(|error| Error::Io(error.into()))?;
    let files = std::fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero()));
    for file in files.map_err(Error::Io)?.flatten() {
        let leads_to = std::fs::read_link(file.path()).unwrap_or_default();
        let descriptor = file.file_name().to_str().and_then(|name| name.parse().ok());
        let is_socket = leads_to.to_string_lossy().starts_with("socket:");
        let (true, Some(descriptor)) = (is_socket, descriptor) else { continue };
        let socket = pidfd_getfd(&all, descriptor, PidfdGetfdFlags::empty());
        let socket = socket.map_err(|error| Error::Io(error.into()))?;
        let socket = SockRef::from(&socket);
        if socket.r#type().map_err(Error::Io)? == Type::STREAM {
            socket.attach_filter(&[TAKE_NOTHING]).map_err(Error::Io)?;
        }
    }
    Ok(())
}

/// A filter program that accepts no byte of a packet (`BPF_RET | BPF_K`).
const TAKE_NOTHING: SockFilter = SockFilter::new(0x06, 0, 0, 0);
