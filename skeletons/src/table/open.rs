//! How a table is opened, and how other PEs take part.

use super::error::TableError;
use super::kind::{TableKey, TableValue};
use super::machine::Machine;
use super::part::TablePart;
use super::{Table, TableRef};
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use ultramarine_group::{GroupId, Groups, Invite, Opened, Site};
use ultramarine_journal::Digest;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::Pe;

/// What all PEs know of a table.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) copies: usize,
    pub(super) memory_max: Option<usize>,
    /// Whether owners note what is inserted.
    pub(super) notes_new: bool,
    /// Those that were dead when it was opened.
    pub(super) dead_before: Vec<Pe>,
}

impl Head {
    pub(super) fn lost(&self, cx: &Context) -> TableError {
        TableError::Lost { table: self.name.clone(), dead: cx.dead(), holders: 1 + self.copies }
    }

    pub(super) fn panicked(&self, message: String) -> TableError {
        TableError::Panicked { table: self.name.clone(), message }
    }

    pub(super) fn copies_not_told(&self, reason: String) -> TableError {
        TableError::CopiesNotTold { table: self.name.clone(), reason }
    }

    pub(super) fn closed(&self) -> TableError {
        TableError::Closed { table: self.name.clone() }
    }

    pub(super) fn full(&self, pe: Pe, bytes: usize) -> TableError {
        let (table, limit) = (self.name.clone(), self.memory_max.unwrap_or(0));
        TableError::Full { table, pe, bytes, limit }
    }
}

/// A table that is spread over all PEs: [`open`](Opening::open) opens it.
///
/// On the root a name is of one table: opened again, also by the next root, it is the same one. A
/// table that is opened on another PE is another one each time, whatever has the same name: only
/// tasks that get its [reference](Table::reference) use it, and it ends with that PE.
///
/// See the [module](super) for what it is.
pub fn table<K: TableKey, V: TableValue>(
    cx: &Context,
    name: impl Into<String>,
) -> Opening<'_, K, V> {
    let types = PhantomData;
    Opening { cx, name: name.into(), copies: 1, memory_max: None, notes_new: false, types }
}

/// A table that is yet to be opened; see [`table`].
#[must_use = "a table is not there until it is opened"]
pub struct Opening<'a, K, V> {
    cx: &'a Context,
    name: String,
    copies: usize,
    memory_max: Option<usize>,
    notes_new: bool,
    types: PhantomData<fn(K, V)>,
}

impl<K: TableKey, V: TableValue> Opening<'_, K, V> {
    /// The number of copies of each entry beside the owner's, on other hosts as far as there are
    /// that many. The table outlives as many deaths at once; after a death copies are made anew.
    /// Default 1. (Each change travels to each copy.)
    pub fn copies(mut self, copies: usize) -> Self {
        self.copies = copies;
        self
    }

    /// The most that entries may take on a PE, with the copies of others' that it has, in bytes. An
    /// owner [refuses](TableError::Full) what would be more; copies are made in any case. So a PE
    /// may come to as many times the limit as each entry has holders. An entry counts as its place
    /// in the map, and, if it has memory elsewhere, as much as its encoding. (All updates are
    /// refused once the limit is passed: what they will take is not known.) Default: no limit.
    ///
    /// While a copy is made anew after a death, the limit does not hold. The owner has the entries
    /// three times then: in the map, and on their way as they are and encoded. The PE that gets the
    /// copy may have an old one beside it.
    pub fn memory_max(mut self, bytes: usize) -> Self {
        self.memory_max = Some(bytes);
        self
    }

    /// Owners note what is inserted, until that is [taken](Table::take_new). Copies do not.
    pub(crate) fn noting_new(mut self) -> Self {
        self.notes_new = true;
        self
    }

    /// Opens the table. The main task that a root's death has started anew finds the entries there
    /// if it opens the same table.
    ///
    /// # Errors
    ///
    /// A table that this PE has opened under this name, or a root before it, has [other
    /// types](TableError::OtherTypes), or [other copies or memory](TableError::OtherOptions); or
    /// the job ends.
    pub fn open(self) -> Result<Table<K, V>, TableError> {
        let Opening { cx, name, copies, memory_max, notes_new, .. } = self;
        let is_owned = cx.pe() != cx.root();
        let terms = Terms { types: type_name::<(K, V)>(), copies, memory_max };
        let noted = note(cx, (name.clone(), is_owned.then(|| cx.pe())), terms, true)?;
        let mut digest = Digest::default();
        digest.add(b"table");
        digest.add(name.as_bytes());
        // With other copies it would be another table.
        digest.add(&copies.to_le_bytes());
        let opened = Opened::<TablePart<K, V>>::new(cx, digest.finish(), is_owned);
        // If an earlier root has opened it, this PE was invited long ago, or nothing was in it.
        let known = opened.member().with(|_, part| part.head.clone());
        let head = known.unwrap_or_else(|| {
            let dead = (0..cx.pes()).map(Pe::new).filter(|pe| cx.is_dead(*pe));
            Arc::new(Head { name, copies, memory_max, notes_new, dead_before: dead.collect() })
        });
        let invitation = TableInvitation::<K, V> { head: head.clone(), types: PhantomData };
        let part = invitation.make(opened.context(), opened.id())?;
        opened.start(invitation, part)?;
        Ok(Table::new((opened, noted), head))
    }
}

impl<K, V> std::fmt::Debug for Opening<'_, K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Opening");
        shown.field("name", &self.name).field("copies", &self.copies).finish_non_exhaustive()
    }
}

/// What a table was opened with.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Terms {
    types: &'static str,
    copies: usize,
    memory_max: Option<usize>,
}

impl Terms {
    fn options(self) -> String {
        let memory = self.memory_max.map(|bytes| format!("`memory_max` {bytes}"));
        let memory = memory.unwrap_or_else(|| "no `memory_max`".to_owned());
        format!("`copies` {} and {memory}", self.copies)
    }

    /// Why a table cannot be opened with these, if it is open with others.
    fn differ_from(self, open: Terms, table: &str) -> Option<TableError> {
        let table = table.to_owned();
        if open.types != self.types {
            let (open, wanted) = (open.types.to_owned(), self.types.to_owned());
            return Some(TableError::OtherTypes { table, open, wanted });
        }
        let (open, wanted) = (open.options(), self.options());
        (open != wanted).then_some(TableError::OtherOptions { table, open, wanted })
    }
}

/// The name of a table, and the PE that has opened it, unless that was a root.
type NameAndOpener = (String, Option<Pe>);

/// The tables of which this PE has a part, or that it opens. (With other types or copies a table
/// would be another group, which does not know of this one.)
#[derive(Default)]
struct OpenTables(Mutex<BTreeMap<NameAndOpener, (Terms, Weak<()>)>>);

/// Notes a table, for as long as what is returned is there. What others have opened goes before
/// what is noted.
fn note(
    cx: &Context,
    table: NameAndOpener,
    terms: Terms,
    is_opening: bool,
) -> Result<Arc<()>, TableError> {
    let open = cx.pe_local::<OpenTables>();
    let mut open = open.0.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, (_, token)| token.strong_count() > 0);
    if let Some((others, token)) = open.get(&table)
        && let Some(token) = token.upgrade()
    {
        match terms.differ_from(*others, &table.0) {
            None => return Ok(token),
            Some(error) if is_opening => return Err(error),
            Some(_) => {}
        }
    }
    let token = Arc::new(());
    open.insert(table, (terms, Arc::downgrade(&token)));
    Ok(token)
}

/// What makes a PE take part in a table.
pub(super) struct TableInvitation<K, V> {
    pub(super) head: Arc<Head>,
    types: PhantomData<fn(K, V)>,
}

impl<K, V> Clone for TableInvitation<K, V> {
    fn clone(&self) -> Self {
        TableInvitation { head: self.head.clone(), types: PhantomData }
    }
}

impl<K: TableKey, V: TableValue> Invite<TablePart<K, V>> for TableInvitation<K, V> {
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), TableError> {
        let invited = |cx: &Context, told: TableRef<K, V>| told.accept(cx);
        let told = TableRef::new(id, self.head.clone());
        Ok(match to {
            Some(pe) => cx.tell_fn(pe, invited, told),
            None => cx.tell_all_fn(invited, told),
        }?)
    }

    fn make(&self, cx: &Context, id: GroupId) -> Result<TablePart<K, V>, TableError> {
        let Head { name, copies, memory_max, .. } = &*self.head;
        let (types, copies, memory_max) = (type_name::<(K, V)>(), *copies, *memory_max);
        let table = (name.clone(), id.name.owner.map(|(opener, _)| opener));
        let noted = note(cx, table, Terms { types, copies, memory_max }, false)?;
        let (topology, dead) = (cx.topology().clone(), self.head.dead_before.iter().copied());
        let machine = Machine::new(cx.pe(), topology, self.head.copies, dead.collect());
        Ok(TablePart::new(machine, self.head.clone(), noted))
    }
}

impl<K: TableKey, V: TableValue> TableRef<K, V> {
    /// Makes this PE's part, unless it is there.
    pub(super) fn accept(&self, cx: &Context) {
        let invitation = TableInvitation { head: self.head.clone(), types: PhantomData };
        Groups::<TablePart<K, V>>::on(cx).accept(self.id, invitation);
    }
}
