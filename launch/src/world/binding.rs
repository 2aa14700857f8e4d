//! Whether each process is bound as `ultramarine run --bind` was asked for.
//!
//! A user who asks for a binding relies on it. But launchers bind several processes to the same
//! cores where there are not enough, or none where they cannot, and seldom say so; and what other
//! hosts are like is not known before the job is there. So `run` hands the wish on to the
//! processes, in `ULTRAMARINE_BIND`, and the start compares what has become of it.

use crate::cpu_budget;
use crate::error::StartError;
use serde::{Deserialize, Serialize};
use ultramarine_environment::launcher::{SLURM_CPUS_PER_TASK, is_in_slurm_step};
use ultramarine_environment::variables::{self, complete};
use ultramarine_topology::Domains;

/// The variable that says what processes were to be bound to.
const VARIABLE: &str = variables::BIND.name;

/// What a process is to have for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum BoundTo {
    Core,
    Numa,
    Package,
}

impl BoundTo {
    /// As `run --bind` calls it. `none` asks for nothing.
    fn named(text: &str) -> Result<Option<Self>, String> {
        match text {
            "none" => Ok(None),
            "core" => Ok(Some(BoundTo::Core)),
            "numa" => Ok(Some(BoundTo::Numa)),
            "package" => Ok(Some(BoundTo::Package)),
            _ => Err("core, numa, package or none is expected".to_owned()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            BoundTo::Core => "core",
            BoundTo::Numa => "numa",
            BoundTo::Package => "package",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            BoundTo::Core => "cores",
            BoundTo::Numa => "NUMA nodes",
            BoundTo::Package => "packages",
        }
    }

    fn count(self, domains: Domains) -> u32 {
        match self {
            BoundTo::Core => domains.cores,
            BoundTo::Numa => domains.numa_nodes,
            BoundTo::Package => domains.packages,
        }
    }
}

/// What a process was to be bound to, and what it is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Binding {
    asked: BoundTo,
    /// How many of these it may have: cores that Slurm was to give each process are its own.
    most: u32,
    /// How many of these it may use, where hwloc can tell.
    has: Option<u32>,
    /// The CPUs that it may use; empty where that is not known.
    cpus: String,
}

impl Binding {
    /// This process's own, if it was asked for any.
    ///
    /// # Errors
    ///
    /// The variable says nothing that makes sense.
    pub(crate) fn own(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, StartError> {
        let mut asked = None;
        complete(&mut asked, (VARIABLE, variable(VARIABLE)), BoundTo::named)?;
        let Some(asked) = asked.flatten() else { return Ok(None) };
        let domains = Domains::of_this_host();
        if let Err(why) = domains {
            tracing::info!("what {VARIABLE} asks for cannot be compared with what is: {why}");
        }
        let has = domains.ok().map(|domains| asked.count(domains));
        Ok(Some(Binding { asked, most: most(asked, variable), has, cpus: cpu_budget::cpus() }))
    }

    /// What was asked for, in a word.
    pub(crate) fn name(&self) -> &'static str {
        self.asked.name()
    }

    /// The CPUs that no other process of the host may have just so.
    pub(crate) fn cpus(&self) -> Option<&str> {
        Some(&*self.cpus).filter(|cpus| !cpus.is_empty())
    }

    /// What is wrong with it, if it has too much.
    pub(crate) fn excess(&self) -> Option<String> {
        let has = self.has.filter(|has| *has > self.most)?;
        let (most, name, plural) = (self.most, self.name(), self.asked.plural());
        Some(format!(
            "--bind {name} ({VARIABLE}) leaves a process {most} of the {plural} at most, and this \
             one may use {has}: the launcher has not bound it so; ask the launcher for that, or \
             leave out --bind (unset {VARIABLE})"
        ))
    }

    /// What is wrong with it if a process of this rank has the same CPUs.
    pub(crate) fn shared_with(&self, other: usize) -> String {
        let (name, plural, cpus) = (self.name(), self.asked.plural(), &self.cpus);
        format!(
            "--bind {name} ({VARIABLE}) is to give each process {plural} of its own, and this one \
             has the same CPUs as rank {other} ({cpus}): ask for fewer processes on each host, or \
             leave out --bind (unset {VARIABLE})"
        )
    }
}

/// How many parts a process may have that was to be bound to one. Slurm binds it to as many cores
/// as it was to have CPUs.
fn most(asked: BoundTo, variable: impl Fn(&str) -> Option<String>) -> u32 {
    let cpus = || variable(SLURM_CPUS_PER_TASK)?.trim().parse().ok();
    let by_slurm = asked == BoundTo::Core && is_in_slurm_step(&variable);
    by_slurm.then(cpus).flatten().unwrap_or(1).max(1)
}

#[cfg(test)]
impl Binding {
    /// A process that was to be bound to that.
    pub(crate) fn of(asked: &str, has: u32, cpus: &str) -> Self {
        let asked = BoundTo::named(asked).expect("a name").expect("not none");
        Binding { asked, most: 1, has: Some(has), cpus: cpus.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(variables: &[(&str, &str)]) -> Result<Option<Binding>, StartError> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name);
        Binding::own(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn what_is_asked_for_is_one_of_four_words() {
        for nothing in [&[][..], &[(VARIABLE, "")], &[(VARIABLE, "none")]] {
            assert_eq!(own(nothing).expect("a word"), None);
        }
        for name in ["core", "numa", "package"] {
            let binding = own(&[(VARIABLE, name)]).expect("a word").expect("a binding");
            assert_eq!((binding.name(), binding.cpus()), (name, Some(&*cpu_budget::cpus())));
            assert_eq!(binding.has.is_some(), cfg!(feature = "hwloc"));
        }
        assert_eq!(
            own(&[(VARIABLE, "sofa")]).expect_err("no place to bind to").to_string(),
            "ULTRAMARINE_BIND = `sofa`: core, numa, package or none is expected"
        );
    }

    #[test]
    fn more_than_one_part_is_too_much() {
        // A host may have one only, which all its processes may use.
        assert_eq!(Binding::of("numa", 1, "0-7").excess(), None);
        let excess = Binding::of("numa", 2, "0-7").excess().expect("too much");
        assert!(excess.contains("1 of the NUMA nodes at most, and this one may use 2"), "{excess}");
        let unknown = Binding { has: None, ..Binding::of("core", 2, "0-7") };
        assert_eq!(unknown.excess(), None);
    }

    #[test]
    fn a_process_of_slurm_may_have_as_many_cores_as_it_was_to_have_cpus() {
        let (step, cpus) = (("SLURM_STEP_ID", "0"), ("SLURM_CPUS_PER_TASK", "4"));
        for (name, variables, expected) in [
            ("core", &[step, cpus][..], 4),
            ("core", &[cpus], 1),
            ("core", &[step], 1),
            ("core", &[step, ("SLURM_CPUS_PER_TASK", "0")], 1),
            ("numa", &[step, cpus], 1),
        ] {
            let binding = own(&[variables, &[(VARIABLE, name)]].concat());
            let most = binding.expect("a word").expect("a binding").most;
            assert_eq!(most, expected, "{name}, {variables:?}");
        }
    }
}
