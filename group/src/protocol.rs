//! What PEs tell each other about a group, and what each does then.
//!
//! ```text
//!   the PE that opens it                     another PE
//!     │ open ─── Invite, down a tree ──────────> │ makes its part
//!     │ <────────────── messages ──────────────> │   (early ones wait)
//!     │ <────────────── Failed ───────────────── │   if it cannot
//!     │ close ── Closed, down a tree ──────────> │ forgets its part
//! ```
//!
//! A PE that dies may not have passed on what goes down the tree. So after each death
//!
//! - a PE whose program uses a group invites all again;
//! - a PE that has no part, but messages for it, asks their senders for the invitation (`Ask`). It
//!   does so as well when such a message arrives later;
//! - the home says of the last groups again that they are closed.
//!
//! The home is the root, unless the group has an owner. If the root dies, its groups go on; the
//! next root, if its program comes to the same digest, joins them by a later opening. What a home
//! opens after the end of a group of the same name is another group: its messages may come to a PE
//! before that end does, whose part of the former is over then.

use crate::life::{Life, Part, Wanted};
use crate::name::{GroupId, Name};
use crate::table::{Joined, Table};
use serde::{Deserialize, Serialize};
use ultramarine_topology::Pe;

/// A PE that dies may not have passed on that a group is closed: of the last ones, this number, it
/// is told again.
const TOLD_AGAIN: usize = 8;

/// What PEs tell each other about a group, beside invitations.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Notice<E> {
    /// The sender was not invited, and has messages of the receiver.
    Ask,
    /// The sender could not make its part, or not go on. The PE that opened the group hears of it.
    Failed(E),
    /// The group is closed.
    Closed,
}

/// A PE, as the groups on it see it. Its provided methods are the protocol.
pub trait Site<P: Part> {
    /// Where a part is kept. A clone is the same place.
    type Cell: Clone;

    /// This PE.
    fn me(&self) -> Pe;
    /// The root, as far as this PE knows.
    fn root(&self) -> Pe;
    /// The PEs of whose death this PE has heard.
    fn dead(&self) -> Vec<Pe>;
    /// Whether this PE has heard of that PE's death.
    fn is_dead(&self, pe: Pe) -> bool;
    /// Whether this PE has heard of any death.
    fn has_any_died(&self) -> bool;
    /// A place for a part of which this PE has heard just now.
    fn cell(&self) -> Self::Cell;
    /// Calls `act` with the table, under its lock if there is one.
    fn with_table<T>(&self, act: impl FnOnce(&mut Table<Self::Cell>) -> T) -> T;
    /// Calls `act` with the life of a part, under its lock if there is one. The table is not locked
    /// meanwhile.
    fn with_life<T>(&self, cell: &Self::Cell, act: impl FnOnce(&mut Life<P>) -> T) -> T;
    /// Does what a part wants to have done.
    fn carry_out(&self, cell: &Self::Cell, id: GroupId, effects: P::Effects);
    /// Makes this PE's part.
    fn make(&self, id: GroupId, invitation: &P::Invitation) -> Result<P, P::Error>;
    /// Drops a part that is over.
    fn end(&self, part: P);
    /// Has a PE [accept](Self::accept) an invitation, unless either dies; `None`: all that live,
    /// this one included. If a PE dies that should have passed it on, others may not get it.
    fn invite(
        &self,
        to: Option<Pe>,
        id: GroupId,
        invitation: &P::Invitation,
    ) -> Result<(), P::Error>;
    /// Has a PE [hear](Self::hear) a notice, likewise.
    fn tell(&self, to: Option<Pe>, id: GroupId, notice: Notice<P::Error>);

    /// A program on this PE opens a group, in this attempt of the main task. It
    /// [starts](Self::start) the group next, and [leaves](Self::leave) it in the end.
    fn open(&self, digest: u128, is_owned: bool, attempt: u32) -> (GroupId, Self::Cell) {
        let (id, joined) = self.with_table(|table| {
            table.begin(digest, is_owned, (attempt, self.me()), || self.cell())
        });
        (id, self.enter(id, joined))
    }

    /// This PE has made its part of the group that it has opened, and invites all.
    ///
    /// # Errors
    ///
    /// The invitation cannot be sent.
    fn start(
        &self,
        cell: &Self::Cell,
        id: GroupId,
        invitation: P::Invitation,
        part: P,
    ) -> Result<(), P::Error> {
        self.begin(cell, id, invitation.clone(), part);
        self.invite(None, id, &invitation)
    }

    /// A program on this PE needs its group no more.
    fn leave(&self, name: Name) {
        let Some(id) = self.with_table(|table| table.leave(name)) else { return };
        // At once: of a death before the notice has come here the others would not be told again.
        self.close(id);
        self.tell(None, id, Notice::Closed);
    }

    /// This PE is invited.
    fn accept(&self, id: GroupId, invitation: P::Invitation) {
        let Some(cell) = self.join(id) else { return };
        if self.with_life(&cell, |life| life.has_begun()) {
            return;
        }
        // Messages of a later opening may have come before.
        let id = self.with_table(|table| table.newest(id));
        match self.make(id, &invitation) {
            Ok(part) => self.begin(&cell, id, invitation, part),
            Err(error) => self.tell_failed(id, error),
        }
    }

    /// Messages of another part have arrived, which were sent in this opening.
    fn receive(&self, id: GroupId, from: Pe, messages: impl IntoIterator<Item = P::Message>) {
        let Some(cell) = self.join(id) else { return };
        let mut messages = messages.into_iter();
        let wanted = self.with_life(&cell, |life| life.receive(id, from, &mut messages));
        self.carry_out_some(&cell, wanted);
        if self.has_any_died() {
            self.ask_for_invitation(&cell, id);
        }
    }

    /// A PE has said something about a group.
    fn hear(&self, id: GroupId, from: Pe, notice: Notice<P::Error>) {
        let known = |name| self.with_table(|table| table.get(name));
        match notice {
            Notice::Ask => {
                let cell = known(id.name);
                let invitation =
                    cell.and_then(|cell| self.with_life(&cell, |life| life.invitation()));
                if let Some((id, invitation)) = invitation {
                    // It has been sent before, so it can be.
                    let _ = self.invite(Some(from), id, &invitation);
                }
            }
            Notice::Failed(error) => {
                let cell = known(id.name);
                let over = cell.and_then(|cell| self.with_life(&cell, |life| life.fail(id, error)));
                over.into_iter().for_each(|part| self.end(part));
            }
            Notice::Closed => self.close(id),
        }
    }

    /// A PE has died.
    fn died(&self, dead: Pe) {
        let (all, closed) = self
            .with_table(|table| (table.all(), table.closed().take(TOLD_AGAIN).collect::<Vec<_>>()));
        for (id, is_used, cell) in all {
            if id.name.ends_with(dead) {
                self.close(id);
                continue;
            }
            let wanted = self.with_life(&cell, |life| life.act(|_, part| part.died(dead)));
            self.carry_out_some(&cell, wanted);
            self.ask_for_invitation(&cell, id);
            let invitation = self.with_life(&cell, |life| life.invitation()).filter(|_| is_used);
            if let Some((id, invitation)) = invitation {
                let _ = self.invite(None, id, &invitation);
            }
        }
        let is_home = |id: &GroupId| id.name.home(self.root()) == self.me();
        let again = closed.into_iter().filter(is_home);
        again.for_each(|id| self.tell(None, id, Notice::Closed));
    }

    /// This PE cannot go on in an opening of a group.
    fn tell_failed(&self, id: GroupId, error: P::Error) {
        self.tell(Some(id.opening.by), id, Notice::Failed(error));
    }

    /// The group that this PE is invited to, or for which something has arrived. `None`: it is
    /// closed.
    fn join(&self, id: GroupId) -> Option<Self::Cell> {
        if id.name.owner.is_some_and(|(owner, _)| self.is_dead(owner)) {
            return None;
        }
        let joined = self.with_table(|table| table.join(id, || self.cell()))?;
        Some(self.enter(id, joined))
    }

    /// Something is told in this opening.
    fn enter(&self, id: GroupId, joined: Joined<Self::Cell>) -> Self::Cell {
        joined.over.into_iter().for_each(|cell| self.end_life(&cell));
        let wanted = self.with_life(&joined.cell, |life| life.renew(id));
        self.carry_out_some(&joined.cell, wanted);
        joined.cell
    }

    /// This PE has made its part.
    fn begin(&self, cell: &Self::Cell, id: GroupId, invitation: P::Invitation, part: P) {
        let open = |life: &mut Life<P>| {
            // Under the lock: of later deaths the part is told.
            let dead = self.dead();
            life.open(id, invitation, part, dead)
        };
        let (spare, wanted) = self.with_life(cell, open);
        spare.into_iter().for_each(|part| self.end(part));
        self.carry_out_some(cell, wanted);
    }

    /// A group is closed, unless it has been opened again.
    fn close(&self, id: GroupId) {
        let cell = self.with_table(|table| table.close(id));
        cell.into_iter().for_each(|cell| self.end_life(&cell));
    }

    /// A group is over.
    fn end_life(&self, cell: &Self::Cell) {
        let remains = self.with_life(cell, Life::close);
        remains.part.into_iter().for_each(|part| self.end(part));
    }

    /// If this PE has not been invited to a group: asks those from which something has come.
    fn ask_for_invitation(&self, cell: &Self::Cell, id: GroupId) {
        let senders = self.with_life(cell, |life| life.early_senders());
        let living = senders.into_iter().filter(|sender| !self.is_dead(*sender));
        living.for_each(|sender| self.tell(Some(sender), id, Notice::Ask));
    }

    /// Does what a part wants to have done, if anything.
    fn carry_out_some(&self, cell: &Self::Cell, wanted: Wanted<P>) {
        if let Some((id, effects)) = wanted {
            self.carry_out(cell, id, effects);
        }
    }
}
