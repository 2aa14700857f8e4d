//! What the command `ultramarine` starts under MPI. The command itself is linked with none, so that
//! one serves all; this program is built once for each MPI, and is found beside the command or by
//! `ULTRAMARINE_PROBE`.
//!
//! | file | what |
//! |---|---|
//! | `topo` | `ultramarine topo`: the hierarchy of a job, and its latencies |
//! | `jobs` | the small jobs of `ultramarine doctor` |
#![forbid(unsafe_code)]

mod jobs;
mod topo;

use clap::Parser;
use std::io::Write as _;
use ultramarine::{Error, Options, Result};
use ultramarine_environment::topo::TopoFlags;

/// Called by the command `ultramarine`.
#[derive(Parser)]
#[command(version)]
enum Command {
    Topo(Box<TopoFlags>),
    /// Which hosts take part, and what time it is there.
    World(Options),
    /// Whether the job goes on when a process dies (of `--kill-at`).
    Deaths(Options),
    /// What the MPI library says of itself, in short.
    Mpi,
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Topo(flags) => topo::run(*flags),
        Command::World(options) => options.run(jobs::world),
        Command::Deaths(options) => options.run(jobs::deaths),
        Command::Mpi => writeln!(std::io::stdout(), "{}", library_version()).map_err(Error::Output),
    }
}

fn library_version() -> String {
    #[cfg(feature = "mpi")]
    let text = mpi::environment::library_version().unwrap_or_default();
    #[cfg(not(feature = "mpi"))]
    let text = String::new();
    let line = text.lines().next().unwrap_or_default();
    // MPICH writes more lines, and Open MPI more words after a comma.
    let words = line.split(',').next().unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ").replace("Version:", "Version")
}
