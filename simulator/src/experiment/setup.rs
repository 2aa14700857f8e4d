//! What an experiment runs on, as the command line says: the machine, the network, the seed.

use super::number::{cores_from, real_number, whole, whole_number};
use super::{Base, ExperimentError, TimedFault};
use crate::machine::{
    CORES_MAX, Machine, MachineError, PES_MAX, Shape, Slow, Unequal, Variation, WORKERS_MAX,
};
use crate::network::{Network, Preset};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The options that all experiments share. What is not given is the experiment's own choice.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Setup {
    /// All chance comes from this number: the same seed gives the same run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(super) seed: u64,
    /// The network: gemini, slingshot, hdr, ethernet or ideal
    #[arg(long, value_name = "NAME", conflicts_with = "measured")]
    network: Option<Preset>,
    /// The network as a real job measured it: a file with the line of `ultramarine topo --json`
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
    /// The latency between hosts instead of that of the network, in microseconds
    #[arg(long, value_name = "µs", value_parser = real_number(0.0..=LATENCY_MAX_US))]
    latency_us: Option<f64>,
    /// How much later than usual messages are on average, as a fraction of their latency
    #[arg(long, value_name = "FRACTION", value_parser = real_number(0.0..=JITTER_MAX))]
    jitter: Option<f64>,
    /// One machine: racks, hosts a rack, PEs a host, workers a PE, such as 64x32x4x16
    #[arg(long, value_name = "SHAPE", conflicts_with_all = ["cores", "workers"])]
    machine: Option<Shape>,
    /// One machine: all hosts of a topology file, as a real job takes it and `ultramarine topo
    /// --write` writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cores", "machine"])]
    topology: Option<PathBuf>,
    /// The PEs on each host of the topology file; 1 unless given
    #[arg(long, value_name = "N", requires = "topology", conflicts_with_all = ["cores", "machine"])]
    #[arg(value_parser = whole_number::<u32>(1..=PES_MAX))]
    pes_per_host: Option<u32>,
    /// Machines with these numbers of cores, on hosts of 32 cores and racks of 32 hosts
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = whole(1..=CORES_MAX))]
    cores: Vec<u64>,
    /// The worker threads of each PE
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>(1..=WORKERS_MAX))]
    workers: Option<u32>,
    /// A fraction of the hosts is slow by a factor: 0.1:2
    #[arg(long, value_name = "FRACTION:FACTOR")]
    slow_hosts: Option<Slow>,
    /// A fraction of the PEs is slow by a factor: 0.1:2
    #[arg(long, value_name = "FRACTION:FACTOR")]
    slow_pes: Option<Slow>,
    /// The worker threads of each PE on the hosts of --machine or --topology, which take the
    /// numbers in turn: 16,8
    #[arg(long, value_name = "A,B,…", conflicts_with_all = ["cores", "workers"])]
    unequal: Option<Unequal>,
    /// What goes wrong, and when; may be given several times: death:17@2s, host:3@2s, rack:1@2s,
    /// stop:17@1s+300ms, cut:3-17@2s+500ms, oneway:3-17@2s, partition:rack1@2s+500ms,
    /// overload@1s+200ms. Tasks are then supervised
    #[arg(long = "fault", value_name = "SPEC")]
    faults: Vec<TimedFault>,
    /// Print the events of each job, but for turns, timers and heartbeats
    #[arg(long)]
    tell: bool,
}

/// The same for machines of more and more cores, each of twice as many as the one before: from the
/// first of these numbers up to the second, unless told otherwise.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Sweep<const FIRST: u64, const MOST: u64> {
    #[command(flatten)]
    pub(super) setup: Setup,
    #[arg(long, value_name = "N", default_value_t = MOST, value_parser = cores_from(FIRST))]
    #[arg(help = format!("Double the cores from {FIRST} up to this number"))]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    most_cores: u64,
}

impl<const FIRST: u64, const MOST: u64> Sweep<FIRST, MOST> {
    /// A job on each machine. See [`Setup::bases`].
    pub(super) fn bases(&self, workers: u32, preset: Preset) -> Result<Vec<Base>, ExperimentError> {
        self.setup.bases(&doublings(FIRST, self.most_cores), workers, preset)
    }
}

/// The longest latency that can be asked for, in microseconds: a minute.
const LATENCY_MAX_US: f64 = 60e6;

/// The largest jitter that can be asked for.
const JITTER_MAX: f64 = 1000.0;

/// Powers of two: from one number to another, which are such themselves.
pub(super) fn doublings(from: u64, to: u64) -> Vec<u64> {
    std::iter::successors(Some(from), |cores| cores.checked_mul(2))
        .take_while(|cores| *cores <= to)
        .collect()
}

/// What was given on the command line, or else what is usual.
pub(super) fn given_or<'a, T>(given: &'a [T], usual: &'a [T]) -> &'a [T] {
    if given.is_empty() { usual } else { given }
}

/// The longest file that is read, in bytes. A recording has 10 bytes for each task.
const FILE_BYTES_MAX: u64 = 1 << 28;

/// Reads a file of text.
pub(super) fn read_text(path: &Path) -> Result<String, ExperimentError> {
    let mut text = String::new();
    let mut read = || File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    let length = read().and_then(|bytes| match bytes as u64 {
        ..=FILE_BYTES_MAX => Ok(()),
        _ => Err(io::Error::other("it is longer than 256 MiB")),
    });
    length.map_err(|cause| ExperimentError::Path("read", path.to_owned(), cause))?;
    Ok(text)
}

/// What makes a machine of a number of cores, and of workers a PE.
type MachineOfCores = fn(u64, u32, &Variation) -> Result<Machine, MachineError>;

impl Setup {
    /// A job on each machine: the one that was described, or one for each number of cores. Unless
    /// others were given, these are the numbers of cores and of workers a PE, and the network;
    /// fewer cores are one smaller PE.
    pub(super) fn bases(
        &self,
        cores: &[u64],
        workers: u32,
        preset: Preset,
    ) -> Result<Vec<Base>, ExperimentError> {
        self.bases_by(Machine::of_cores, cores, workers, preset)
    }

    /// The same, with another rule that makes a machine of a number of cores and of workers a PE.
    pub(super) fn bases_by(
        &self,
        of_cores: MachineOfCores,
        cores: &[u64],
        workers: u32,
        preset: Preset,
    ) -> Result<Vec<Base>, ExperimentError> {
        let network = self.network(preset)?;
        let base = |machine: Machine| {
            let faults: Result<Vec<_>, _> = self.faults.iter().map(|it| it.on(&machine)).collect();
            let base = Base::new(machine, network.clone(), self.seed);
            Ok(Base { faults: faults?.concat(), is_verbose: self.tell, ..base })
        };
        self.machines(of_cores, cores, workers)?.into_iter().map(base).collect()
    }

    fn machines(
        &self,
        of_cores: MachineOfCores,
        cores: &[u64],
        workers: u32,
    ) -> Result<Vec<Machine>, ExperimentError> {
        let variation = Variation {
            slow_hosts: self.slow_hosts,
            slow_pes: self.slow_pes,
            unequal: self.unequal.clone(),
            seed: self.seed,
        };
        if let Some(shape) = &self.machine {
            return Ok(vec![Machine::new(shape, &variation)?]);
        }
        if let Some(path) = &self.topology {
            let (pes, workers) = (self.pes_per_host.unwrap_or(1), self.workers.unwrap_or(workers));
            return Ok(vec![Machine::of_file(path, pes, workers, &variation)?]);
        }
        if self.unequal.is_some() {
            return Err(ExperimentError::Refused(
                "--unequal says nothing of machines with a number of cores; describe the hosts by \
                 --machine or --topology"
                    .to_owned(),
            ));
        }
        let machine = |cores: &u64| {
            let usual = || u64::from(workers).min(*cores) as u32;
            Ok(of_cores(*cores, self.workers.unwrap_or_else(usual), &variation)?)
        };
        given_or(&self.cores, cores).iter().map(machine).collect()
    }

    /// The network: this one unless another was given.
    fn network(&self, preset: Preset) -> Result<Network, ExperimentError> {
        let mut network = match &self.measured {
            Some(path) => {
                let network = Network::measured(&read_text(path)?);
                network.map_err(|cause| ExperimentError::content(path, cause))?
            }
            None => Network::of(self.network.unwrap_or(preset)),
        };
        if let Some(us) = self.latency_us {
            network = network.with_latency_ns((us * 1e3).round() as u64);
        }
        Ok(self.jitter.map_or(network.clone(), |fraction| network.with_jitter(fraction)))
    }

    /// For an experiment that `has` faults of its own, or none.
    pub(super) fn refuse_faults(&self, has: &str) -> Result<(), ExperimentError> {
        if self.faults.is_empty() {
            return Ok(());
        }
        Err(ExperimentError::Refused(format!(
            "--fault has no place in an experiment that has {has}; it goes with weak, strong, uts, \
             queens, fibonacci, noop, liouville and startup"
        )))
    }
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
        let sizes = |cores: u64, workers: Option<u32>| {
            let setup = Setup { cores: vec![cores], workers, ..Setup::default() };
            let machines = setup.machines(Machine::of_cores, &[32], 16).ok()?;
            Some((machines[0].pes(), machines[0].cores()))
        };
        let usual = [1, 8, 16, 48].map(|cores| sizes(cores, None));
        assert_eq!(usual, [Some((1, 1)), Some((1, 8)), Some((1, 16)), Some((3, 48))]);
        assert_eq!([sizes(33, None), sizes(33, Some(1))], [None, Some((33, 33))]);
        assert_eq!(sizes(8, Some(16)), None, "what is asked for is not changed");
    }
}
