//! The boards of a host, for tests: what is in their memory.

use crate::protocol::{Boards, Need, Parcel};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use ultramarine_topology::{Ball, Distance, Pe};

/// What a slot holds: a task, its number, and which PE has taken it.
type SlotContent = Option<(Parcel, u64, Option<Pe>)>;

/// One board, and what lies beside it.
#[derive(Default)]
pub(super) struct Sheet {
    pub(super) slots: Vec<SlotContent>,
    posted: u64,
    askers: BTreeSet<Pe>,
    posters: BTreeSet<Pe>,
    need: Option<(Need, u64)>,
}

impl Sheet {
    /// The number of tasks that no PE has taken.
    pub(super) fn ready(&self) -> usize {
        self.slots.iter().flatten().filter(|(_, _, taker)| taker.is_none()).count()
    }

    /// The number of tasks that were taken without the owner having noticed.
    pub(super) fn taken(&self) -> usize {
        self.slots.iter().flatten().count() - self.ready()
    }
}

/// The boards of all PEs, by number.
pub(super) type Sheets = Rc<RefCell<Vec<Sheet>>>;

/// The boards as one PE sees them.
pub(super) struct SeatBoards {
    me: Pe,
    host: Ball,
    sheets: Sheets,
    /// A task with a longer body is on no board.
    bytes_max: usize,
    /// Whether it looks for a task.
    is_timed: bool,
}

/// The length of the longest body, and the number of slots.
pub(super) const LIMITS: (usize, usize) = (100, 4);

impl SeatBoards {
    pub(super) fn new(me: Pe, host: Ball, sheets: Sheets) -> Self {
        SeatBoards { me, host, sheets, bytes_max: LIMITS.0, is_timed: false }
    }

    fn with<R>(&self, pe: Pe, act: impl FnOnce(&mut Sheet) -> R) -> R {
        assert!(self.host.contains(pe), "{pe} is not on the host of {}", self.me);
        let sheet = &mut self.sheets.borrow_mut()[pe.index()];
        sheet.slots.resize(LIMITS.1, None);
        act(sheet)
    }
}

impl Boards for SeatBoards {
    fn host(&self) -> Ball {
        self.host
    }

    fn slots(&self) -> usize {
        LIMITS.1
    }

    fn set_need(&mut self, need: Option<(Need, u64)>) {
        self.is_timed = need.is_some();
        self.with(self.me, |own| own.need = need);
    }

    fn posters(&mut self, pes: &mut Vec<Pe>) {
        pes.extend(self.with(self.me, |own| std::mem::take(&mut own.posters)));
    }

    fn steal(&mut self, from: Pe, at_least: Distance) -> Option<(Parcel, Option<Duration>)> {
        let parcel = self.with(from, |sheet| {
            let ready = sheet
                .slots
                .iter_mut()
                .flatten()
                .filter(|(parcel, _, taker)| taker.is_none() && parcel.radius >= at_least);
            let (parcel, _, taker) =
                ready.min_by_key(|(parcel, number, _)| (parcel.radius, *number))?;
            *taker = Some(self.me);
            Some(parcel.clone())
        })?;
        let took = std::mem::take(&mut self.is_timed).then(|| Duration::from_nanos(300));
        Some((parcel, took))
    }

    fn ask(&mut self, of: Pe) {
        self.with(of, |sheet| sheet.askers.insert(self.me));
    }

    fn askers(&mut self, pes: &mut Vec<Pe>) {
        pes.extend(self.with(self.me, |own| std::mem::take(&mut own.askers)));
    }

    fn need_of(&mut self, pe: Pe) -> Option<(Need, u64)> {
        self.with(pe, |sheet| sheet.need)
    }

    fn fits(&self, parcel: &Parcel) -> bool {
        parcel.body.len() <= self.bytes_max
    }

    fn post(&mut self, slot: usize, parcel: &Parcel) -> bool {
        let fits = self.fits(parcel);
        if fits {
            self.with(self.me, |own| {
                assert_eq!(own.slots[slot], None, "slot {slot} is not empty");
                own.posted += 1;
                own.slots[slot] = Some((parcel.clone(), own.posted, None));
            });
        }
        fits
    }

    fn announce(&mut self, to: Pe) -> bool {
        self.with(to, |sheet| sheet.posters.insert(self.me));
        true
    }

    fn taker(&mut self, slot: usize) -> Option<Pe> {
        self.with(self.me, |own| own.slots[slot].as_ref()?.2)
    }

    fn take_back(&mut self, slot: usize) -> Result<(), Pe> {
        self.with(self.me, |own| {
            if let Some((_, _, Some(taker))) = own.slots[slot] {
                return Err(taker);
            }
            own.slots[slot] = None;
            Ok(())
        })
    }

    fn free(&mut self, slot: usize) {
        self.with(self.me, |own| {
            let taken = own.slots[slot].take();
            assert!(matches!(taken, Some((_, _, Some(_)))), "slot {slot} is not taken: {taken:?}");
        });
    }
}
