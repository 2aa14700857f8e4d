//! What machines do after a death: they agree on the last checkpoint that is whole, and each gets
//! the copies of the ranks that are its own now.

use super::checkpoints::{Copy, Key, Offers};
use super::message::{Effect, Facts, MessageOf, Work};
use super::view::View;
use super::{CopiesOf, Doing, Kind, Machine, Meeting, Next, Phase, Seat};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use ultramarine_topology::Pe;

/// Copies travel in messages of about this length: well below the longest that there may be.
const PIECE_BYTES: usize = 32 << 20;

/// What a PE waits for before it goes on from a checkpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Restoring {
    /// Ranks of which it has no copy yet.
    awaited: BTreeSet<u32>,
    /// Ranks that waited to be woken.
    asleep: BTreeSet<u32>,
    /// The number of ranks that are not back yet.
    left: usize,
}

impl Restoring {
    pub(super) fn was_asleep(&self, rank: u32) -> bool {
        self.asleep.contains(&rank)
    }
}

/// From where a run goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Anew,
    Memory(Key),
    Disk(Key),
}

impl<K: Kind> Machine<K> {
    /// A PE has died: all that was computed since the last checkpoint is dropped.
    pub fn died(&mut self, dead: Pe) {
        if !self.dead.insert(dead) {
            return;
        }
        self.view = View::new(self.me, self.ranks, &self.topology, &self.dead);
        if !matches!(self.phase, Phase::Outside) {
            self.agree();
        }
    }

    /// Tells the others of which ranks this PE has copies, and hears what they say.
    pub(super) fn agree(&mut self) {
        self.ticket += 1;
        self.waste.seats.extend(take(&mut self.seats).into_values());
        self.waste.doing.push(std::mem::replace(&mut self.doing, Doing::new()));
        self.waste.letters.extend(take(&mut self.arrived).into_values().flatten());
        self.early.clear();
        self.early_offers.clear();
        self.early_loads.clear();
        self.moving = None;
        self.early_copies.clear();
        self.is_quiet = false;
        let is_given = |owner| owner == self.me || self.dead.contains(&owner);
        let offers = self.checkpoints.offers(self.generation, is_given);
        self.begin_to_agree(false, offers);
        self.hear_ahead();
    }

    fn begin_to_agree(&mut self, is_of_disk: bool, offers: Offers) {
        self.phase = Phase::Agreeing { is_of_disk, meeting: Meeting::begin(offers) };
        self.go_on_agreeing();
    }

    /// Has the directory read.
    pub(super) fn look(&mut self) {
        self.ticket += 1;
        self.phase = Phase::Looking;
        let (work, own) = (self.work(), self.view.own());
        self.effects.push(Effect::Look(work, own));
    }

    /// The directory has intact copies of this PE's ranks for these checkpoints, and nothing of a
    /// later generation than this.
    pub fn found(&mut self, work: Work, generation: u32, keys: impl IntoIterator<Item = Key>) {
        if work.ticket != self.ticket {
            return;
        }
        let own = self.view.own();
        let ranks = keys.into_iter().map(|key| (key, vec![own.clone()]));
        let ranks = ranks.filter(|_| !own.is_empty()).collect();
        let generation = self.generation.max(generation);
        self.begin_to_agree(true, Offers { generation, ranks });
    }

    /// Hears what came before this PE was so far.
    pub(super) fn hear_ahead(&mut self) {
        take(&mut self.ahead).into_iter().for_each(|(from, told)| self.receive(from, told));
    }

    pub(super) fn go_on_agreeing(&mut self) {
        let Phase::Agreeing { is_of_disk, meeting } = &mut self.phase else { return };
        let is_of_disk = *is_of_disk;
        let (effects, id) = (&mut self.effects, self.view.id);
        let say = |to, round, offers| {
            let told = MessageOf::Offer { is_of_disk, round, offers };
            effects.push(Effect::Send(to, (id, told)));
        };
        let (number, early) = (u64::from(is_of_disk), &mut self.early_offers);
        let Some(offers) = meeting.go_on(&self.view, number, early, Offers::add, say) else {
            return;
        };
        let source = match offers.last_whole(self.ranks) {
            Some(key) if is_of_disk => Source::Disk(key),
            Some(key) => Source::Memory(key),
            None if self.saving.on_disk && !is_of_disk => return self.look(),
            None => Source::Anew,
        };
        self.generation = offers.generation.saturating_add(1);
        self.restore(source);
    }

    /// Goes on from a checkpoint, or from the beginning.
    pub(super) fn restore(&mut self, source: Source) {
        let key = match source {
            Source::Anew => None,
            Source::Memory(key) | Source::Disk(key) => Some(key),
        };
        if key.is_none() && self.superstep > 0 && self.view.is_first() {
            self.effects.push(Effect::Lost(self.superstep));
        }
        self.superstep = key.map_or(0, |key| key.superstep);
        self.checkpoints.forget_after(key);
        self.stores_since = self.ticket;
        // What was stored before that may be removed.
        let is_on_disk =
            |key: &Key| matches!(source, Source::Disk(_)) || self.progress.all_stored == Some(*key);
        self.progress.begin_anew(key.filter(is_on_disk));
        let own = self.view.own();
        self.saving_now = key.map(|key| (key, own.len()));
        let awaited = own.clone().filter(|_| key.is_some()).collect();
        let asleep = BTreeSet::new();
        self.phase = Phase::Restoring(Restoring { awaited, asleep, left: own.len() });
        let Some(key) = key else {
            let ranks: Vec<_> = own.map(|rank| (rank, None)).collect();
            if !ranks.is_empty() {
                let work = self.work();
                self.effects.push(Effect::Restore(work, ranks));
            }
            return self.compute_if_restored();
        };
        if own.is_empty() {
            self.copies_are_made();
        }
        if source == Source::Disk(key) {
            if self.view.is_first() {
                self.effects.push(Effect::Prune(key, self.generation));
            }
            if !own.is_empty() {
                let work = self.work();
                self.effects.push(Effect::Load(work, key, own));
            }
            return self.compute_if_restored();
        }
        let is_given = |owner| owner == self.me || self.dead.contains(&owner);
        let mut moved: BTreeMap<Pe, CopiesOf<K>> = BTreeMap::new();
        for (rank, copy) in self.checkpoints.offered(key, is_given) {
            moved.entry(self.view.owner(rank)).or_default().insert(rank, copy.clone());
        }
        let own = moved.remove(&self.me).unwrap_or_default();
        for (to, copies) in moved {
            for copies in in_pieces::<K>(copies) {
                self.send(to, MessageOf::Moved { key, copies });
            }
        }
        self.take_over(key, own);
        take(&mut self.early_copies)
            .into_iter()
            .for_each(|(key, copies)| self.take_over(key, copies));
        self.compute_if_restored();
    }

    /// These copies have been read.
    pub fn loaded(&mut self, work: Work, key: Key, copies: CopiesOf<K>) {
        if work.ticket == self.ticket {
            self.take_over(key, copies);
        }
    }

    /// These copies are of ranks that are this PE's now.
    pub(super) fn take_over(&mut self, key: Key, copies: CopiesOf<K>) {
        if matches!(self.phase, Phase::Agreeing { .. } | Phase::Looking) {
            self.early_copies.push((key, copies));
            return;
        }
        let mut ranks = Vec::new();
        for (rank, copy) in copies {
            let Phase::Restoring(restoring) = &mut self.phase else { return };
            if !restoring.awaited.remove(&rank) {
                continue;
            }
            match &copy {
                Copy::Live(saved, is_awake) => {
                    if !is_awake {
                        restoring.asleep.insert(rank);
                    }
                    ranks.push((rank, Some(saved.clone())));
                }
                Copy::Ended(output) => {
                    restoring.left -= 1;
                    let next = Next::Ended(output.clone());
                    self.seats.insert(rank, Seat::new(next, Vec::new(), Vec::new()));
                }
            }
            self.keep_own(rank, copy);
        }
        if !ranks.is_empty() {
            let work = self.work();
            self.effects.push(Effect::Restore(work, ranks));
        }
        self.compute_if_restored();
    }

    /// A rank is there again.
    pub(super) fn is_restored(&mut self) {
        if let Phase::Restoring(restoring) = &mut self.phase {
            restoring.left -= 1;
        }
        self.compute_if_restored();
    }

    fn compute_if_restored(&mut self) {
        if matches!(&self.phase, Phase::Restoring(restoring) if restoring.left == 0) {
            self.compute(false);
        }
    }

    fn work(&self) -> Work {
        let Machine { ticket, superstep, .. } = *self;
        Work { ticket, superstep, is_saved: false, is_quiet: false }
    }

    /// Keeps a copy of a rank of this PE, for the checkpoint that was begun last.
    pub(super) fn keep_own(&mut self, rank: u32, copy: Copy<K::Saved, K::Output>) {
        let Some((key, missing)) = &mut self.saving_now else { return };
        self.checkpoints.keep(*key, self.me, [(rank, copy)]);
        *missing -= 1;
        if *missing == 0 {
            self.copies_are_made();
        }
    }

    /// This PE has copies of all its ranks: its partner is to have them, too, or the disk.
    pub(super) fn copies_are_made(&mut self) {
        let Some((key, 0)) = self.saving_now.filter(|_| self.moving.is_none()) else { return };
        let own = self.view.own();
        if self.saving.on_disk && Some(key) > self.progress.tried {
            if own.is_empty() {
                self.stored(self.work(), key, true);
            } else {
                let (work, copies) = (self.work(), self.checkpoints.of(key, own.clone()));
                self.effects.push(Effect::Store(work, key, copies));
            }
        }
        if !self.saving.in_memory {
            return self.checkpoints.forget(key);
        }
        match self.view.partner(&self.topology) {
            Some(partner) if !own.is_empty() => {
                let mut pieces = in_pieces::<K>(self.checkpoints.of(key, own)).peekable();
                while let Some(copies) = pieces.next() {
                    let are_last = pieces.peek().is_none();
                    self.send(partner, MessageOf::Kept { key, copies, are_last });
                }
            }
            _ => self.progress.kept = Some(key),
        }
    }

    /// This PE's copies for a checkpoint are on the disk, or cannot be put there.
    pub fn stored(&mut self, work: Work, key: Key, is_there: bool) {
        let is_of_now = self.saving_now.is_some_and(|(now, _)| now == key);
        if is_of_now && work.ticket >= self.stores_since {
            self.progress.tried = Some(key);
            if is_there {
                self.progress.stored = Some(key);
            }
        }
    }

    /// Learns what all have said of checkpoints.
    pub(super) fn hear_of_checkpoints(&mut self, facts: &Facts<K::Value>) {
        if facts.is_too_long && self.saving.in_memory {
            self.saving.in_memory = false;
            self.checkpoints.forget_after(self.progress.all_kept);
        }
        let progress = &mut self.progress;
        let is_news = facts.settled > progress.all_settled;
        progress.all_settled = facts.settled;
        if let Some(settled) = facts.settled.filter(|_| is_news && self.saving.on_disk) {
            // None has begun another one yet. (Later some may have stored that, but not this.)
            let is_stored = facts.stored == Some(settled);
            if is_stored {
                progress.all_stored = Some(settled);
            }
            if self.view.is_first() {
                self.effects.push(if is_stored {
                    Effect::Prune(settled, self.generation)
                } else {
                    Effect::Discard(settled)
                });
            }
        }
        if let Some(kept) = facts.kept
            && facts.kept > progress.all_kept
        {
            progress.all_kept = facts.kept;
            drop(self.checkpoints.forget_before(kept));
        }
    }
}

/// The copies in messages of some [`PIECE_BYTES`] each, or of one copy that is longer.
fn in_pieces<K: Kind>(copies: CopiesOf<K>) -> impl Iterator<Item = CopiesOf<K>> {
    let bytes = |copy: &Copy<K::Saved, K::Output>| match copy {
        Copy::Live(saved, _) => K::bytes(saved),
        Copy::Ended(output) => K::output_bytes(output),
    };
    let mut copies = copies.into_iter().peekable();
    std::iter::from_fn(move || {
        let (first, copy) = copies.next()?;
        let mut sum = bytes(&copy);
        let mut piece = CopiesOf::<K>::from([(first, copy)]);
        while let Some((rank, copy)) = copies.next_if(|(_, copy)| sum + bytes(copy) <= PIECE_BYTES)
        {
            sum += bytes(&copy);
            piece.insert(rank, copy);
        }
        Some(piece)
    })
}
