//! Whether a launcher has started this process, as the environment says.

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
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", false),
    ("PMI_SIZE", "PMI_RANK", false),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", true),
    // The script of a batch job has these as well, except for the number of a step.
    ("SLURM_NTASKS", "SLURM_PROCID", true),
];

/// Slurm numbers the steps that a user starts from 0 on; the shell of an interactive allocation
/// and the like have numbers from here on.
const SLURM_SPECIAL_STEPS: u32 = u32::MAX - 15;

/// Whether this process is in a step of Slurm that a user has started, by `srun`.
pub fn is_in_slurm_step(variable: impl Fn(&str) -> Option<String>) -> bool {
    let step = variable("SLURM_STEP_ID").and_then(|step| step.trim().parse::<u32>().ok());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> Option<Launched> {
        launched(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
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
