//! What a table is at one moment, and what can happen next.

use crate::frame::Digested;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use ultramarine_skeletons::table::machine::{Kind, Machine, Told, WorkOf};
use ultramarine_topology::Pe;

/// The share that is searched.
pub(super) const SHARE: Pe = Pe::ROOT;

/// What is asked of the share. Each has a number of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// It is added to the list.
    Add(u8),
    /// It is added if no other of this kind is there.
    Claim(u8),
    /// Nothing is added.
    Read(u8),
}

impl Op {
    /// Does this to the entries. Returns whether they have changed.
    pub(super) fn apply(self, entries: &mut Vec<Op>) -> bool {
        let is_new = match self {
            Op::Add(_) => true,
            Op::Claim(_) => !entries.iter().any(|op| matches!(op, Op::Claim(_))),
            Op::Read(_) => false,
        };
        entries.extend(is_new.then_some(self));
        is_new
    }

    /// Whether it is done in these entries.
    pub(super) fn is_done(self, entries: &[Op]) -> bool {
        match self {
            Op::Add(_) => entries.contains(&self),
            Op::Claim(_) => entries.iter().any(|op| matches!(op, Op::Claim(_))),
            Op::Read(_) => true,
        }
    }
}

/// What a table handles here. An answer has all entries.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Toy;

impl Kind for Toy {
    type Batch = Op;
    type Change = Op;
    type Answer = Vec<Op>;
    type Entries = Vec<Op>;
}

/// A whole table at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// By PE; `None`: it is dead.
    pub(super) members: Vec<Option<Arc<Digested<Member>>>>,
    /// Messages on their way, by sender and receiver, in the order of sending.
    pub(super) wires: Vec<VecDeque<Told<Toy>>>,
    /// The set of dead PEs.
    pub(super) dead: u32,
    /// By PE: the set of PEs of whose deaths it has heard.
    pub(super) heard: Vec<u32>,
    /// The most entries of any answer.
    pub(super) certain: Vec<Op>,
    /// Whether a PE that was not the first owner has answered.
    pub(super) is_succeeded: bool,
    /// Whether a machine has said that the table is lost.
    pub(super) is_lost: bool,
    /// What must never happen, and has.
    pub(super) fault: Option<Fault>,
}

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    DoneTwice,
    Forgets,
    LosesTooSoon,
}

/// A PE that lives.
#[derive(Clone, Debug, Hash)]
pub(super) struct Member {
    pub(super) machine: Machine<Toy>,
    pub(super) has_begun: bool,
    pub(super) to_ask: VecDeque<Op>,
    /// What it has asked, by number, with how many entries were certain then.
    pub(super) open: BTreeMap<u64, (Op, usize)>,
    pub(super) entries: Vec<Op>,
    pub(super) aside: Vec<Op>,
    pub(super) work: VecDeque<WorkOf<Toy>>,
    /// Who has filled its copy last.
    pub(super) filled_by: Option<Pe>,
}

impl Member {
    pub(super) fn new(machine: Machine<Toy>, to_ask: VecDeque<Op>) -> Self {
        Member {
            machine,
            has_begun: false,
            to_ask,
            open: BTreeMap::new(),
            entries: Vec::new(),
            aside: Vec::new(),
            work: VecDeque::new(),
            filled_by: None,
        }
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A PE is invited, and takes part from now on.
    Begin(u32),
    /// A PE asks the next thing that it has to ask.
    Ask(u32),
    /// The next message between two PEs arrives.
    Deliver {
        /// Its sender.
        from: u32,
        /// Its receiver.
        to: u32,
    },
    /// A PE does the next thing that is to be done with its entries.
    Work(u32),
    /// A PE dies.
    Die(u32),
    /// A PE hears of a death. What was still on its way from there is lost.
    Hear {
        /// The PE that hears of it.
        at: u32,
        /// The dead PE.
        dead: u32,
    },
}
