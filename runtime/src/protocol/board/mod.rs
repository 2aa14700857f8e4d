//! Stealing between PEs of one host without a message: each has a *board* in memory that the others
//! see, on which it posts a few of its oldest tasks, in bytes, while another PE asks for some.
//!
//! ```text
//!  thief                                  victim
//!    | looks at its board: nothing there     |
//!    | asks, by a bit beside the board ----->|   (and casts a FISH, as ever)
//!    |                                       | in a turn: posts tasks, says so by a bit
//!    | takes one, by a compare-and-swap      |
//!    | takes one                             | in a turn: sees which are taken, and by which PE;
//!    |                                       |   tells their homes (NOTIFY), and frees the slots
//! ```
//!
//! A PE that asks is like a FISH that waits there: the same tasks are given, and the same are kept.
//! They are only not given yet: the PE takes back what no other has taken when its own tasks have
//! run out, when a FISH asks for it, and when it is cancelled. If something is posted for a PE, its
//! FISH is answered with NOWORK: it would get twice what it needs.
//!
//! A task that is too long for a board goes in a SCHEDULE. A PE that asks by a bit alone is about
//! to cast a FISH, or needs nothing any more. So once a task was long, only FISHes get any, until
//! one of them gets a short one; or two PEs would steal them from each other to and fro. (Merge
//! sort on 2 PEs: 39 to 66 steals instead of 18, and a time of 0.86 s instead of 0.73.)
//!
//! A host whose PEs cannot see each other's memory has no boards, nor has a simulated one: then all
//! tasks are stolen by message.
//!
//! How no task is lost on the way: see [`supervision`](super::supervision).

mod post;
mod steal;

use super::message::{Need, Parcel};
use std::collections::BTreeSet;
use std::time::Duration;
use ultramarine_topology::{Ball, Distance, Pe};

/// The number of tasks that are posted for each PE that asks, at first. It is doubled each time
/// that a PE asks and all are taken, and it is this again when some were not.
const POSTED_FOR_EACH: usize = 2;

/// The boards of the PEs of this host, as the protocol sees them.
pub trait Boards {
    /// The PEs whose boards these are.
    fn host(&self) -> Ball;
    /// The number of slots of a board.
    fn slots(&self) -> usize;

    /// Lets the others see how much this PE needs tasks, and how many it has; `None`: enough.
    fn set_need(&mut self, need: Option<(Need, u64)>);
    /// Adds the PEs that have posted something for this one since the last call.
    fn posters(&mut self, pes: &mut Vec<Pe>);
    /// Takes the task for a thief at distance `at_least` from the board of this PE, of the smallest
    /// radius and of these the oldest. Returns it, and how long this PE has
    /// looked for one, unless that has been said of another since it began.
    fn steal(&mut self, from: Pe, at_least: Distance) -> Option<(Parcel, Option<Duration>)>;
    /// Asks this PE to post tasks.
    fn ask(&mut self, of: Pe);

    /// Adds the PEs that have asked this one since the last call; none as long as its tasks are too
    /// short to be posted.
    fn askers(&mut self, pes: &mut Vec<Pe>);
    /// How much another PE needs tasks, and how many it has; `None`: enough.
    fn need_of(&mut self, pe: Pe) -> Option<(Need, u64)>;
    /// Whether a task fits on a board.
    fn fits(&self, parcel: &Parcel) -> bool;
    /// Posts a task in this empty slot of this PE's board. Returns false if it does not fit.
    fn post(&mut self, slot: usize, parcel: &Parcel) -> bool;
    /// Lets a PE know that something is posted for it. Returns false if that is not possible.
    fn announce(&mut self, to: Pe) -> bool;
    /// The PE that has taken the task in this slot, if any.
    fn taker(&mut self, slot: usize) -> Option<Pe>;
    /// Takes back the task in this slot, unless this PE has taken it.
    ///
    /// # Errors
    ///
    /// The PE that has it.
    fn take_back(&mut self, slot: usize) -> Result<(), Pe>;
    /// The slot of a task that was taken is empty again.
    fn free(&mut self, slot: usize);
}

/// What a PE has on its board.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BoardState {
    /// By slot.
    posted: Vec<Option<Posted>>,
    /// The number of tasks that have been posted.
    last: u64,
    /// How many of them are there now, or were taken without this PE having noticed.
    count: usize,
    /// How many were taken since `depth` was changed.
    taken: usize,
    /// How many are posted for each PE that asks; see [`POSTED_FOR_EACH`].
    depth: usize,
    /// The PEs that wait for something to be posted, each once.
    askers: Vec<Pe>,
    /// The PEs for which something was posted and that have sent no FISH since. One may be on the
    /// way.
    served: BTreeSet<Pe>,
    /// The PEs that have posted something for this one, which has not looked there yet.
    posters: Vec<Pe>,
    /// Whether this PE has taken a task from a board since it cast a FISH.
    has_taken: bool,
    /// Whether the task that was given last was too long for a board.
    are_long: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Posted {
    parcel: Parcel,
    number: u64,
    is_fork: bool,
}

impl BoardState {
    pub(super) fn new() -> Self {
        BoardState {
            posted: Vec::new(),
            last: 0,
            count: 0,
            taken: 0,
            depth: POSTED_FOR_EACH,
            askers: Vec::new(),
            served: BTreeSet::new(),
            posters: Vec::new(),
            has_taken: false,
            are_long: false,
        }
    }

    /// Notes whether the task that a FISH gets is too long for a board.
    pub(super) fn note_length(&mut self, is_long: bool) {
        self.are_long = is_long;
    }

    /// The number of tasks.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Learns which PEs ask.
    fn read_askers(&mut self, boards: &mut dyn Boards) {
        boards.askers(&mut self.askers);
        self.askers.sort_unstable();
        self.askers.dedup();
    }

    /// Whether this PE has taken a task from a board since it cast a FISH or was asked for this.
    pub(super) fn take_has_taken(&mut self) -> bool {
        std::mem::take(&mut self.has_taken)
    }

    /// Forgets that this PE asks: it has got tasks.
    pub(super) fn forget(&mut self, asker: Pe) {
        self.askers.retain(|pe| *pe != asker);
    }

    fn tasks(&self) -> impl Iterator<Item = (usize, &Posted)> {
        let slots = self.posted.iter().enumerate();
        slots.filter_map(|(slot, posted)| Some((slot, posted.as_ref()?)))
    }

    fn remove(&mut self, slot: usize) -> Option<Parcel> {
        let posted = self.posted.get_mut(slot)?.take()?;
        self.count -= 1;
        Some(posted.parcel)
    }
}
