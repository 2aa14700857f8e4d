//! What the command line says.

use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;

use super::class::Class;
use super::configuration::{LANES, PROGRAMS};
use crate::mpi::Family;

/// The most jobs of a class.
pub(super) const RUNS_MAX: u32 = 100_000;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many jobs of each class to disturb, in turn over all configurations
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = number_of_runs)]
    pub(super) runs: u32,
    /// The classes of faults, and how many jobs of each if not --runs: kill, root, stop, cut, loss,
    /// overload, stderr, memory, journal, odd, descriptors, launcher, proxy, guard, start-up
    /// [default: all]
    #[arg(long, value_name = "CLASS[=N],…", value_delimiter = ',')]
    pub(super) classes: Vec<Share>,
    /// Draw what holds a job up least: short stops, little load and loss
    #[arg(long)]
    pub(super) brief: bool,
    /// The MPI whose launcher starts the jobs
    #[arg(long, default_value = ALL, value_parser = choices(Family::ALL.map(Family::word)))]
    pub(super) mpi: String,
    /// The lane that carries the messages
    #[arg(long, default_value = ALL, value_parser = choices(LANES))]
    pub(super) lane: String,
    /// The example that runs
    #[arg(long, default_value = ALL, value_parser = choices(PROGRAMS.map(|program| program.name)))]
    pub(super) program: String,
    /// Draw the faults and moments of this seed again [default: a new seed, which is printed]
    #[arg(long, value_name = "S")]
    pub(super) seed: Option<u64>,
    /// Processes of each job, where the class does not say
    #[arg(long, value_name = "P", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=64))]
    pub(super) pes: u32,
    /// Cargo's profile; `dev` takes the programs as the tests build them
    #[arg(long, value_enum, default_value_t = Profile::Release)]
    pub(super) profile: Profile,
    /// Take the programs as they are built already
    #[arg(long)]
    pub(super) no_build: bool,
}

/// How many jobs of a class are wanted, if not as many as of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) class: Class,
    pub(super) runs: Option<u32>,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, runs) = text.split_once('=').map_or((text, None), |(n, runs)| (n, Some(runs)));
        let class = Class::from_str(name, false).map_err(|_| {
            let names: Vec<_> = Class::value_variants().iter().map(|class| class.name()).collect();
            format!("there is no class `{name}`; there are {}", names.join(", "))
        })?;
        Ok(Share { class, runs: runs.map(number_of_runs).transpose()? })
    }
}

fn number_of_runs(text: &str) -> std::result::Result<u32, String> {
    let number = text.parse().ok().filter(|runs| (1..=RUNS_MAX).contains(runs));
    number.ok_or_else(|| format!("`{text}` is not a number from 1 to {RUNS_MAX}"))
}

/// What is said to try all of a kind.
pub(super) const ALL: &str = "all";

/// One of these, or all.
fn choices<const N: usize>(names: [&'static str; N]) -> PossibleValuesParser {
    names.into_iter().chain([ALL]).collect::<Vec<_>>().into()
}

/// Whether a choice takes this one.
pub(super) fn takes(choice: &str, name: &str) -> bool {
    choice == ALL || choice == name
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Profile {
    Dev,
    Release,
}

/// How many jobs of each class are wanted.
pub(super) fn shares(chosen: &[Share]) -> Vec<Share> {
    if !chosen.is_empty() {
        return chosen.to_vec();
    }
    Class::value_variants().iter().map(|class| Share { class: *class, runs: None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> std::result::Result<Arguments, String> {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            arguments: Arguments,
        }
        let words = std::iter::once(&"chaos").chain(words);
        let program = <Program as clap::Parser>::try_parse_from(words);
        program.map(|program| program.arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn all_classes_are_tried_unless_some_are_chosen() {
        let chosen = |words: &[&str]| shares(&arguments(words).expect("they are right").classes);
        let all: Vec<_> = chosen(&[]).into_iter().map(|share| share.class).collect();
        assert_eq!(all, Class::value_variants());
        let (kill, start) = (Class::Kill, Class::StartUp);
        let two = [Share { class: kill, runs: Some(28) }, Share { class: start, runs: None }];
        assert_eq!(chosen(&["--classes", "kill=28,start-up"]), two);
    }

    #[test]
    fn a_class_that_does_not_exist_is_named() {
        let error = |classes| arguments(&["--classes", classes]).err().expect("it is wrong");
        let text = error("kil");
        assert!(
            text.contains("there is no class `kil`; there are kill, root, stop, cut"),
            "{text}"
        );
        assert!(error("kill=0").contains("`0` is not a number from 1 to 100000"));
    }
}
