//! What a run is at one moment, and what can happen next. (It is not the testkit's world: a PE
//! hears of a death at any moment, and work ends in any order.)

use super::program::Toy;
use crate::frame::Digested;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use ultramarine_skeletons::bsp::machine::{JobOf, Machine, Told, Trouble, ViewId, Work};

/// A whole run at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// By PE; `None`: it is dead.
    pub(super) members: Vec<Option<Arc<Digested<Member>>>>,
    /// Messages on their way, by sender and receiver, in the order of sending.
    pub(super) wires: Vec<VecDeque<Event>>,
    /// The set of dead PEs.
    pub(super) dead: u32,
    /// By PE: the set of PEs of whose deaths it has heard.
    pub(super) heard: Vec<u32>,
    /// The PE whose program waits for the end, or will.
    pub(super) home: u32,
    /// Whether the program has not begun there yet.
    pub(super) is_vacant: bool,
    /// The superstep of the last checkpoint that any PE has held for whole.
    pub(super) whole: Option<u64>,
    /// The superstep from which a PE has gone on after a death, the last of these.
    pub(super) resumed: Option<u64>,
    /// Whether ranks have moved.
    pub(super) has_moved: bool,
    /// What a program was told in the end.
    pub(super) end: Option<Result<BTreeMap<u32, u64>, Trouble>>,
    /// What must never happen, and has.
    pub(super) fault: Option<Fault>,
}

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    WrongSuperstep,
    FormerView,
    LosesCheckpoint,
    KeepsTooMuch,
    Panics,
}

/// A PE that lives.
#[derive(Clone, Debug, Hash)]
pub(super) struct Member {
    pub(super) machine: Machine<Toy>,
    pub(super) has_begun: bool,
    /// What its workers have begun, in the order in which it was asked for.
    pub(super) tasks: Vec<Task>,
    /// The view in which it has last said something.
    pub(super) view: Option<ViewId>,
    /// The last ticket of its work.
    pub(super) ticket: u64,
}

impl Member {
    pub(super) fn new(machine: Machine<Toy>) -> Self {
        let (tasks, view) = (Vec::new(), None);
        Member { machine, has_begun: false, tasks, view, ticket: 0 }
    }
}

/// What a worker does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Task {
    pub(super) work: Work,
    /// The set of PEs that this one knew to be dead when it asked for it.
    pub(super) dead: u32,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// A rank is saved, and takes its step after that, if it does.
    Save(JobOf<Toy>),
    Step(JobOf<Toy>),
    Restore(u32, Option<JobOf<Toy>>),
}

/// What comes from another PE.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    Told(Told<Toy>),
    /// The program waits on the sender now.
    Home,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A PE is invited, and takes part from now on.
    Begin(u32),
    /// The next message between two PEs arrives.
    Deliver {
        /// Its sender.
        from: u32,
        /// Its receiver.
        to: u32,
    },
    /// A worker of a PE has done the task of this number.
    Work {
        /// The PE.
        at: u32,
        /// The number.
        task: usize,
    },
    /// A PE dies.
    Die(u32),
    /// A PE hears of a death. What was still on its way from there is lost.
    Hear {
        /// The PE that hears of it.
        at: u32,
        /// The dead PE.
        dead: u32,
    },
    /// The program begins anew on the PE that takes the place of a dead root.
    Return,
}
