//! Slurm: whether srun can start processes here, and whether the allocation's variables agree.

use super::check::Check;
use crate::run::allocation::Allocation;
use crate::run::launcher::{LauncherSearch, plugins};

pub(super) fn checks(allocation: Option<&Allocation>) -> Vec<Check> {
    let srun = LauncherSearch::from_environment().find_srun();
    let Some(allocation) = allocation else {
        let here = if srun.is_some() { "srun is here, but " } else { "" };
        let found = format!("{here}this is no allocation; mpiexec starts the jobs");
        return vec![Check::ok("slurm", found)];
    };
    let job = &allocation.job;
    let first = match srun.map(|srun| plugins(&srun)) {
        None => {
            let found = format!("allocation {job} without an srun");
            Check::wrong("slurm", found, "add its folder to PATH (as in `module load slurm`)")
        }
        Some(Err(reason)) => {
            let mend = "let SLURM_CONF name the configuration, and see that slurmctld runs (sinfo)";
            Check::wrong("slurm", format!("allocation {job}, but {reason}"), mend)
        }
        Some(Ok(plugins)) => plugin_check(job, &plugins),
    };
    vec![first, consistency(allocation)]
}

fn plugin_check(job: &str, plugins: &[String]) -> Check {
    let list = plugins.join(", ");
    let has = |name: &str| plugins.iter().any(|plugin| plugin.starts_with(name));
    let found = format!("allocation {job}; srun --mpi=list has {list}");
    let mend = match (has("pmi2"), has("pmix")) {
        (true, true) => return Check::ok("slurm", found),
        (true, false) => "without pmix, programs built with Open MPI are started by its mpiexec",
        (false, true) => "without pmi2, programs built with MPICH are started by its mpiexec",
        (false, false) => {
            "ask for a Slurm with pmi2 or pmix; until then an mpiexec starts the jobs"
        }
    };
    Check::warning("slurm", found, mend)
}

fn consistency(allocation: &Allocation) -> Check {
    let Allocation { tasks, nodes, tasks_per_node, cpus, .. } = allocation;
    let (tasks, nodes) = (tasks.map(u64::from), nodes.map(u64::from));
    let count = |list: &Option<Vec<u32>>| list.as_ref().map(|list| list.len() as u64);
    let sum = |list: &Vec<u32>| list.iter().map(|n| u64::from(*n)).sum();
    for (list, told, what, variable, said) in [
        ("SLURM_TASKS_PER_NODE", count(tasks_per_node), "nodes", "SLURM_JOB_NUM_NODES", nodes),
        (
            "SLURM_TASKS_PER_NODE",
            tasks_per_node.as_ref().map(sum),
            "processes",
            "SLURM_NTASKS",
            tasks,
        ),
        ("SLURM_JOB_CPUS_PER_NODE", count(cpus), "nodes", "SLURM_JOB_NUM_NODES", nodes),
    ] {
        if let (Some(told), Some(said)) = (told, said)
            && told != said
        {
            let found = format!("{list} tells of {told} {what}, and {variable} of {said}");
            return Check::wrong("slurm", found, "leave the SLURM_ variables as Slurm sets them");
        }
    }
    // Where no number of processes was asked for, Slurm names none.
    let room = match (tasks, nodes) {
        (Some(tasks), Some(nodes)) => format!("room for {tasks} processes on {nodes} nodes"),
        (Some(tasks), None) => format!("room for {tasks} processes"),
        (None, Some(nodes)) => format!("one process per node, on {nodes} nodes"),
        (None, None) => "one process".to_owned(),
    };
    Check::ok("slurm", format!("{room}; its variables agree"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocation(tasks: u32, nodes: u32, tasks_per_node: &[u32]) -> Allocation {
        Allocation {
            job: "7".to_owned(),
            tasks: Some(tasks),
            nodes: Some(nodes),
            tasks_per_node: Some(tasks_per_node.to_vec()),
            ..Allocation::default()
        }
    }

    #[test]
    fn variables_must_agree() {
        let line =
            |tasks, nodes, each: &[u32]| consistency(&allocation(tasks, nodes, each)).to_string();
        assert!(
            line(3, 2, &[2, 1]).starts_with("ok       slurm     room for 3 processes on 2 nodes")
        );
        assert!(line(4, 2, &[2, 1]).contains("tells of 3 processes, and SLURM_NTASKS of 4"));
        assert!(line(3, 3, &[2, 1]).contains("tells of 2 nodes, and SLURM_JOB_NUM_NODES of 3"));
    }

    #[test]
    fn a_cluster_without_a_plugin_is_a_warning() {
        let line = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            plugin_check("7", &names).to_string()
        };
        assert!(line(&["none", "pmi2", "pmix_v4"]).starts_with("ok "));
        assert!(line(&["none", "pmi2"]).contains("without pmix"));
        assert!(line(&["none", "pmix"]).contains("without pmi2"));
        assert!(line(&["none"]).contains("ask for a Slurm with"));
    }
}
