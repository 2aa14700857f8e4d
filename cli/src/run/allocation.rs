//! What Slurm has given: the variables of an allocation.

use super::error::RunError;
use std::collections::HashSet;
use ultramarine_environment::launcher;
use ultramarine_topology::host_list;

/// An allocation that this process is inside of. What Slurm does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) job: String,
    /// `SLURM_NTASKS`: the processes that were asked for.
    pub(crate) tasks: Option<u32>,
    /// `SLURM_JOB_NUM_NODES`.
    pub(crate) nodes: Option<u32>,
    /// `SLURM_JOB_NODELIST`, as Slurm writes it.
    pub(crate) node_list: Option<String>,
    /// `SLURM_JOB_CPUS_PER_NODE`, node by node.
    pub(crate) cpus: Option<Vec<u32>>,
    /// `SLURM_CPUS_PER_TASK`.
    pub(crate) cpus_per_task: Option<u32>,
    /// `SLURM_TASKS_PER_NODE`, node by node.
    pub(crate) tasks_per_node: Option<Vec<u32>>,
    /// Whether CPUs may have several processes each (`SLURM_OVERCOMMIT`).
    pub(crate) overcommits: bool,
    /// Whether srun has a hint for binding (`SLURM_HINT`), beside which it takes no --cpu-bind.
    pub(crate) hints: bool,
    /// `SLURM_HET_SIZE`: the components of a heterogeneous job; the rest is about the first.
    pub(crate) components: Option<u32>,
}

impl Allocation {
    /// The allocation that the environment tells of, if it does.
    pub(crate) fn from(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let text = |name: &str| variable(name).filter(|text| !text.is_empty());
        let number = |name: &str| text(name)?.trim().parse::<u32>().ok().filter(|n| *n > 0);
        let list = |name: &str| expand(&text(name)?);
        Some(Allocation {
            job: text(launcher::SLURM_JOB_ID)?,
            tasks: number(launcher::SLURM_NTASKS),
            nodes: number(launcher::SLURM_JOB_NUM_NODES).or_else(|| number(launcher::SLURM_NNODES)),
            node_list: text(launcher::SLURM_JOB_NODELIST),
            cpus: list(launcher::SLURM_JOB_CPUS_PER_NODE),
            cpus_per_task: number(launcher::SLURM_CPUS_PER_TASK),
            tasks_per_node: list(launcher::SLURM_TASKS_PER_NODE),
            overcommits: text(launcher::SLURM_OVERCOMMIT).is_some(),
            hints: text(launcher::SLURM_HINT).is_some(),
            components: number(launcher::SLURM_HET_SIZE),
        })
    }

    /// This allocation, reduced to what holds for each component of a heterogeneous job: the rest
    /// is about the first.
    pub(crate) fn of_all_components(self) -> Self {
        let Allocation { job, overcommits, hints, components, .. } = self;
        Allocation { job, overcommits, hints, components, ..Allocation::default() }
    }

    /// How many processes have room on their CPUs, and the variable that says so.
    pub(crate) fn room(&self) -> Option<(u32, &'static str)> {
        let each = self.cpus_per_task.unwrap_or(1);
        let by_cpus = self.cpus.as_ref().map(|cpus| {
            // The list is short enough for this sum.
            let room: u64 = cpus.iter().map(|cpus| u64::from(cpus / each)).sum();
            u32::try_from(room).unwrap_or(u32::MAX)
        });
        by_cpus
            .map(|room| (room.max(self.tasks.unwrap_or(0)), launcher::SLURM_JOB_CPUS_PER_NODE))
            .or_else(|| Some((self.tasks?, launcher::SLURM_NTASKS)))
    }

    /// An error unless this many nodes and processes are here.
    pub(crate) fn has(&self, processes: u32, nodes: Option<u32>) -> Result<(), RunError> {
        let job = &self.job;
        if let (Some(asked), Some(here)) = (nodes, self.nodes)
            && asked > here
        {
            return Err(RunError::TooSmall {
                asked: format!("{asked} nodes are asked for"),
                has: format!("allocation {job} has {here} (SLURM_JOB_NUM_NODES)"),
                mend: format!("ask Slurm for more (sbatch -N {asked}), or for fewer here"),
            });
        }
        match self.room() {
            Some((room, variable)) if processes > room && !self.overcommits => {
                Err(RunError::TooSmall {
                    asked: format!("{processes} processes are asked for"),
                    has: format!("allocation {job} has room for {room} ({variable})"),
                    mend: format!(
                        "ask Slurm for more (sbatch -n {processes}), for fewer here, or let \
                         several share a CPU with SLURM_OVERCOMMIT=1"
                    ),
                })
            }
            _ => Ok(()),
        }
    }

    /// An error unless these hosts are here. A list that cannot be read is left to Slurm.
    pub(crate) fn has_hosts(&self, names: &[String]) -> Result<(), RunError> {
        let Some(list) = &self.node_list else { return Ok(()) };
        let Ok(here) = host_list::expand(list) else { return Ok(()) };
        let here: HashSet<&str> = here.iter().map(String::as_str).collect();
        // The mpiexecs can do with a domain after the name.
        let short = |name: &str| name.split_once('.').map_or(name, |(short, _)| short).to_owned();
        let is_here = |name: &str| here.contains(name) || here.contains(short(name).as_str());
        match names.iter().find(|name| !is_here(name)) {
            Some(host) => Err(RunError::NotAllocated {
                host: host.clone(),
                job: self.job.clone(),
                list: list.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// The longest list that Slurm could mean.
const NODES_MAX: usize = 1 << 20;

/// Numbers as Slurm writes them, node by node: `2(x3),1` is 2, 2, 2, 1.
fn expand(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (number, times) = match part.trim().split_once("(x") {
            Some((number, times)) => (number, times.strip_suffix(')')?.parse().ok()?),
            None => (part.trim(), 1),
        };
        if numbers.len().saturating_add(times) > NODES_MAX {
            return None;
        }
        numbers.extend(std::iter::repeat_n(number.parse::<u32>().ok()?, times));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> Option<Allocation> {
        Allocation::from(|name| {
            set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn lists_are_read_node_by_node() {
        assert_eq!(expand("2(x3),1"), Some(vec![2, 2, 2, 1]));
        assert_eq!(expand("16"), Some(vec![16]));
        for wrong in ["", "2(x", "2(x3", "x", "1,,2", "1(x99999999)", "1,1(x18446744073709551615)"]
        {
            assert_eq!(expand(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_allocation_has_a_number() {
        assert_eq!(with(&[("SLURM_NTASKS", "4")]), None);
        assert_eq!(with(&[("SLURM_JOB_ID", "")]), None);
        let allocation = with(&[("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "4")]).expect("one");
        assert_eq!((allocation.job.as_str(), allocation.tasks), ("7", Some(4)));
    }

    #[test]
    fn hosts_are_looked_for_in_the_list_of_nodes() {
        let set = |list| [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", list)];
        let has = |list: &'static str, hosts: &[&str]| {
            let names: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
            with(&set(list)).expect("one").has_hosts(&names)
        };
        has("n[1-2],m", &["m", "n2.cluster"]).expect("they are there");
        has("n[1-", &["x"]).expect("the list is malformed, so any name may be in it");
        assert!(has("n[1-2]", &["n1", "n3"]).is_err());
        assert!(has("n[1-2]", &["n"]).is_err());
    }

    #[test]
    fn processes_that_share_cpus_have_room() {
        let tasks = with(&[("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "4")]).expect("one");
        assert!(tasks.has(5, None).is_err());
        let overcommitted = Allocation { overcommits: true, ..tasks };
        overcommitted.has(5, None).expect("they share");
    }
}
