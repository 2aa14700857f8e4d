//! What a job is at one moment, and what can happen next. (It is not the testkit's world: notices
//! come in any order, two equal ones count once, and paths break.)

use std::collections::BTreeSet;
use std::sync::Arc;
use ultramarine_runtime::protocol::{Membership, Notice};
use ultramarine_topology::Pe;

/// The whole job at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// By PE; `None`: the PE has crashed, or left.
    pub(super) members: Vec<Option<Arc<Membership>>>,
    /// Those that have left in order, so that no witness says that they are gone.
    pub(super) leavers: BTreeSet<Pe>,
    /// The sender, the receiver and the notice. (Two equal notices on their way count as one: a
    /// notice only states a fact.)
    pub(super) flying: BTreeSet<(Pe, Pe, Notice)>,
    /// The PE that was told to look at another and has not done so yet, and that other PE.
    pub(super) looks: BTreeSet<(Pe, Pe)>,
    /// The broken paths, from one PE to another.
    pub(super) cuts: BTreeSet<(Pe, Pe)>,
    /// The pairs of PEs between which a path was ever broken, the smaller number first.
    pub(super) ever_cut: BTreeSet<(Pe, Pe)>,
    pub(super) partitions: u32,
    pub(super) healed: u32,
    pub(super) crashed: u32,
    pub(super) doubts: u32,
    pub(super) slandered: u32,
    pub(super) lost: u32,
    /// The number of living PEs that left, or must, while the job goes on.
    pub(super) left: u32,
    /// The number of PEs that left because they took the judge for lost, and had contact with it.
    pub(super) misled: u32,
    /// The PEs whose result has counted, but for those that have crashed.
    pub(super) results: BTreeSet<Pe>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A notice arrives.
    Deliver(Pe, Pe, Notice),
    /// A notice is lost.
    Lose(Pe, Pe, Notice),
    /// A PE hears its neighbour's heartbeat.
    Heartbeat {
        /// The neighbour.
        from: Pe,
        /// The PE that hears it.
        to: Pe,
    },
    /// A PE looks at another.
    See {
        /// The PE that looks.
        by: Pe,
        /// The other PE.
        whom: Pe,
        /// What it sees.
        observation: Observation,
    },
    /// A PE repeats its accusations.
    Repeat(Pe),
    /// A judge announces the deaths that it has kept for a while.
    Announce(Pe),
    /// The main task ends on a judge.
    AskEnd(Pe),
    /// A PE that must leave does so.
    Leave(Pe),
    /// A PE crashes.
    Crash(Pe),
    /// The path from one PE to another breaks, and mostly the way back, too.
    Cut(Pe, Pe),
    /// All paths are whole again.
    Heal,
    /// All paths break between the PEs of this set (a bit for each) and the others.
    Partition(u32),
}

/// What a PE sees of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// There is contact.
    Reached,
    /// There is no contact at the moment.
    Suspected,
    /// There will be no contact any more.
    Lost,
}
