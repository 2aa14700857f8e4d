//! What machines do after a death: they agree on the last checkpoint that is whole, and each gets
//! the copies of the ranks that are its own now.

use super::checkpoints::{Copy, Key, add_offers, last_whole};
use super::message::{Effect, MessageOf, Work};
use super::view::View;
use super::{CopiesOf, Doing, Kind, Machine, Meeting, Next, Phase, Seat};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use ultramarine_topology::Pe;

/// What a PE waits for before it goes on from a checkpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Restoring {
    /// Ranks of which it has no copy yet.
    awaited: BTreeSet<u32>,
    /// The number of ranks that are not back yet.
    left: usize,
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
        self.early_copies.clear();
        self.is_quiet = false;
        let is_given = |owner| owner == self.me || self.dead.contains(&owner);
        let offers = self.checkpoints.offers(is_given);
        self.phase = Phase::Agreeing(Meeting::begin(offers));
        self.speak_of_copies();
        self.go_on_agreeing();
        self.hear_ahead();
    }

    /// Hears what came before this PE was so far.
    pub(super) fn hear_ahead(&mut self) {
        take(&mut self.ahead).into_iter().for_each(|(from, told)| self.receive(from, told));
    }

    fn speak_of_copies(&mut self) {
        if let Phase::Agreeing(meeting) = &self.phase
            && let Some((to, round, offers)) = meeting.words(&self.view)
        {
            self.send(to, MessageOf::Offer { round, offers });
        }
    }

    pub(super) fn go_on_agreeing(&mut self) {
        loop {
            let Phase::Agreeing(meeting) = &mut self.phase else { return };
            if meeting.words(&self.view).is_none() {
                let key = last_whole(&meeting.facts, self.ranks);
                return self.restore(key);
            }
            if !meeting.go_on(0, &mut self.early_offers, add_offers) {
                return;
            }
            self.speak_of_copies();
        }
    }

    /// Goes on from a checkpoint; `None`: from the beginning.
    pub(super) fn restore(&mut self, key: Option<Key>) {
        if key.is_none() && self.superstep > 0 && self.view.is_first() {
            self.effects.push(Effect::Lost(self.superstep));
        }
        self.superstep = key.map_or(0, |key| key.superstep);
        self.checkpoints.forget_after(key);
        (self.safe, self.whole) = (None, None);
        let own = self.view.own();
        self.saving_now = key.map(|key| (key, own.len()));
        let awaited = own.clone().filter(|_| key.is_some()).collect();
        self.phase = Phase::Restoring(Restoring { awaited, left: own.len() });
        let Some(key) = key else {
            let ranks: Vec<_> = own.map(|rank| (rank, None)).collect();
            if !ranks.is_empty() {
                let work = self.work();
                self.effects.push(Effect::Restore(work, ranks));
            }
            return self.compute_if_restored();
        };
        let is_given = |owner| owner == self.me || self.dead.contains(&owner);
        let mut moved: BTreeMap<Pe, CopiesOf<K>> = BTreeMap::new();
        for (rank, copy) in self.checkpoints.offered(key, is_given) {
            moved.entry(self.view.owner(rank)).or_default().insert(rank, copy.clone());
        }
        let own = moved.remove(&self.me).unwrap_or_default();
        for (to, copies) in moved {
            self.send(to, MessageOf::Moved { key, copies });
        }
        if self.seats.is_empty() {
            self.copies_are_made();
        }
        self.take_over(key, own);
        take(&mut self.early_copies)
            .into_iter()
            .for_each(|(key, copies)| self.take_over(key, copies));
        self.compute_if_restored();
    }

    /// These copies are of ranks that are this PE's now.
    pub(super) fn take_over(&mut self, key: Key, copies: CopiesOf<K>) {
        if matches!(self.phase, Phase::Agreeing(_)) {
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
                Copy::Live(saved, _) => ranks.push((rank, Some(saved.clone()))),
                Copy::Ended(output) => {
                    restoring.left -= 1;
                    let next = Some(Next::Ended(output.clone()));
                    let (letters, results) = (Vec::new(), Vec::new());
                    self.seats.insert(rank, Seat { next, letters, results });
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

    /// Whether a rank went on without being woken when the copy was made from which it is restored.
    pub(super) fn was_awake(&self, rank: u32) -> bool {
        let copy = self.saving_now.and_then(|(key, _)| self.checkpoints.get(key, rank));
        !matches!(copy, Some(Copy::Live(_, false)))
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

    /// This PE has copies of all its ranks: its partner is to have them, too.
    pub(super) fn copies_are_made(&mut self) {
        let Some((key, 0)) = self.saving_now else { return };
        match self.view.partner(&self.topology) {
            Some(partner) if !self.view.own().is_empty() => {
                let copies = self.checkpoints.of(key, self.view.own());
                self.send(partner, MessageOf::Kept { key, copies });
            }
            _ => self.safe = Some(key),
        }
    }
}
