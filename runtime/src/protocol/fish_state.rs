//! Where a PE's search for work stands.

use super::message::Need;
use super::settings::FishingSettings;
use std::time::Duration;
use ultramarine_topology::{Pe, Topology};

/// Where this PE's search for work stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fishing {
    pub(super) fish: FishState,
    /// How much work was needed at the last tick.
    pub(super) need: Need,
    /// The number of the last FISH cast.
    pub(super) serial: u64,
    /// Index among the radii of the ball that the next FISH searches first.
    pub(super) search_radius: usize,
    /// The longest wait after the next NOWORK.
    pub(super) delay: Duration,
    /// How much work was needed when the last FISH was cast.
    pub(super) need_sent: Need,
    /// Since the last success it has not yet asked anew for being in greater need than that.
    pub(super) may_ask_anew: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FishState {
    /// Nothing is under way.
    Resting,
    /// A FISH was cast `at` and is waited for `until`.
    Out { at: Duration, until: Duration },
    /// The last FISH was in vain; the next may go out `until` then.
    BackingOff { until: Duration },
}

impl Fishing {
    pub(super) fn new(topology: &Topology, me: Pe, settings: &FishingSettings) -> Self {
        Fishing {
            fish: FishState::Resting,
            need: Need::Ahead,
            serial: 0,
            search_radius: nearest_company(topology, me),
            delay: settings.min_fish_delay,
            need_sent: Need::Ahead,
            may_ask_anew: true,
        }
    }

    /// How much this PE needs work now. What was asked for ahead of time is mostly refused, and the
    /// waits grow; a PE that runs dry then does not sit them out, but asks anew: once for each
    /// success, since on a slow network many that are dry must not fill it with their questions.
    /// (UTS T3L on two PEs: 2.90 s instead of 3.11, and no more FISHes.)
    pub(super) fn note_need(&mut self, need: Need, settings: &FishingSettings) {
        self.need = need;
        let is_waiting = matches!(self.fish, FishState::BackingOff { .. });
        if is_waiting && self.may_ask_anew && need > self.need_sent {
            (self.fish, self.may_ask_anew) = (FishState::Resting, false);
            self.delay = settings.min_fish_delay;
        }
    }
}

/// Index among the radii of the smallest ball around `me` that holds anyone else.
pub(super) fn nearest_company(topology: &Topology, me: Pe) -> usize {
    let radii = topology.radii();
    (0..radii.len()).find(|i| topology.ball(me, radii[*i]).len() > 1).unwrap_or(radii.len())
}
