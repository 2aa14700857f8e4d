//! Frames on their way from PE to PE.

use super::events::Event;
use super::{Simulation, TURN_NS};
use crate::machine::Tier;
use crate::network::{Network, Transfer};
use crate::pe::lane::{Frame, SentFrame};
use crate::traffic::{RandomTraffic, Traffic};
use ultramarine_topology::Pe;

/// How often a PE looks whether others have gone over to the fallback lane, in nanoseconds.
pub(super) const FALLBACK_NS: u64 = 100_000_000;

impl Simulation {
    /// A frame arrives at a PE.
    pub(super) fn arrive(&mut self, lane: u8, from: Pe, to: Pe, frame: Frame) {
        let is_cut = self.cuts.get(&(from, to)).is_some_and(|cut| *cut < self.now);
        let Some(pe) = &mut self.pes[to.index()] else { return };
        if is_cut {
            return;
        }
        pe.lanes[usize::from(lane)].deliver(from, frame);
        // A PE does not wait for frames of the fallback lane, but looks at it from time to time.
        let is_awaited = lane == 0 || pe.lanes[0].is_left();
        let noticed = pe.pace.notices_at(self.now);
        let at = if is_awaited { noticed } else { self.now + FALLBACK_NS };
        if at > self.now {
            self.want_turn(to, at);
        } else if self.now >= pe.stopped_until {
            self.turn(to);
        } else {
            let later = pe.stopped_until;
            self.want_turn(to, later);
        }
    }

    /// Sends what a PE has handed to its lanes.
    pub(super) fn send_frames(&mut self, from: Pe) {
        let mut frames = std::mem::take(&mut self.frames);
        if self.sent.take(&mut frames) {
            self.want_turn(from, self.now + TURN_NS);
        }
        for SentFrame { to, lane, frame } in frames.drain(..) {
            if let Some(at) = self.frame_arrival(from, to, lane, frame.bytes()) {
                self.schedule(at, Event::Arrive { lane, from, to, frame });
            }
        }
        self.frames = frames;
    }

    /// When a frame arrives that is sent now; `None`: never.
    fn frame_arrival(&mut self, from: Pe, to: Pe, lane: u8, bytes: usize) -> Option<u64> {
        // What is held up comes when the path is whole again, and else never.
        let open = self.broken_paths.opens(from, to, self.now)?;
        match &self.job.traffic {
            Traffic::Random(random) => {
                let is_lost = random.lost_one_in.is_some_and(|n| self.dice.one_in(n));
                if is_lost {
                    return None;
                }
                let random = random.clone();
                let at = self.arrival(&random, from, to, lane).max(open);
                self.note_arrival(from, to, lane, at);
                Some(at)
            }
            Traffic::Modelled(..) => {
                let (network, tier, transfer) = transfer(&self.job.traffic, from, to, bytes)?;
                let jitter = network.jitter_ns(tier, self.dice.next());
                let overload = self.overload_ns();
                let sender = &mut self.pes[from.index()].as_mut()?.transit;
                let begins = self.now.max(sender.sends_until);
                sender.sends_until = begins + transfer.sender_port_ns;
                let arrives = begins + transfer.last_byte_ns;
                // What several PEs send is taken in in the order of its sending: by arrival would
                // cost an event more for each message.
                let receiver = &mut self.pes[to.index()].as_mut()?.transit;
                let taken_in = arrives.max(receiver.receives_until);
                receiver.receives_until = taken_in + transfer.receiver_port_ns;
                let usual = taken_in + transfer.receive_overhead_ns;
                // What is late on its way keeps neither port busy for longer, and only later frames
                // between these two PEs wait for it.
                let late = jitter + overload + open.saturating_sub(begins);
                let sender = &mut self.pes[from.index()].as_mut()?.transit;
                let follows =
                    sender.last_arrival(to, lane).map(|at| at + transfer.receiver_port_ns);
                let at = follows.unwrap_or(0).max(usual + late);
                if at > usual {
                    // No frame that is still to be sent arrives before this one begins.
                    sender.note(begins, to, lane, at);
                }
                Some(at)
            }
        }
    }

    /// How much later a frame comes while everything is overloaded, in nanoseconds.
    fn overload_ns(&mut self) -> u64 {
        if self.now >= self.overloaded_until {
            return 0;
        }
        self.dice.within(0..=self.job.dead_after_ns())
    }

    /// When a frame sent now arrives: after what was sent before.
    fn arrival(&mut self, random: &RandomTraffic, from: Pe, to: Pe, lane: u8) -> u64 {
        let mut latency = self.dice.within(random.latency_ns.clone());
        latency += self.overload_ns();
        if self.dice.one_in(random.late_one_in) {
            latency += self.dice.within(0..=random.late_ns);
        }
        let sender = self.pes[from.index()].as_ref();
        let last = sender.and_then(|pe| pe.transit.last_arrival(to, lane));
        let at = (self.now + latency).max(last.unwrap_or(0) + 1);
        self.note_arrival(from, to, lane, at);
        at
    }

    fn note_arrival(&mut self, from: Pe, to: Pe, lane: u8, at: u64) {
        let now = self.now;
        if let Some(pe) = &mut self.pes[from.index()] {
            pe.transit.note(now, to, lane, at);
        }
    }

    /// What a PE has sent may arrive in part.
    pub(super) fn cut_off(&mut self, dead: Pe) {
        let Some(pe) = &self.pes[dead.index()] else { return };
        for (to, last) in pe.transit.frames_under_way() {
            let cut = self.now + self.dice.next() % (last.saturating_sub(self.now) + 2);
            let earlier = self.cuts.entry((dead, to)).or_insert(cut);
            *earlier = cut.min(*earlier);
        }
    }
}

/// What a message costs in a modelled network.
pub(crate) fn transfer(
    traffic: &Traffic,
    from: Pe,
    to: Pe,
    bytes: usize,
) -> Option<(&Network, Tier, Transfer)> {
    let Traffic::Modelled(machine, network) = traffic else { return None };
    let tier = machine.tier(from, to)?;
    Some((network, tier, network.costs(tier).transfer(bytes as u64)))
}

#[cfg(test)]
mod tests;
