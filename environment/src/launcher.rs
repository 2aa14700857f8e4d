//! Whether a launcher has started this process, as the environment says; and the variables that
//! launchers set or heed.

use crate::variables::{foreign, text};

foreign! {
    /// All variables of launchers and batch systems that are read:
    VARIABLES:
    SLURM_JOB_ID, "the allocation";
    SLURM_JOB_NUM_NODES, "its nodes";
    SLURM_NNODES, "the same, of older versions";
    SLURM_JOB_NODELIST, "their names";
    SLURM_JOB_CPUS_PER_NODE, "the CPUs of each of them";
    SLURM_TASKS_PER_NODE, "the processes of each of them";
    SLURM_NTASKS, "the processes that were asked for";
    SLURM_CPUS_PER_TASK, "the CPUs that each of these was to have";
    SLURM_OVERCOMMIT, "CPUs may have several processes each";
    SLURM_HINT, "how srun binds";
    SLURM_HET_SIZE, "the components of a heterogeneous job";
    SLURM_STEP_ID, "the step of the allocation that this process is in";
    SLURM_STEP_NUM_TASKS, "the processes of that step";
    SLURM_PROCID, "which of these this one is";
    SLURM_STEP_TASKS_PER_NODE, "the processes of each of its nodes";
    SLURM_CPUS_ON_NODE, "the CPUs of this host that the step has";
    PMI_SIZE, "the processes that a launcher of MPICH's kin has started";
    PMI_RANK, "which of these this one is";
    PMI_FD, "the socket to that launcher";
    PMIX_NAMESPACE, "the job, as a launcher with `PMIx` names it";
    PMIX_SERVER_URI, "what the variables with that launcher's addresses begin with";
    HYDI_CONTROL_FD, "hydra's own";
    HYDRA_LAUNCHER, "how hydra starts processes on other hosts";
    HYDRA_BOOTSTRAP, "the same";
    I_MPI_HYDRA_BOOTSTRAP, "the same, of Intel MPI";
    HYDRA_LAUNCHER_EXEC, "the program by which it does so";
    HYDRA_BOOTSTRAP_EXEC, "the same";
    I_MPI_HYDRA_BOOTSTRAP_EXEC, "the same, of Intel MPI";
    OMPI_COMM_WORLD_SIZE, "the processes that Open MPI's mpiexec has started";
    OMPI_COMM_WORLD_RANK, "which of these this one is";
    OMPI_COMM_WORLD_LOCAL_SIZE, "those of this host";
    MPI_LOCALNRANKS, "those of this host that hydra has started";
    UCX_TLS, "what UCX may use to send messages";
    UCX_RNDV_THRESH, "from which length on UCX sends no message before its receiver wants it";
    OMPI_ALLOW_RUN_AS_ROOT, "that mpiexec may work for root";
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM, "it really may";
    LSB_JOBID, "a job of LSF";
    PBS_JOBID, "a job of PBS";
    PE_HOSTFILE, "a job of Grid Engine";
    LOADL_HOSTFILE, "a job of LoadLeveler";
}

/// The setting with which UCX sends messages of any length eagerly.
pub const UCX_EAGER: (&str, &str) = (UCX_RNDV_THRESH, "inf");

/// Whether this process has that setting.
pub fn is_ucx_eager() -> bool {
    text(UCX_EAGER.0).is_some_and(|value| value.trim() == UCX_EAGER.1)
}

/// What a launcher says of the job that this process is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The environment variable that says how many processes it started.
    pub variable: &'static str,
    /// How many.
    pub processes: u32,
    /// Which of them this one is, from 0 on.
    pub rank: u32,
}

/// Variables that say how many processes a job has; each with the one that says which of them this
/// one is, and whether they do so only in a step of Slurm.
const SIZES: [(&str, &str, bool); 4] = [
    (OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_RANK, false),
    (PMI_SIZE, PMI_RANK, false),
    (SLURM_STEP_NUM_TASKS, SLURM_PROCID, true),
    // The script of a batch job has these as well, except for the number of a step.
    (SLURM_NTASKS, SLURM_PROCID, true),
];

/// Slurm numbers the steps that a user starts from 0 on; the shell of an interactive allocation
/// and the like have numbers from here on.
const SLURM_SPECIAL_STEPS: u32 = u32::MAX - 15;

/// Whether this process is in a step of Slurm that a user has started, by `srun`.
pub fn is_in_slurm_step(variable: impl Fn(&str) -> Option<String>) -> bool {
    let step = variable(SLURM_STEP_ID).and_then(|step| step.trim().parse::<u32>().ok());
    step.is_some_and(|step| step < SLURM_SPECIAL_STEPS)
}

/// Which launcher started this process, if any did. A launcher of one process counts: MPI works
/// under it.
pub fn launched(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    SIZES.into_iter().find_map(|(size, rank, of_step)| {
        (!of_step || is_in_slurm_step(&variable)).then_some(Launched {
            variable: size,
            processes: number(size)?,
            rank: number(rank)?,
        })
    })
}

/// How many processes of the job are on this host, as the launcher says; if it says nothing, all.
/// Between hosts that have different numbers of them, the greatest number.
pub fn processes_here(launched: Launched, variable: impl Fn(&str) -> Option<String>) -> u32 {
    let number = |name: &str| variable(name)?.trim().parse().ok();
    let of_slurm = || {
        // As in `8(x2),3`.
        let counts = variable(SLURM_STEP_TASKS_PER_NODE)?;
        let count = |text: &str| text.split('(').next()?.trim().parse().ok();
        counts.split(',').map(count).collect::<Option<Vec<u32>>>()?.into_iter().max()
    };
    let said = match launched.variable {
        OMPI_COMM_WORLD_SIZE => number(OMPI_COMM_WORLD_LOCAL_SIZE),
        PMI_SIZE => number(MPI_LOCALNRANKS).or_else(of_slurm),
        _ => of_slurm(),
    };
    said.map_or(launched.processes, |here| here.min(launched.processes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> Option<Launched> {
        launched(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn each_launcher_says_how_many_processes_a_host_has() {
        let launched = |variable| Launched { variable, processes: 19, rank: 2 };
        let here = |variable, set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
            processes_here(launched(variable), |name| value(name).map(str::to_owned))
        };
        assert_eq!(here(PMI_SIZE, &[(MPI_LOCALNRANKS, "4")]), 4);
        assert_eq!(here(OMPI_COMM_WORLD_SIZE, &[(OMPI_COMM_WORLD_LOCAL_SIZE, "5")]), 5);
        assert_eq!(here(SLURM_NTASKS, &[(SLURM_STEP_TASKS_PER_NODE, "8(x2),3")]), 8);
        assert_eq!(here(SLURM_NTASKS, &[(SLURM_STEP_TASKS_PER_NODE, "many")]), 19);
        assert_eq!(here(PMI_SIZE, &[]), 19);
    }

    #[test]
    fn each_launcher_is_recognised() {
        let all = |set| with(set).map(|l| (l.variable, l.processes, l.rank));
        assert_eq!(all(&[("PMI_SIZE", "4"), ("PMI_RANK", "0")]), Some(("PMI_SIZE", 4, 0)));
        let open_mpi = [("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1")];
        assert_eq!(all(&open_mpi), Some(("OMPI_COMM_WORLD_SIZE", 2, 1)));
        let step = [("SLURM_NTASKS", "8"), ("SLURM_PROCID", "3"), ("SLURM_STEP_ID", "0")];
        assert_eq!(all(&step), Some(("SLURM_NTASKS", 8, 3)));
        let part = [&step[..], &[("SLURM_STEP_NUM_TASKS", "6")]].concat();
        assert_eq!(all(&part), Some(("SLURM_STEP_NUM_TASKS", 6, 3)));
    }

    #[test]
    fn a_shell_inside_an_allocation_is_no_launcher() {
        assert_eq!(with(&[("SLURM_NTASKS", "8"), ("SLURM_JOB_ID", "1")]), None);
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("PMI_SIZE", "many"), ("PMI_RANK", "0")]), None);
    }

    #[test]
    fn a_batch_script_is_no_launcher() {
        let script = [("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "1")];
        assert_eq!(with(&script), None);
    }

    #[test]
    fn an_interactive_shell_of_slurm_is_no_launcher() {
        let shell = [("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0"), ("SLURM_STEP_ID", "4294967290")];
        assert_eq!(with(&shell), None);
    }
}
