//! Groups without an executor: for random schedules, simulations and model checkers.

use crate::life::{Life, LifeOf, Part};
use crate::name::GroupId;
use crate::protocol::{Notice, Site};
use crate::table::Table;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem::take;
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
pub type Action<P> = ActionOf<<P as Part>::Effects, <P as Part>::Invitation, <P as Part>::Error>;

/// See [`Action`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ActionOf<F, I, E> {
    /// A part's own.
    Own(GroupId, F),
    /// A PE, or all, [accept](Site::accept) this invitation.
    Invite(Option<Pe>, GroupId, I),
    /// A PE, or all, [hear](Site::hear) this.
    Tell(Option<Pe>, GroupId, Notice<E>),
}

/// The groups with parts of type `P`, as a PE knows them.
pub type PlainGroups<P> = PlainGroupsOf<
    P,
    <P as Part>::Effects,
    <P as Part>::Invitation,
    <P as Part>::Message,
    <P as Part>::Error,
>;

/// See [`PlainGroups`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlainGroupsOf<P, F, I, M, E> {
    me: Pe,
    root: Pe,
    dead: BTreeSet<Pe>,
    table: Table<usize>,
    lives: Vec<LifeOf<P, I, M, E>>,
    actions: Vec<ActionOf<F, I, E>>,
}

impl<P: Plain> PlainGroupsOf<P, P::Effects, P::Invitation, P::Message, P::Error> {
    /// Those of this PE. PE 0 is the root.
    pub fn new(me: Pe) -> Self {
        let (dead, table, lives, actions) = Default::default();
        PlainGroupsOf { me, root: Pe::ROOT, dead, table, lives, actions }
    }

    /// Has something happen.
    pub fn turn<T>(&mut self, act: impl FnOnce(&Turn<'_, P>) -> T) -> T {
        act(&Turn(RefCell::new(self)))
    }

    /// A PE has died, and this is the root now.
    pub fn note_death(&mut self, dead: Pe, root: Pe) {
        self.root = root;
        self.dead.insert(dead);
        self.turn(|groups| groups.died(dead));
    }

    /// What is to be done now, in this order.
    pub fn take_actions(&mut self) -> Vec<Action<P>> {
        take(&mut self.actions)
    }

    /// The parts of the groups that this PE knows and that are not closed.
    pub fn known(&self) -> impl Iterator<Item = &Life<P>> {
        self.table.all().into_iter().map(|(_, _, cell)| &self.lives[cell])
    }
}

/// A moment in which something happens to a PE's groups.
pub struct Turn<'a, P: Part>(RefCell<&'a mut PlainGroups<P>>);

impl<P: Plain> Site<P> for Turn<'_, P> {
    type Cell = usize;

    fn me(&self) -> Pe {
        self.0.borrow().me
    }

    fn root(&self) -> Pe {
        self.0.borrow().root
    }

    fn dead(&self) -> Vec<Pe> {
        self.0.borrow().dead.iter().copied().collect()
    }

    fn is_dead(&self, pe: Pe) -> bool {
        self.0.borrow().dead.contains(&pe)
    }

    fn has_any_died(&self) -> bool {
        !self.0.borrow().dead.is_empty()
    }

    fn cell(&self) -> usize {
        let lives = &mut self.0.borrow_mut().lives;
        lives.push(Life::<P>::default());
        lives.len() - 1
    }

    fn with_table<T>(&self, act: impl FnOnce(&mut Table<usize>) -> T) -> T {
        // What `act` calls must not find it borrowed.
        let mut table = take(&mut self.0.borrow_mut().table);
        let done = act(&mut table);
        self.0.borrow_mut().table = table;
        done
    }

    fn with_life<T>(&self, cell: &usize, act: impl FnOnce(&mut Life<P>) -> T) -> T {
        let mut life = take(&mut self.0.borrow_mut().lives[*cell]);
        let done = act(&mut life);
        self.0.borrow_mut().lives[*cell] = life;
        done
    }

    fn carry_out(&self, _: &usize, id: GroupId, effects: P::Effects) {
        self.0.borrow_mut().actions.push(ActionOf::Own(id, effects));
    }

    fn make(&self, id: GroupId, invitation: &P::Invitation) -> Result<P, P::Error> {
        P::make(self.me(), id, invitation)
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
        self.0.borrow_mut().actions.push(ActionOf::Invite(to, id, invitation.clone()));
        Ok(())
    }

    fn tell(&self, to: Option<Pe>, id: GroupId, notice: Notice<P::Error>) {
        self.0.borrow_mut().actions.push(ActionOf::Tell(to, id, notice));
    }
}
