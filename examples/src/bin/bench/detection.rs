//! The time until every survivor knows that a process has died (killed), or that its host no longer
//! answers (silent). The root kills the other PEs of its job one after another; on each survivor a
//! task checks ten thousand times a second whether its PE knows. A second job counts PEs that are
//! declared dead although they are only slow, because many PEs that compute share few cores.
//!
//! All PEs are on one host, so their clocks agree. A filter on each socket of a silent process
//! drops everything that it is sent, as if its host were cut off.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use clap::ValueEnum;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open,
};
use serde::{Deserialize, Serialize};
use socket2::{SockFilter, SockRef, Type};
use std::time::{Duration, Instant, SystemTime};
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
    millis: Vec<f64>,
}

/// How the victims die.
#[derive(Clone, Copy, ValueEnum)]
enum DeathKind {
    Killed,
    Silent,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.text(&format!("{PES} idle PEs on {cores} cores"));
    for (end, rounds) in [(DeathKind::Killed, ROUNDS), (DeathKind::Silent, ROUNDS_SILENT)] {
        let jobs = (0..bench.rounds(rounds)).map(|_| run(bench, PES, end));
        let name = match end {
            DeathKind::Killed => "killed",
            DeathKind::Silent => "silent",
        };
        let all = report.accept(name, jobs.collect::<Result<Vec<_>, _>>());
        let Some(all) = all else { continue };
        let mut millis: Vec<f64> = all.into_iter().flat_map(|found| found.millis).collect();
        millis.sort_by(f64::total_cmp);
        let quantile =
            |q: f64| Sample::one(millis[((millis.len() - 1) as f64 * q).round() as usize]);
        let named = |what: &str| format!("{name}: known to a survivor after, {what}");
        report.figure(
            &format!("{name}: survivors asked"),
            &Sample::one(millis.len() as f64),
            Unit::COUNT,
        );
        report.figure(&named("p50"), &quantile(0.5), Unit::MILLIS);
        let limit = match end {
            DeathKind::Killed => 20.0,
            DeathKind::Silent => {
                let usual = Settings::for_threads(1).detector;
                (usual.dead_after + usual.heartbeat).as_secs_f64() * 1e3
            }
        };
        report.goal(&named("p99"), &quantile(0.99), Unit::MILLIS, Goal::AtMost(limit));
        report.figure(&named("longest"), &quantile(1.0), Unit::MILLIS);
    }
    let seconds = if bench.quick { CROWDED_SECONDS_QUICK } else { CROWDED_SECONDS };
    let pes = (CROWD * cores) as u32;
    let mut crowd = bench.launcher.child();
    crowd.args(["--threads", "1", "crowd", "--seconds", &seconds.to_string()]);
    let dead = launch::run_quietly(&mut bench.launcher.launched(pes, &crowd))
        .and_then(|finished| finished.json::<FalseDeaths>());
    if let Some(FalseDeaths { dead }) = report.accept("a crowd", dead) {
        let what = format!("declared dead, of {pes} PEs that compute for {seconds} s");
        report.goal(&what, &Sample::one(f64::from(dead)), Unit::COUNT, Goal::AtMost(0.0));
    }
}

/// Milliseconds from the kill of a process until a survivor knew, for each survivor of each victim
/// of a job of this number of PEs.
pub(crate) fn killed_millis(bench: &Bench, pes: u32) -> Result<Vec<f64>, LaunchError> {
    Ok(run(bench, pes, DeathKind::Killed)?.millis)
}

fn run(bench: &Bench, pes: u32, end: DeathKind) -> Result<Measurements, LaunchError> {
    let mut job = bench.launcher.child();
    let value = end.to_possible_value();
    let name = value.as_ref().map_or("", |value| value.get_name());
    // One worker checks; the root needs another one to kill.
    job.args(["--threads", "2", "detection", "--end", name]);
    launch::run_quietly(&mut bench.launcher.launched(pes, &job))?.json()
}

/// Kills all PEs but the root and one more, one after another.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long, value_enum)]
    end: DeathKind,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let mut processes = Vec::new();
        for n in 0..cx.pes() {
            let own = async |_: Context, ()| std::process::id();
            processes.push(cx.spawn_at(Pe::new(n), own, ()).await?);
        }
        let mut millis = Vec::new();
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
        let compute = |seconds: u64| {
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(seconds) {
                std::hint::spin_loop();
            }
        };
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

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
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
