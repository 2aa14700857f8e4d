//! The command `ultramarine`. It is linked with no MPI, so that one command starts and checks the
//! jobs of all.
//!
//! | file | what |
//! |---|---|
//! | `run` | starts a program with the launcher that fits its MPI |
//! | `gap` | starts GAP in front of a job that computes for it |
//! | `doctor` | checks the machine |
//! | `topo` | shows where the PEs of a job stand: the probe does |
//! | `journal` | shows what the journal of a job holds |
//! | `trace` | joins the parts of a trace, and says what is in it |
//! | `report` | writes a page that says where the time of a job went |
//! | `top` | shows what a running job does |
//! | `probe` | finds the program that must run under MPI |
//! | `completions`, `man` | what a shell and a reader want to know |
//! | `output` | whole files, and names that a terminal can show |
//! | `subprocess` | running another program for its output |
#![forbid(unsafe_code)]

mod checkpoint;
mod completions;
mod doctor;
mod error;
mod gap;
mod journal;
mod man;
mod output;
mod probe;
mod report;
mod run;
mod subprocess;
mod top;
mod topo;
mod trace;

use clap::Parser;
use std::process::ExitCode;
use ultramarine_environment::topo::TopoFlags;

/// Irregular task parallelism on supercomputers.
#[derive(Parser)]
#[command(name = "ultramarine", version)]
enum Command {
    Run(run::Arguments),
    Gap(gap::Arguments),
    Doctor(doctor::Arguments),
    Topo(Box<TopoFlags>),
    Journal(journal::Arguments),
    Checkpoint(checkpoint::Arguments),
    #[command(subcommand)]
    Trace(trace::Command),
    Report(report::Arguments),
    Top(top::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

fn main() -> error::Result<ExitCode> {
    match Command::parse() {
        Command::Run(arguments) => run::run(&arguments)?,
        Command::Gap(arguments) => return gap::run(&arguments),
        Command::Doctor(arguments) => return doctor::run(&arguments),
        // That the flags are right is seen here. The probe reads them again.
        Command::Topo(_) => topo::run()?,
        Command::Journal(arguments) => journal::run(&arguments)?,
        Command::Checkpoint(arguments) => checkpoint::run(&arguments)?,
        Command::Trace(command) => trace::run(&command)?,
        Command::Report(arguments) => report::run(&arguments)?,
        Command::Top(arguments) => top::run(&arguments)?,
        Command::Completions(arguments) => completions::run(&arguments)?,
        Command::Man(arguments) => man::run(&arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
