//! How many worker threads a PE has, so that a job takes no more of a machine that it shares with
//! others than it was given.
//!
//! | what says so | how many |
//! |---|---|
//! | `--threads`, `ULTRAMARINE_THREADS` | this many, whatever else is said |
//! | else the cores that the process may use | those it is bound to (by `taskset`, a cpuset, `mpiexec -bind-to`, `srun`), or the CPU quota of its cgroup if that is less; in a step of Slurm no more than `SLURM_CPUS_ON_NODE`, as not every Slurm binds |
//! | … divided among processes that share them | those of one host that are bound to the same cores, have the same quota, or are limited by the step |
//! | … limited for each process | by `SLURM_CPUS_PER_TASK`, `OMP_NUM_THREADS` (the first number of a list) and `RAYON_NUM_THREADS` |
//! | … divided among the PEs of a process | where they are threads of it |
//!
//! A PE has at least one worker, and no more than [`THREADS_MAX`].
//!
//! Workers compute. Beside them a process under a launcher has four threads that sleep but for
//! moments: the main thread, the driver of its PE, one that watches for deaths, and one that starts
//! and finalises MPI. MPI libraries have up to three of their own. Without a launcher there are the
//! main thread, and for each PE a driver and (but for the first) a thread that waits for its end.

use serde::{Deserialize, Serialize};
use ultramarine_environment::launcher::{
    SLURM_CPUS_ON_NODE, SLURM_CPUS_PER_TASK, is_in_slurm_step,
};
use ultramarine_environment::variables::{OMP_NUM_THREADS, RAYON_NUM_THREADS};
use ultramarine_runtime::settings::THREADS_MAX;

/// What a process may use, as the others of its job need to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CpuBudget {
    /// Worker threads of a PE, if the user says how many.
    given: Option<usize>,
    /// How many cores.
    cores: usize,
    /// Which these are. Processes of one host of which this is the same share them.
    of: String,
    /// The most worker threads of the process, and which variable says so.
    limit: Option<(usize, String)>,
}

/// Variables by which users and launchers limit the threads of a process.
const LIMITS: [&str; 3] = [SLURM_CPUS_PER_TASK, OMP_NUM_THREADS, RAYON_NUM_THREADS];

impl CpuBudget {
    /// This process's own, if the user `gave` each PE its number of threads.
    pub(crate) fn own(given: Option<usize>, variable: impl Fn(&str) -> Option<String>) -> Self {
        // This heeds the quotas of cgroups as well as what the process is bound to.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (cores, of) = shared_cores(cores, &cpus(), cores_of_step(&variable));
        CpuBudget { given, cores, of, limit: limit(variable) }
    }

    /// Worker threads of a PE, if this many processes share the cores, and this many PEs the
    /// process.
    pub(crate) fn worker_threads(&self, processes: usize, pes: usize) -> usize {
        let limit = self.limit.as_ref().map_or(THREADS_MAX, |(most, _)| *most);
        let share = (self.cores / processes.max(1)).min(limit) / pes.max(1);
        self.given.unwrap_or_else(|| share.clamp(1, THREADS_MAX))
    }

    /// How many of this process's PEs share a core, if it has this many; at least 1.
    pub(crate) fn pes_per_core(&self, pes: u32) -> u32 {
        (pes / u32::try_from(self.cores).unwrap_or(u32::MAX).max(1)).max(1)
    }

    /// What it shares with processes of the same host that say the same: nothing, if the user says
    /// how many threads there are.
    #[cfg(any(feature = "mpi", test))]
    pub(crate) fn shared(&self) -> Option<&str> {
        self.given.is_none().then_some(&*self.of)
    }

    /// Warns, once for the job, of a number of threads that the user may not have meant.
    pub(crate) fn warn_of_mismatch(&self, threads: usize) {
        let CpuBudget { given, cores, limit, .. } = self;
        match (given, limit) {
            (Some(given), _) if given > cores => tracing::warn!(
                "each PE has {given} worker threads, as was said, and the process may use {cores} \
                 cores: they take turns"
            ),
            (None, Some((most, name))) if *most < *cores && threads <= *most => tracing::info!(
                "worker threads of each PE: {threads}, since {name} = {most}; --threads or \
                 ULTRAMARINE_THREADS sets another number"
            ),
            _ => {}
        }
    }
}

/// The CPUs that this process is bound to, as a list such as `0-3,8`; empty if the system does not
/// tell.
pub(crate) fn cpus() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bound = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    bound.unwrap_or_default().trim().to_owned()
}

/// How many cores a process may use of those that are `available` to it, and which these are. It is
/// `bound` to those in this list; the step that it is in, if any, has this many on this host.
fn shared_cores(available: usize, bound: &str, of_step: Option<usize>) -> (usize, String) {
    match of_step {
        // Where nothing binds, all processes of the step have the same cores to choose from.
        Some(cores) if cores < available => (cores, format!("the {cores} of the step")),
        _ if available < count(bound) => (available, format!("a quota of {available}")),
        _ => (available, bound.to_owned()),
    }
}

/// How many cores of this host Slurm has given to the step that this process is in. In what else
/// has the variable, such as the script of a batch job, it may be another host's.
fn cores_of_step(variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let cores = is_in_slurm_step(&variable).then(|| variable(SLURM_CPUS_ON_NODE)).flatten()?;
    cores.trim().parse().ok().filter(|cores| *cores > 0)
}

/// The least that a variable allows, and which that is.
fn limit(variable: impl Fn(&str) -> Option<String>) -> Option<(usize, String)> {
    let first = |text: String| text.split(',').next()?.trim().parse().ok();
    let said = |name: &&str| Some((variable(name).and_then(first)?, (*name).to_owned()));
    // None of these is ours to complain about. Rayon's 0 says nothing.
    LIMITS.iter().filter_map(said).filter(|(most, _)| *most > 0).min_by_key(|(most, _)| *most)
}

/// How many there are in a list such as `0-3,8`.
fn count(list: &str) -> usize {
    let parts = list.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some((last + 1).saturating_sub(first))
    });
    parts.sum()
}

#[cfg(test)]
impl CpuBudget {
    pub(crate) fn of(cores: usize, of: &str, given: Option<usize>) -> Self {
        CpuBudget { given, cores, of: of.to_owned(), limit: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
    }

    fn limited(cores: usize, variables: &[(&str, &str)]) -> CpuBudget {
        let variable = among(variables);
        CpuBudget { limit: limit(variable), ..CpuBudget::of(cores, "0-7", None) }
    }

    #[test]
    fn cores_are_divided_first_and_limited_then() {
        for (cores, variables, processes, pes, threads) in [
            (8, &[][..], 1, 1, 8),
            (8, &[], 3, 1, 2),
            (8, &[], 1, 4, 2),
            (8, &[], 100, 1, 1),
            (8, &[("OMP_NUM_THREADS", "4,2")], 1, 1, 4),
            (8, &[("OMP_NUM_THREADS", " 3 ")], 2, 1, 3),
            (8, &[("OMP_NUM_THREADS", "4")], 4, 1, 2),
            (8, &[("OMP_NUM_THREADS", "4")], 1, 4, 1),
            (8, &[("OMP_NUM_THREADS", "6"), ("SLURM_CPUS_PER_TASK", "5")], 1, 1, 5),
            (8, &[("RAYON_NUM_THREADS", "2"), ("SLURM_CPUS_PER_TASK", "5")], 1, 1, 2),
            (8, &[("SLURM_CPUS_PER_TASK", "64")], 1, 1, 8),
            (5000, &[], 1, 1, THREADS_MAX),
        ] {
            let found = limited(cores, variables).worker_threads(processes, pes);
            assert_eq!(found, threads, "{cores} cores, {variables:?}, {processes} processes");
        }
    }

    #[test]
    fn a_step_of_slurm_has_no_more_cores_than_it_was_given() {
        for (available, of_step, processes, threads, of) in [
            (8, Some(4), 2, 2, "the 4 of the step"),
            (2, Some(1), 1, 1, "the 1 of the step"),
            (8, Some(3), 2, 1, "the 3 of the step"),
            // It is bound to fewer.
            (1, Some(4), 1, 1, "0"),
            (8, Some(8), 2, 4, "0-7"),
            (8, None, 2, 4, "0-7"),
            // It has a quota.
            (3, Some(4), 1, 3, "a quota of 3"),
            (3, Some(2), 1, 2, "the 2 of the step"),
        ] {
            let bound = if available == 1 { "0" } else { "0-7" };
            let (cores, found) = shared_cores(available, bound, of_step);
            let cpu_budget = CpuBudget::of(cores, &found, None);
            let what = format!("{available} cores, {of_step:?}, {processes} processes");
            assert_eq!((cpu_budget.worker_threads(processes, 1), &*found), (threads, of), "{what}");
        }
    }

    #[test]
    fn slurm_is_believed_by_its_steps_alone() {
        let on_node = |value| ("SLURM_CPUS_ON_NODE", value);
        for (variables, cores) in [
            (&[on_node("4"), ("SLURM_STEP_ID", "0")][..], Some(4)),
            (&[on_node(" 4 "), ("SLURM_STEP_ID", "12")], Some(4)),
            (&[on_node("4")], None),
            // The shell of an interactive allocation, and the script of a batch job.
            (&[on_node("4"), ("SLURM_STEP_ID", "4294967290")], None),
            (&[on_node("4"), ("SLURM_STEP_ID", "4294967291")], None),
            (&[on_node("0"), ("SLURM_STEP_ID", "0")], None),
            (&[on_node("4(x2)"), ("SLURM_STEP_ID", "0")], None),
            (&[("SLURM_STEP_ID", "0")], None),
        ] {
            assert_eq!(cores_of_step(among(variables)), cores, "{variables:?}");
        }
    }

    #[test]
    fn what_the_user_says_wins() {
        let variables = [("OMP_NUM_THREADS", "1")];
        let cpu_budget = CpuBudget { given: Some(9), ..limited(2, &variables) };
        assert_eq!(cpu_budget.worker_threads(7, 3), 9);
    }

    #[test]
    fn variables_that_say_nothing_limit_nothing() {
        for value in ["", "0", "all", "-1", ",2", "2x"] {
            assert_eq!(limited(8, &[("RAYON_NUM_THREADS", value)]).limit, None, "{value}");
        }
    }

    #[test]
    fn cores_that_are_given_out_by_the_user_are_not_shared() {
        assert_eq!(CpuBudget::of(4, "0-3", None).shared(), Some("0-3"));
        assert_eq!(CpuBudget::of(4, "0-3", Some(2)).shared(), None);
    }

    #[test]
    fn lists_are_counted() {
        for (list, number) in [("", 0), ("3", 1), ("0-3,8", 5), ("0-1,4-5,7", 5), ("5-2", 0)] {
            assert_eq!(count(list), number, "{list}");
        }
    }

    #[test]
    fn the_cores_of_this_process_are_known() {
        let own = CpuBudget::own(None, |_| None);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!((own.cores, own.worker_threads(1, 1)), (cores, cores.min(THREADS_MAX)));
        assert!(!own.of.is_empty(), "on Linux");
    }
}
