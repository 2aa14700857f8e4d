//! A simulated PE.

use super::host::{Effect, SimulatedHost};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use ultramarine_runtime::protocol::{Leaving, Membership, MembershipStatus, Node, Phase};
use ultramarine_topology::Pe;

/// A PE, as long as it is there.
#[derive(Debug)]
pub(super) struct SimulatedPe {
    pub(super) node: Node,
    pub(super) membership: Membership,
    pub(super) host: SimulatedHost,
    /// How many of the dead the membership has told the node.
    pub(super) reported: usize,
    pub(super) is_settled: bool,
    /// Whose channels are closed.
    pub(super) marked_dead: BTreeSet<Pe>,
    /// How many messages to each PE have not been acknowledged.
    pub(super) unacknowledged: BTreeMap<Pe, u64>,
    /// When the node is to be ticked next, in nanoseconds.
    pub(super) tick_due: u64,
    leaving: Leaving,
    pub(super) is_ending: bool,
    /// It does nothing before this moment, in nanoseconds.
    pub(super) stopped_until: u64,
}

impl SimulatedPe {
    pub(super) fn new(node: Node, membership: Membership, host: SimulatedHost) -> Self {
        SimulatedPe {
            node,
            membership,
            host,
            reported: 0,
            is_settled: false,
            marked_dead: BTreeSet::new(),
            unacknowledged: BTreeMap::new(),
            tick_due: u64::MAX,
            leaving: Leaving::default(),
            is_ending: false,
            stopped_until: 0,
        }
    }

    /// Lets this PE do what there is to do now. Returns what is to be done about it elsewhere.
    pub(super) fn turn(&mut self, now: u64) -> Vec<Effect> {
        let mut done = Vec::new();
        loop {
            let due = self.node.tick(Duration::from_nanos(now), self.host.need(), &mut self.host);
            self.tick_due = due.map_or(u64::MAX, |due| due.as_nanos() as u64);
            if self.node.phase() != Phase::Running && !sends(&done) && !sends(&self.host.effects) {
                self.take_leave(now);
            }
            self.host.dispatch();
            // A death may leave more to do than a turn may.
            if self.host.effects.is_empty() && self.tick_due > now {
                return done;
            }
            for effect in std::mem::take(&mut self.host.effects) {
                match effect {
                    Effect::SpawnPlace(to, parcel) if self.node.phase() == Phase::Running => {
                        self.node.place(to, parcel, &mut self.host);
                    }
                    Effect::SpawnPlace(..) => {}
                    Effect::MainEnded(value) => {
                        self.node.end(&mut self.host);
                        done.push(Effect::MainEnded(value));
                    }
                    effect => done.push(effect),
                }
            }
        }
    }

    /// Takes leave if nothing is left to wait for, as the runtime's engine does.
    fn take_leave(&mut self, now: u64) {
        let SimulatedPe { node, host, leaving, unacknowledged, .. } = self;
        let has_reached = |pes: Vec<Pe>| pes.iter().all(|pe| !unacknowledged.contains_key(pe));
        let (now, is_idle) = (Duration::from_nanos(now), unacknowledged.is_empty());
        leaving.try_take_leave(node, now, is_idle, has_reached, host);
    }

    /// Another PE has left in order.
    pub(super) fn hear_goodbye(&mut self, now: Duration) {
        self.leaving.hear_goodbye(now);
        self.node.end(&mut self.host);
    }

    /// Leaves whatever others say.
    pub(super) fn let_go(&mut self) {
        self.leaving.leave_unanswered(&mut self.node, &mut self.host);
    }

    /// Whether it may go.
    pub(super) fn may_leave(&self) -> bool {
        let is_idle = self.unacknowledged.is_empty() && !sends(&self.host.effects);
        self.leaving.may_leave(&self.node, is_idle)
    }

    /// The PE's neighbours in the ring in which PEs watch each other, as it sees it.
    pub(super) fn neighbours(&self, me: Pe) -> BTreeSet<Pe> {
        if self.membership.status() != MembershipStatus::Member {
            return BTreeSet::new();
        }
        let living: Vec<Pe> = self.membership.living().iter().collect();
        let place = living.iter().position(|pe| *pe == me);
        let around = place.map(|place| [place + 1, place + living.len() - 1]);
        let around = around.into_iter().flatten().map(|place| living[place % living.len()]);
        around.filter(|pe| *pe != me).collect()
    }

    /// A PE is dead: what waits for it is dropped, and nothing is heard of it any more.
    pub(super) fn mark_dead(&mut self, dead: Pe) {
        self.marked_dead.insert(dead);
        self.unacknowledged.remove(&dead);
        self.node.mark_dead(dead, &mut self.host);
    }
}

fn sends(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Send(..)))
}
