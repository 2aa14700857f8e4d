//! The command line: a name for each experiment.

use super::ExperimentError;
use super::deaths::{Deaths, Rack};
use super::detector::Detector;
use super::faults::Faults;
use super::groups::Groups;
use super::maps::{LiouvilleSum, Noop, Startup};
use super::output::{Experiment, Output};
use super::sum_euler::{Strong, Weak};
use super::supersteps::Supersteps;
use super::supervision::Supervision;
use super::trees::{FibonacciTree, QueensTree, UnbalancedSearch};
use super::validate::Validate;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;

/// Simulates jobs of up to 10^5 PEs: the runtime's own code on a modelled machine.
#[derive(Parser)]
#[command(name = "cargo xtask simulate", bin_name = "cargo xtask simulate")]
#[command(disable_help_subcommand = true)]
pub struct Command {
    #[command(subcommand)]
    experiment: Named,
}

#[derive(Subcommand)]
enum Named {
    /// Random jobs with random faults: each must end, with the right result
    Faults(Faults),
    /// Sum Euler on 32 to 131,072 cores, twice the integers on twice the cores (figure 12)
    Weak(Shown<Weak>),
    /// Sum Euler over 96,000 integers on 8 to 256 cores, four skeletons (figures 10 and 11)
    Strong(Shown<Strong>),
    /// UTS trees by stealing alone, on 128 to 32,768 cores
    Uts(Shown<UnbalancedSearch>),
    /// Queens by stealing alone, on 128 to 32,768 cores
    Queens(Shown<QueensTree>),
    /// Fibonacci numbers by stealing alone
    Fibonacci(Shown<FibonacciTree>),
    /// A map over tasks that do nothing, or that compute for as long as you say
    #[command(visible_alias = "map")]
    Noop(Shown<Noop>),
    /// The summatory Liouville function
    Liouville(Shown<LiouvilleSum>),
    /// Supervision on and off: overhead, messages
    Supervision(Shown<Supervision>),
    /// 1 % of the PEs die on the way
    Deaths(Shown<Deaths>),
    /// A rack dies
    Rack(Shown<Rack>),
    /// The failure detector: messages, time until all know of a death, false verdicts
    Detector(Shown<Detector>),
    /// A group: time until all PEs have their part, until it is closed; deaths
    Groups(Shown<Groups>),
    /// Supersteps: time and messages of each, on 128 to 8,192 PEs; deaths
    Supersteps(Shown<Supersteps>),
    /// Start-up and end of a job
    #[command(visible_alias = "end")]
    Startup(Shown<Startup>),
    /// Recorded real jobs beside simulated ones
    Validate(Validate),
    /// List the experiments
    List,
}

/// An experiment, and how its results are shown.
#[derive(clap::Args)]
struct Shown<E: clap::Args> {
    #[command(flatten)]
    experiment: E,
    #[command(flatten)]
    output: Output,
}

impl<E: clap::Args + Experiment> Shown<E> {
    fn show(&self, out: &mut dyn Write) -> Result<bool, ExperimentError> {
        self.output.show(&self.experiment, out).map(|()| true)
    }
}

impl Command {
    /// Reads a command line, whose first word is the program.
    ///
    /// # Errors
    /// If it is not valid; and if it asks for help, which is no mistake.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = with_negative_numbers(Command::command());
        let matches = command.try_get_matches_from_mut(words);
        let read = matches.and_then(|matches| Command::from_arg_matches(&matches));
        read.map_err(|error| {
            let name = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
                (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) => name.clone(),
                _ => return error.format(&mut command),
            };
            let known: Vec<String> = names().into_iter().map(|(name, _)| name).collect();
            let text = format!("there is no experiment `{name}`; known are {}\n", known.join(", "));
            command.error(ErrorKind::InvalidSubcommand, text)
        })
    }

    /// Runs the experiment, and shows its results. Returns whether all was as it must be.
    ///
    /// # Errors
    /// If the experiment is impossible or goes wrong, or if its results cannot be written.
    pub fn show(&self, out: &mut (dyn Write + Send)) -> Result<bool, ExperimentError> {
        match &self.experiment {
            Named::Faults(it) => it.show(out),
            Named::Weak(it) => it.show(out),
            Named::Strong(it) => it.show(out),
            Named::Uts(it) => it.show(out),
            Named::Queens(it) => it.show(out),
            Named::Fibonacci(it) => it.show(out),
            Named::Noop(it) => it.show(out),
            Named::Liouville(it) => it.show(out),
            Named::Supervision(it) => it.show(out),
            Named::Deaths(it) => it.show(out),
            Named::Rack(it) => it.show(out),
            Named::Detector(it) => it.show(out),
            Named::Groups(it) => it.show(out),
            Named::Supersteps(it) => it.show(out),
            Named::Startup(it) => it.show(out),
            Named::Validate(it) => it.show(out).map(|()| true),
            Named::List => {
                for (name, what) in names() {
                    writeln!(out, "{name:<12} {what}")?;
                }
                Ok(true)
            }
        }
    }
}

/// The same, but each option takes a negative number for its value, which it can refuse with the
/// numbers that are allowed. Otherwise `-5` would be an unknown option.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|experiment| {
        experiment.mut_args(|arg| {
            let takes_values = arg.get_action().takes_values();
            if takes_values { arg.allow_negative_numbers(true) } else { arg }
        })
    })
}

/// The experiments, each with what it is for.
fn names() -> Vec<(String, String)> {
    let command = Command::command();
    let all = command.get_subcommands().filter(|it| it.get_name() != "list");
    let about = |it: &clap::Command| it.get_about().map(ToString::to_string).unwrap_or_default();
    all.map(|it| (it.get_name().to_owned(), about(it))).collect()
}
