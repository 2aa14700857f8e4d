//! The peers of a port: the streams of those to which it has spoken, and which are closed.
//!
//! Of 10^5 PEs most speak to some hundred others, to more in long jobs; the root may speak to all.
//! A table with a place for each PE took 8 bytes for each PE of the job, in each PE. This is a hash
//! table with linear probing (Knuth, The Art of Computer Programming, vol. 3, 6.4), which finds a
//! peer as fast as the table did: a message costs the same within 2 %. (With `std`'s map it cost up
//! to 10 % more.) The dead keep 4 bytes each.
//!
//! The hash has no random key: no stranger chooses the numbers of PEs, and a simulation must run
//! alike each time.

use super::peer::{PeerStreams, RestingStreams, StreamLimits};
use crate::transport::handoff::ArrayHandoff;
use std::sync::Arc;
use ultramarine_topology::Pe;

/// The peers of a port. See the [module](self).
pub(super) struct Peers {
    pes: u32,
    /// Each peer stands at the [place](Self::home) of its number, or in the row of taken slots that
    /// goes on from there, round to the beginning. A power of two of slots, or none.
    slots: Box<[Option<Slot>]>,
    /// The number of slots that are taken: at most 3 in 4.
    taken: usize,
    /// Ascending. These have no streams.
    closed: Vec<Pe>,
}

struct Slot {
    pe: Pe,
    streams: SlotStreams,
}

enum SlotStreams {
    Open(Box<PeerStreams>),
    /// Nothing is on its way, and nothing else needs to be known: 24 bytes instead of 360. A PE
    /// that fishes speaks to hundreds of others, and to most of them only once.
    Resting(RestingStreams),
}

/// The number of slots of the smallest table.
const SLOTS_MIN: usize = 4;

impl Peers {
    /// The peers in a job of this many PEs.
    pub(super) fn new(pes: u32) -> Self {
        Peers { pes, slots: Box::default(), taken: 0, closed: Vec::new() }
    }

    /// Whether the job has this PE.
    pub(super) fn exist(&self, pe: Pe) -> bool {
        pe.number() < self.pes
    }

    /// The number of peers that have streams, resting or not.
    pub(super) fn count(&self) -> usize {
        self.taken
    }

    pub(super) fn get(&self, pe: Pe) -> Option<&PeerStreams> {
        let place = self.find(pe).ok()?;
        match &self.slots[place].as_ref()?.streams {
            SlotStreams::Open(streams) => Some(streams),
            SlotStreams::Resting(_) => None,
        }
    }

    pub(super) fn get_mut(&mut self, pe: Pe) -> Option<&mut PeerStreams> {
        let place = self.find(pe).ok()?;
        match &mut self.slots[place].as_mut()?.streams {
            SlotStreams::Open(streams) => Some(streams),
            SlotStreams::Resting(_) => None,
        }
    }

    /// Keeps of a peer's streams only what a [resting](PeerStreams::resting) pair needs, if it
    /// rests.
    pub(super) fn rest(&mut self, pe: Pe) {
        let resting = self.get(pe).and_then(PeerStreams::resting);
        if let (Some(resting), Ok(place)) = (resting, self.find(pe)) {
            self.slots[place] = Some(Slot { pe, streams: SlotStreams::Resting(resting) });
        }
    }

    /// The streams of a peer, made if need be; `None` if the peer is closed.
    pub(super) fn open(
        &mut self,
        pe: Pe,
        limits: &StreamLimits,
        handoff: Option<&Arc<ArrayHandoff>>,
    ) -> Option<&mut PeerStreams> {
        let place = match self.find(pe) {
            Ok(place) => place,
            Err(_) if self.closed.binary_search(&pe).is_ok() => return None,
            Err(_) => {
                let streams = Box::new(PeerStreams::new(limits.flow(pe), handoff.cloned()));
                self.insert(Slot { pe, streams: SlotStreams::Open(streams) })
            }
        };
        let streams = &mut self.slots[place].as_mut()?.streams;
        if let SlotStreams::Resting(resting) = streams {
            let resumed = PeerStreams::resume(*resting, limits.flow(pe), handoff.cloned());
            *streams = SlotStreams::Open(Box::new(resumed));
        }
        match streams {
            SlotStreams::Open(streams) => Some(streams),
            SlotStreams::Resting(_) => None,
        }
    }

    /// Closes a peer for good, and returns its streams if it had any.
    pub(super) fn close(&mut self, pe: Pe) -> Option<Box<PeerStreams>> {
        if let Err(place) = self.closed.binary_search(&pe) {
            self.closed.insert(place, pe);
        }
        let mut gap = self.find(pe).ok()?;
        let removed = self.slots[gap].take();
        self.taken -= 1;
        // Those behind the gap must still be found from their places.
        let mask = self.slots.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let Some(slot) = &self.slots[at] else { break };
            let from_home = |place: usize| place.wrapping_sub(self.home(slot.pe)) & mask;
            if from_home(gap) < from_home(at) {
                self.slots.swap(gap, at);
                gap = at;
            }
        }
        match removed?.streams {
            SlotStreams::Open(streams) => Some(streams),
            SlotStreams::Resting(_) => None,
        }
    }

    /// The peers that have streams and do not rest, by number.
    pub(super) fn opened(&self) -> Vec<Pe> {
        let is_open = |slot: &&Slot| matches!(slot.streams, SlotStreams::Open(_));
        let opened = self.slots.iter().flatten().filter(is_open).map(|slot| slot.pe);
        let mut opened: Vec<Pe> = opened.collect();
        opened.sort_unstable();
        opened
    }

    /// Where a peer stands; if it has no streams, the free slot where it would stand.
    fn find(&self, pe: Pe) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = self.home(pe);
        while let Some(Some(slot)) = self.slots.get(at) {
            if slot.pe == pe {
                return Ok(at);
            }
            at = (at + 1) & mask;
        }
        Err(at)
    }

    /// Where to begin to look for a peer: multiplies by 2^64 / φ, so that neighbours spread evenly,
    /// and folds the product, so that numbers at any other step do, too.
    fn home(&self, pe: Pe) -> usize {
        let product = u64::from(pe.number()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product ^ (product >> 28)) as usize & self.slots.len().wrapping_sub(1)
    }

    /// Adds a peer that is not there, and returns where it stands.
    fn insert(&mut self, slot: Slot) -> usize {
        if self.taken >= self.slots.len() / 4 * 3 {
            let slots = SLOTS_MIN.max(2 * self.slots.len());
            let larger = std::iter::repeat_with(|| None).take(slots).collect();
            self.taken = 0;
            for slot in std::mem::replace(&mut self.slots, larger).into_iter().flatten() {
                self.insert(slot);
            }
        }
        let place = self.find(slot.pe).unwrap_or_else(|free| free);
        self.taken += usize::from(self.slots[place].replace(slot).is_none());
        place
    }
}

#[cfg(test)]
mod tests {
    use super::super::peer::Flow;
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    const LIMITS: StreamLimits = StreamLimits {
        far: Flow { frame_bytes: 100, window_bytes: 1000 },
        near: None,
        message_bytes_max: 1000,
        resend_after: Duration::MAX,
        is_ending: false,
    };

    #[test]
    fn numbers_at_any_step_are_found_soon() {
        for step in (0..20).map(|shift| 1 << shift).chain([3, 24, 48, 56, 96, 100, 384, 1000]) {
            let mut peers = Peers::new(u32::MAX);
            let numbers = (0..128).map(|number| Pe::new(number * step));
            numbers.clone().for_each(|pe| assert!(peers.open(pe, &LIMITS, None).is_some()));
            let (found, mask) = (|pe| peers.find(pe).unwrap(), peers.slots.len() - 1);
            let steps = numbers.map(|pe| (found(pe).wrapping_sub(peers.home(pe)) & mask) + 1);
            let steps: usize = steps.sum();
            assert!(steps <= 3 * 128, "{steps} steps for 128 numbers at step {step}");
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map_that_forgets_what_is_closed(
            acts in prop::collection::vec((0..60_u32, 0..4_u8), 0..400),
        ) {
            let mut peers = Peers::new(60);
            let (mut opened, mut closed) = (BTreeMap::new(), BTreeSet::new());
            for (step, (number, act)) in (1..).zip(acts) {
                let pe = Pe::new(number);
                if act == 0 {
                    let heard = peers.close(pe).map(|peer| peer.heard);
                    prop_assert_eq!(heard, opened.remove(&pe));
                    closed.insert(pe);
                } else if let Some(peer) = peers.open(pe, &LIMITS, None) {
                    prop_assert!(!closed.contains(&pe));
                    // A mark, to tell them apart.
                    peer.heard = Duration::from_secs(step);
                    opened.insert(pe, peer.heard);
                } else {
                    prop_assert!(closed.contains(&pe));
                }
                for pe in (0..60).map(Pe::new) {
                    prop_assert_eq!(peers.get(pe).map(|peer| peer.heard), opened.get(&pe).copied());
                }
                prop_assert_eq!(peers.count(), opened.len());
                prop_assert_eq!(peers.opened(), opened.keys().copied().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn whom_the_job_does_not_have() {
        let peers = Peers::new(9);
        assert!(peers.exist(Pe::new(8)) && !peers.exist(Pe::new(9)));
        assert!(peers.get(Pe::new(9)).is_none());
    }
}
