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
//! run out, when a FISH asks for it, and when it is cancelled. A task that is too long for a board
//! goes to the PE that asks in a SCHEDULE. Its FISH, which is on the way, then gets another, and two
//! PEs would steal such tasks from each other to and fro: so while tasks are long, only FISHes get
//! any.
//!
//! A host whose PEs cannot see each other's memory has no boards, nor has a simulated one: then all
//! tasks are stolen by message.
//!
//! How no task is lost on the way: see [`supervision`](super::supervision).

use super::fish_state::{FishState, nearest_company};
use super::message::{Fish, Message, Need, Parcel};
use super::node::{Host, Node};
use super::phase::Phase;
use std::time::Duration;
use ultramarine_topology::{Ball, Distance, Pe};

/// A thief looks at no more boards than this before it casts a FISH.
const LOOKS_MAX: usize = 8;

/// The number of tasks that are posted for each PE that asks, at first. It is doubled each time
/// that a PE asks and all are taken, and it is this again when some were not.
const POSTED_FOR_EACH: usize = 2;

/// The boards of the PEs of this host, as the protocol sees them.
pub trait Boards {
    /// The PEs whose boards these are.
    fn host(&self) -> Ball;
    /// The number of slots of a board.
    fn slots(&self) -> usize;

    /// This PE begins to look for tasks: others see how much it needs some.
    fn look(&mut self, need: Need);
    /// This PE has enough tasks.
    fn rest(&mut self);
    /// Adds the PEs that have posted something for this one.
    fn told(&mut self, pes: &mut Vec<Pe>);
    /// Takes the task for a thief at distance `at_least` from the board of this PE, of the smallest
    /// radius and of these the oldest. Returns it, and how long that took since
    /// [`look`](Self::look).
    fn steal(&mut self, from: Pe, at_least: Distance) -> Option<(Parcel, Duration)>;
    /// Asks this PE to post tasks.
    fn ask(&mut self, of: Pe);

    /// Adds the PEs that have asked this one.
    fn asking(&mut self, pes: &mut Vec<Pe>);
    /// How much another PE needs tasks; `None` if it has enough.
    fn need_of(&mut self, pe: Pe) -> Option<Need>;
    /// Whether a task fits on a board.
    fn fits(&self, parcel: &Parcel) -> bool;
    /// Posts a task in this empty slot of this PE's board. Returns false if it does not fit.
    fn post(&mut self, slot: usize, parcel: &Parcel) -> bool;
    /// Tells a PE that something is posted for it.
    fn tell(&mut self, pe: Pe);
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
    /// The PEs that wait for something to be posted.
    asking: Vec<Pe>,
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
            asking: Vec::new(),
            are_long: false,
        }
    }

    /// Notes whether a task that is given to a thief is too long for a board.
    pub(super) fn note_length(&mut self, is_long: bool) {
        self.are_long = is_long;
    }

    /// The number of tasks.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Forgets that this PE asks: it has got tasks.
    pub(super) fn forget(&mut self, asking: Pe) {
        self.asking.retain(|pe| *pe != asking);
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

impl Node {
    /// Notices which tasks on this PE's board were taken.
    pub(super) fn notice_taken(&mut self, host: &mut impl Host) {
        for slot in 0..self.board.posted.len() {
            if self.board.count == 0 {
                return;
            }
            if self.board.posted[slot].is_some()
                && let Some(taker) = host.boards().and_then(|boards| boards.taker(slot))
            {
                self.note_taken(slot, taker, host);
            }
        }
    }

    /// The second half of handing a task on: tells its home where it is. Only then another can be
    /// posted in its place.
    fn note_taken(&mut self, slot: usize, to: Pe, host: &mut impl Host) {
        let Some(parcel) = self.board.remove(slot) else { return };
        self.board.taken += 1;
        let (home, future, version) = (parcel.task.home, parcel.task.future, parcel.version);
        if home != self.me {
            self.statistics.notifies += 1;
            host.send(home, Message::Notify { future, version, to });
        } else if self.supervision.record_taken(future, version, to) && self.living.is_dead(to) {
            self.lose(future, to, host);
        }
        host.boards().into_iter().for_each(|boards| boards.free(slot));
    }

    /// Takes back the task in this slot, unless another PE has it.
    fn take_back(&mut self, slot: usize, host: &mut impl Host) -> Option<Parcel> {
        match host.boards()?.take_back(slot) {
            Ok(()) => self.board.remove(slot),
            Err(taker) => {
                self.note_taken(slot, taker, host);
                None
            }
        }
    }

    /// Takes back the task for a thief at this distance: of the smallest radius, and of these the
    /// oldest.
    pub(super) fn take_back_oldest(
        &mut self,
        at_least: Distance,
        host: &mut impl Host,
    ) -> Option<Parcel> {
        loop {
            let reaches = |(_, posted): &(_, &Posted)| posted.parcel.radius >= at_least;
            let tasks = self.board.tasks().filter(reaches);
            let key = |(_, posted): &(_, &Posted)| (posted.parcel.radius, posted.number);
            let (slot, _) = tasks.min_by_key(key)?;
            if let Some(parcel) = self.take_back(slot, host) {
                return Some(parcel);
            }
        }
    }

    /// Takes a task back for this PE's own workers: of the smallest radius, and of these the
    /// youngest. Returns whether there was one.
    fn take_back_youngest(&mut self, host: &mut impl Host) -> bool {
        while let Some((slot, _)) = {
            let key = |(_, posted): &(_, &Posted)| (posted.parcel.radius, u64::MAX - posted.number);
            self.board.tasks().min_by_key(key)
        } {
            if let Some(parcel) = self.take_back(slot, host) {
                (self.board.depth, self.board.taken) = (POSTED_FOR_EACH, 0);
                host.accept(parcel);
                return true;
            }
        }
        false
    }

    /// Takes back those of these tasks of the PE `home` that are on the board: they are about to be
    /// cancelled.
    pub(super) fn take_back_all_of(&mut self, home: Pe, futures: &[u64], host: &mut impl Host) {
        let is_it =
            |parcel: &Parcel| parcel.task.home == home && futures.contains(&parcel.task.future);
        for slot in 0..self.board.posted.len() {
            if self.board.posted[slot].as_ref().is_some_and(|posted| is_it(&posted.parcel))
                && let Some(parcel) = self.take_back(slot, host)
            {
                host.accept(parcel);
            }
        }
    }

    /// Removes all tasks: the job ends, and no PE is told of anything any more.
    pub(super) fn clear_board(&mut self, host: &mut impl Host) {
        let Some(boards) = host.boards() else { return };
        boards.rest();
        for (slot, _) in self.board.tasks() {
            if boards.take_back(slot).is_err() {
                boards.free(slot);
            }
        }
        self.board = BoardState::new();
    }

    /// Takes tasks from the boards of other PEs, if this one has few and none on its own. Returns
    /// whether it has got any.
    pub(super) fn look_at_boards(&mut self, need: Need, host: &mut impl Host) -> bool {
        if host.boards().is_none() {
            return false;
        }
        let most = self.settings.fishing.max_fish;
        let queued = host.queued();
        if queued == 0 && need > Need::Ahead && self.take_back_youngest(host) {
            return true;
        }
        let missing = (most + 1).saturating_sub(queued + self.board.count);
        let Some(boards) = host.boards() else { return false };
        if missing == 0 {
            boards.rest();
            return false;
        }
        boards.look(need);
        let neighbours = boards.host();
        let wanted = missing.min(self.settings.fishing.schedule_tasks_max);
        let giver = self.fishing.giver.filter(|giver| neighbours.contains(*giver));
        if giver.is_some_and(|giver| self.take_from(giver, wanted, host)) {
            return true;
        }
        let mut candidates = Vec::new();
        host.boards().into_iter().for_each(|boards| boards.told(&mut candidates));
        if self.fishing.fish == FishState::Resting {
            self.add_near(neighbours, &mut candidates, host);
        }
        candidates.into_iter().any(|from| self.take_from(from, wanted, host))
    }

    /// Adds the nearest PEs of this host, beginning at a random one among equals.
    fn add_near(&self, neighbours: Ball, candidates: &mut Vec<Pe>, host: &mut impl Host) {
        let mut inner = self.topology.ball(self.me, Distance::ZERO);
        for radius in self.topology.radii() {
            let ball = self.topology.ball(self.me, *radius);
            if ball == inner || ball.len() > neighbours.len() {
                continue;
            }
            let begin = (host.random() % u64::from(ball.len())) as u32;
            let all = (0..ball.len()).map(|n| ball.at((begin + n) % ball.len()));
            let new = all.filter(|pe| !inner.contains(*pe) && !self.living.is_dead(*pe));
            candidates.extend(new.take(LOOKS_MAX.saturating_sub(candidates.len())));
            inner = ball;
        }
    }

    /// Takes tasks from the board of this PE. Returns whether there was one.
    fn take_from(&mut self, from: Pe, wanted: usize, host: &mut impl Host) -> bool {
        if from == self.me || self.living.is_dead(from) {
            return false;
        }
        let distance = self.topology.distance(self.me, from);
        let mut has_some = false;
        for _ in 0..wanted {
            let stolen = host.boards().and_then(|boards| boards.steal(from, distance));
            let Some((parcel, took)) = stolen else { break };
            has_some = true;
            let row = self.statistics.at(distance);
            row.steals += 1;
            row.from_boards += 1;
            row.bytes += parcel.body.len() as u64;
            self.statistics.steal_latency.record(took);
            self.take_in(from, parcel, host);
        }
        if has_some {
            self.note_giver(from);
            if let FishState::BackingOff { .. } = self.fishing.fish {
                self.fishing.fish = FishState::Resting;
            }
            // There will be more when this PE looks again.
            host.boards().into_iter().for_each(|boards| boards.ask(from));
        }
        has_some
    }

    /// This PE has given tasks: it may have more.
    pub(super) fn note_giver(&mut self, from: Pe) {
        self.fishing.search_radius = nearest_company(&self.topology, self.me);
        self.fishing.giver = Some(from);
        self.fishing.delay = self.settings.fishing.min_fish_delay;
        self.fishing.may_ask_anew = true;
    }

    /// Posts tasks for the PEs that ask for some.
    pub(super) fn post_for_those_who_ask(&mut self, host: &mut impl Host) {
        let Some(boards) = host.boards() else { return };
        boards.asking(&mut self.board.asking);
        let slots = boards.slots();
        if self.board.asking.is_empty() || !host.may_pack() || self.phase() != Phase::Running {
            return;
        }
        let BoardState { count, taken, depth, .. } = &mut self.board;
        if *count == 0 && *taken >= *depth {
            // They took all of them, and before this PE could post more.
            (*depth, *taken) = ((2 * *depth).min(slots), 0);
        }
        let mut asking = std::mem::take(&mut self.board.asking);
        asking.sort_unstable();
        asking.dedup();
        let mut asked = 0;
        asking.retain(|thief| {
            let Some(need) = self.need_of(*thief, host) else { return false };
            asked += 1;
            !self.post_for(*thief, need, asked, host)
        });
        self.board.asking = asking;
        if !self.board.asking.is_empty() {
            host.want_work();
        }
    }

    /// How much a PE needs tasks, unless it is dead or has enough.
    fn need_of(&self, thief: Pe, host: &mut impl Host) -> Option<Need> {
        if self.living.is_dead(thief) {
            return None;
        }
        host.boards()?.need_of(thief)
    }

    /// Posts tasks for a PE, the `asked`-th that asks, as far as there are any to spare. Returns
    /// whether there is something for it now.
    fn post_for(&mut self, thief: Pe, need: Need, asked: usize, host: &mut impl Host) -> bool {
        let distance = self.topology.distance(self.me, thief);
        let fish =
            Fish { thief, serial: 0, hops_left: 0, need, queued: 0, patience: Duration::ZERO };
        let kept = self.kept(need);
        let mut has_given = self.board.are_long;
        while !has_given && self.posted_for(distance) < self.board.depth * asked {
            let queued = host.queued();
            // Never more than half of all, as for a FISH.
            if queued <= kept || 2 * self.board.count >= queued + self.board.count {
                break;
            }
            let Some(slot) = self.empty_slot(host) else { break };
            let Some(parcel) = host.take(distance) else {
                has_given |= host.packs_later(&fish);
                self.board.are_long = has_given;
                break;
            };
            let is_fork = host.took_fork();
            if parcel.version.replica > 0 {
                // These are given with more care.
                host.accept(parcel);
                break;
            }
            if let Err(parcel) = self.post(slot, parcel, is_fork, host) {
                self.board.are_long = true;
                let mut parcel = Some(parcel);
                has_given |= self.give(&fish, 1, host, |_, _| parcel.take()) > 0;
            }
            if is_fork {
                break;
            }
        }
        let is_there = self.posted_for(distance) > 0;
        if is_there && let Some(boards) = host.boards() {
            boards.tell(thief);
        }
        is_there || has_given
    }

    /// How much is posted for a PE at this distance. A fork is worth as much as all that would be
    /// posted: those behind it are parts of parts.
    fn posted_for(&self, distance: Distance) -> usize {
        let reaching = self.board.tasks().filter(|(_, posted)| posted.parcel.radius >= distance);
        reaching.map(|(_, posted)| if posted.is_fork { self.board.depth } else { 1 }).sum()
    }

    fn empty_slot(&mut self, host: &mut impl Host) -> Option<usize> {
        if self.board.posted.is_empty() {
            let slots = host.boards()?.slots();
            self.board.posted.resize(slots, None);
        }
        self.board.posted.iter().position(Option::is_none)
    }

    /// Posts a task: the first half of handing it on.
    ///
    /// # Errors
    ///
    /// It does not fit; it is returned as it was.
    fn post(
        &mut self,
        slot: usize,
        mut parcel: Parcel,
        is_fork: bool,
        host: &mut impl Host,
    ) -> Result<(), Parcel> {
        let before = parcel.version;
        parcel.version.age += 1;
        if parcel.task.home == self.me {
            // Before another PE sees the task: its result may come before this PE has noticed.
            self.supervision.record_posted(&parcel);
        }
        let fits = host.boards().is_some_and(|boards| boards.post(slot, &parcel));
        if !fits {
            parcel.version = before;
            return Err(parcel);
        }
        self.board.last += 1;
        self.board.count += 1;
        let number = self.board.last;
        self.board.posted[slot] = Some(Posted { parcel, number, is_fork });
        Ok(())
    }
}
