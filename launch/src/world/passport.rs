//! What each process tells the others about itself at the start.

use super::calibration;
use crate::error::StartError;
use crate::options::Options;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use ultramarine_topology::{Place, Source, Sources};

/// One process, as the others need to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Passport {
    pub(crate) host: String,
    place: Place,
    /// The place without Slurm's word, if `place` is by it.
    place_without_slurm: Option<Place>,
    /// The processors that the process may use, as the system writes them.
    processors: String,
    /// How many those are.
    cores: usize,
    /// Worker threads, if they were given.
    threads: Option<usize>,
    /// How fast one of them is, if that was to be measured.
    speed: Option<u64>,
}

impl Passport {
    /// This process's own.
    pub(crate) fn own(options: &Options) -> Result<Self, StartError> {
        let sources = options.sources()?;
        let discovery = sources.discover()?;
        discovery.notes.iter().for_each(|note| tracing::info!("{note}"));
        let without_slurm = Sources { slurm_addr: None, ..sources.clone() };
        let by_slurm = discovery.source == Source::Slurm;
        let place_without_slurm = by_slurm.then(|| without_slurm.place()).transpose()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = options.thread_count();
        // Whoever has a bad setting says so before the job begins.
        options.settings(threads.unwrap_or(cores))?;
        let (host, place) = (sources.host_name, discovery.place);
        let speed = options.calibrates().then(calibration::speed);
        let processors = processors();
        Ok(Passport { host, place, place_without_slurm, processors, cores, threads, speed })
    }

    /// Where all processes are, by rank. Slurm's word counts only if all have it: a launcher other
    /// than Slurm's may hand the variables of one host to all, or to none.
    pub(crate) fn places(all: &[Passport]) -> Vec<Place> {
        let all_by_slurm = all.iter().all(|own| own.place_without_slurm.is_some());
        let place = |own: &Passport| match &own.place_without_slurm {
            Some(other) if !all_by_slurm => other.clone(),
            _ => own.place.clone(),
        };
        all.iter().map(place).collect()
    }

    /// How many worker threads each process has, by rank: those it was given, or its share of the
    /// cores that it may use. Processes of one host that may use the same cores share them.
    pub(crate) fn worker_threads(all: &[Passport]) -> Vec<usize> {
        let cores = |own: &Passport| (own.host.clone(), own.processors.clone());
        let mut sharers = HashMap::new();
        for own in all.iter().filter(|own| own.threads.is_none()) {
            *sharers.entry(cores(own)).or_insert(0) += 1;
        }
        let share = |own: &Passport| (own.cores / sharers.get(&cores(own)).unwrap_or(&1)).max(1);
        all.iter().map(|own| own.threads.unwrap_or_else(|| share(own))).collect()
    }

    /// The compute power of each process, by rank: its worker threads, times their speed if all
    /// have measured it.
    pub(crate) fn powers(all: &[Passport]) -> Vec<u64> {
        let measured = all.iter().all(|own| own.speed.is_some());
        let speed = |own: &Passport| own.speed.filter(|_| measured).unwrap_or(1);
        let threads = Self::worker_threads(all);
        all.iter().zip(threads).map(|(own, threads)| threads as u64 * speed(own)).collect()
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
    use ultramarine_topology::LevelKind::{Host, Switch};

    fn passport(host: &str, processors: &str, cores: usize, threads: Option<usize>) -> Passport {
        let (place, processors) = (Place::from_pairs([(Host, host)]), processors.into());
        Passport {
            host: host.into(),
            place,
            place_without_slurm: None,
            processors,
            cores,
            threads,
            speed: None,
        }
    }

    #[test]
    fn power_is_threads_times_speed_if_all_know_it() {
        let of = |threads, speed| Passport { speed, ..passport("a", "0", 1, Some(threads)) };
        assert_eq!(Passport::powers(&[of(2, Some(300)), of(1, Some(500))]), [600, 500]);
        assert_eq!(Passport::powers(&[of(2, Some(300)), of(1, None)]), [2, 1]);
    }

    #[test]
    fn slurm_is_believed_only_if_all_have_its_word() {
        let by_slurm = |host: &str| {
            let place = Place::from_pairs([(Switch, "s1"), (Host, host)]);
            let plain = passport(host, "0", 1, None);
            Passport { place_without_slurm: Some(plain.place.clone()), place, ..plain }
        };
        let depths = |all: &[Passport]| {
            Passport::places(all).iter().map(|place| place.labels().len()).collect::<Vec<_>>()
        };
        assert_eq!(depths(&[by_slurm("a"), by_slurm("b")]), [2, 2]);
        assert_eq!(depths(&[by_slurm("a"), passport("b", "0", 1, None)]), [1, 1]);
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
        assert_eq!(Passport::worker_threads(&all), [4, 4, 3, 4, 4, 1, 1]);
    }
}
