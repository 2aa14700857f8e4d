//! What the environment says about who started this process.

/// A launcher's word on how many processes it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launched {
    /// The environment variable that says so.
    pub(crate) variable: &'static str,
    /// How many.
    pub(crate) processes: u32,
}

/// Variables that say how many processes a job has; each with one that only a process of such a
/// job has beside it.
const SIZES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
    ("SLURM_NTASKS", "SLURM_PROCID"),
];

/// Which launcher started this process, if any did. A launcher of one process counts: MPI works
/// under it.
pub(crate) fn launched(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    SIZES.into_iter().find_map(|(size, rank)| {
        variable(rank)?;
        let processes = variable(size)?.trim().parse().ok()?;
        Some(Launched { variable: size, processes })
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
        let processes = |set| with(set).map(|l| (l.variable, l.processes));
        assert_eq!(processes(&[("PMI_SIZE", "4"), ("PMI_RANK", "0")]), Some(("PMI_SIZE", 4)));
        assert_eq!(
            processes(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "3")]),
            Some(("SLURM_NTASKS", 8))
        );
    }

    #[test]
    fn a_shell_inside_an_allocation_is_no_launcher() {
        assert_eq!(with(&[("SLURM_NTASKS", "8"), ("SLURM_JOB_ID", "1")]), None);
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("PMI_SIZE", "many"), ("PMI_RANK", "0")]), None);
    }
}
