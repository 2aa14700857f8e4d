//! Groups without an executor: for random schedules, simulations and model checkers.

use crate::life::{Life, Part};
use crate::name::GroupId;
use crate::protocol::{Notice, Site};
use crate::table::Table;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// A part that needs nothing but its invitation, and to know which PE it is on.
pub trait Plain: Part {
    /// Makes the part of a PE.
    ///
    /// # Errors
    ///
    /// The group fails with this error.
    fn make(me: Pe, id: GroupId, invitation: &Self::Invitation) -> Result<Self, Self::Error>;
}

/// Something that a PE's groups want to have done.
#[derive(Clone, Debug)]
pub enum Action<P: Part> {
    /// A part's own.
    Own(GroupId, P::Effects),
    /// A PE, or all, [accept](Site::accept) this invitation.
    Invite(Option<Pe>, GroupId, P::Invitation),
    /// A PE, or all, [hear](Site::hear) this.
    Tell(Option<Pe>, GroupId, Notice<P::Error>),
}

/// The groups with parts of one type, as a PE knows them.
pub struct PlainGroups<P: Part> {
    me: Pe,
    root: Cell<Pe>,
    dead: RefCell<BTreeSet<Pe>>,
    table: RefCell<Table<usize>>,
    lives: RefCell<Vec<Life<P>>>,
    actions: RefCell<Vec<Action<P>>>,
}

impl<P: Plain> PlainGroups<P> {
    /// Those of this PE. PE 0 is the root.
    pub fn new(me: Pe) -> Self {
        PlainGroups {
            me,
            root: Cell::new(Pe::ROOT),
            dead: RefCell::default(),
            table: RefCell::default(),
            lives: RefCell::default(),
            actions: RefCell::default(),
        }
    }

    /// A PE has died, and this is the root now.
    pub fn note_death(&self, dead: Pe, root: Pe) {
        self.root.set(root);
        self.dead.borrow_mut().insert(dead);
        self.died(dead);
    }

    /// What is to be done now, in this order.
    pub fn take_actions(&self) -> Vec<Action<P>> {
        self.actions.take()
    }

    /// The number of groups that this PE knows and that are not closed.
    pub fn known(&self) -> usize {
        self.table.borrow().all().len()
    }
}

impl<P: Plain> Site<P> for PlainGroups<P> {
    type Cell = usize;

    fn me(&self) -> Pe {
        self.me
    }

    fn root(&self) -> Pe {
        self.root.get()
    }

    fn dead(&self) -> Vec<Pe> {
        self.dead.borrow().iter().copied().collect()
    }

    fn is_dead(&self, pe: Pe) -> bool {
        self.dead.borrow().contains(&pe)
    }

    fn has_any_died(&self) -> bool {
        !self.dead.borrow().is_empty()
    }

    fn cell(&self) -> usize {
        let mut lives = self.lives.borrow_mut();
        lives.push(Life::default());
        lives.len() - 1
    }

    fn with_table<T>(&self, act: impl FnOnce(&mut Table<usize>) -> T) -> T {
        act(&mut self.table.borrow_mut())
    }

    fn with_life<T>(&self, cell: &usize, act: impl FnOnce(&mut Life<P>) -> T) -> T {
        act(&mut self.lives.borrow_mut()[*cell])
    }

    fn carry_out(&self, _: &usize, id: GroupId, effects: P::Effects) {
        self.actions.borrow_mut().push(Action::Own(id, effects));
    }

    fn make(&self, id: GroupId, invitation: &P::Invitation) -> Result<P, P::Error> {
        P::make(self.me, id, invitation)
    }

    fn end(&self, part: P) {
        drop(part);
    }

    fn invite(
        &self,
        to: Option<Pe>,
        id: GroupId,
        invitation: &P::Invitation,
    ) -> Result<(), P::Error> {
        self.actions.borrow_mut().push(Action::Invite(to, id, invitation.clone()));
        Ok(())
    }

    fn tell(&self, to: Option<Pe>, id: GroupId, notice: Notice<P::Error>) {
        self.actions.borrow_mut().push(Action::Tell(to, id, notice));
    }
}
