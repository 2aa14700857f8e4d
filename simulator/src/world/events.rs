//! What happens in a simulation, in the order of time.

use super::detection::packets::Packet;
use crate::fault::InjectedFault;
use crate::pe::futures::LocalTask;
use crate::pe::lane::Frame;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use ultramarine_runtime::detector::watch::ConnectionNumber;
use ultramarine_runtime::protocol::{Fish, Notice};
use ultramarine_topology::Pe;

/// Something that happens at some moment.
#[derive(Debug)]
pub(crate) enum Event {
    /// A frame arrives over a lane.
    Arrive { lane: u8, from: Pe, to: Pe, frame: Frame },
    /// A worker has computed.
    Computed { at: Pe, task: u64 },
    /// A task has slept.
    Slept { at: Pe, task: u64 },
    /// A task has been packed for the thief that sent the FISH.
    Packed { at: Pe, packed: Box<(Fish, LocalTask)> },
    /// A PE takes a turn, if one is due.
    Turn(Pe),
    /// The end of the job has been waited for long enough.
    Grace(Pe),
    /// Something arrives at a PE's host, on this connection between detectors.
    Packet { number: ConnectionNumber, to: Pe, packet: Packet },
    /// A PE's detector sleeps no longer.
    Wake(Pe),
    /// A PE that was stopped goes on.
    Resume(Pe),
    /// The system closes what a process had that has died.
    Cleared(Pe),
    /// Something goes wrong.
    Fault(InjectedFault),
}

impl Event {
    /// The PE that must be there, and not stopped, for it to happen. (Frames arrive at a PE that is
    /// stopped, which reads them later. A detector is there for longer than its PE.)
    pub(crate) fn place(&self) -> Option<Pe> {
        match self {
            Event::Computed { at, .. }
            | Event::Slept { at, .. }
            | Event::Packed { at, .. }
            | Event::Turn(at)
            | Event::Grace(at) => Some(*at),
            _ => None,
        }
    }

    /// Whether there are too many of them to be told.
    pub(crate) fn is_routine(&self) -> bool {
        let is_heartbeat = |packet: &Packet| matches!(packet, Packet::Notice(Notice::Known { .. }));
        match self {
            Event::Packet { packet, .. } => is_heartbeat(packet),
            _ => matches!(self, Event::Wake(_) | Event::Turn(_)),
        }
    }
}

/// Events that are still to come. Of those at the same moment, the one scheduled first comes first.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    /// When, the how-manieth, and where it stands.
    order: BinaryHeap<Reverse<(u64, u64, u32)>>,
    events: Vec<Option<Event>>,
    free: Vec<u32>,
    count: u64,
}

impl EventQueue {
    /// Schedules an event for the moment `at`, in nanoseconds.
    pub(crate) fn schedule(&mut self, at: u64, event: Event) {
        let place = self.free.pop().unwrap_or(self.events.len() as u32);
        match self.events.get_mut(place as usize) {
            Some(free) => *free = Some(event),
            None => self.events.push(Some(event)),
        }
        self.count += 1;
        self.order.push(Reverse((at, self.count, place)));
    }

    /// Takes the next event, and says when it happens.
    pub(crate) fn next(&mut self) -> Option<(u64, Event)> {
        let Reverse((at, _, place)) = self.order.pop()?;
        self.free.push(place);
        self.events[place as usize].take().map(|event| (at, event))
    }
}
