//! What each process tells the others about itself at the start.

use crate::error::StartError;
use crate::options::Options;
use serde::{Deserialize, Serialize};
use ultramarine_topology::Place;

/// One process, as the others need to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Passport {
    pub(crate) host: String,
    pub(crate) place: Place,
    /// The processors that the process may use, as the system writes them.
    processors: String,
    /// How many those are.
    cores: usize,
    /// Worker threads, if they were given.
    threads: Option<usize>,
}

impl Passport {
    /// This process's own.
    pub(crate) fn own(options: &Options) -> Result<Self, StartError> {
        let sources = options.sources()?;
        let discovery = sources.discover()?;
        discovery.notes.iter().for_each(|note| tracing::info!("{note}"));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = options.thread_count();
        // Whoever has a bad setting says so before the job begins.
        options.settings(threads.unwrap_or(cores))?;
        Ok(Passport {
            host: sources.host_name,
            place: discovery.place,
            processors: processors(),
            cores,
            threads,
        })
    }

    /// How many worker threads this process has: those it was given, or its share of the cores
    /// that it may use. Processes of one host that may use the same cores share them.
    pub(crate) fn worker_threads(&self, all: &[Passport]) -> usize {
        let shares = |other: &&Passport| {
            other.host == self.host
                && other.processors == self.processors
                && other.threads.is_none()
        };
        self.threads
            .unwrap_or_else(|| (self.cores / all.iter().filter(shares).count().max(1)).max(1))
    }
}

/// The processors that this process may use, as in `0-3,8`. Empty where the system does not say.
fn processors() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    allowed.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passport(host: &str, processors: &str, cores: usize, threads: Option<usize>) -> Passport {
        let place = Place::new(Vec::new());
        Passport { host: host.into(), place, processors: processors.into(), cores, threads }
    }

    #[test]
    fn processes_on_the_same_cores_share_them() {
        let all = [
            passport("a", "0-7", 8, None),
            passport("a", "0-7", 8, None),
            passport("a", "0-7", 8, Some(3)),
            passport("b", "0-3", 4, None),
            passport("b", "4-7", 4, None),
            passport("c", "0", 1, None),
            passport("c", "0", 1, None),
        ];
        let threads: Vec<usize> = all.iter().map(|own| own.worker_threads(&all)).collect();
        assert_eq!(threads, [4, 4, 3, 4, 4, 1, 1]);
    }
}
