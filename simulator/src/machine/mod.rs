//! The simulated machine: which PEs there are, how near they are to each other, how many workers
//! each has and how fast they compute.
//!
//! A machine is built from a description ([`Shape`]), from a number of cores
//! ([`Machine::of_cores`]) or from a topology file ([`Machine::of_file`]); a [`Variation`] makes
//! its hosts differ.
//!
//! ```
//! use ultramarine_simulator::machine::{Machine, Tier, Variation};
//! use ultramarine_topology::Pe;
//!
//! // 2 racks of 4 hosts, each with 2 PEs of 16 workers; a quarter of the hosts is slow.
//! let variation = Variation { slow_hosts: Some("0.25:2".parse()?), ..Variation::default() };
//! let machine = Machine::new(&"2x4x2x16".parse()?, &variation)?;
//! assert_eq!((machine.pes(), machine.cores()), (16, 256));
//! assert_eq!(machine.tier(Pe::new(0), Pe::new(1)), Some(Tier::Host));
//! assert_eq!(machine.tier(Pe::new(0), Pe::new(15)), Some(Tier::Machine));
//! let slow = (0..16).filter(|pe| machine.slowness(Pe::new(*pe)) == 2.0);
//! assert_eq!(slow.count(), 4);
//! # Ok::<(), ultramarine_simulator::machine::MachineError>(())
//! ```
//!
//! This module must never know what runs on the machine: no tasks, no messages, no clock.

mod error;
mod shape;
mod tier;
mod variation;

pub use error::MachineError;
pub use shape::Shape;
pub use tier::Tier;
pub use variation::{Slow, Unequal, Variation};

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tier::tiers;
use ultramarine_topology::{Label, LevelKind, Pe, Place, Topology, file};
use variation::NOMINAL;

/// The most PEs of a machine: 2^22.
pub const PES_MAX: u32 = 4_194_304;

/// The most worker threads of a PE.
pub const WORKERS_MAX: u32 = 65_536;

/// The most cores of a machine: 2^38.
pub const CORES_MAX: u64 = PES_MAX as u64 * WORKERS_MAX as u64;

/// Cores a host in [`Machine::of_cores`]: as a node of `HECToR` has (two packages of 16 cores,
/// HdpH-RS §6.3.3).
pub const HOST_CORES: u32 = 32;

/// Hosts a rack in [`Machine::of_cores`]. A cabinet of `HECToR` had about 94 (HdpH-RS §6.3.3); 32
/// keeps a rack a power of two, 1,024 cores, so that jobs of 2^n cores have whole racks.
pub const RACK_HOSTS: u32 = 32;

/// A machine that jobs are simulated on.
///
/// Measured: 131,072 PEs take 0.03 s and 22 MB with 4 PEs a host, 0.1 s and 55 MB with one; 4
/// million PEs take 0.5 s and 390 MB (at the peak, without optimisation).
#[derive(Clone, Debug)]
pub struct Machine {
    topology: Arc<Topology>,
    /// By PE.
    workers: Box<[u32]>,
    /// By PE: how long it takes for what takes a nominal one 1000.
    slowness: Box<[u32]>,
    /// By exponent of the distance.
    tiers: Vec<Tier>,
}

impl Machine {
    /// The machine of this shape.
    ///
    /// # Errors
    /// None that [`Shape`] and [`Variation`] have not reported already.
    pub fn new(shape: &Shape, variation: &Variation) -> Result<Machine, MachineError> {
        let switch = |name: String| Label::new(LevelKind::Switch, name);
        let hosts = (0..shape.hosts()).map(|host| {
            let rack = host / shape.hosts;
            let group = (shape.groups > 1).then(|| switch(format!("g{}", rack / shape.racks)));
            let above = group.into_iter().chain([switch(format!("r{rack}"))]);
            Place::new(above.chain([Label::new(LevelKind::Host, format!("n{host}"))]).collect())
        });
        let hosts: Vec<Place> = hosts.collect();
        Self::build(&hosts, shape.pes() as usize, shape.host_pes, shape.workers, variation)
    }

    /// The machine of the [`Shape`] that is written like this, without variation.
    ///
    /// # Errors
    /// If there is no such shape.
    pub fn of_shape(text: &str) -> Result<Machine, MachineError> {
        Self::new(&text.parse()?, &Variation::default())
    }

    /// A machine with this number of cores, for experiments on 32, 64 … 131,072 cores: hosts of
    /// [`HOST_CORES`] cores, each with as many PEs of `workers` worker threads as fit (but one at
    /// least), and racks of [`RACK_HOSTS`] hosts. The last host and the last rack may be smaller.
    ///
    /// ```
    /// # use ultramarine_simulator::machine::{Machine, Variation};
    /// let machine = Machine::of_cores(131_072, 16, &Variation::default())?;
    /// assert_eq!(
    ///     machine.to_string(),
    ///     "131072 cores: 8192 PEs on 4096 hosts in 128 racks"
    /// );
    /// # Ok::<(), ultramarine_simulator::machine::MachineError>(())
    /// ```
    ///
    /// # Errors
    /// If `cores` is not a positive multiple of `workers`, if `workers` is 0 or more than
    /// [`WORKERS_MAX`], or if there would be more than [`PES_MAX`] PEs.
    pub fn of_cores(
        cores: u64,
        workers: u32,
        variation: &Variation,
    ) -> Result<Machine, MachineError> {
        check_workers(workers)?;
        if cores == 0 || !cores.is_multiple_of(workers.into()) {
            return Err(MachineError::Cores(cores, workers));
        }
        let pes = cores / u64::from(workers);
        check_pes(pes, || format!("{cores} cores"))?;
        let per_host = (HOST_CORES / workers).max(1);
        let host = |host: u64| {
            let rack = Label::new(LevelKind::Switch, format!("r{}", host / u64::from(RACK_HOSTS)));
            Place::new(vec![rack, Label::new(LevelKind::Host, format!("n{host}"))])
        };
        let hosts: Vec<Place> = (0..pes.div_ceil(per_host.into())).map(host).collect();
        Self::build(&hosts, pes as usize, per_host, workers, variation)
    }

    /// The machine that a topology file describes, which is the file that `--topology` takes in a
    /// real job and `ultramarine topo --write` writes: all hosts that it names, each with
    /// `per_host` PEs of `workers` worker threads.
    ///
    /// # Errors
    /// If the file cannot be used, if there would be more than [`PES_MAX`] PEs or none, or if
    /// `workers` is 0 or more than [`WORKERS_MAX`].
    pub fn of_file(
        path: &Path,
        per_host: u32,
        workers: u32,
        variation: &Variation,
    ) -> Result<Machine, MachineError> {
        check_workers(workers)?;
        let hosts = file::all_places(path).map_err(ultramarine_topology::TopologyError::from)?;
        let pes = hosts.len() as u64 * u64::from(per_host);
        check_pes(pes, || path.display().to_string())?;
        Self::build(&hosts, pes as usize, per_host, workers, variation)
    }

    /// `pes` PEs, `per_host` on each of the hosts; the last host may have fewer.
    ///
    /// A PE has its host's place, without a package: with one PE on each package, packages separate
    /// no PEs and add no distance.
    fn build(
        hosts: &[Place],
        pes: usize,
        per_host: u32,
        workers: u32,
        variation: &Variation,
    ) -> Result<Machine, MachineError> {
        let host_of: Vec<u32> = (0..pes).map(|rank| (rank / per_host as usize) as u32).collect();
        let unequal = |host: &u32| variation.unequal.as_ref().map(|it| it.workers(*host as usize));
        let workers: Vec<u32> =
            host_of.iter().map(|host| unequal(host).unwrap_or(workers)).collect();
        let places: Vec<&Place> = host_of.iter().map(|host| &hosts[*host as usize]).collect();
        let powers: Vec<u64> = workers.iter().map(|workers| (*workers).into()).collect();
        let topology = Topology::new(&places, &powers)?;
        let slowness = variation.slowness(&host_of);
        // PEs are numbered in the order of the hierarchy, which may not be that of the plan.
        let rank_of = |pe| topology.rank_of(Pe::new(pe)) as usize;
        Ok(Machine {
            workers: (0..topology.pes()).map(|pe| workers[rank_of(pe)]).collect(),
            slowness: (0..topology.pes()).map(|pe| slowness[rank_of(pe)]).collect(),
            tiers: tiers(&topology),
            topology: Arc::new(topology),
        })
    }

    /// The hierarchy. A PE's power is the number of its worker threads, as in a real job without
    /// calibration.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The number of PEs.
    pub fn pes(&self) -> u32 {
        self.topology.pes()
    }

    /// The number of worker threads of all PEs.
    pub fn cores(&self) -> u64 {
        self.workers.iter().map(|workers| u64::from(*workers)).sum()
    }

    /// The number of worker threads of a PE.
    ///
    /// # Panics
    /// If the machine has no such PE. All methods that take a [`Pe`] panic in this case.
    pub fn workers(&self, pe: Pe) -> u32 {
        self.workers[pe.index()]
    }

    /// How many times as long as a nominal PE this one takes: 1 unless it is slow.
    pub fn slowness(&self, pe: Pe) -> f64 {
        f64::from(self.slowness[pe.index()]) / f64::from(NOMINAL)
    }

    /// The first PE and the last of each host, or of each rack if the innermost level is that of
    /// switches. (Their PEs have consecutive numbers.)
    pub(crate) fn blocks(&self, innermost: LevelKind) -> Vec<(Pe, Pe)> {
        let labels = |pe: u32| {
            let all = self.topology.place(Pe::new(pe)).labels().iter();
            all.filter(|label| label.kind <= innermost)
        };
        let mut firsts = vec![0];
        firsts.extend((1..self.pes()).filter(|pe| !labels(*pe).eq(labels(pe - 1))));
        let ends = firsts.iter().skip(1).copied().chain([self.pes()]);
        firsts.iter().zip(ends).map(|(first, end)| (Pe::new(*first), Pe::new(end - 1))).collect()
    }

    /// What two PEs share; `None` if they are the same.
    pub fn tier(&self, p: Pe, q: Pe) -> Option<Tier> {
        let exponent = self.topology.distance(p, q).exponent()?;
        self.tiers.get(usize::from(exponent)).copied()
    }
}

fn check_workers(workers: u32) -> Result<(), MachineError> {
    if (1..=WORKERS_MAX).contains(&workers) {
        return Ok(());
    }
    Err(MachineError::Workers(workers.into()))
}

fn check_pes(pes: u64, text: impl FnOnce() -> String) -> Result<(), MachineError> {
    if pes > u64::from(PES_MAX) {
        return Err(MachineError::TooManyPes(text(), pes.into()));
    }
    Ok(())
}

impl fmt::Display for Machine {
    /// Its size in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: usize, thing| {
            format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
        };
        let pes = count(self.pes() as usize, "PE");
        let hosts = count(self.blocks(LevelKind::Host).len(), "host");
        let racks = count(self.blocks(LevelKind::Switch).len(), "rack");
        write!(f, "{} cores: {pes} on {hosts} in {racks}", self.cores())
    }
}

#[cfg(test)]
mod tests;
