//! The flags of every program, and what environment variables say in their place.

use crate::faults::FaultFlags;
use crate::interface::InterfaceChoice;
use crate::variables::{self, Refused, Variable, complete};
use clap::ValueEnum as _;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use ultramarine_status::server::Metrics;

/// What carries messages between PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LaneKind {
    /// MPI messages. The default under a launcher.
    Mpi,
    /// TCP connections.
    Tcp,
    /// Queues in memory, between PEs of one process. The default without a launcher.
    Memory,
}

/// How a job is made up, as flags and variables say it.
#[derive(Clone, Debug, Default, clap::Args)]
// A program without a description has none, rather than this one.
#[command(next_help_heading = "Job", about = None, long_about = None)]
// Groups of one command have different names, and a program may have a `JobFlags` of its own.
#[group(id = "Options")]
pub struct JobFlags {
    /// Run this many PEs as threads of this process, without a launcher [env: `ULTRAMARINE_PES`].
    #[arg(long, value_name = "P", value_parser = pe_count)]
    pub pes: Option<u32>,
    /// What carries messages between PEs [env: `ULTRAMARINE_LANE`].
    #[arg(long, value_enum)]
    pub lane: Option<LaneKind>,
    /// Worker threads of each PE [env: `ULTRAMARINE_THREADS`] [default: the cores, divided among
    /// the PEs that share them].
    #[arg(long, value_name = "T", value_parser = thread_count)]
    pub threads: Option<usize>,
    /// A topology file that says where each host stands [env: `ULTRAMARINE_TOPOLOGY`].
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// How to read the hierarchy from host names [env: `ULTRAMARINE_HOST_PATTERN`].
    #[arg(long, value_name = "PATTERN")]
    pub host_pattern: Option<String>,
    /// Measure how fast each process computes, and give the faster ones larger shares
    /// [env: `ULTRAMARINE_CALIBRATE`].
    #[arg(long)]
    pub calibrate: bool,
    /// Record what all threads do, each process in a file of its own in this folder, whose former
    /// trace is removed; `ultramarine trace` reads it [env: `ULTRAMARINE_TRACE`].
    #[arg(long, value_name = "FOLDER")]
    pub trace: Option<PathBuf>,
    /// Answer `ultramarine top`: how to reach the job is written into this file, which only you can
    /// read [env: `ULTRAMARINE_STATUS`].
    #[arg(long, value_name = "FILE")]
    pub status: Option<PathBuf>,
    /// Have metrics for Prometheus: on the root's host at this port, for all who can reach it, or
    /// in this file, every 5 s [env: `ULTRAMARINE_METRICS`].
    #[arg(long, value_name = "PORT|FILE")]
    pub metrics: Option<Metrics>,
    /// Let a small parent stand between the launcher and each process, so that the job goes on when
    /// a process is killed [env: `ULTRAMARINE_GUARD`] [default: on].
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub guard: Option<bool>,
    /// Listen for other PEs on ports of this range only; each PE takes two [env:
    /// `ULTRAMARINE_PORTS`] [default: any that are free].
    #[arg(long, value_name = "LOW-HIGH", value_parser = port_range)]
    pub ports: Option<PortRange>,
    /// Call other hosts over this network interface, or that which has an address in this network;
    /// MPI's messages go where MPI sends them [env: `ULTRAMARINE_INTERFACE`] [default: the fastest
    /// network that all hosts are on].
    #[arg(long, value_name = "NAME|CIDR")]
    pub interface: Option<InterfaceChoice>,
    /// Change a setting of the runtime; may be given several times [env: `ULTRAMARINE_` and the
    /// setting's name in capitals].
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub settings: Vec<(String, String)>,
    /// The processes that are to be killed.
    #[command(flatten)]
    pub faults: FaultFlags,
}

/// Ports, the first and the last.
pub type PortRange = RangeInclusive<u16>;

/// The most PEs that can be threads of one process. Each takes three threads; 2,000 start, work and
/// end within 20 s on two cores, and 4,096 did not within minutes.
pub const PES_MAX: u32 = 2048;

/// The most worker threads of a PE: far more than a host has, and few enough to start.
pub const THREADS_MAX: usize = 1024;

fn pe_count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a job needs at least one PE".to_owned()),
        Ok(number) if number <= PES_MAX => Ok(number),
        _ => Err(format!("a whole number from 1 to {PES_MAX} is expected")),
    }
}

fn thread_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a PE needs at least one worker thread".to_owned()),
        Ok(number) if number <= THREADS_MAX => Ok(number),
        _ => Err(format!("a whole number from 1 to {THREADS_MAX} is expected")),
    }
}

fn lane_kind(text: &str) -> Result<LaneKind, String> {
    LaneKind::from_str(text, true).map_err(|_| "mpi, tcp or memory is expected".to_owned())
}

fn port_range(text: &str) -> Result<PortRange, String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.trim().parse(), high.trim().parse()) {
        (Ok(low), Ok(high)) if (1..=high).contains(&low) => Ok(low..=high),
        _ => Err("two ports from 1 to 65535 are expected, as in 40000-40100".to_owned()),
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("true or false is expected".to_owned()),
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    yes_or_no(text).map_err(|_| "on or off is expected".to_owned())
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl JobFlags {
    /// Fills what was not given from environment variables.
    ///
    /// # Errors
    ///
    /// A variable has a value that cannot be.
    pub fn completed(mut self, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Refused> {
        let mut calibrate = self.calibrate.then_some(true);
        let text = |of: Variable| (of.name, variable(of.name));
        complete(&mut self.pes, text(variables::PES), pe_count)?;
        complete(&mut self.lane, text(variables::LANE), lane_kind)?;
        complete(&mut self.threads, text(variables::THREADS), thread_count)?;
        complete(&mut self.topology, text(variables::TOPOLOGY), |path| Ok(path.into()))?;
        complete(&mut self.trace, text(variables::TRACE), |path| Ok(path.into()))?;
        complete(&mut self.status, text(variables::STATUS), |path| Ok(path.into()))?;
        complete(&mut self.metrics, text(variables::METRICS), str::parse)?;
        let pattern = text(variables::HOST_PATTERN);
        complete(&mut self.host_pattern, pattern, |text| Ok(text.to_owned()))?;
        complete(&mut calibrate, text(variables::CALIBRATE), yes_or_no)?;
        self.faults.complete(&variable)?;
        self.calibrate = calibrate.unwrap_or(false);
        complete(&mut self.ports, text(variables::PORTS), port_range)?;
        complete(&mut self.interface, text(variables::INTERFACE), str::parse)?;
        complete(&mut self.guard, text(variables::GUARD), on_or_off)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flags: JobFlags, name: &str, value: &str) -> Result<JobFlags, String> {
        let variable = |asked: &str| (asked == name).then(|| value.to_owned());
        flags.completed(variable).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_say_what_was_not_given() {
        let read = with(JobFlags::default(), "ULTRAMARINE_PES", "3").expect("a number");
        assert_eq!(read.pes, Some(3));
        let given = with(JobFlags { pes: Some(2), ..JobFlags::default() }, "ULTRAMARINE_PES", "3")
            .expect("a number");
        assert_eq!(given.pes, Some(2));
        let empty = with(JobFlags::default(), "ULTRAMARINE_LANE", "").expect("as if not set");
        assert_eq!(empty.lane, None);
        for (text, is_guarded) in [("off", false), ("on", true), ("", true)] {
            let read = with(JobFlags::default(), "ULTRAMARINE_GUARD", text).expect("a word");
            assert_eq!(read.guard.unwrap_or(true), is_guarded, "{text}");
        }
        let yes = with(JobFlags::default(), "ULTRAMARINE_CALIBRATE", "1").expect("a yes");
        assert!(yes.calibrate);
        assert!(with(yes, "ULTRAMARINE_CALIBRATE", "0").expect("given before").calibrate);
    }

    #[test]
    fn a_bad_value_is_refused_by_the_name_of_its_variable() {
        for (name, value, text) in [
            ("ULTRAMARINE_PES", "few", "from 1 to 2048"),
            ("ULTRAMARINE_PES", "2049", "from 1 to 2048"),
            ("ULTRAMARINE_LANE", "pigeon", "mpi, tcp or memory"),
            ("ULTRAMARINE_THREADS", "1025", "from 1 to 1024"),
            ("ULTRAMARINE_CALIBRATE", "perhaps", "true or false"),
            ("ULTRAMARINE_GUARD", "dog", "on or off"),
            ("ULTRAMARINE_METRICS", "70000", "from 1 to 65535"),
        ] {
            let error = with(JobFlags::default(), name, value).expect_err(name);
            assert!(error.starts_with(&format!("{name} = `{value}`: ")), "{error}");
            assert!(error.contains(text), "{error}");
        }
    }
}
