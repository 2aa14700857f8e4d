//! The detector's rules, without its sockets: which PEs to dial, what to send them, and what each
//! silence means.
//!
//! A [`Watch`] is one PE's part, as a state machine. Its owner has the connections and the clock:
//! the detector's thread (`event_loop.rs`), or a simulator of many PEs. The owner says what happens
//! to the connections and what arrives on them. The watch answers with [effects](Effect). So the
//! code that is simulated with 10^5 PEs is the code that runs.
//!
//! It must never know sockets, handshakes, clocks or threads, nor what a task is.
//!
//! # What the owner does
//!
//! - **Time.** Each `now` is the time since the watch was made, and never goes back. Time in which
//!   the owner could not run must be left out (`clock.rs`).
//! - **Effects.** It carries them out in their order, before it says anything else than how that
//!   went. It answers [`Effect::Dial`] at once, by [`dialling`](Watch::dialling) or
//!   [`dial_failed`](Watch::dial_failed).
//! - **Connections.** It gives each a number that it never uses again. The two ends of a connection
//!   are in two watches, and may have different numbers.
//!
//! | what happens to a connection | the owner calls |
//! |---|---|
//! | the other host accepts the call | [`answered`](Watch::answered) |
//! | the handshake is done, at the end that dialled or at the other | [`opened`](Watch::opened) |
//! | a notice arrives | [`notice`](Watch::notice) |
//! | it does not take a notice | [`not_sent`](Watch::not_sent), then `closed` |
//! | it has ended, for whatever reason | [`closed`](Watch::closed), once |
//!
//! - **Turns.** Once it has said all that has arrived, it calls [`assess`](Watch::assess), and
//!   [`tick`](Watch::tick) at the same moment. Then it sleeps until [`due`](Watch::due), unless
//!   something arrives. It may hand over many things before a turn.
//!
//! # Example
//!
//! PE 2 is killed. The connection of PE 0 with it breaks, and the guard of PE 2 says why.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use ultramarine_runtime::detector::watch::{
//!     CloseReason, ConnectionNumber, Effect, Effects, HostRings, Watch,
//! };
//! use ultramarine_runtime::detector::{DetectorSettings, FailureEvent};
//! use ultramarine_runtime::protocol::{Heading, Notice};
//! use ultramarine_topology::{Pe, Topology};
//! let two = Pe::new(2);
//! let now = Duration::from_millis(10);
//! let hosts = Arc::new(HostRings::new(&Topology::flat(3)));
//! let mut root = Watch::new(Pe::ROOT, hosts, DetectorSettings::default(), Arc::default());
//! let mut effects = Effects::new();
//! // In the ring 0 → 1 → 2 → 0, PE 0 dials PE 1 and is dialled by PE 2.
//! root.tick(now, &mut effects);
//! assert_eq!(effects.pop_front(), Some(Effect::Dial(Pe::new(1))));
//! root.dialling(now, Pe::new(1), ConnectionNumber(1), &mut effects);
//! root.opened(now, two, ConnectionNumber(2), &mut effects);
//! let notice = Notice::Known { of: Heading::FIRST, dead: 0 };
//! let hello = Effect::Send { connection: ConnectionNumber(2), notice };
//! assert_eq!(effects.pop_front(), Some(hello));
//!
//! root.closed(now, two, ConnectionNumber(2), CloseReason::Broken, &mut effects);
//! root.tick(now, &mut effects);
//! assert_eq!(effects.pop_front(), Some(Effect::Dial(two)));
//! root.dialling(now, two, ConnectionNumber(3), &mut effects);
//! root.closed(now, two, ConnectionNumber(3), CloseReason::Gone, &mut effects);
//! assert_eq!(effects.pop_front(), Some(Effect::Report(FailureEvent::Dead(vec![two]))));
//! ```

mod assessment;
mod connections;
mod effect;
mod goodbye;
mod notices;
mod peer;
mod peers;
mod reachability;
mod ring_order;
mod rings;
#[cfg(test)]
mod tests;

pub use super::close_reason::CloseReason;
pub use effect::{ConnectionNumber, Effect, Effects};
pub use rings::HostRings;

use super::counters::{DetectorCounters, count};
use super::settings::DetectorSettings;
use crate::protocol::{Membership, Notice};
use peer::PeerView;
use peers::Peers;
use reachability::{ContactLimits, DialPace, LossReason};
use rings::Partners;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::Pe;

/// How long a PE that has never been heard is not suspected, from the watch's start on: its
/// process may still be starting.
const START_GRACE: Duration = Duration::from_secs(5);

/// How long a connection that no PE uses is kept, in times of `dead_after`.
const UNUSED_TIMES: u32 = 5;

/// One PE's failure detector. See the [module](self).
#[derive(Debug)]
pub struct Watch {
    me: Pe,
    hosts: Arc<HostRings>,
    settings: DetectorSettings,
    /// No decision depends on them.
    counters: Arc<DetectorCounters>,
    membership: Membership,
    /// What membership said of its list of the dead when this watch last acted on it.
    seen: Notice,
    /// The judge in office.
    judge: Pe,
    peers: Peers,
    /// The PEs with which this one shares connections, at present.
    partners: Partners,
    /// The number of dead PEs that have been reported.
    reported: usize,
    /// The last event has been reported.
    has_reported_last: bool,
    has_reported_end: bool,
    /// Why this PE has lost the root.
    root_loss: Option<LossReason>,
    /// Until when to say goodbye, once the PE has asked for that.
    leaving_until: Option<Duration>,
    next_heartbeat: Duration,
}

impl Watch {
    /// The watch of PE `me`. It counts what it does in `counters`, which several watches may share.
    ///
    /// # Panics
    ///
    /// If `hosts` do not have `me`.
    pub fn new(
        me: Pe,
        hosts: Arc<HostRings>,
        settings: DetectorSettings,
        counters: Arc<DetectorCounters>,
    ) -> Watch {
        let mut membership = Membership::new(me, hosts.pes(), settings.dead_after);
        if settings.succession {
            membership = membership.with_succession();
        }
        let seen = membership.heartbeat();
        let mut watch = Watch {
            me,
            hosts,
            settings,
            counters,
            membership,
            seen,
            judge: Pe::ROOT,
            peers: Peers::default(),
            partners: Partners::default(),
            reported: 0,
            has_reported_last: false,
            has_reported_end: false,
            root_loss: None,
            leaving_until: None,
            next_heartbeat: Duration::ZERO,
        };
        watch.update_partners(Duration::ZERO);
        watch
    }

    /// The PE whose watch this is.
    pub fn me(&self) -> Pe {
        self.me
    }

    /// Which PEs it knows to be dead, and whether it is a member.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Does what is due: closes connections that no PE uses, dials, and sends heartbeats.
    pub fn tick(&mut self, now: Duration, effects: &mut Effects) {
        for pe in self.peers.turn(now) {
            let Some(peer) = self.peers.get_unmarked(pe) else { continue };
            for connection in peer.close_unused(now, self.settings.dead_after * UNUSED_TIMES) {
                effects.push_back(Effect::Close(connection));
            }
            if peer.is_idle() {
                self.peers.remove(pe);
            } else if peer.is_to_be_dialled(
                now,
                &DialPace::towards(pe, self.membership.judge(), &self.settings),
            ) {
                effects.push_back(Effect::Dial(pe));
            }
        }
        let timing = self.timing();
        self.peers.end_turn(now, |pe, peer| timing.due(now, pe, peer));
        self.send_heartbeats(now, effects);
    }

    /// When [`assess`](Self::assess) and [`tick`](Self::tick) have something to do, unless
    /// something arrives before. `None`: never.
    pub fn due(&self, now: Duration) -> Option<Duration> {
        let timing = self.timing();
        let changed = self.peers.changed().filter_map(|(pe, peer)| timing.due(now, pe, peer));
        let has_open = self.peers.values().any(PeerView::has_open);
        let others = [
            self.peers.first_timer(),
            has_open.then_some(self.next_heartbeat),
            self.is_judging().then(|| self.membership.due()).flatten(),
            self.leaving_until,
        ];
        changed.chain(others.into_iter().flatten()).min()
    }

    fn timing(&self) -> Timing {
        let judge = self.membership.judge();
        Timing { me: self.me, judge, settings: self.settings, grace: self.grace() }
    }

    /// How long a PE that has never been heard is not suspected.
    fn grace(&self) -> Duration {
        START_GRACE.max(self.settings.dead_after)
    }

    /// Sends one heartbeat to each PE that is watched, when that is due. A PE that only happens to
    /// have a connection gets none.
    fn send_heartbeats(&mut self, now: Duration, effects: &mut Effects) {
        if now < self.next_heartbeat {
            return;
        }
        self.next_heartbeat = now.saturating_add(self.settings.heartbeat);
        let beat = self.membership.heartbeat();
        for peer in self.peers.values().filter(|peer| peer.is_watched()) {
            // A connection that has not taken the last heartbeat needs no other.
            let mut ready = peer.connections.iter().rev().filter(|connection| connection.is_free());
            let Some(connection) = ready.next() else { continue };
            count(&self.counters.heartbeats_sent);
            let (connection, notice) = (connection.number, beat.clone());
            effects.push_back(Effect::Send { connection, notice });
        }
    }
}

/// What it takes to say when something is due about a PE.
struct Timing {
    me: Pe,
    judge: Pe,
    settings: DetectorSettings,
    grace: Duration,
}

impl Timing {
    fn due(&self, now: Duration, pe: Pe, peer: &PeerView) -> Option<Duration> {
        let pace = DialPace::towards(pe, self.judge, &self.settings);
        let limits = ContactLimits::of(self.me, pe, self.judge, &self.settings);
        let unused = peer.unused_at(self.settings.dead_after * UNUSED_TIMES);
        [peer.due(now, &limits, self.grace, &pace), unused].into_iter().flatten().min()
    }
}
