//! The flags of `ultramarine topo`. The command shows them in its help, and its probe, which runs
//! under MPI, does what they say.

use crate::flags::JobFlags;
use std::path::PathBuf;

/// Show the hierarchy of the machine as a job on it would see it, and measure how long messages
/// take. Under mpiexec or srun: of this job.
#[derive(clap::Args)]
pub struct TopoFlags {
    /// Describe a job on these hosts instead of starting one, as in `r1n[01-16],login`. Where they
    /// stand is read from --topology or from their names (--host-pattern).
    #[arg(long, value_name = "LIST", conflicts_with_all = ["pes", "lane", "ports", "calibrate"])]
    pub hosts: Option<String>,
    /// This many PEs on each of the hosts, with --threads worker threads (1 if not given).
    #[arg(long, value_name = "P", requires = "hosts", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub per_host: u32,
    /// Draw the hierarchy into this file, as SVG; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the hierarchy, down to the hosts, into this file, as --topology reads it; `-` is
    /// standard output.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Let --write replace a file that is there already.
    #[arg(long, requires = "write")]
    pub force: bool,
    /// Do not measure how long messages take.
    #[arg(long)]
    pub no_latency: bool,
    /// Print one line of JSON.
    #[arg(long)]
    pub json: bool,
    /// The job.
    #[command(flatten)]
    pub job: JobFlags,
}
