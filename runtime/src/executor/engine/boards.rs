//! The boards of this host: how a task that is posted becomes bytes in memory that other processes
//! see. What is posted, and which PE takes it, is decided in
//! [`protocol::board`](crate::protocol::board).

use super::failure::JobError;
use crate::handshake::JobKey;
use crate::protocol::{Boards, Need, Parcel, Radii};
use crate::wire;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ultramarine_taskset::board::{
    Address, BYTES_MAX, Board, OwnBoard, Refusal, SIGNALLERS_MAX, SLOTS, SharedFile, Signal, Slot,
};
use ultramarine_topology::{Ball, Distance, Pe, Topology};

/// The longest body of a task on a board. What is beside it takes some 40 bytes at most.
const BODY_BYTES_MAX: usize = BYTES_MAX - 64;

/// How much a PE needs tasks is in this number of bits of a word; the others say how many it has.
const NEED_BITS: u32 = 2;

/// The boards of the PEs of one host, before any other is open.
pub struct BoardSetup {
    pub(crate) own: Arc<OwnBoard>,
    host: Ball,
    /// Where those of the others are.
    others: BTreeMap<Pe, Address>,
    key: JobKey,
}

impl BoardSetup {
    /// The board of PE `me` is `own`. Those of the other PEs are at these addresses; some may have
    /// none. Returns `None` if all others have none. `key` is that of the job.
    pub fn new(
        me: Pe,
        topology: &Topology,
        own: OwnBoard,
        address: impl Fn(Pe) -> Option<Address>,
        key: JobKey,
    ) -> Option<Self> {
        let host = topology.host_of(me);
        let others = host.iter().filter(|pe| *pe != me);
        let others: BTreeMap<_, _> =
            others.filter_map(|pe| Some((pe, address(pe)?))).take(SIGNALLERS_MAX - 1).collect();
        // A bit beside each board stands for each of them.
        let can_take_part = host.len() as usize <= SIGNALLERS_MAX && !others.is_empty();
        own.board().announce(identity(key, me));
        can_take_part.then(|| BoardSetup { own: Arc::new(own), host, others, key })
    }

    /// The PEs whose boards these are.
    pub(crate) fn host(&self) -> Ball {
        self.host
    }
}

/// What a board says of itself. All processes of a job run the same program.
fn identity(key: JobKey, owner: Pe) -> [u64; 2] {
    [key.token_of_boards(), owner.number().into()]
}

/// The board of another PE.
enum Other {
    Unopened(Address),
    Open(Board<SharedFile>),
    Refused,
}

/// The boards of this host, for an engine.
pub(crate) struct EngineBoards {
    me: Pe,
    host: Ball,
    pes: u32,
    own: Arc<OwnBoard>,
    others: BTreeMap<Pe, Other>,
    key: JobKey,
    radii: Radii,
    /// The number of tasks posted.
    posted: u64,
    /// What the others were told last.
    need: Option<(Need, u64)>,
    /// When this PE began to look for a task, if it has taken none since.
    needs_since: Option<Instant>,
    bytes: Vec<u8>,
    /// Whether this turn is one between tasks that take less time than it takes to post one.
    has_short_tasks: bool,
    /// Whether a task was posted or taken, here or elsewhere, in this turn.
    was_used: bool,
    failure: Option<JobError>,
}

impl EngineBoards {
    pub(crate) fn new(me: Pe, topology: &Topology, setup: BoardSetup) -> Self {
        let BoardSetup { own, host, others, key } = setup;
        EngineBoards {
            me,
            host,
            pes: topology.pes(),
            own,
            others: others.into_iter().map(|(pe, at)| (pe, Other::Unopened(at))).collect(),
            key,
            radii: Radii::of(topology),
            posted: 0,
            need: None,
            needs_since: None,
            bytes: Vec::new(),
            has_short_tasks: false,
            was_used: false,
            failure: None,
        }
    }

    /// Whether this turn is one between tasks that take less time than it takes to post one. Then
    /// none is posted: they go by message, several at once.
    pub(crate) fn note_short_tasks(&mut self, are_short: bool) {
        self.has_short_tasks = are_short;
    }

    /// Whether anything was posted or taken since the last call.
    pub(crate) fn take_used(&mut self) -> bool {
        std::mem::take(&mut self.was_used)
    }

    /// How many boards of other PEs are open.
    pub(crate) fn open(&self) -> u64 {
        self.others.values().filter(|other| matches!(other, Other::Open(_))).count() as u64
    }

    /// What was wrong with a board, if anything.
    pub(crate) fn take_failure(&mut self) -> Option<JobError> {
        self.failure.take()
    }

    /// The board of another PE, which is opened when it is first needed.
    fn other(&mut self, pe: Pe) -> Option<&Board<SharedFile>> {
        let (me, key) = (self.me, self.key);
        let other = self.others.get_mut(&pe)?;
        if let Other::Unopened(at) = *other {
            match Board::open(at, identity(key, pe)) {
                Ok(board) => *other = Other::Open(board),
                Err(Refusal::NotYet) => {}
                Err(refusal) => {
                    tracing::debug!(
                        pe = me.number(),
                        "tasks of {pe} come by message: its board cannot be opened: {refusal}"
                    );
                    *other = Other::Refused;
                }
            }
        }
        match other {
            Other::Open(board) => Some(board),
            Other::Unopened(_) | Other::Refused => None,
        }
    }

    fn index(&self, pe: Pe) -> usize {
        (pe.number() - self.host.first().number()) as usize
    }

    /// Adds the PEs that have raised this signal.
    fn raised(&mut self, signal: Signal, pes: &mut Vec<Pe>) {
        let board = self.own.board();
        if board.is_raised(signal, self.host.len() as usize) {
            let known = board.take_raised(signal).filter(|index| *index < self.host.len() as usize);
            pes.extend(known.map(|index| self.host.at(index as u32)));
        }
    }

    /// Reads a task of another PE.
    fn read(&mut self, from: Pe) -> Option<Parcel> {
        match wire::decode::<Parcel>(&self.bytes) {
            Ok(parcel) if parcel.task.home.number() < self.pes => return Some(parcel),
            Ok(_) => self.fail(JobError::Nonsense { me: self.me, from }),
            Err(source) => self.fail(JobError::Message { me: self.me, from, source }),
        }
        None
    }

    fn fail(&mut self, error: JobError) {
        self.failure.get_or_insert(error);
    }

    /// A PE that took a task, unless there is no such PE.
    fn known(&mut self, taker: u32) -> Pe {
        if taker >= self.pes {
            self.fail(JobError::Nonsense { me: self.me, from: self.me });
            return self.me;
        }
        Pe::new(taker)
    }
}

impl Boards for EngineBoards {
    fn host(&self) -> Ball {
        self.host
    }

    fn slots(&self) -> usize {
        SLOTS
    }

    fn set_need(&mut self, need: Option<(Need, u64)>) {
        self.needs_since = need.map(|_| self.needs_since.unwrap_or_else(Instant::now));
        if self.need != need {
            self.need = need;
            let bits = |need| match need {
                Need::Ahead => 1,
                Need::Starving => 2,
                Need::Idle => 3,
            };
            let bits = need.map_or(0, |(need, queued)| bits(need) | queued << NEED_BITS);
            self.own.board().set_need(bits);
        }
    }

    fn posters(&mut self, pes: &mut Vec<Pe>) {
        self.raised(Signal::Posted, pes);
    }

    fn steal(&mut self, from: Pe, at_least: Distance) -> Option<(Parcel, Option<Duration>)> {
        let (taker, nearest) = (self.me.number(), self.radii.shelf(at_least) as u8);
        let mut bytes = std::mem::take(&mut self.bytes);
        let has_taken =
            self.other(from).is_some_and(|board| board.take(taker, nearest, &mut bytes));
        self.bytes = bytes;
        if !has_taken {
            return None;
        }
        self.was_used = true;
        let parcel = self.read(from)?;
        Some((parcel, self.needs_since.take().map(|since| since.elapsed())))
    }

    fn ask(&mut self, of: Pe) {
        let me = self.index(self.me);
        if let Some(board) = self.other(of) {
            board.raise(Signal::Asks, me);
        }
    }

    fn askers(&mut self, pes: &mut Vec<Pe>) {
        if !self.has_short_tasks {
            self.raised(Signal::Asks, pes);
        }
    }

    fn need_of(&mut self, pe: Pe) -> Option<(Need, u64)> {
        // Of a PE whose board this one cannot open it is known only that it asks.
        let Some(bits) = self.other(pe).map(Board::need) else { return Some((Need::Starving, 0)) };
        let need = match bits & ((1 << NEED_BITS) - 1) {
            0 => return None,
            1 => Need::Ahead,
            2 => Need::Starving,
            _ => Need::Idle,
        };
        Some((need, bits >> NEED_BITS))
    }

    fn fits(&self, parcel: &Parcel) -> bool {
        parcel.body.many.is_none() && parcel.body.len() <= BODY_BYTES_MAX
    }

    fn post(&mut self, slot: usize, parcel: &Parcel) -> bool {
        if !self.fits(parcel) {
            return false;
        }
        self.bytes.clear();
        if wire::encode_into(parcel, &mut self.bytes).is_err() || self.bytes.len() > BYTES_MAX {
            return false;
        }
        self.posted += 1;
        let shelf = self.radii.shelf(parcel.radius) as u8;
        self.own.board().post(slot, shelf, self.posted, &self.bytes);
        self.was_used = true;
        true
    }

    fn announce(&mut self, to: Pe) -> bool {
        let me = self.index(self.me);
        let board = self.other(to);
        board.map(|board| board.raise(Signal::Posted, me)).is_some()
    }

    fn taker(&mut self, slot: usize) -> Option<Pe> {
        match self.own.board().slot(slot) {
            Slot::Taken(taker) => Some(self.known(taker)),
            Slot::Empty | Slot::Ready => None,
        }
    }

    fn take_back(&mut self, slot: usize) -> Result<(), Pe> {
        self.was_used = true;
        self.own.board().take_back(slot).map_err(|taker| self.known(taker))
    }

    fn free(&mut self, slot: usize) {
        self.was_used = true;
        self.own.board().free(slot);
    }
}
