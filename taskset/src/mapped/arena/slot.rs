//! A worker's place in the arena: all that others need to know of it, and to go on after its death.

use crate::mapped::shared::shared;
use crate::queue::Queue;
use crate::sync::AtomicU64;

/// Blocks that a worker may have in its hands at once.
pub(crate) const PENDING: usize = 4;

/// Rings that a worker's queue may have, each twice as long as the one before.
pub(crate) const RINGS: usize = 24;

shared! {
    /// See the [module](self).
    pub(crate) struct Slot {
        /// The tasks that wait for this worker, or for thieves.
        pub(crate) queue: Queue,
        /// Who has the slot: see [`Life`](crate::mapped::worker::life::Life).
        pub(crate) life: AtomicU64,
        /// When its process began; 0 if that is not known.
        pub(crate) born: AtomicU64,
        /// Which processes can look for its process; 0 until it is known.
        pub(crate) home: AtomicU64,
        /// The offset of the task that runs, or has run last.
        pub(crate) running: AtomicU64,
        /// The offset of the set at whose barrier it is, and how many it has been at.
        pub(crate) meeting: AtomicU64,
        pub(crate) meetings: AtomicU64,
        /// The blocks in its hands: their offsets, or 0, and those of the words that will name
        /// them.
        pub(crate) pending: [AtomicU64; PENDING],
        pub(crate) links: [AtomicU64; PENDING],
        /// The offsets of its queue's rings. They stay for the worker that has the slot next.
        pub(crate) rings: [AtomicU64; RINGS],
        /// Written by others: a bit for each class of blocks of which one was freed, and a task.
        pub(crate) inbox: Inbox,
        /// Grows as long as its process lives.
        pub(crate) beat: Beat,
    }
}

shared! {
    /// What others write, on lines of its own.
    #[repr(align(128))]
    pub(crate) struct Inbox {
        pub(crate) freed: AtomicU64,
        /// The offset of a task that another worker has given to this one.
        pub(crate) given: AtomicU64,
    }
}

shared! {
    /// What only a thread of its process writes.
    #[repr(align(128))]
    pub(crate) struct Beat {
        pub(crate) count: AtomicU64,
    }
}
