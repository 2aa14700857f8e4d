//! The groups that a PE knows. What arrives for a group may be there before the PE is invited, or
//! after the group is closed.
//!
//! Only what is closed must be told from what is still to be opened, since a request that is
//! dropped too early is never answered: so each opening of a group comes after those before.

use crate::name::{GroupId, Name, Opening};
use std::collections::{BTreeMap, VecDeque};
use ultramarine_topology::Pe;

/// How many closed groups a PE remembers. What arrives later than that is kept as if it were
/// early, a few bytes each.
const CLOSED_MAX: usize = 4096;

/// A place in the table. `C` holds a part.
pub struct Joined<C> {
    /// The part of the group.
    pub cell: C,
    /// The part of another group of the same name that this PE did not know to be closed.
    pub over: Option<C>,
}

/// The groups that a PE knows. `C` holds its part of one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Table<C> {
    known: BTreeMap<Name, Known<C>>,
    /// Groups that are closed, the newest first.
    closed: VecDeque<GroupId>,
    /// The number of openings on this PE.
    openings: u64,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Known<C> {
    opening: Opening,
    /// How many programs on this PE use it.
    users: u32,
    cell: C,
}

impl<C> Default for Table<C> {
    fn default() -> Self {
        Table { known: BTreeMap::new(), closed: VecDeque::new(), openings: 0 }
    }
}

impl<C: Clone> Table<C> {
    /// A program on this PE opens a group, in this attempt of the main task.
    pub fn begin(
        &mut self,
        digest: u128,
        is_owned: bool,
        (attempt, by): (u32, Pe),
        make: impl FnOnce() -> C,
    ) -> (GroupId, Joined<C>) {
        self.openings += 1;
        let number = self.openings;
        let name = Name { digest, owner: is_owned.then_some((by, number)) };
        let mut opening = Opening { attempt, by, number, first: 0 };
        opening.first = self.first(name, opening);
        let id = GroupId { name, opening };
        let joined = self.enter(id, make);
        self.known.get_mut(&name).into_iter().for_each(|known| known.users += 1);
        (id, joined)
    }

    /// With which opening on its PE a group began that is opened now.
    fn first(&self, name: Name, Opening { attempt, by, number, .. }: Opening) -> u64 {
        let was_closed_here = |closed: &GroupId| closed.name == name && closed.opening.by == by;
        match self.known.get(&name) {
            Some(known) if known.users > 0 => known.opening.first,
            Some(known) if (known.opening.attempt, known.opening.by) != (attempt, by) => 0,
            None if !self.closed.iter().any(was_closed_here) => 0,
            _ => number,
        }
    }

    /// A program on this PE needs its group no more. Returns the group if no other program does.
    pub fn leave(&mut self, name: Name) -> Option<GroupId> {
        let known = self.known.get_mut(&name)?;
        known.users -= 1;
        (known.users == 0).then_some(GroupId { name, opening: known.opening })
    }

    /// The group that this PE is invited to, or for which something has arrived. `None`: it is
    /// closed.
    pub fn join(&mut self, id: GroupId, make: impl FnOnce() -> C) -> Option<Joined<C>> {
        (!self.is_closed(id)).then(|| self.enter(id, make))
    }

    /// The group of this name, if this PE has a part of it.
    pub fn get(&self, name: Name) -> Option<C> {
        self.known.get(&name).map(|known| known.cell.clone())
    }

    /// The same, unless that opening was of another group of the name, which is closed.
    pub fn find(&self, id: GroupId) -> Option<C> {
        self.get(id.name).filter(|_| !self.is_closed(id))
    }

    /// The group as of its last opening that this PE knows.
    pub fn newest(&self, id: GroupId) -> GroupId {
        let known = self.known.get(&id.name).map(|known| known.opening);
        GroupId { opening: known.map_or(id.opening, |known| known.max(id.opening)), ..id }
    }

    /// A group is closed, unless it has been opened again. Returns this PE's part.
    pub fn close(&mut self, id: GroupId) -> Option<C> {
        let is_needed = |known: &Known<C>| known.users > 0 || known.opening > id.opening;
        if self.known.get(&id.name).is_some_and(is_needed) {
            return None;
        }
        if !self.closed.contains(&id) {
            self.closed.truncate(CLOSED_MAX - 1);
            self.closed.push_front(id);
        }
        self.known.remove(&id.name).map(|known| known.cell)
    }

    /// All groups that are not closed, and whether a program on this PE uses them.
    pub fn all(&self) -> Vec<(GroupId, bool, C)> {
        let of = |(name, known): (&Name, &Known<C>)| {
            let id = GroupId { name: *name, opening: known.opening };
            (id, known.users > 0, known.cell.clone())
        };
        self.known.iter().map(of).collect()
    }

    /// The last groups that were closed, the newest first.
    pub fn closed(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.closed.iter().copied()
    }

    fn is_closed(&self, id: GroupId) -> bool {
        let is_later = |closed: &GroupId| closed.name == id.name && closed.opening >= id.opening;
        match self.known.get(&id.name) {
            Some(known) => known.opening.began_after(id.opening),
            None => self.closed.iter().any(is_later),
        }
    }

    fn enter(&mut self, id: GroupId, make: impl FnOnce() -> C) -> Joined<C> {
        let GroupId { name, opening } = id;
        let is_over = |known: &Known<C>| known.users == 0 && opening.began_after(known.opening);
        let is_over = self.known.get(&name).is_some_and(is_over);
        let over = if is_over { self.known.remove(&name) } else { None };
        let made = || Known { opening, users: 0, cell: make() };
        let known = self.known.entry(name).or_insert_with(made);
        known.opening = opening.max(known.opening);
        Joined { cell: known.cell.clone(), over: over.map(|known| known.cell) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digest: u128, attempt: u32, number: u64) -> GroupId {
        since(digest, attempt, (0, number))
    }

    fn since(digest: u128, attempt: u32, (first, number): (u64, u64)) -> GroupId {
        let opening = Opening { attempt, by: Pe::ROOT, number, first };
        GroupId { name: Name { digest, owner: None }, opening }
    }

    /// What is there after joining, and what is over.
    fn join(table: &mut Table<char>, id: GroupId, made: char) -> Option<(char, Option<char>)> {
        table.join(id, || made).map(|joined| (joined.cell, joined.over))
    }

    fn begin(table: &mut Table<char>, is_owned: bool, attempt: u32, made: char) -> (GroupId, char) {
        let (id, joined) = table.begin(1, is_owned, (attempt, Pe::ROOT), || made);
        (id, joined.cell)
    }

    #[test]
    fn what_is_early_waits_and_what_is_late_is_dropped() {
        let mut table = Table::default();
        assert_eq!(join(&mut table, id(1, 1, 1), 'a'), Some(('a', None)), "early");
        assert_eq!(join(&mut table, id(1, 1, 1), 'b'), Some(('a', None)));
        assert_eq!(table.close(id(1, 1, 1)), Some('a'));
        assert_eq!(join(&mut table, id(1, 1, 1), 'c'), None, "late");
        assert_eq!(join(&mut table, id(2, 1, 1), 'd'), Some(('d', None)), "another group");
    }

    #[test]
    fn a_group_that_is_opened_again_is_not_closed_by_its_former_end() {
        let mut table = Table::default();
        table.join(id(1, 1, 1), || 'a');
        assert_eq!(table.close(id(1, 1, 1)), Some('a'));
        assert_eq!(
            join(&mut table, id(1, 1, 2), 'b'),
            Some(('b', None)),
            "it is of the next opening"
        );
        assert_eq!(join(&mut table, id(1, 1, 2), 'c'), Some(('b', None)));
        assert_eq!(table.close(id(1, 1, 1)), None);
        assert_eq!(table.close(id(1, 1, 2)), Some('b'));
        assert_eq!(join(&mut table, id(1, 1, 2), 'd'), None, "the invitation is late");
    }

    #[test]
    fn another_root_joins_what_goes_on() {
        let mut table = Table::default();
        table.join(id(1, 1, 7), || 'a');
        let (opened, cell) = begin(&mut table, false, 2, 'b');
        assert_eq!((opened, cell), (id(1, 2, 1), 'a'));
        assert_eq!(table.close(id(1, 1, 7)), None, "the former root's end comes late");
        assert_eq!(table.leave(opened.name), Some(opened));
    }

    #[test]
    fn two_programs_share_a_group_of_the_same_digest_unless_it_is_owned() {
        let mut table = Table::default();
        let (first, _) = begin(&mut table, false, 1, 'a');
        let (second, cell) = begin(&mut table, false, 1, 'b');
        assert_eq!((cell, second > first), ('a', true));
        assert_eq!(begin(&mut table, true, 1, 'c').1, 'c');
        assert_eq!(table.leave(first.name), None, "the other needs it");
        assert_eq!(table.leave(first.name), Some(second));
    }

    /// A request of the next opening has overtaken the end of the former.
    #[test]
    fn what_arrives_for_a_later_opening_keeps_the_group() {
        let mut table = Table::default();
        table.join(id(1, 1, 1), || 'a');
        assert_eq!(join(&mut table, id(1, 1, 2), 'b'), Some(('a', None)));
        assert_eq!(table.close(id(1, 1, 1)), None);
        assert_eq!(table.newest(id(1, 1, 1)), id(1, 1, 2), "an invitation to the former is late");
        assert_eq!(join(&mut table, id(1, 1, 2), 'c'), Some(('a', None)), "it is invited");
    }

    /// What its PE opens after the end of the former group is another group, which has nothing of
    /// that one, in whatever order the others hear of them.
    #[test]
    fn a_name_that_is_used_again_is_another_group() {
        let mut home = Table::default();
        let (former, _) = begin(&mut home, false, 1, 'a');
        home.leave(former.name);
        home.close(former);
        let (next, cell) = begin(&mut home, false, 1, 'b');
        assert_eq!((next, cell), (since(1, 1, (2, 2)), 'b'));
        assert_eq!(begin(&mut home, false, 1, 'c'), (since(1, 1, (2, 3)), 'b'), "it goes on");

        let mut table = Table::default();
        assert_eq!(join(&mut table, former, 'a'), Some(('a', None)));
        assert_eq!(join(&mut table, next, 'b'), Some(('b', Some('a'))), "the end comes later");
        assert_eq!(join(&mut table, former, 'c'), None, "late");
        assert_eq!((table.find(former), table.find(next)), (None, Some('b')));
        assert_eq!(table.close(former), None);
        assert_eq!(join(&mut table, since(1, 1, (2, 3)), 'c'), Some(('b', None)), "it goes on");
        assert_eq!(join(&mut table, id(1, 2, 1), 'c'), Some(('b', None)), "with another root");
    }
}
