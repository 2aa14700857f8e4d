//! What is asked of the shares of a table, and what comes of it.

use super::machine::Kind;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use ultramarine_runtime::executor::Portable;

/// A key of a table: it travels, and has the same hash on all PEs (all derived `Hash`es have).
pub trait TableKey: Portable + Clone + Eq + Hash + Sync {}

impl<K: Portable + Clone + Eq + Hash + Sync> TableKey for K {}

/// A value of a table.
pub trait TableValue: Portable + Clone + Sync {}

impl<V: Portable + Clone + Sync> TableValue for V {}

/// A table with keys and values of these types.
pub(super) struct Of<K, V>(PhantomData<(K, V)>);

impl<K: TableKey, V: TableValue> Kind for Of<K, V> {
    type Batch = Batch<K, V>;
    type Change = Change<K, V>;
    type Answer = Answer<V>;
    type Entries = Rows<K, V>;
}

/// Things that several messages hold at once.
#[derive(Debug)]
pub(super) struct Many<T>(Arc<Vec<T>>);

impl<T> Clone for Many<T> {
    fn clone(&self) -> Self {
        Many(self.0.clone())
    }
}

impl<T> From<Vec<T>> for Many<T> {
    fn from(all: Vec<T>) -> Self {
        Many(Arc::new(all))
    }
}

impl<T> Deref for Many<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Serialize> Serialize for Many<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Many::from)
    }
}

/// Keys, and something for each: two columns, which several messages hold at once. So numbers
/// travel as they lie in memory; pairs would be encoded one by one. (That took a tenth of a
/// PE's time in inserts in bulk, and now no function of it is above 1 % in the profile.)
#[derive(Debug)]
pub(super) struct Rows<K, V>(Arc<(Vec<K>, Vec<V>)>);

impl<K, V> Rows<K, V> {
    /// Columns of one length.
    pub(super) fn new(keys: Vec<K>, values: Vec<V>) -> Self {
        debug_assert_eq!(keys.len(), values.len(), "each key has a value");
        Rows(Arc::new((keys, values)))
    }

    pub(super) fn len(&self) -> usize {
        self.0.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.0.iter().zip(&self.0.1)
    }
}

impl<K: Clone, V: Clone> Rows<K, V> {
    /// The rows, which are copied only if somebody else has them, too.
    pub(super) fn into_pairs(self) -> impl ExactSizeIterator<Item = (K, V)> {
        let (keys, values) = Arc::unwrap_or_clone(self.0);
        keys.into_iter().zip(values)
    }
}

impl<K, V> Clone for Rows<K, V> {
    fn clone(&self) -> Self {
        Rows(self.0.clone())
    }
}

impl<K, V> FromIterator<(K, V)> for Rows<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(rows: I) -> Self {
        Rows(Arc::new(rows.into_iter().unzip()))
    }
}

impl<K: Serialize, V: Serialize> Serialize for Rows<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (*self.0).serialize(serializer)
    }
}

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Rows<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (keys, values) = <(Vec<K>, Vec<V>)>::deserialize(deserializer)?;
        if keys.len() != values.len() {
            return Err(D::Error::invalid_length(values.len(), &"a value for each key"));
        }
        Ok(Rows::new(keys, values))
    }
}

/// What is asked of a share at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Batch<K, V> {
    /// These are inserted, but for those whose keys are there.
    Insert(Rows<K, V>),
    /// What is there under these keys? The answer may be of the first of them only.
    Get(Many<K>),
    /// A function, encoded, with keys and what it gets for each.
    Update(#[serde(with = "shared_bytes")] Arc<Vec<u8>>),
    /// How many entries are there?
    Len,
}

/// What a batch has changed. Copies get what there is now: they run no code of the user's for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Change<K, V> {
    Inserted(Rows<K, V>),
    /// `None`: there is nothing under the key any more.
    Updated(Rows<K, Option<V>>),
}

/// What comes of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Answer<V> {
    /// Of each key, whether it was inserted: 1, or 0. (Bytes travel faster than booleans.)
    Inserted(#[serde(with = "serde_bytes")] Vec<u8>),
    Got(Vec<Option<V>>),
    /// What the function has returned for each key, encoded.
    Updated(#[serde(with = "serde_bytes")] Vec<u8>),
    Len(u64),
    /// Nothing was done: the entries would take this many bytes.
    Full(usize),
    /// Nothing was done: the owner cannot decode it.
    Unread(String),
    /// It is done, but what came of it cannot be told.
    Failed(String),
}

/// Bytes that several messages hold at once.
mod shared_bytes {
    use super::{Arc, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        serde_bytes::serialize(bytes.as_slice(), to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Arc<Vec<u8>>, D::Error> {
        serde_bytes::deserialize(from).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_runtime::wire::{decode, encode};

    #[test]
    fn columns_of_different_lengths_are_no_rows() {
        let columns = |values: &[u64]| encode(&(vec![1_u32, 2], values.to_vec())).unwrap();
        let rows: Rows<u32, u64> = decode(&columns(&[3, 4])).unwrap();
        assert!(rows.iter().eq([(&1, &3), (&2, &4)]));
        assert_eq!(encode(&rows).unwrap(), columns(&[3, 4]));
        decode::<Rows<u32, u64>>(&columns(&[3])).unwrap_err();
        decode::<Rows<u32, u64>>(&columns(&[3, 4, 5])).unwrap_err();
    }
}
