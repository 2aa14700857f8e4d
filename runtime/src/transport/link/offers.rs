//! Large arrays that a peer on the same host copies out of the sender's memory.
//!
//! The stream says only where the blocks of such an array lie (`OFFER`). The peer copies it from
//! there, one part at each poll so that other messages do not wait, and then says so (`FETCHED`):
//! one copy in all, and none by the sender. A peer that cannot copy (not every container allows it)
//! says that (`REFUSED`). Then this array is sent in pieces, and so are all later ones. A message
//! that must not arrive before an offered array is offered itself, without an array.
//!
//! A sender that believes the peer dead may drop an array that the peer is still copying. So each
//! sender has a *seal*, a word of its memory that it changes before it drops anything. The peer
//! copies the seal after every part: as long as the seal is what the offer says, the bytes copied
//! before it are those of the array. For the same reason another process that has got the process
//! number of the sender is not taken for it.

use super::queue::{Queue, Queued};
use super::records::{Offer, OfferReply};
use crate::array::{Array, BlockShape, IncomingBlocks};
use crate::os_memory;
use rustix::process::Pid;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Shorter arrays arrive sooner in pieces.
pub(super) const OFFERED_BYTES_MIN: usize = 64 << 10;

/// How much is copied at a poll, in bytes: little while messages come and go, which would wait for
/// it, and twice as much each time that there are none.
pub(super) struct PartSize {
    part_bytes: usize,
    /// The number of messages at the last poll.
    messages: u64,
}

impl PartSize {
    const SLOWEST_BYTES: usize = 64 << 10;
    const FASTEST_BYTES: usize = 512 << 10;

    /// How much to copy now, in bytes, given the number of messages so far.
    pub(super) fn next(&mut self, messages: u64) -> usize {
        let is_quiet = messages == self.messages;
        self.messages = messages;
        self.part_bytes = if is_quiet {
            Self::FASTEST_BYTES.min(2 * self.part_bytes)
        } else {
            Self::SLOWEST_BYTES
        };
        self.part_bytes
    }
}

impl Default for PartSize {
    fn default() -> Self {
        PartSize { part_bytes: Self::SLOWEST_BYTES, messages: 0 }
    }
}

/// The arrays that a peer may copy out of this process's memory.
#[derive(Default)]
pub(super) struct Offers {
    /// Dropped before the arrays are.
    seal: Option<Seal>,
    open: Queue,
    is_refused: bool,
}

impl Offers {
    /// Whether the peer may be able to copy arrays: it has refused none.
    pub(super) fn are_welcome(&self) -> bool {
        !self.is_refused
    }

    /// Those that the peer has not answered.
    pub(super) fn open(&self) -> &Queue {
        &self.open
    }

    /// The seal's word, which then outlives the seal.
    #[cfg(test)]
    pub(super) fn seal(&self) -> Option<Arc<AtomicU64>> {
        self.seal.as_ref().map(|seal| seal.word.clone())
    }

    /// Keeps a message's array until the peer has it. Returns the offer to send.
    pub(super) fn add(&mut self, queued: Queued) -> Offer {
        let seal = self.seal.get_or_insert_with(Seal::new);
        let place = |block: &Array| (block.bytes().as_ptr().addr() as u64, BlockShape::of(block));
        let blocks = queued.array.as_ref().map_or(&[][..], Array::blocks);
        let offer = Offer {
            process: std::process::id(),
            seal_address: std::ptr::from_ref(&*seal.word).addr() as u64,
            seal: seal.value,
            blocks: blocks.iter().map(place).collect(),
        };
        self.open.push(queued);
        offer
    }

    /// The peer has the oldest: removes and returns it. `None` if there is none.
    pub(super) fn take_fetched(&mut self) -> Option<Queued> {
        self.open.pop()
    }

    /// The peer takes no arrays: removes and returns all that it was offered, to be sent in pieces.
    pub(super) fn withdraw_all(&mut self) -> Queue {
        self.is_refused = true;
        std::mem::take(&mut self.open)
    }
}

/// A word that says whether all arrays offered are still there.
struct Seal {
    word: Arc<AtomicU64>,
    value: u64,
}

impl Seal {
    fn new() -> Seal {
        // A random number that no other process has.
        let value = RandomState::new().hash_one(0) | 1;
        Seal { word: Arc::new(AtomicU64::new(value)), value }
    }
}

impl Drop for Seal {
    fn drop(&mut self) {
        self.word.store(0, Ordering::SeqCst);
        // The memory of an array may change only after that.
        fence(Ordering::SeqCst);
    }
}

/// The arrays that a peer has offered.
#[derive(Default)]
pub(super) struct Fetches {
    /// The oldest first, each with the message that it belongs to.
    open: VecDeque<(Vec<u8>, Offer)>,
    /// The part of the oldest that has been copied.
    incoming: Option<IncomingBlocks>,
    is_refusing: bool,
}

impl Fetches {
    pub(super) fn add(&mut self, message: Vec<u8>, offer: Offer) {
        if !self.is_refusing {
            self.open.push_back((message, offer));
        }
    }

    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the oldest is a message without an array, which need not be copied.
    pub(super) fn is_ready(&self) -> bool {
        self.open.front().is_some_and(|(_, offer)| offer.blocks.is_empty())
    }

    /// Copies the next part of the oldest array, and delivers the array if that was the last part.
    /// Returns the reply to send, if any.
    pub(super) fn go_on(
        &mut self,
        part_bytes: usize,
        deliver: &mut dyn FnMut(&[u8], Option<Array>),
    ) -> Option<OfferReply> {
        if self.is_ready() {
            let (message, _) = self.open.pop_front()?;
            deliver(&message, None);
            return Some(OfferReply::Fetched);
        }
        let (_, offer) = self.open.front()?;
        let mut incoming =
            self.incoming.take().or_else(|| IncomingBlocks::new(offer.shapes().collect()));
        if !incoming.as_mut().is_some_and(|array| offer.copy_part(array, part_bytes)) {
            *self = Fetches { is_refusing: true, ..Fetches::default() };
            return Some(OfferReply::Refused);
        }
        self.incoming = incoming;
        let array = self.incoming.take_if(|array| array.missing() == 0)?.into_array();
        let (message, _) = self.open.pop_front()?;
        deliver(&message, array);
        Some(OfferReply::Fetched)
    }
}

impl Offer {
    /// Copies the next bytes. Returns whether they are those of the array.
    fn copy_part(&self, array: &mut IncomingBlocks, part_bytes: usize) -> bool {
        let Some(process) = i32::try_from(self.process).ok().and_then(Pid::from_raw) else {
            return false;
        };
        let end = array.missing().saturating_sub(part_bytes);
        loop {
            let left = array.missing_of_block();
            let Some((address, shape)) = self.blocks.get(array.whole()) else { return false };
            let from = address.wrapping_add(shape.bytes - left as u64);
            let is_copied = array.fill(array.missing() - end, |part| {
                let mut seal = [0; 8];
                let behind = (self.seal_address, &mut seal[..]);
                let part = os_memory::read(process, from, part, behind).ok()?;
                (seal == self.seal.to_ne_bytes()).then_some(part)
            });
            if !is_copied || array.missing() == end {
                return is_copied;
            }
        }
    }
}
