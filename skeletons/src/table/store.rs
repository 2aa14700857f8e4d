//! The entries that a PE holds. They change under a lock of their own, since the code of keys and
//! values is the user's.

use super::kind::{Answer, Batch, Change, Of, Rows, TableKey, TableValue};
use super::open::Head;
use super::update::{Undone, UpdateSite, run_update};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::mem::{size_of, take};
use ultramarine_runtime::wire::encoded_len;
use ultramarine_topology::Pe;

/// The entries of a share. All PEs hash alike.
pub(super) type Share<K, V> = HashMap<K, V, FixedState>;

/// What a batch has changed, if anything, and the answer.
type Applied<K, V> = (Option<Change<K, V>>, Answer<V>);

/// The most entries that a copy is filled with at once. (Tests have few entries.)
const PIECE_ENTRIES_MAX: usize = if cfg!(test) { 2 } else { 4096 };

/// About the most that they take then, in bytes, but for an entry that takes more by itself: far
/// less than a message may have.
pub(super) const PIECE_BYTES_MAX: usize = 256 << 10;

/// About the most that the values of an answer take, in bytes, but for one that takes more.
const ANSWER_BYTES_MAX: usize = 4 * PIECE_BYTES_MAX;

/// The hash of a key, by which it belongs to a share.
pub(super) fn hash<K: TableKey>(key: &K) -> u64 {
    // Other than that by which it has its place in the share.
    FixedState::with_seed(1).hash_one(key)
}

/// See the [module](self).
pub(super) struct Store<K, V> {
    shares: HashMap<Pe, Share<K, V>>,
    /// Copies that are being filled.
    aside: HashMap<Pe, Share<K, V>>,
    /// The most that entries may take, in bytes, and what they take, if there is a limit.
    limit: Option<usize>,
    bytes: usize,
    /// What was inserted here as the owner, if that is noted.
    new: Option<Vec<(K, V)>>,
    /// Whether copies are told what has changed. (Without them the machine need not hear of it,
    /// either: it remembers changes for requests that come again after the owner's death.)
    has_copies: bool,
}

impl<K: TableKey, V: TableValue> Store<K, V> {
    pub(super) fn new(head: &Head) -> Self {
        let (shares, aside) = (HashMap::new(), HashMap::new());
        let (new, has_copies) = (head.notes_new.then(Vec::new), head.copies > 0);
        Store { shares, aside, limit: head.memory_max, bytes: 0, new, has_copies }
    }

    /// Takes the keys of those entries that were inserted here as the owner, and for which `f`
    /// holds.
    pub(super) fn take_new(&mut self, f: impl Fn(&V) -> bool) -> Vec<K> {
        let new = self.new.iter_mut();
        let taken = new.flat_map(|new| new.extract_if(.., |(_, value)| f(value)));
        taken.map(|(key, _)| key).collect()
    }

    pub(super) fn share(&self, share: Pe) -> Option<&Share<K, V>> {
        self.shares.get(&share)
    }

    /// Does what is asked of a share. Returns what has changed, if anything.
    ///
    /// # Errors
    ///
    /// An update panicked, or its results cannot be encoded. What it has done is not known.
    pub(super) fn apply(&mut self, share: Pe, batch: Batch<K, V>) -> Result<Applied<K, V>, String> {
        Ok(match batch {
            Batch::Insert(rows) => self.insert(share, rows),
            Batch::Get(keys) => {
                let share = self.shares.entry(share).or_default();
                (None, Answer::Got(values(share, &keys)))
            }
            Batch::Update(update) => return self.update(share, &update),
            Batch::Len => {
                let len = self.shares.get(&share).map_or(0, HashMap::len);
                (None, Answer::Len(len as u64))
            }
        })
    }

    fn insert(&mut self, at: Pe, rows: Rows<K, V>) -> Applied<K, V> {
        if let Some(limit) = self.limit {
            let share = self.shares.entry(at).or_default();
            let new = rows.iter().filter(|(key, _)| !share.contains_key(key));
            let bytes =
                self.bytes + new.map(|(key, value)| size_of_entry(key, value)).sum::<usize>();
            if bytes > limit {
                return (None, Answer::Full(bytes));
            }
        }
        let share = self.shares.entry(at).or_default();
        share.reserve(rows.len());
        let (mut inserted, mut bytes) = (Vec::with_capacity(rows.len()), 0);
        for (key, value) in rows.iter() {
            let place = share.entry(key.clone());
            inserted.push(u8::from(matches!(place, Entry::Vacant(_))));
            if let Entry::Vacant(place) = place {
                if self.limit.is_some() {
                    bytes += size_of_entry(key, value);
                }
                place.insert(value.clone());
                if let Some(new) = &mut self.new {
                    new.push((key.clone(), value.clone()));
                }
            }
        }
        self.bytes += bytes;
        let new = inserted.iter().filter(|is_new| **is_new != 0).count();
        let change = if new == 0 || !self.has_copies {
            None
        } else if new == inserted.len() {
            Some(rows)
        } else {
            let new = rows.iter().zip(&inserted).filter(|(_, is_new)| **is_new != 0);
            Some(new.map(|((key, value), _)| (key.clone(), value.clone())).collect())
        };
        (change.map(Change::Inserted), Answer::Inserted(inserted))
    }

    fn update(&mut self, at: Pe, update: &[u8]) -> Result<Applied<K, V>, String> {
        if self.limit.is_some_and(|limit| self.bytes > limit) {
            return Ok((None, Answer::Full(self.bytes)));
        }
        let share = take(self.shares.entry(at).or_default());
        let UpdateSite { share, growth, done } = run_update(share, update, self.limit.is_some());
        self.shares.insert(at, share);
        self.bytes = self.bytes.saturating_add_signed(growth.unwrap_or(0));
        let (changed, results) = match done {
            Ok(done) => done,
            Err(Undone::Unread(reason)) => return Ok((None, Answer::Unread(reason))),
            Err(Undone::Panicked(message)) => return Err(message),
        };
        let change = self.has_copies.then(|| Change::Updated(changed));
        Ok((change, Answer::Updated(results)))
    }

    /// Makes a change of the owner's here, too.
    pub(super) fn follow(&mut self, at: Pe, change: Change<K, V>) {
        let share = self.shares.entry(at).or_default();
        let is_measured = self.limit.is_some();
        let size = |key: &K, value: &V| if is_measured { size_of_entry(key, value) } else { 0 };
        match change {
            Change::Inserted(rows) => {
                let sizes = rows.iter().map(|(key, value)| size(key, value));
                self.bytes += sizes.sum::<usize>();
                share.reserve(rows.len());
                share.extend(rows.into_pairs());
            }
            Change::Updated(changed) => {
                for (key, value) in changed.into_pairs() {
                    let new = value.as_ref().map_or(0, |value| size(&key, value));
                    let old = share.get(&key).map_or(0, |old| size(&key, old));
                    self.bytes = (self.bytes + new).saturating_sub(old);
                    match value {
                        Some(value) => _ = share.insert(key, value),
                        None => _ = share.remove(&key),
                    }
                }
            }
        }
    }

    /// Fills a copy.
    pub(super) fn fill(&mut self, share: Pe, rows: Rows<K, V>, is_first: bool, is_last: bool) {
        let aside = self.aside.entry(share).or_default();
        if is_first {
            aside.clear();
        }
        aside.reserve(rows.len());
        aside.extend(rows.into_pairs());
        if is_last && let Some(whole) = self.aside.remove(&share) {
            self.shares.insert(share, whole);
            self.measure();
        }
    }

    /// The entries of a share, in pieces.
    pub(super) fn copy(&self, share: Pe) -> Vec<Rows<K, V>> {
        let (mut pieces, mut keys, mut values, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (key, value) in self.shares.get(&share).into_iter().flatten() {
            let size = size_of_entry(key, value);
            let is_full = keys.len() == PIECE_ENTRIES_MAX || bytes + size > PIECE_BYTES_MAX;
            if is_full && !keys.is_empty() {
                pieces.push(Rows::new(take(&mut keys), take(&mut values)));
                bytes = 0;
            }
            keys.push(key.clone());
            values.push(value.clone());
            bytes += size;
        }
        pieces.push(Rows::new(keys, values));
        pieces
    }

    /// Measures all entries anew, if there is a limit.
    fn measure(&mut self) {
        if self.limit.is_some() {
            let entries = self.shares.values().flatten();
            self.bytes = entries.map(|(key, value)| size_of_entry(key, value)).sum();
        }
    }
}

/// The values of the first of these keys, as many as an answer has room for.
fn values<K: TableKey, V: TableValue>(share: &Share<K, V>, keys: &[K]) -> Vec<Option<V>> {
    let size = |value: &V| if has_elsewhere::<V>() { encoded_len(value).unwrap_or(0) } else { 0 };
    let is_measured = keys.len().saturating_mul(size_of::<V>()) > ANSWER_BYTES_MAX
        || (has_elsewhere::<V>() && keys.len() > 1);
    if !is_measured {
        return keys.iter().map(|key| share.get(key).cloned()).collect();
    }
    let (mut values, mut bytes) = (Vec::new(), 0);
    for value in keys.iter().map(|key| share.get(key)) {
        bytes += size_of::<V>() + value.map_or(0, size);
        if bytes > ANSWER_BYTES_MAX && !values.is_empty() {
            break;
        }
        values.push(value.cloned());
    }
    values
}

/// About what an entry takes: itself, its place in the map, and what it has elsewhere, which is
/// about as long as its encoding.
pub(super) fn size_of_entry<K: TableKey, V: TableValue>(key: &K, value: &V) -> usize {
    let place = (size_of::<(K, V)>() + 1) * 8 / 7;
    let elsewhere = if has_elsewhere::<K>() || has_elsewhere::<V>() {
        encoded_len(&(key, value)).unwrap_or(0)
    } else {
        0
    };
    place + elsewhere
}

fn has_elsewhere<T>() -> bool {
    std::mem::needs_drop::<T>()
}

/// See [`Of`].
pub(super) type WorkOf<K, V> = super::machine::WorkOf<Of<K, V>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_comes_in_pieces_that_fit_into_messages() {
        let (name, share) = ("large".to_owned(), Pe::ROOT);
        let (copies, memory_max, notes_new, dead_before) = (1, None, false, Vec::new());
        let head = Head { name, copies, memory_max, notes_new, dead_before };
        let mut store = Store::<u32, Vec<u8>>::new(&head);
        let lens = |store: &Store<u32, Vec<u8>>| {
            let mut lens: Vec<_> = store.copy(share).iter().map(Rows::len).collect();
            lens.sort_unstable();
            lens
        };
        assert_eq!(lens(&store), [0]);
        let sizes = [2 * PIECE_BYTES_MAX, PIECE_BYTES_MAX / 2, PIECE_BYTES_MAX / 2];
        let rows = (0..).zip(sizes.map(|size| vec![0; size]));
        store.insert(share, rows.collect());
        assert_eq!(lens(&store), [1, 1, 1]);
    }

    #[test]
    fn an_answer_has_the_values_that_it_has_room_for() {
        let lens = |sizes: &[usize]| {
            let values = sizes.iter().map(|size| vec![0_u8; *size]);
            let share = (0_u32..).zip(values).collect();
            values_of(&share, &(0..5).collect::<Vec<_>>())
        };
        let half = ANSWER_BYTES_MAX / 2;
        assert_eq!(lens(&[1, 2, 3]), [Some(1), Some(2), Some(3), None, None]);
        assert_eq!(lens(&[half, half, 1]), [Some(half)]);
        assert_eq!(lens(&[4 * half, 1]), [Some(4 * half)], "one is there in any case");
        let share = (0..1000_u32).map(|key| (key, [[0_u64; 32]; 32])).collect();
        assert_eq!(values(&share, &(0..1000).collect::<Vec<_>>()).len(), ANSWER_BYTES_MAX >> 13);
    }

    fn values_of(share: &Share<u32, Vec<u8>>, keys: &[u32]) -> Vec<Option<usize>> {
        values(share, keys).into_iter().map(|value| value.map(|value| value.len())).collect()
    }
}
