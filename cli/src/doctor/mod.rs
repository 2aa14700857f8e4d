//! `ultramarine doctor`: whether jobs run here, and survive deaths; and if not, why.
//!
//! | file | what |
//! |---|---|
//! | `mpi` | the MPI that the probe is linked with, and the launchers |
//! | `jobs` | small jobs that are really started |
//! | `host` | its name, its cores, its clock, its networks and its ports |
//! | `limits` | what the system allows a process |
//! | `slurm` | the allocation, if there is one |

mod check;
mod host;
mod jobs;
mod limits;
mod mpi;
mod slurm;

use self::check::{Check, Severity};
use crate::error::Result;
use crate::run::JobArguments;
use crate::run::allocation::Allocation;
use crate::run::layout::JobLayout;
use crate::subprocess;
use std::io::Write as _;
use std::process::ExitCode;
use ultramarine_topology::Domains;

/// Check whether jobs run here and survive deaths: start small ones, and look at all that they
/// need.
///
/// Prints a line for each check, with what mends it unless it is ok; exits with 1 if something is
/// wrong. The flags say what job is meant, as for `ultramarine run`; inside a Slurm allocation all
/// its nodes are tried by the small jobs, but cores, limits, ports, clock and name are those of the
/// host on which this runs: their lines begin with its name.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Print an array of objects instead, with `name`, `verdict`, `found` and `mend`.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    subprocess::end_on_signals()?;
    let job = &arguments.job;
    let allocation = Allocation::from(|name| std::env::var(name).ok());
    // The job that `ultramarine run` would start: it needs as many ports and files.
    let layout = job.request.layout(allocation.as_ref(), Domains::of_this_host().ok());
    let per_host = layout.as_ref().map_or(1, |layout| most_per_host(layout, allocation.as_ref()));
    let processes = layout.as_ref().map_or(1, |layout| layout.processes);

    let mut report = DoctorReport { as_json: arguments.json, checks: Vec::new() };
    match &layout {
        Ok(_) => {}
        Err(error) => report.add([Check::wrong("job", error.to_string(), "mend the flags")])?,
    }
    report.add(mpi::checks())?;
    // The line about its name begins with it anyway.
    let host = allocation.as_ref().map(|_| host::own_name());
    let here = |check: Check| host.iter().fold(check, |check, host| check.on(host));
    report.add([here(host::cores())])?;
    report.add(limits::checks(processes, per_host).map(here))?;
    report.add([here(host::ports(per_host)), here(host::clock())])?;
    report.add([here(host::network())])?;
    report.add([host::name(allocation.as_ref())])?;
    report.add(slurm::checks(allocation.as_ref()))?;
    if layout.is_ok() {
        // Even if something is wrong: it may be that jobs run all the same.
        report.add(jobs::checks(job, allocation.as_ref()))?;
    }
    report.end()
}

/// The most processes that a host has, if they are spread evenly.
fn most_per_host(layout: &JobLayout, allocation: Option<&Allocation>) -> u32 {
    let nodes = layout.nodes.or_else(|| allocation?.nodes).unwrap_or(1);
    layout.processes.div_ceil(nodes)
}

/// The lines so far. Each is shown as soon as it is known.
struct DoctorReport {
    as_json: bool,
    checks: Vec<Check>,
}

impl DoctorReport {
    fn add(&mut self, checks: impl IntoIterator<Item = Check>) -> Result<()> {
        for check in checks {
            if !self.as_json {
                writeln!(std::io::stdout(), "{check}")?;
            }
            self.checks.push(check);
        }
        Ok(())
    }

    fn end(self) -> Result<ExitCode> {
        if self.as_json {
            let array = serde_json::to_string_pretty(&self.checks);
            writeln!(std::io::stdout(), "{}", array.map_err(std::io::Error::other)?)?;
        }
        let is_wrong = self.checks.iter().any(|check| check.severity == Severity::Wrong);
        Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
