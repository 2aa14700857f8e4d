//! One PE's part of a bulk-synchronous run, as a state machine: messages and events in, effects
//! out.
//!
//! ```text
//!               all steps are taken          what was sent has come           all have said so
//!   computing ──────────────────────> posting ──────────────────────> meeting ──────┐
//!    ↑  ↑  ↑                                                                        │
//!    │  │  └────────────────────────── the next superstep ──────────────────────────┘──> ended
//!    │  └── restoring: ranks are read from copies <── agreeing on a checkpoint <── a PE dies
//!    └───── at the start
//! ```
//!
//! - **Delivery.** What a PE's ranks send to those of another goes in one message, which the other
//!   acknowledges; it need not where the meeting says it, see `View::hears_in_meeting`. A PE says
//!   that it has come to the meeting when all is acknowledged. So after the meeting each PE has
//!   what was sent to it: messages are counted, not waited for.
//! - **Meeting.** It carries what all must know: whether any rank goes on, whether a checkpoint is
//!   due, of which one all have copies, and the values of collective operations (`span`).
//! - **Deaths.** A PE's *view* (`view`) follows from the deaths of which it knows. Messages of an
//!   earlier view are dropped, those of a later one wait. After a death, PEs of the same view tell
//!   each other of which ranks they have copies. So they agree on the last checkpoint that is
//!   whole, and each sends the copies that it has to the PEs whose ranks they are now. If there is
//!   none, they look into the directory, tell each other again, and read their ranks there. If
//!   there is none, either, all begin anew.
//! - **Balance.** Ranks move from busy PEs to others between two supersteps, see `balance`.
//! - **Checkpoints.** A copy of each rank as it was when a superstep began, with its letters, is
//!   kept by its PE and by that one's partner, or on the disk, or both. Once all have said that
//!   partners have theirs, those of earlier checkpoints are dropped; until all is done, no other is
//!   begun. On the disk the last two are kept.
//!
//! A machine must never know what a state is, nor how messages travel: it runs in jobs, in random
//! schedules and in model checkers.

mod balance;
mod checkpoints;
mod computing;
mod kind;
mod meeting;
mod message;
mod recovery;
mod span;
mod state;
mod superstep;
#[cfg(test)]
mod tests;
mod view;

use self::balance::Loads;
use self::checkpoints::{Offers, Progress};
use self::meeting::{Early, Meeting};
use self::recovery::{Restoring, Source};
use self::superstep::Doing;
use self::view::View;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Pe, Topology};

pub use self::checkpoints::{Checkpoints, Copy, Key};
pub use self::kind::{Kind, Next, Saving, Step, Trouble, When};
pub use self::message::{Effect, Facts, Job, JobOf, Letter, Message, MessageOf, Told, Waste, Work};
pub use self::view::ViewId;

/// A rank on its PE.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Seat<K: Kind> {
    /// `None`: it takes a step, or is being restored.
    next: Option<Next<K::State, K::Output>>,
    letters: Vec<Letter<K::Content>>,
    results: Vec<Option<K::Value>>,
    /// For how long it has computed since the PEs were compared, in nanoseconds.
    load: u64,
    /// Whether it waits for a message, while it is saved.
    is_asleep: bool,
}

impl<K: Kind> Seat<K> {
    fn new(
        next: Next<K::State, K::Output>,
        letters: Vec<Letter<K::Content>>,
        results: Vec<Option<K::Value>>,
    ) -> Self {
        Seat { next: Some(next), letters, results, load: 0, is_asleep: false }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase<K: Kind> {
    /// This PE does not take part yet.
    Outside,
    /// On the last checkpoint that is whole in memory, or on the disk.
    Agreeing {
        is_of_disk: bool,
        meeting: Meeting<Offers>,
    },
    /// The directory is read.
    Looking,
    Restoring(Restoring),
    /// This number of ranks has not taken its step yet.
    Computing(usize),
    /// These PEs have not acknowledged what was sent to them.
    Posting(BTreeSet<Pe>),
    Meeting(Meeting<Facts<K::Value>>),
    /// On how much ranks have to do.
    Weighing(Meeting<Loads>),
    Ended,
    Failed(K::Error),
}

/// What a machine's owner has said to it, for the next meeting.
#[derive(Clone, Copy, Default)]
struct Reports {
    /// Whether a checkpoint is due, if that is told.
    is_due: bool,
    is_weighing_due: bool,
    /// A copy of a rank is longer than a message may be.
    is_too_long: bool,
    /// How long the last checkpoint has kept this PE.
    cost: Option<Duration>,
}

/// See the [module](self).
pub struct Machine<K: Kind> {
    me: Pe,
    ranks: u32,
    topology: Arc<Topology>,
    saving: Saving,
    /// The PE whose program waits for the end.
    home: Pe,
    dead: BTreeSet<Pe>,
    view: View,
    /// Messages of views to which this PE may come.
    ahead: Vec<(Pe, Told<K>)>,
    phase: Phase<K>,
    superstep: u64,
    /// Counts what jobs are part of.
    ticket: u64,
    /// The ranks of this PE.
    seats: BTreeMap<u32, Seat<K>>,
    doing: Doing<K>,
    /// What has been sent to this PE's ranks in a superstep.
    arrived: BTreeMap<u64, Vec<Letter<K::Content>>>,
    early: Early<Facts<K::Value>>,
    early_offers: Early<Offers>,
    early_loads: Early<Loads>,
    early_copies: Vec<(Key, CopiesOf<K>)>,
    /// Whether all slept in the last superstep, and none sent anything.
    is_quiet: bool,
    pub checkpoints: Checkpoints<K::Saved, K::Output>,
    /// The checkpoint that was begun last, and the number of own ranks that it lacks.
    pub saving_now: Option<(Key, usize)>,
    reports: Reports,
    /// How long the last checkpoint has kept the PE that it has kept for longest.
    cost_of_all: Option<Duration>,
    /// While ranks are saved to be moved: the first rank of each member then.
    moving: Option<Arc<[u32]>>,
    /// Tells the stores since the last recovery from those before.
    stores_since: u64,
    /// Greater after each recovery.
    generation: u32,
    pub progress: Progress,
    /// Of ranks that have ended, at home: of the last view of which there are any.
    outputs: (ViewId, BTreeMap<u32, K::Output>),
    effects: Vec<Effect<K>>,
    waste: Waste<K>,
}

/// Copies of ranks.
type CopiesOf<K> = BTreeMap<u32, Copy<<K as Kind>::Saved, <K as Kind>::Output>>;

impl<K: Kind> Machine<K> {
    /// The machine of this PE, in a run of this many ranks. It does nothing before it
    /// [begins](Self::begin).
    pub fn new(me: Pe, ranks: u32, topology: Arc<Topology>, saving: Saving, home: Pe) -> Self {
        let dead = BTreeSet::new();
        let view = View::new(me, ranks, &topology, &dead);
        Machine {
            me,
            ranks,
            topology,
            saving,
            home,
            dead,
            view,
            ahead: Vec::new(),
            phase: Phase::Outside,
            superstep: 0,
            ticket: 0,
            seats: BTreeMap::new(),
            doing: Doing::new(),
            arrived: BTreeMap::new(),
            early: Early::new(),
            early_offers: Early::new(),
            early_loads: Early::new(),
            early_copies: Vec::new(),
            is_quiet: false,
            checkpoints: Checkpoints::default(),
            saving_now: None,
            reports: Reports::default(),
            cost_of_all: None,
            moving: None,
            stores_since: 0,
            generation: 0,
            progress: Progress::default(),
            outputs: Default::default(),
            effects: Vec::new(),
            waste: Waste::default(),
        }
    }

    /// The number of the superstep that is computed, or was last.
    pub fn superstep(&self) -> u64 {
        self.superstep
    }

    /// Whether this PE's ranks have taken their steps, and others are waited for.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Posting(_) | Phase::Meeting(_) | Phase::Weighing(_))
    }

    /// Says whether a checkpoint is due, if that is [told](When::Told). The first PE counts.
    pub fn set_due(&mut self, is_due: bool) {
        self.reports.is_due = is_due;
    }

    /// A copy of a rank is longer than a message may be: no more checkpoints are kept in memory.
    /// Returns whether that is news.
    pub fn cannot_keep(&mut self) -> bool {
        !std::mem::replace(&mut self.reports.is_too_long, true)
    }

    /// Says how long the last checkpoint has kept this PE.
    pub fn set_cost(&mut self, cost: Option<Duration>) {
        self.reports.cost = cost;
    }

    /// How long the last checkpoint has kept the PE that it has kept for longest, as far as all
    /// have told each other.
    pub fn cost_of_all(&self) -> Option<Duration> {
        self.cost_of_all
    }

    /// The ranks of this PE.
    pub fn own(&self) -> Range<u32> {
        self.view.own()
    }

    /// Whether a rank is this PE's.
    pub fn has(&self, rank: u32) -> bool {
        self.own().contains(&rank)
    }

    /// What is to be done now, in this order.
    pub fn take_effects(&mut self) -> Vec<Effect<K>> {
        take(&mut self.effects)
    }

    /// What is to be dropped.
    pub fn take_waste(&mut self) -> Waste<K> {
        take(&mut self.waste)
    }

    /// This PE knows of all deaths so far, and takes part.
    pub fn begin(&mut self) {
        if !self.dead.is_empty() {
            return self.agree();
        }
        if self.saving.on_disk {
            self.look();
        } else {
            self.restore(Source::Anew);
        }
        self.hear_ahead();
    }

    /// The program waits on another PE.
    pub fn move_home(&mut self, home: Pe) {
        self.home = home;
        // The former home may have died before it knew.
        match &self.phase {
            Phase::Ended => self.tell_outputs(),
            Phase::Failed(error) => self.effects.push(Effect::Fail(error.clone())),
            _ => {}
        }
    }

    /// Something has come from the machine of another PE, or of this one.
    pub fn receive(&mut self, from: Pe, (view, message): Told<K>) {
        if let MessageOf::Outputs(outputs) = message {
            return self.hear_outputs(view, outputs);
        }
        if view != self.view.id || matches!(self.phase, Phase::Outside) {
            let may_come = self.view.id.may_become(view) || view == self.view.id;
            if may_come && !self.dead.contains(&from) {
                self.ahead.push((from, (view, message)));
            }
            return;
        }
        match message {
            MessageOf::Batch { superstep, mut letters, is_to_be_acknowledged } => {
                if is_to_be_acknowledged {
                    self.send(from, MessageOf::Received { superstep });
                }
                self.arrived.entry(superstep).or_default().append(&mut letters);
            }
            MessageOf::Received { superstep } => {
                if let Phase::Posting(missing) = &mut self.phase
                    && superstep == self.superstep
                    && missing.remove(&from)
                    && missing.is_empty()
                {
                    self.meet();
                }
            }
            MessageOf::Round { superstep, round, facts } => {
                self.early.insert((superstep, round), facts);
                self.go_on_meeting();
            }
            MessageOf::Loads { superstep, round, loads } => {
                self.early_loads.insert((superstep, round), loads);
                self.go_on_weighing();
            }
            MessageOf::Offer { is_of_disk, round, offers } => {
                self.early_offers.insert((u64::from(is_of_disk), round), offers);
                self.go_on_agreeing();
            }
            MessageOf::Moved { key, copies } => self.take_over(key, copies),
            MessageOf::Kept { key, copies, are_last } => {
                self.checkpoints.keep(key, from, copies);
                if are_last {
                    self.send(from, MessageOf::Keeps { key });
                }
            }
            MessageOf::Keeps { key } => self.progress.kept = self.progress.kept.max(Some(key)),
            MessageOf::Outputs(_) => {}
        }
    }

    /// A rank has been made, or read from what was saved.
    pub fn restored(
        &mut self,
        work: Work,
        rank: u32,
        state: K::State,
        letters: Vec<Letter<K::Content>>,
        results: Vec<Option<K::Value>>,
    ) {
        if work.ticket != self.ticket {
            self.waste.states.push(state);
            self.waste.letters.extend(letters);
            return;
        }
        let was_asleep = matches!(&self.phase, Phase::Restoring(all) if all.was_asleep(rank));
        let next = if was_asleep { Next::Asleep(state) } else { Next::Awake(state) };
        self.seats.insert(rank, Seat::new(next, letters, results));
        self.is_restored();
    }

    fn send(&mut self, to: Pe, message: Message<K>) {
        self.effects.push(Effect::Send(to, (self.view.id, message)));
    }

    /// The run cannot go on, as this work has shown.
    pub fn fail_in(&mut self, work: Work, error: impl Into<K::Error>) {
        if work.ticket == self.ticket {
            self.fail(error);
        }
    }

    /// The run cannot go on.
    fn fail(&mut self, error: impl Into<K::Error>) {
        let error = error.into();
        self.ticket += 1;
        self.effects.push(Effect::Fail(error.clone()));
        self.phase = Phase::Failed(error);
    }
}
