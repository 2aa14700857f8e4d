//! Where a PE's search for work stands.

use super::message::{Fish, Need};
use super::settings::FishingSettings;
use std::time::Duration;
use ultramarine_topology::{Pe, Topology};

/// An answer is awaited for at most this many times `fish_deadline`.
pub(super) const DEADLINE_GROWTH_MAX: u32 = 16;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fishing {
    pub(super) fish: FishState,
    /// How much this PE needed work at the last tick.
    pub(super) need: Need,
    /// The number of the last FISH cast.
    pub(super) serial: u64,
    /// The ball that the next FISH searches first: its index among the radii.
    pub(super) search_radius: usize,
    /// The PE that answered the last FISH with tasks, unless one has found nothing since. It may
    /// have more.
    pub(super) giver: Option<Pe>,
    /// The longest pause between the next FISH and the one after it.
    pub(super) delay: Duration,
    /// How long the answer to the next FISH is awaited.
    pub(super) deadline: Duration,
    /// How much this PE needed work when it cast the last FISH.
    pub(super) need_sent: Need,
    /// Since the last success the PE has not yet cut a wait short because its need grew.
    pub(super) may_ask_anew: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FishState {
    /// No FISH is under way.
    Resting,
    /// A FISH was cast at `at`; its answer is awaited until `until`. If it finds nothing, the next
    /// one is cast at `again` at the earliest.
    Out { at: Duration, until: Duration, again: Duration },
    /// The last FISH found nothing; the next may be cast at `until`.
    BackingOff { until: Duration },
}

/// A FISH of another PE that waits here for work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WaitingFish {
    pub(super) fish: Fish,
    /// Then the thief hears that there is none.
    pub(super) until: Duration,
}

impl Fishing {
    pub(super) fn new(topology: &Topology, me: Pe, settings: &FishingSettings) -> Self {
        Fishing {
            fish: FishState::Resting,
            need: Need::Ahead,
            serial: 0,
            search_radius: nearest_company(topology, me),
            giver: None,
            delay: settings.min_fish_delay,
            deadline: settings.fish_deadline,
            need_sent: Need::Ahead,
            may_ask_anew: true,
        }
    }

    /// No answer came in time. The next one is awaited for twice as long, as far as that goes: the
    /// network may be slow, and more FISHes would make it slower.
    pub(super) fn give_up_fish(&mut self, settings: &FishingSettings) {
        self.fish = FishState::Resting;
        self.deadline = (self.deadline * 2).min(settings.fish_deadline * DEADLINE_GROWTH_MAX);
    }

    /// The answer came. (Where each takes longer than `fish_deadline`, most of them come in time.)
    pub(super) fn note_answer(&mut self, settings: &FishingSettings) {
        self.deadline = (self.deadline / 2).max(settings.fish_deadline);
    }

    /// Notes how much this PE needs work now. FISHes that are cast ahead of time mostly find
    /// nothing, and the waits between them grow. A PE that runs out of work then does not wait, but
    /// casts a FISH at once: once for each success, so that many PEs without work do not fill a
    /// slow network with FISHes. (UTS T3L on two PEs: 2.90 s instead of 3.11, and no more FISHes.)
    pub(super) fn note_need(&mut self, need: Need, settings: &FishingSettings) {
        self.need = need;
        let is_waiting = self.fish != FishState::Resting;
        if is_waiting && self.may_ask_anew && need > self.need_sent {
            (self.fish, self.may_ask_anew) = (FishState::Resting, false);
            self.delay = settings.min_fish_delay;
        }
    }
}

/// The smallest ball around `me` that holds another PE: its index among the radii.
pub(super) fn nearest_company(topology: &Topology, me: Pe) -> usize {
    let radii = topology.radii();
    (0..radii.len()).find(|i| topology.ball(me, radii[*i]).len() > 1).unwrap_or(radii.len())
}
