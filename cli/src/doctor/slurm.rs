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
    match (has("pmi2"), has("pmix")) {
        (true, true) => Check::ok("slurm", found),
        (true, false) => Check::warning(
            "slurm",
            found,
            "without pmix, programs built with Open MPI are started by its mpiexec",
        ),
        (false, true) => Check::warning(
            "slurm",
            found,
            "without pmi2, programs built with MPICH are started by its mpiexec",
        ),
        (false, false) => Check::warning(
            "slurm",
            found,
            "ask for a Slurm with pmi2 or pmix; until then an mpiexec starts the jobs",
        ),
    }
}

fn consistency(allocation: &Allocation) -> Check {
    let Allocation { tasks, nodes, tasks_per_node, cpus, .. } = allocation;
    let mend = "leave the SLURM_ variables as Slurm sets them";
    let wrong = |found: String| Check::wrong("slurm", found, mend);
    if let (Some(list), Some(nodes)) = (tasks_per_node, nodes)
        && list.len() != *nodes as usize
    {
        let count = list.len();
        return wrong(format!(
            "SLURM_TASKS_PER_NODE tells of {count} nodes, and SLURM_JOB_NUM_NODES of {nodes}"
        ));
    }
    if let (Some(list), Some(tasks)) = (tasks_per_node, tasks)
        && list.iter().map(|n| u64::from(*n)).sum::<u64>() != u64::from(*tasks)
    {
        let sum: u64 = list.iter().map(|n| u64::from(*n)).sum();
        return wrong(format!(
            "SLURM_TASKS_PER_NODE tells of {sum} processes, and SLURM_NTASKS of {tasks}"
        ));
    }
    if let (Some(list), Some(nodes)) = (cpus, nodes)
        && list.len() != *nodes as usize
    {
        let count = list.len();
        return wrong(format!(
            "SLURM_JOB_CPUS_PER_NODE tells of {count} nodes, and SLURM_JOB_NUM_NODES of {nodes}"
        ));
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
    fn without_a_number_of_processes_each_node_has_one() {
        let nodes = Allocation { nodes: Some(2), ..Allocation::default() };
        let line = consistency(&nodes).to_string();
        assert_eq!(
            line,
            "ok       slurm     one process per node, on 2 nodes; its variables agree"
        );
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
