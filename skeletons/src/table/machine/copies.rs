//! How copies of a share are made, and follow the owner.

use super::message::{MessageOf, Request, Work};
use super::order::{Order, holders};
use super::share::{AppliedRequests, Copying, Role, Share};
use super::{Effect, Kind, Machine};
use ultramarine_topology::Pe;

impl<K: Kind> Machine<K> {
    /// Has copies made that are missing.
    pub(super) fn see_to_copies(&mut self, share: Pe) {
        let all = holders(&self.topology, share, self.copies, &self.dead);
        let me = self.me;
        let Some(owner) = self.owned(share) else { return };
        owner.copies.retain(|pe, _| all.contains(pe));
        let new = all.into_iter().filter(|pe| *pe != me && !owner.copies.contains_key(pe));
        let new: Vec<Pe> = new.collect();
        owner.copies.extend(new.iter().map(|pe| (*pe, Copying::Waits)));
        self.effects.extend(new.into_iter().map(|pe| Effect::Do(share, Work::Copy(pe))));
        self.answer_some(share);
    }

    /// The entries of a share have been copied for a PE, in pieces, of which there is one at least.
    pub fn copied(&mut self, share: Pe, to: Pe, pieces: Vec<K::Entries>) {
        let Some(Share { role: Role::Owner(owner), applied, index, .. }) =
            self.shares.get_mut(&share)
        else {
            return;
        };
        let Some(copy) = owner.copies.get_mut(&to) else { return };
        *copy = Copying::Told;
        let mut last = Some((*index, applied.clone()));
        let count = pieces.len();
        for (number, entries) in pieces.into_iter().enumerate() {
            let last = if number + 1 == count { last.take() } else { None };
            self.send(to, share, MessageOf::Fill { entries, is_first: number == 0, last });
        }
    }

    /// Whether this PE follows what comes from that one.
    fn follows(&self, from: Pe, share: Pe) -> bool {
        let share = self.shares.get(&share);
        share.is_some_and(|share| matches!(share.role, Role::Copy { of, .. } if of == from))
    }

    pub(super) fn follow(
        &mut self,
        from: Pe,
        share: Pe,
        index: u64,
        request: Request,
        change: K::Change,
        answer: K::Answer,
    ) {
        if !self.follows(from, share) {
            return;
        }
        let Some(held) = self.shares.get_mut(&share) else { return };
        held.index = index;
        held.applied.forget(request);
        if !self.dead.contains(&request.by) {
            held.applied.note(request, answer);
        }
        self.effects.push(Effect::Do(share, Work::Follow(change)));
        self.follows_so_far(from, share);
    }

    pub(super) fn fill(
        &mut self,
        from: Pe,
        share: Pe,
        entries: K::Entries,
        is_first: bool,
        last: Option<(u64, AppliedRequests<K::Answer>)>,
    ) {
        let place = |pe| Order::of(&self.topology, share).position(|other| other == pe);
        let new = Share::with(Role::Copy { of: from, is_whole: false });
        let held = self.shares.entry(share).or_insert(new);
        let Role::Copy { of, is_whole } = &mut held.role else { return };
        let before = held.filled_by.unwrap_or(*of);
        if is_first && place(before) <= place(from) {
            held.filled_by = Some(from);
        }
        // From an owner that has died since, and whose successor fills the copy, or has filled it.
        if held.filled_by != Some(from) {
            return;
        }
        let is_last = last.is_some();
        if let Some((index, applied)) = last {
            (*of, *is_whole, held.filled_by) = (from, true, None);
            (held.index, held.applied) = (index, applied);
        }
        let fill = Work::Fill { entries, is_first, is_last };
        self.effects.push(Effect::Do(share, fill));
        if is_last {
            self.follows_so_far(from, share);
        }
    }

    /// Says how far this PE has followed.
    fn follows_so_far(&mut self, owner: Pe, share: Pe) {
        if let Some(index) = self.shares.get(&share).map(|share| share.index) {
            self.send(owner, share, MessageOf::Follows { index });
        }
    }
}
