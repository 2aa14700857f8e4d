//! Functions that update entries. They travel to the owner, by their names.

use super::kind::{Rows, TableKey, TableValue};
use super::store::{Share, size_of_entry};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use ultramarine_runtime::code::{Arrive, Code, CodeRef, Stateless};
use ultramarine_runtime::executor::{Portable, caught};
use ultramarine_runtime::wire::{WireError, decode, encode};

/// What has changed, with the results, encoded.
type Updated<K, V> = (Rows<K, Option<V>>, Vec<u8>);

/// Where a function finds the entries, and leaves what has come of it.
pub(super) struct UpdateSite<K, V> {
    pub(super) share: Share<K, V>,
    /// By how much the entries have grown, in bytes, if that is measured.
    pub(super) growth: Option<isize>,
    pub(super) done: Result<Updated<K, V>, Undone>,
}

/// Why nothing has come of it.
pub(super) enum Undone {
    /// It cannot be decoded: nothing was done.
    Unread(String),
    Panicked(String),
}

type SharedSite<K, V> = Rc<RefCell<UpdateSite<K, V>>>;

/// The code of an update.
struct Update<F, A, R>(F, PhantomData<fn(A) -> R>);

impl<F: Copy, A, R> Clone for Update<F, A, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Copy, A, R> Copy for Update<F, A, R> {}

impl<F, K, V, A, R> Arrive<SharedSite<K, V>> for Update<F, A, R>
where
    F: Fn(&K, &mut Option<V>, A) -> R + Stateless,
    K: TableKey,
    V: TableValue,
    A: Portable,
    R: Portable,
{
    fn arrive(self, at: SharedSite<K, V>, argument: &[u8]) {
        let mut at = at.borrow_mut();
        let UpdateSite { share, growth, done } = &mut *at;
        let size = |key: &K, value: &Option<V>| {
            value.as_ref().map_or(0, |value| size_of_entry(key, value).cast_signed())
        };
        let unread = |error: WireError| Undone::Unread(error.to_string());
        let run = || {
            let arguments: Vec<(K, A)> = decode(argument).map_err(unread)?;
            let (mut changed, mut results) = (<(Vec<_>, Vec<_>)>::default(), Vec::new());
            for (key, argument) in arguments {
                let mut value = share.remove(&key);
                let before = growth.map_or(0, |_| size(&key, &value));
                results.push((self.0)(&key, &mut value, argument));
                if let Some(value) = &value {
                    share.insert(key.clone(), value.clone());
                }
                if let Some(growth) = growth {
                    *growth += size(&key, &value) - before;
                }
                changed.0.push(key);
                changed.1.push(value);
            }
            let results = encode(&results).map_err(|error| Undone::Panicked(error.to_string()))?;
            Ok((Rows::new(changed.0, changed.1), results))
        };
        let ran = caught(std::any::type_name::<F>(), run);
        *done = ran.unwrap_or_else(|message| Err(Undone::Panicked(message)));
    }
}

/// Encodes an update: a function, and keys with what it gets for each.
pub(super) fn encode_update<F, K, V, A, R>(f: F, arguments: &[(K, A)]) -> Result<Vec<u8>, String>
where
    F: Fn(&K, &mut Option<V>, A) -> R + Stateless,
    K: TableKey,
    V: TableValue,
    A: Portable,
    R: Portable,
{
    let code = Code::<SharedSite<K, V>>::of(Update::<F, A, R>(f, PhantomData));
    let reference = code.reference().map_err(|error| error.to_string())?;
    let mut bytes = reference.to_bytes().to_vec();
    bytes.extend(encode(&arguments).map_err(|error| error.to_string())?);
    Ok(bytes)
}

/// Runs an update with the entries of a share.
pub(super) fn run_update<K: TableKey, V: TableValue>(
    share: Share<K, V>,
    update: &[u8],
    is_measured: bool,
) -> UpdateSite<K, V> {
    let nothing = || Err(Undone::Panicked("the update has not run".to_owned()));
    let place = UpdateSite { share, growth: is_measured.then_some(0), done: nothing() };
    let site: SharedSite<K, V> = Rc::new(RefCell::new(place));
    let code = CodeRef::split(update).and_then(|(reference, argument)| {
        Ok((Code::<SharedSite<K, V>>::resolve(reference)?, argument))
    });
    match code {
        Ok((code, argument)) => code.arrive(site.clone(), argument),
        Err(error) => site.borrow_mut().done = Err(Undone::Unread(error.to_string())),
    }
    let share = Share::default();
    site.replace(UpdateSite { share, growth: None, done: nothing() })
}
