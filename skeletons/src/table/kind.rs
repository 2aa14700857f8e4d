//! What is asked of the shares of a table, and what comes of it.

use super::machine::Kind;
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
    type Entries = Many<(K, V)>;
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

impl<T: Clone> Many<T> {
    /// The things, which are copied only if somebody else has them, too.
    pub(super) fn into_vec(self) -> Vec<T> {
        Arc::unwrap_or_clone(self.0)
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

/// What is asked of a share at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Batch<K, V> {
    /// These are inserted, but for those whose keys are there.
    Insert(Many<(K, V)>),
    /// What is there under these keys?
    Get(Many<K>),
    /// A function, encoded, with keys and what it gets for each.
    Update(#[serde(with = "shared_bytes")] Arc<Vec<u8>>),
    /// How many entries are there?
    Len,
}

/// What a batch has changed. Copies get what there is now: they run no code of the user's for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Change<K, V> {
    Inserted(Many<(K, V)>),
    /// `None`: there is nothing under the key any more.
    Updated(Many<(K, Option<V>)>),
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
