//! What programs ask of a table.

use super::bulk::Things;
use super::error::TableError;
use super::kind::{Answer, Batch, Rows, TableKey, TableValue};
use super::open::Head;
use super::part::TablePart;
use super::pieces::MESSAGE_OVERHEAD_BYTES;
use super::store::hash;
use super::update::encode_update;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use std::any::{Any, type_name};
use std::marker::PhantomData;
use std::mem::{needs_drop, size_of};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context as TaskContext, Poll};
use ultramarine_group::{GroupId, Groups, Hosted, Member, Opened};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable, discard};
use ultramarine_runtime::wire::{decode, encoded_len};
use ultramarine_topology::Pe;

/// A distributed table, on one PE; see the [module](super). If it was [opened](super::table) here,
/// dropping it closes the table on all PEs.
pub struct Table<K: TableKey, V: TableValue> {
    pub(super) cx: Context,
    id: GroupId,
    head: Arc<Head>,
    pub(super) member: Member<TablePart<K, V>>,
    /// If it was opened here.
    _opened: Option<KeptOpen<K, V>>,
}

/// What keeps a table open, and [noted](super::open).
pub(super) type KeptOpen<K, V> = (Opened<TablePart<K, V>>, Arc<()>);

/// A table as it travels to other PEs; see [`Table::reference`].
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct TableRef<K, V> {
    pub(super) id: GroupId,
    #[serde(with = "shared")]
    pub(super) head: Arc<Head>,
    types: PhantomData<fn(K, V)>,
}

impl<K, V> TableRef<K, V> {
    pub(super) fn new(id: GroupId, head: Arc<Head>) -> Self {
        TableRef { id, head, types: PhantomData }
    }
}

impl<K, V> Clone for TableRef<K, V> {
    fn clone(&self) -> Self {
        TableRef::new(self.id, self.head.clone())
    }
}

impl<K, V> std::fmt::Debug for TableRef<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableRef").field("name", &self.head.name).finish_non_exhaustive()
    }
}

/// Heads travel by value.
mod shared {
    use super::{Arc, Head};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(head: &Arc<Head>, to: S) -> Result<S::Ok, S::Error> {
        (**head).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Head>, D::Error> {
        Head::deserialize(from).map(Arc::new)
    }
}

impl<K: TableKey, V: TableValue> TableRef<K, V> {
    /// The table on this PE, for as long as it is open.
    ///
    /// # Errors
    ///
    /// It is closed.
    pub fn on(&self, cx: &Context) -> Result<Table<K, V>, TableError> {
        // Messages of the table may be on their way to this PE; the invitation, too.
        self.accept(cx);
        let member = Groups::<TablePart<K, V>>::on(cx).find(self.id);
        let member = member.ok_or_else(|| self.head.closed())?;
        let (cx, head) = (cx.independent(), self.head.clone());
        Ok(Table { cx, id: self.id, head, member, _opened: None })
    }
}

impl<K: TableKey, V: TableValue> std::fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("name", &self.head.name).finish_non_exhaustive()
    }
}

impl<K: TableKey, V: TableValue> Table<K, V> {
    pub(super) fn new((opened, noted): KeptOpen<K, V>, head: Arc<Head>) -> Self {
        let (cx, member) = (opened.context().clone(), opened.member().clone());
        Table { cx, id: opened.id(), head, member, _opened: Some((opened, noted)) }
    }

    /// What tasks on other PEs need to use the table: give it to them as an argument.
    ///
    /// ```
    /// use ultramarine_runtime::executor::Context;
    /// use ultramarine_skeletons::table::{Table, TableError, TableRef};
    /// use ultramarine_topology::Pe;
    ///
    /// async fn insert_there(cx: &Context, table: &Table<u64, u64>) -> Result<(), TableError> {
    ///     let insert = async |cx: Context, table: TableRef<u64, u64>| {
    ///         table.on(&cx)?.insert_if_absent(1, 2).await
    ///     };
    ///     cx.spawn_at(Pe::new(1), insert, table.reference()).await??;
    ///     Ok(())
    /// }
    /// ```
    pub fn reference(&self) -> TableRef<K, V> {
        TableRef::new(self.id, self.head.clone())
    }

    /// The PE to which a key belongs first: its share.
    pub(super) fn share(&self, key: &K) -> Pe {
        let place = match self.cx.pes() {
            1 => 0,
            pes => (u128::from(hash(key)) * u128::from(pes)) >> 64,
        };
        Pe::new(place as u32)
    }

    /// The PE that owns a key, as far as this PE knows of deaths.
    pub fn owner(&self, key: &K) -> Pe {
        let share = self.share(key);
        if !self.cx.is_dead(share) {
            return share;
        }
        self.member.with(|_, part| part.owner(share)).unwrap_or(share)
    }

    /// What holds the entries of this PE. All tables of this PE have it that share these entries.
    pub(crate) fn entries(&self) -> Result<Arc<dyn Any + Send + Sync>, TableError> {
        let entries = self.member.with(|_, part| part.store.clone());
        Ok(entries.ok_or_else(|| self.head.closed())?)
    }

    /// Asks something of a share.
    pub(super) fn ask(&self, share: Pe, batch: Batch<K, V>) -> Asking<K, V> {
        let (mut batch, mut asked) = (Some(batch), Err(self.head.closed()));
        let ask =
            |part: &mut TablePart<K, V>| match batch.take().map(|batch| part.ask(share, batch)) {
                Some(Ok(number)) => asked = Ok((share, number)),
                Some(Err((error, refused))) => (asked, batch) = (Err(error), Some(refused)),
                None => {}
            };
        if let Some((id, todo)) = self.member.act(ask) {
            TablePart::carry_out(&self.cx, &self.member, id, todo);
        }
        discard(batch);
        Asking { member: self.member.clone(), head: self.head.clone(), id: self.id, asked }
    }

    /// Inserts an entry, unless the key has one. Returns whether it was inserted.
    ///
    /// # Errors
    ///
    /// Any [`TableError`].
    pub async fn insert_if_absent(&self, key: K, value: V) -> Result<bool, TableError> {
        let (share, row) = (self.share(&key), (key, value));
        self.size(&row)?;
        match self.ask_one(share, Batch::Insert([row].into_iter().collect())).await? {
            Answer::Inserted(inserted) => Ok(inserted.first().is_some_and(|is_new| *is_new != 0)),
            _ => Err(self.missing()),
        }
    }

    /// Inserts entries, but for those whose keys have one. Returns of each whether it was inserted.
    ///
    /// # Errors
    ///
    /// Any [`TableError`]. Some may have been inserted then.
    pub async fn insert_all_if_absent(
        &self,
        entries: impl IntoIterator<Item = (K, V), IntoIter: Send>,
    ) -> Result<Vec<bool>, TableError> {
        let is_new = |inserted: Vec<u8>| inserted.into_iter().map(|is_new| is_new != 0).collect();
        self.insert_each(Box::new(entries.into_iter()), is_new).await
    }

    /// The same, for a caller that does not ask which were inserted.
    pub(super) async fn insert_all(
        &self,
        entries: impl IntoIterator<Item = (K, V), IntoIter: Send>,
    ) -> Result<(), TableError> {
        let entries = Box::new(entries.into_iter());
        self.insert_each(entries, |inserted| vec![(); inserted.len()]).await.map(drop)
    }

    async fn insert_each<R>(
        &self,
        entries: Things<'_, (K, V)>,
        result: impl Fn(Vec<u8>) -> Vec<R>,
    ) -> Result<Vec<R>, TableError> {
        let empty = |room| (Vec::with_capacity(room), Vec::with_capacity(room));
        let batch = |(keys, values)| Ok(Batch::Insert(Rows::new(keys, values)));
        let results = |answer| match answer {
            Answer::Inserted(inserted) => Some(Ok(result(inserted))),
            _ => None,
        };
        self.ask_all(entries, |(key, _)| key, empty, batch, results).await
    }

    /// The value of a key, if it has one.
    ///
    /// # Errors
    ///
    /// Any [`TableError`].
    pub async fn get(&self, key: K) -> Result<Option<V>, TableError> {
        match self.ask_one(self.share(&key), Batch::Get(vec![key].into())).await? {
            Answer::Got(mut values) => Ok(values.pop().flatten()),
            _ => Err(self.missing()),
        }
    }

    /// The values of keys.
    ///
    /// # Errors
    ///
    /// Any [`TableError`].
    pub async fn get_all(
        &self,
        keys: impl IntoIterator<Item = K, IntoIter: Send>,
    ) -> Result<Vec<Option<V>>, TableError> {
        let got = |answer| match answer {
            Answer::Got(values) => Some(Ok(values)),
            _ => None,
        };
        let batch = |keys: Vec<K>| Ok(Batch::Get(keys.into()));
        let keys = Box::new(keys.into_iter());
        self.ask_all(keys, |key| key, Vec::with_capacity, batch, got).await
    }

    /// Has the owner of a key call `f` with the key, its value, and the argument. `f` may change
    /// the value, set one, or take it away. Returns what `f` returns.
    ///
    /// # Errors
    ///
    /// Any [`TableError`].
    pub async fn update<F, A, R>(&self, f: F, key: K, argument: A) -> Result<R, TableError>
    where
        F: Fn(&K, &mut Option<V>, A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        const { F::CHECKED };
        let mut results = self.update_all(f, [(key, argument)]).await?;
        results.pop().ok_or_else(|| self.missing())
    }

    /// Has the owners of keys [update](Self::update) them. Updates of the same key are done in this
    /// order.
    ///
    /// # Errors
    ///
    /// Any [`TableError`]. Some may have been done then.
    pub async fn update_all<F, A, R>(
        &self,
        f: F,
        arguments: impl IntoIterator<Item = (K, A), IntoIter: Send>,
    ) -> Result<Vec<R>, TableError>
    where
        F: Fn(&K, &mut Option<V>, A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        const { F::CHECKED };
        let batch = |arguments: Vec<(K, A)>| {
            let update = encode_update::<F, K, V, A, R>(f, &arguments);
            Ok(Batch::Update(Arc::new(update.map_err(self.codec("argument for"))?)))
        };
        let updated = |answer| match answer {
            Answer::Updated(results) => Some(decode(&results).map_err(self.codec("result of"))),
            _ => None,
        };
        let arguments = Box::new(arguments.into_iter());
        self.ask_all(arguments, |(key, _)| key, Vec::with_capacity, batch, updated).await
    }

    /// The number of entries. (What is inserted meanwhile may count or not.)
    ///
    /// # Errors
    ///
    /// Any [`TableError`].
    pub async fn len(&self) -> Result<u64, TableError> {
        let all = (0..self.cx.pes()).map(Pe::new).map(|share| self.ask(share, Batch::Len));
        let all = try_join_all(all.collect::<Vec<_>>()).await?;
        Ok(all.into_iter().map(|answer| if let Answer::Len(len) = answer { len } else { 0 }).sum())
    }

    /// Whether there are no entries.
    ///
    /// # Errors
    ///
    /// Any [`TableError`].
    pub async fn is_empty(&self) -> Result<bool, TableError> {
        Ok(self.len().await? == 0)
    }

    /// Calls `f` with each entry that this PE owns: all entries are those of all living PEs.
    /// Nothing else is done with the entries of this PE meanwhile.
    pub async fn for_each_local(&self, mut f: impl FnMut(&K, &V)) {
        let claim = |_, part: &mut TablePart<K, V>| part.claim().then(|| part.owned());
        let shares = loop {
            match self.member.with(claim) {
                Some(Some(shares)) => break shares,
                // What copies were told may still have to be done.
                Some(None) => self.cx.yield_now().await,
                None => return,
            }
        };
        let claimed = Claimed(self);
        if let Some(store) = self.member.with(|_, part| part.store.clone()) {
            let store = store.lock().unwrap_or_else(PoisonError::into_inner);
            let entries = shares.into_iter().filter_map(|share| store.share(share)).flatten();
            entries.for_each(|(key, value)| f(key, value));
        }
        drop(claimed);
    }

    /// Asks something of a share, and waits for the answer.
    async fn ask_one(&self, share: Pe, batch: Batch<K, V>) -> Result<Answer<V>, TableError> {
        self.done(share, self.ask(share, batch).await?)
    }

    /// The answer of a share, if that has done what it was asked for.
    pub(super) fn done(&self, share: Pe, answer: Answer<V>) -> Result<Answer<V>, TableError> {
        match answer {
            Answer::Full(bytes) => Err(self.head.full(share, bytes)),
            Answer::Unread(reason) => Err(self.codec("request to")(reason)),
            Answer::Failed(reason) => Err(self.codec("answer of")(reason)),
            answer => Ok(answer),
        }
    }

    /// Something cannot be encoded or decoded, for a reason.
    fn codec<E: ToString>(&self, what: &str) -> impl Fn(E) -> TableError {
        let (name, types) = (&self.head.name, type_name::<(K, V)>());
        let what = format!("{what} the table `{name}` with {types}");
        move |reason| TaskError::Codec { what: what.clone(), reason: reason.to_string() }.into()
    }

    /// An answer is of something else, or too short.
    pub(super) fn missing(&self) -> TableError {
        self.head.panicked("an answer lacks some keys".into())
    }

    /// About how long something is in a message.
    ///
    /// # Errors
    ///
    /// It cannot be encoded, or no message has room for it.
    pub(super) fn size<T: Serialize>(&self, thing: &T) -> Result<usize, TableError> {
        if !needs_drop::<T>() {
            return Ok(size_of::<T>());
        }
        let bytes = encoded_len(thing).map_err(self.codec("entry of"))?;
        let limit = self.cx.value_bytes_max().saturating_sub(MESSAGE_OVERHEAD_BYTES);
        if bytes > limit {
            let what = format!("an entry of the table `{}`", self.head.name);
            return Err(TaskError::TooLarge { what, bytes, limit }.into());
        }
        Ok(bytes)
    }
}

/// Nobody else does anything with the entries until this is dropped.
struct Claimed<'a, K: TableKey, V: TableValue>(&'a Table<K, V>);

impl<K: TableKey, V: TableValue> Drop for Claimed<'_, K, V> {
    fn drop(&mut self) {
        self.0.member.act_at_once(&self.0.cx, TablePart::release);
    }
}

/// A request. Dropping it before it is ready does not take it back.
pub(super) struct Asking<K: TableKey, V: TableValue> {
    member: Member<TablePart<K, V>>,
    head: Arc<Head>,
    id: GroupId,
    /// The number of the answer; or why there will be none.
    asked: Result<(Pe, u64), TableError>,
}

impl<K: TableKey, V: TableValue> Future for Asking<K, V> {
    type Output = Result<Answer<V>, TableError>;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let asked = self.asked.clone()?;
        let poll = |part: &mut TablePart<K, V>| part.poll_answer(asked, task.waker());
        let over = || Poll::Ready(Err(self.head.closed()));
        self.member.with_opening(self.id, poll)?.unwrap_or_else(over)
    }
}

impl<K: TableKey, V: TableValue> Drop for Asking<K, V> {
    fn drop(&mut self) {
        if let Ok(asked) = self.asked {
            discard(self.member.with(|_, part| part.forget(asked)));
        }
    }
}
