//! What an experiment runs on, as the command line says: the machine, the network, the seed.

use super::{Base, ExperimentError, TimedFault};
use crate::machine::{Machine, Shape, Slow, Unequal, Variation};
use crate::network::{Network, Preset};
use std::path::PathBuf;

/// The options that all experiments share. What is not given is the experiment's own choice.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Setup {
    /// All chance comes from this number: the same seed gives the same run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// The network: gemini, slingshot, hdr, ethernet or ideal
    #[arg(long, value_name = "NAME", conflicts_with = "measured")]
    pub network: Option<Preset>,

    /// The network as a real job measured it: a file with the line of `ultramarine topo --json`
    #[arg(long, value_name = "FILE")]
    pub measured: Option<PathBuf>,

    /// The latency between hosts instead of that of the network, in microseconds
    #[arg(long, value_name = "µs", allow_negative_numbers = true, value_parser = latency)]
    pub latency_us: Option<f64>,

    /// How much later than usual messages are on average, as a fraction of their latency
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, value_parser = jitter)]
    pub jitter: Option<f64>,

    /// One machine: racks, hosts a rack, PEs a host, workers a PE, such as 64x32x4x16
    #[arg(long, value_name = "SHAPE", conflicts_with_all = ["cores", "workers"])]
    pub machine: Option<Shape>,

    /// Machines with these numbers of cores, on hosts of 32 cores and racks of 32 hosts
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub cores: Vec<u64>,

    /// The worker threads of each PE
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,

    /// A fraction of the hosts is slow by a factor: 0.1:2
    #[arg(long, value_name = "FRACTION:FACTOR")]
    pub slow_hosts: Option<Slow>,

    /// A fraction of the PEs is slow by a factor: 0.1:2
    #[arg(long, value_name = "FRACTION:FACTOR")]
    pub slow_pes: Option<Slow>,

    /// The worker threads of each PE, host by host in turn: 16,8
    #[arg(long, value_name = "A,B,…")]
    pub unequal: Option<Unequal>,

    /// What goes wrong, and when; may be given several times: death:17@2s, host:3@2s, rack:1@2s,
    /// stop:17@1s+300ms, cut:3-17@2s+500ms, oneway:3-17@2s, partition:rack1@2s+500ms,
    /// overload@1s+200ms. Tasks are then supervised
    #[arg(long = "fault", value_name = "SPEC")]
    pub faults: Vec<TimedFault>,

    /// Print every event
    #[arg(long)]
    pub tell: bool,
}

/// The longest latency that can be asked for: a minute.
const LATENCY_MAX_US: f64 = 60e6;

/// The largest jitter that can be asked for.
const JITTER_MAX: f64 = 1000.0;

fn latency(text: &str) -> Result<f64, String> {
    let allowed = || format!("a latency is a number of microseconds from 0 to {LATENCY_MAX_US}");
    number_to(text, LATENCY_MAX_US).ok_or_else(allowed)
}

fn jitter(text: &str) -> Result<f64, String> {
    number_to(text, JITTER_MAX)
        .ok_or_else(|| format!("the jitter is a fraction of the latency from 0 to {JITTER_MAX}"))
}

/// A number from 0 to this one.
fn number_to(text: &str, most: f64) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..=most).contains(number))
}

/// Powers of two: from one number to another, which are such themselves.
pub(super) fn doublings(from: u64, to: u64) -> Vec<u64> {
    std::iter::successors(Some(from), |cores| cores.checked_mul(2))
        .take_while(|cores| *cores <= to)
        .collect()
}

impl Setup {
    /// The machines: the one that was described, or one for each number of cores, which are these
    /// unless others were given, with this number of workers a PE.
    ///
    /// # Errors
    /// If there can be no such machine.
    pub fn machines(&self, cores: &[u64], workers: u32) -> Result<Vec<Machine>, ExperimentError> {
        let variation = self.variation();
        if let Some(shape) = &self.machine {
            return Ok(vec![Machine::new(shape, &variation)?]);
        }
        let cores = if self.cores.is_empty() { cores } else { &self.cores };
        let machine = |cores: &u64| {
            // Few cores, or an odd number of them, make smaller PEs.
            let workers = self.workers.unwrap_or_else(|| common_divisor(*cores, workers));
            Ok(Machine::of_cores(*cores, workers, &variation)?)
        };
        cores.iter().map(machine).collect()
    }

    /// What makes the hosts of the machines differ.
    pub fn variation(&self) -> Variation {
        Variation {
            slow_hosts: self.slow_hosts,
            slow_pes: self.slow_pes,
            unequal: self.unequal.clone(),
            seed: self.seed,
        }
    }

    /// The network: this one unless another was given.
    ///
    /// # Errors
    /// If the measurement cannot be read.
    pub fn network(&self, preset: Preset) -> Result<Network, ExperimentError> {
        let mut network = match &self.measured {
            Some(path) => {
                let unreadable = |cause| ExperimentError::Unreadable { path: path.clone(), cause };
                let text = std::fs::read_to_string(path).map_err(unreadable)?;
                let wrong = |cause| ExperimentError::Measured { path: path.clone(), cause };
                Network::measured(&text).map_err(wrong)?
            }
            None => Network::of(self.network.unwrap_or(preset)),
        };
        if let Some(us) = self.latency_us {
            network = network.with_latency_ns((us * 1e3).round() as u64);
        }
        Ok(self.jitter.map_or(network.clone(), |fraction| network.with_jitter(fraction)))
    }

    /// A job on this machine with this network.
    ///
    /// # Errors
    /// If a fault is impossible on this machine.
    pub fn base(&self, machine: Machine, network: Network) -> Result<Base, ExperimentError> {
        let faults: Result<Vec<_>, _> = self.faults.iter().map(|it| it.on(&machine)).collect();
        let faults = faults?.concat();
        Ok(Base { faults, is_verbose: self.tell, ..Base::new(machine, network, self.seed) })
    }

    /// For an experiment that `has` faults of its own, or none.
    ///
    /// # Errors
    /// If there are others.
    pub(super) fn refuse_faults(&self, has: &str) -> Result<(), ExperimentError> {
        if self.faults.is_empty() {
            return Ok(());
        }
        Err(ExperimentError::Refused {
            what: format!("--fault has no place in an experiment that has {has}"),
            allowed: "it goes with weak, strong, uts, queens, fibonacci, noop, liouville and \
                      startup"
                .to_owned(),
        })
    }

    /// One job for each of the [machines](Self::machines).
    ///
    /// # Errors
    /// If there can be no such machine or network, or if a fault is impossible on one of them.
    pub fn bases(
        &self,
        cores: &[u64],
        workers: u32,
        preset: Preset,
    ) -> Result<Vec<Base>, ExperimentError> {
        let network = self.network(preset)?;
        let machines = self.machines(cores, workers)?;
        machines.into_iter().map(|machine| self.base(machine, network.clone())).collect()
    }
}

/// The greatest number that divides both; of 0 and a number it is that number.
fn common_divisor(cores: u64, workers: u32) -> u32 {
    let (mut one, mut other) = (cores, u64::from(workers));
    while other > 0 {
        (one, other) = (other, one % other);
    }
    if cores == 0 { workers } else { one as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_doubled_up_to_the_last() {
        assert_eq!(doublings(32, 256), [32, 64, 128, 256]);
        assert_eq!(doublings(32, 100), [32, 64]);
        assert_eq!(doublings(32, 16), [0; 0]);
        assert_eq!(doublings(1 << 63, u64::MAX), [1 << 63]);
    }

    #[test]
    fn few_cores_make_smaller_pes() {
        let workers = [0, 1, 8, 24, 48, 100].map(|cores| common_divisor(cores, 16));
        assert_eq!(workers, [16, 1, 8, 8, 16, 4]);
        let setup = Setup { cores: vec![8], ..Setup::default() };
        let machines = setup.machines(&[32], 16).expect("a machine");
        assert_eq!((machines[0].pes(), machines[0].cores()), (1, 8));
        let setup = Setup { workers: Some(16), ..setup };
        assert!(setup.machines(&[32], 16).is_err(), "what is asked for is not changed");
    }

    #[test]
    fn numbers_have_ends() {
        assert_eq!(latency("2.5"), Ok(2.5));
        for text in ["-1", "1e9", "NaN", "fast", ""] {
            let error = latency(text).expect_err(text);
            assert_eq!(error, "a latency is a number of microseconds from 0 to 60000000");
        }
        assert!(jitter("-0.1").expect_err("negative").ends_with("from 0 to 1000"));
    }
}
