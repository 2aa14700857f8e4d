//! The state machine of one PE.

use super::board::{BoardState, Boards};
use super::fish_state::{Fishing, WaitingFish};
use super::losses::Losses;
use super::membership::Living;
use super::message::{Bytes, Fish, Message, Outcome, Parcel, Version};
use super::phase::{Ending, Phase};
use super::settings::ProtocolSettings;
use super::statistics::Statistics;
use super::supervision::{Location, Supervision, SupervisionMutant};
use crate::error::TaskError;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Distance, Pe, Topology};

/// The rest of the PE, as the protocol sees it.
pub trait Host {
    /// A uniformly random number.
    fn random(&mut self) -> u64;
    /// Sends a message. It arrives after all messages that were sent to the same PE before.
    fn send(&mut self, to: Pe, message: Message);
    /// The number of tasks that wait in the pool.
    fn queued(&self) -> usize;
    /// Takes from the pool the task for a thief at distance `at_least`
    /// (see [`Pool::select_remote`](super::Pool::select_remote)).
    fn take(&mut self, at_least: Distance) -> Option<Parcel>;
    /// Whether the task taken last is a fork: a part of a problem that is being divided here. The
    /// forks behind it are parts of parts, ever smaller, so it alone is worth about as much as all
    /// of them.
    fn took_fork(&self) -> bool {
        false
    }
    /// Whether there is a task for this FISH that [`take`](Self::take) did not return because its
    /// encoding takes a while. The host has taken it from the pool, and calls
    /// [`Node::hand_over`] once it is encoded.
    fn packs_later(&mut self, _: &Fish) -> bool {
        false
    }
    /// Whether [`take`](Self::take) has returned none because of such a task.
    fn has_to_pack(&self) -> bool {
        false
    }
    /// Whether [`take`](Self::take) may encode tasks now.
    fn may_pack(&self) -> bool {
        true
    }
    /// The boards of the PEs of this host, if there are others and they can see each other's.
    fn boards(&mut self) -> Option<&mut dyn Boards> {
        None
    }
    /// Another PE waits for a task: tasks that divide work should offer parts of it.
    fn want_work(&mut self) {}
    /// Puts a stolen task into the pool.
    fn accept(&mut self, parcel: Parcel);
    /// Runs a task that was placed here, before those in the pool.
    fn place(&mut self, parcel: Parcel);
    /// Runs a task by which the runtime of another PE asks for something, before all others.
    fn ask(&mut self, parcel: Parcel) {
        self.place(parcel);
    }
    /// Runs the code of a [message of the program](Message::Tell).
    fn deliver(&mut self, body: Bytes);
    /// Drops these tasks of the PE `home` if they are here, and stops those that run.
    fn cancel(&mut self, _home: Pe, _futures: Vec<u64>) {}
    /// Ends the future with this number, if it has not ended yet.
    fn fill(&mut self, future: u64, outcome: Outcome);
    /// The name of the function of the task whose future has this number, for error messages.
    fn name(&self, future: u64) -> String;
    /// The PE `pe` cannot go on: the job must end with this reason. Called on the root only.
    fn failed(&mut self, pe: Pe, reason: String);
    /// Starts no more tasks.
    fn shut_down(&mut self);
}

/// The state machine of one PE. See the [protocol](super).
///
/// Two nodes are equal, and have the same hash, if they will behave the same from now on. Their
/// counters make no difference.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) me: Pe,
    /// The PE that runs the main task.
    pub(super) root: Pe,
    pub(super) topology: Arc<Topology>,
    pub(super) settings: ProtocolSettings,
    pub(super) ending: Ending,
    pub(super) fishing: Fishing,
    /// In the order of their arrival.
    pub(super) waiting: Vec<WaitingFish>,
    pub(super) board: BoardState,
    pub(super) supervision: Supervision,
    pub(super) losses: Losses,
    /// The PEs that have not died, as far as this PE was told.
    pub(super) living: Living,
    /// Whether it has cancelled any task.
    pub(super) has_cancelled: bool,
    pub(super) statistics: Statistics,
}

impl Node {
    /// A PE that has no tasks yet.
    pub fn new(me: Pe, topology: Arc<Topology>, settings: ProtocolSettings) -> Self {
        Node {
            me,
            root: Pe::ROOT,
            ending: Ending::NOT_YET,
            fishing: Fishing::new(&topology, me, &settings.fishing),
            waiting: Vec::new(),
            board: BoardState::new(),
            supervision: Supervision::new(me),
            losses: Losses::new(settings.losses_per_turn),
            living: Living::new(topology.pes(), &[]),
            has_cancelled: false,
            statistics: Statistics::new(topology.radii()),
            topology,
            settings,
        }
    }

    /// Another PE runs the main task from now on: the former root is dead.
    pub fn set_root(&mut self, root: Pe) {
        self.root = root;
    }

    /// How far the job is.
    pub fn phase(&self) -> Phase {
        self.ending.phase
    }

    /// The counters so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Whether this PE was told of any death.
    pub fn has_failures(&self) -> bool {
        !self.living.are_all()
    }

    /// Handles a message. A message from a dead PE is dropped.
    pub fn handle(&mut self, now: Duration, from: Pe, message: Message, host: &mut impl Host) {
        if self.living.is_dead(from) {
            return;
        }
        match message {
            Message::Fish(fish) => self.handle_fish(now, fish, host),
            Message::Schedule { serial, tasks } => {
                self.handle_schedule(now, from, serial, tasks, host);
            }
            Message::NoWork { serial } => self.handle_no_work(from, serial),
            Message::Place(parcel) => {
                self.statistics.placed += 1;
                host.place(parcel);
            }
            Message::Ask(parcel) => host.ask(parcel),
            Message::Notify { future, version, to } => {
                self.handle_news(future, version, Location::InTransit { from, to }, host);
            }
            Message::Ack { future, version } => {
                self.handle_news(future, version, Location::At(from), host);
                self.cancel_unknown(future, from, host);
            }
            Message::Cancel { futures } => {
                self.take_back_all_of(from, &futures, host);
                host.cancel(from, futures);
            }
            Message::Result { future, outcome } => {
                self.supervision.forget(future);
                host.fill(future, outcome);
            }
            Message::Tell { pes, dead, body } => self.pass_on(pes, &dead, body, host),
            Message::Failed { reason } if self.phase() == Phase::Running => {
                host.failed(from, reason);
            }
            // The job is ending already.
            Message::Failed { .. } => {}
            Message::Shutdown => self.end(host),
            Message::Farewell => self.handle_farewell(),
            Message::Release => {
                self.end(host);
                self.release(host);
            }
        }
    }

    /// Places a task of this PE on another, which runs it before all tasks that can be stolen. If
    /// that PE dies and the task is supervised, any PE may run it.
    pub fn place(&mut self, to: Pe, parcel: Parcel, host: &mut impl Host) {
        self.send_task(to, parcel, Message::Place, host);
    }

    /// The same for a task of the runtime itself, which runs before all others there.
    pub fn ask(&mut self, to: Pe, parcel: Parcel, host: &mut impl Host) {
        self.send_task(to, parcel, Message::Ask, host);
    }

    fn send_task(
        &mut self,
        to: Pe,
        mut parcel: Parcel,
        message: fn(Parcel) -> Message,
        host: &mut impl Host,
    ) {
        parcel.radius = Distance::ONE;
        if !self.living.is_dead(to) {
            self.supervision.record_departure(&mut parcel, self.me, to);
            host.send(to, message(parcel));
        } else if parcel.supervised {
            self.supervision.record_waiting(parcel);
        } else {
            self.statistics.lost += 1;
            host.fill(parcel.task.future, Err(TaskError::Lost { pe: to }));
        }
    }

    /// Marks PEs as dead: the tasks that they had are lost, and their messages are dropped from now
    /// on. If they had many tasks, some of them are handled only in the next [ticks](Node::tick).
    pub fn mark_dead(&mut self, dead: &[Pe], host: &mut impl Host) {
        let is_new = |pe: &Pe| *pe != self.me && !self.living.is_dead(*pe);
        let new: BTreeSet<Pe> = dead.iter().copied().filter(is_new).collect();
        let new: Vec<Pe> = new.into_iter().collect();
        if new.is_empty() {
            return;
        }
        self.living.remove(&new);
        self.release_fish();
        self.end_anew(host);
        self.lose_all(&new, host);
    }

    /// Records where a task of this PE is. If that is on its way to a dead PE, the task is lost.
    fn handle_news(
        &mut self,
        future: u64,
        version: Version,
        location: Location,
        host: &mut impl Host,
    ) {
        if !self.supervision.record_news(
            future,
            version,
            location,
            self.is_mutant(SupervisionMutant::IgnoresAge),
        ) {
            return;
        }
        let gone = match location {
            Location::InTransit { to, .. } if self.living.is_dead(to) => to,
            _ => return,
        };
        if !self.is_mutant(SupervisionMutant::ForgetsTheDead) {
            self.lose(future, gone, host);
        }
    }

    /// Whether the feature `mutants` leaves out this rule.
    #[cfg(feature = "mutants")]
    fn is_mutant(&self, mutant: SupervisionMutant) -> bool {
        self.settings.mutant == Some(mutant)
    }

    #[cfg(not(feature = "mutants"))]
    #[allow(clippy::unused_self, reason = "as with the feature")]
    fn is_mutant(&self, _: SupervisionMutant) -> bool {
        false
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.me == other.me
            && self.ending == other.ending
            && self.fishing == other.fishing
            && self.waiting == other.waiting
            && self.board == other.board
            && self.supervision == other.supervision
            && self.losses == other.losses
            && self.living == other.living
            && self.has_cancelled == other.has_cancelled
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Node { me, ending, fishing, waiting, board, supervision, losses, .. } = self;
        (me, ending, fishing, waiting, board, supervision, losses).hash(state);
        (&self.living, self.has_cancelled).hash(state);
    }
}
