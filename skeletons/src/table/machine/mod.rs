//! One PE's part of a table, as a state machine: messages and events in, effects out.
//!
//! The table is divided into *shares*, as many as there are PEs, which are named by them. Each has
//! an order of PEs, see `order`: the first that lives owns it, and the next ones have copies.
//!
//! ```text
//!   who asks            the owner             a copy
//!      |---- Ask 7 -------->| applies it
//!      |                    |---- Change 31 ---->| follows
//!      |                    |<--- Follows 31 ----|
//!      |<--- Answer 7 ------|
//! ```
//!
//! - **Exactly once.** A request is answered when all copies have followed. If the owner dies
//!   before that, it is sent again to the next one. That has noted, with each change, the request
//!   which led to it and its answer: so it knows what has been done. A request of which it does not
//!   know has changed nothing that anybody was told of.
//! - **Order.** An owner applies one request after the other, and copies follow in that order. What
//!   is only read is answered in turn, too: so no answer shows what may still be lost.
//!   A request that has changed nothing is done anew by the next owner, perhaps after a later
//!   update of the same PE that did not wait for its answer.
//! - **Deaths.** The first copy becomes the owner, and has new copies made: they get all entries,
//!   and follow from there. As a share begins, its copies are made likewise.
//! - **Loss.** A PE that becomes the owner without having had all entries says so, unless it was to
//!   have them from the beginning: then there were none. So nothing is lost as long as fewer PEs
//!   die at once than there are holders.
//!
//! A machine must never know what an entry is, nor how messages travel: it runs in jobs, in random
//! schedules and in model checkers.

mod copies;
mod kind;
mod message;
mod order;
mod share;
mod state;
#[cfg(test)]
mod tests;

use self::order::{Order, holders};
use self::share::{Copying, Owner, RequestState, Role, Share, Unanswered};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::take;
use std::sync::Arc;
use ultramarine_topology::{Pe, Topology};

pub use self::kind::Kind;
pub use self::message::{Effect, MessageOf, Request, Told, Work, WorkOf};
pub use self::share::AppliedRequests;

/// What this PE has asked of a share.
#[derive(Clone, PartialEq, Hash)]
struct Asked<B> {
    /// To whom it was sent.
    owner: Pe,
    next: u64,
    unanswered: BTreeMap<u64, B>,
}

/// See the [module](self).
pub struct Machine<K: Kind> {
    me: Pe,
    topology: Arc<Topology>,
    /// The number of copies beside the owner's.
    copies: usize,
    /// Some of those that were dead when the table was opened, if not all.
    dead_before: BTreeSet<Pe>,
    dead: BTreeSet<Pe>,
    asked: BTreeMap<Pe, Asked<K::Batch>>,
    shares: BTreeMap<Pe, Share<K::Answer>>,
    /// What others ask of shares that they hold for this PE's.
    early: Vec<(Pe, Request, K::Batch)>,
    /// What this PE tells itself.
    own: VecDeque<Told<K>>,
    effects: Vec<Effect<K>>,
    /// What was asked, and is answered. It is the user's, and dropped outside of locks.
    waste: Vec<K::Batch>,
}

impl<K: Kind> Machine<K> {
    /// The machine of this PE, of a table that was opened when these PEs were dead. Not all need be
    /// known, and other PEs may know of others; but none of these may have held anything.
    pub fn new(me: Pe, topology: Arc<Topology>, copies: usize, dead_before: BTreeSet<Pe>) -> Self {
        Machine {
            me,
            topology,
            copies,
            dead: dead_before.clone(),
            dead_before,
            asked: BTreeMap::new(),
            shares: BTreeMap::new(),
            early: Vec::new(),
            own: VecDeque::new(),
            effects: Vec::new(),
            waste: Vec::new(),
        }
    }

    /// All PEs take part, or will. From now on each share has its copies, so that those who die one
    /// after another take nothing along.
    pub fn begin(&mut self) {
        let homes = self.dead.iter().copied().chain([self.me]).collect::<Vec<_>>();
        homes.into_iter().for_each(|share| self.begin_if_owner(share));
    }

    /// What is not needed any more.
    pub fn take_waste(&mut self) -> Vec<K::Batch> {
        take(&mut self.waste)
    }

    /// What is to be done now, in this order.
    pub fn take_effects(&mut self) -> Vec<Effect<K>> {
        while let Some((share, message)) = self.own.pop_front() {
            self.hear(self.me, share, message);
        }
        take(&mut self.effects)
    }

    /// Asks something of a share. Returns the number by which it is answered.
    pub fn ask(&mut self, share: Pe, batch: K::Batch) -> u64 {
        let owner = self.owner(share);
        let new = Asked { owner, next: 0, unanswered: BTreeMap::new() };
        let asked = self.asked.entry(share).or_insert(new);
        let number = asked.next;
        asked.next += 1;
        asked.unanswered.insert(number, batch.clone());
        self.send_request(share, number, batch);
        number
    }

    /// That request could not be sent, and is given up.
    pub fn withdraw(&mut self, share: Pe, number: u64) {
        let asked = self.asked.get_mut(&share);
        self.waste.extend(asked.and_then(|asked| asked.unanswered.remove(&number)));
    }

    fn send_request(&mut self, share: Pe, number: u64, batch: K::Batch) {
        let Some(asked) = self.asked.get(&share) else { return };
        let answered_before = asked.unanswered.keys().next().copied().unwrap_or(asked.next);
        let request = Request { by: self.me, number, answered_before };
        self.send(asked.owner, share, MessageOf::Ask(request, batch));
    }

    /// Whether this PE has heard of a death.
    pub fn has_heard_of(&self, dead: Pe) -> bool {
        self.dead.contains(&dead)
    }

    /// The PE that owns a share, as far as this one knows.
    pub fn owner(&self, share: Pe) -> Pe {
        // The first in each order is the share's home.
        if !self.dead.contains(&share) {
            return share;
        }
        let mut order = Order::of(&self.topology, share);
        order.find(|pe| !self.dead.contains(pe)).unwrap_or(self.me)
    }

    fn send(
        &mut self,
        to: Pe,
        share: Pe,
        message: MessageOf<K::Batch, K::Change, K::Answer, K::Entries>,
    ) {
        if to == self.me {
            self.own.push_back((share, message));
        } else {
            self.effects.push(Effect::Send(to, (share, message)));
        }
    }

    /// Something has come from another PE.
    pub fn receive(&mut self, from: Pe, (share, message): Told<K>) {
        self.hear(from, share, message);
    }

    fn hear(
        &mut self,
        from: Pe,
        share: Pe,
        message: MessageOf<K::Batch, K::Change, K::Answer, K::Entries>,
    ) {
        match message {
            MessageOf::Ask(request, batch) => self.hear_request(share, request, batch),
            MessageOf::Answer { number, answer } => {
                let asked = self.asked.get_mut(&share);
                if let Some(batch) = asked.and_then(|asked| asked.unanswered.remove(&number)) {
                    self.waste.push(batch);
                    self.effects.push(Effect::Answered(share, number, answer));
                }
            }
            MessageOf::Change { index, request, change, answer } => {
                self.follow(from, share, index, request, change, answer);
            }
            MessageOf::Fill { entries, is_first, last } => {
                self.fill(from, share, entries, is_first, last);
            }
            MessageOf::Follows { index } => {
                let Some(owner) = self.owned(share) else { return };
                if let Some(copy) = owner.copies.get_mut(&from) {
                    *copy = Copying::Follows(index);
                }
                self.answer_some(share);
            }
        }
    }

    /// The shares that this PE owns, as far as they have begun.
    pub fn owned_shares(&self) -> impl Iterator<Item = Pe> {
        let owned = self.shares.iter().filter(|(_, held)| matches!(held.role, Role::Owner(_)));
        owned.map(|(share, _)| *share)
    }

    /// What this PE has to see to as the owner of a share.
    fn owned(&mut self, share: Pe) -> Option<&mut Owner<K::Answer>> {
        match &mut self.shares.get_mut(&share)?.role {
            Role::Owner(owner) => Some(owner),
            Role::Copy { .. } => None,
        }
    }

    /// Whether this PE was to hold the share when the table was opened. As long as it holds none,
    /// nothing was answered, since that would have taken its word.
    fn is_first_holder(&self, share: Pe) -> bool {
        holders(&self.topology, share, self.copies, &self.dead_before).contains(&self.me)
    }

    /// Makes this PE the owner of a share, if it is, and has not seen to that.
    fn begin_if_owner(&mut self, share: Pe) {
        if self.owner(share) != self.me {
            return;
        }
        match self.shares.get(&share).map(|held| &held.role) {
            None if self.is_first_holder(share) => {
                self.shares.insert(share, Share::with(Role::Owner(Owner::new())));
                self.see_to_copies(share);
            }
            // It was filled by one of whose death this PE had heard.
            Some(Role::Copy { .. }) => self.succeed(share),
            _ => {}
        }
    }

    fn hear_request(&mut self, share: Pe, request: Request, batch: K::Batch) {
        if self.dead.contains(&request.by) {
            // What it has asked may be done, but no PE knows any more whether it is.
            return self.waste.push(batch);
        }
        if self.owner(share) != self.me {
            // Who asks knows of deaths of which this PE will hear.
            self.early.push((share, request, batch));
            return;
        }
        self.begin_if_owner(share);
        let Some(Share { role: Role::Owner(owner), applied, index, .. }) =
            self.shares.get_mut(&share)
        else {
            return self.effects.push(Effect::Lost(share));
        };
        applied.forget(request);
        let (to, number) = (request.by, request.number);
        match applied.of(request) {
            RequestState::Applied(answer) => {
                let answer = answer.clone();
                owner.unanswered.push_back(Unanswered { index: *index, to, number, answer });
                self.answer_some(share);
            }
            RequestState::New if owner.applying.insert((to, number)) => {
                self.effects.push(Effect::Do(share, Work::Apply(request, batch)));
            }
            RequestState::New | RequestState::Answered => {}
        }
    }

    /// A batch has been applied. Without a change it has only read.
    pub fn applied(
        &mut self,
        share: Pe,
        request: Request,
        change: Option<K::Change>,
        answer: K::Answer,
    ) {
        let Some(Share { role: Role::Owner(owner), applied, index, .. }) =
            self.shares.get_mut(&share)
        else {
            return;
        };
        let Request { by: to, number, .. } = request;
        owner.applying.remove(&(to, number));
        let mut told = Vec::new();
        if let Some(change) = change {
            *index += 1;
            if !self.dead.contains(&to) {
                applied.note(request, answer.clone());
            }
            let copies = owner.copies.iter().filter(|(_, copy)| **copy != Copying::Waits);
            told.extend(copies.map(|(pe, _)| (*pe, change.clone())));
        }
        let index = *index;
        for (copy, change) in told {
            let answer = answer.clone();
            self.send(copy, share, MessageOf::Change { index, request, change, answer });
        }
        if let Some(owner) = self.owned(share) {
            owner.unanswered.push_back(Unanswered { index, to, number, answer });
        }
        self.answer_some(share);
    }

    /// Gives the answers that all copies know of.
    fn answer_some(&mut self, share: Pe) {
        while let Some(next) = self.owned(share).and_then(Owner::take_answer) {
            let Unanswered { to, number, answer, .. } = next;
            self.send(to, share, MessageOf::Answer { number, answer });
        }
    }

    /// A PE has died.
    pub fn died(&mut self, dead: Pe) {
        if !self.dead.insert(dead) {
            return;
        }
        for share in self.shares.keys().copied().collect::<Vec<_>>() {
            self.succeed(share);
        }
        self.begin();
        for held in self.shares.values_mut() {
            held.applied.forget_all_of(dead);
            if let Role::Owner(owner) = &mut held.role {
                owner.unanswered.retain(|answer| answer.to != dead);
            }
        }
        for (share, request, batch) in take(&mut self.early) {
            self.hear_request(share, request, batch);
        }
        let orphans = self.asked.iter().filter(|(_, asked)| asked.owner == dead);
        for share in orphans.map(|(share, _)| *share).collect::<Vec<_>>() {
            self.ask_again(share);
        }
    }

    /// Makes this PE the owner of a share if it is the next, and has copies made.
    fn succeed(&mut self, share: Pe) {
        if self.owner(share) != self.me {
            return;
        }
        let is_first_holder = self.is_first_holder(share);
        let Some(held) = self.shares.get_mut(&share) else { return };
        match held.role {
            Role::Copy { is_whole: false, .. } if !is_first_holder => {
                return self.effects.push(Effect::Lost(share));
            }
            Role::Copy { .. } => {
                held.role = Role::Owner(Owner::new());
                held.filled_by = None;
            }
            Role::Owner(_) => {}
        }
        self.see_to_copies(share);
    }

    /// Sends what is not answered to the owner of now.
    fn ask_again(&mut self, share: Pe) {
        let owner = self.owner(share);
        let Some(asked) = self.asked.get_mut(&share) else { return };
        asked.owner = owner;
        for (number, batch) in asked.unanswered.clone() {
            self.send_request(share, number, batch);
        }
    }
}
