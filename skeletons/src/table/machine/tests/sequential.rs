//! What is asked of a share, and what one map would answer, to one request after the other.

use super::super::super::kind::{Answer, Batch};
use super::super::super::update::encode_update;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use ultramarine_runtime::wire::decode;
use ultramarine_topology::Pe;

pub(super) type Key = u32;
pub(super) type Value = u64;

/// The entries of a share, as one map.
pub(super) type Map = BTreeMap<Key, Value>;

/// What is asked of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    Insert,
    Get,
    Len,
    /// Updates of this kind lead to the same in any order.
    Add,
    /// Others do not.
    Mix,
    Take,
}

impl Verb {
    pub(super) const ALL: [Verb; 6] =
        [Verb::Insert, Verb::Get, Verb::Len, Verb::Add, Verb::Mix, Verb::Take];
}

/// Updates return the value that there was.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "keys may be of any type")]
fn add(_: &Key, value: &mut Option<Value>, more: Value) -> Option<Value> {
    value.replace(value.unwrap_or(0) + more)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "keys may be of any type")]
fn mix(_: &Key, value: &mut Option<Value>, more: Value) -> Option<Value> {
    value.replace(value.unwrap_or(1).wrapping_mul(31).wrapping_add(more))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "keys may be of any type")]
fn take(_: &Key, value: &mut Option<Value>, _: Value) -> Option<Value> {
    value.take()
}

/// For each key the value that there was, whether it was inserted, or the number of entries.
pub(super) type Reply = Vec<Option<Value>>;

/// A request, and when it was asked and answered: all that is asked and answered is counted.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) by: Pe,
    pub(super) share: Pe,
    pub(super) verb: Verb,
    pub(super) rows: Vec<(Key, Value)>,
    pub(super) when: usize,
    pub(super) answered: Option<(usize, Reply)>,
}

impl Asked {
    /// As the share is asked.
    pub(super) fn batch(&self) -> Batch<Key, Value> {
        let rows = &self.rows[..];
        let update = match self.verb {
            Verb::Insert => return Batch::Insert(self.rows.iter().copied().collect()),
            Verb::Get => {
                return Batch::Get(rows.iter().map(|(key, _)| *key).collect::<Vec<_>>().into());
            }
            Verb::Len => return Batch::Len,
            Verb::Add => encode_update(add, rows),
            Verb::Mix => encode_update(mix, rows),
            Verb::Take => encode_update(take, rows),
        };
        Batch::Update(Arc::new(update.expect("it can be encoded")))
    }

    /// Does this to a map.
    fn apply(&self, map: &mut Map) -> Reply {
        if self.verb == Verb::Len {
            return vec![Some(map.len() as Value)];
        }
        let update = match self.verb {
            Verb::Mix => mix,
            Verb::Take => take,
            _ => add,
        };
        let one = |(key, argument): &(Key, Value)| match self.verb {
            Verb::Get => map.get(key).copied(),
            Verb::Insert if map.contains_key(key) => Some(0),
            Verb::Insert => {
                map.insert(*key, *argument);
                Some(1)
            }
            _ => {
                let mut value = map.remove(key);
                let result = update(key, &mut value, *argument);
                map.extend(value.map(|value| (*key, value)));
                result
            }
        };
        self.rows.iter().map(one).collect()
    }
}

pub(super) fn reply(answer: Answer<Value>) -> Reply {
    match answer {
        Answer::Inserted(are_new) => {
            are_new.into_iter().map(|is_new| Some(is_new.into())).collect()
        }
        Answer::Got(values) => values,
        Answer::Updated(results) => decode(&results).expect("what updates return"),
        Answer::Len(len) => vec![Some(len)],
        Answer::Full(_) | Answer::Unread(_) | Answer::Failed(_) => {
            panic!("nothing is full or too long here")
        }
    }
}

/// Holds what was answered against one map, to which these requests were made in this order: those
/// that have changed the share. Returns the map.
///
/// # Panics
///
/// A request was made twice, or was answered and is not there. An answer is another than the map's,
/// or that of a moment before the request was asked or after it was answered. A PE's update was
/// done after what it has asked later. (What has changed nothing may be: another owner does it
/// again.)
pub(super) fn check(share: Pe, all: &[Asked], order: &[usize]) -> Map {
    let (mut map, mut states, mut replies) = (Map::new(), vec![Map::new()], Vec::new());
    for number in order {
        replies.push(all[*number].apply(&mut map));
        states.push(map.clone());
    }
    let places: HashMap<usize, usize> =
        order.iter().enumerate().map(|(place, number)| (*number, place)).collect();
    assert_eq!(places.len(), order.len(), "{share}: something was done twice: {order:?}");
    let of_share = all.iter().enumerate().filter(|(_, asked)| asked.share == share);
    for (number, asked) in of_share {
        let Some((answered, reply)) = &asked.answered else { continue };
        let is_before = |other: usize| {
            let Asked { by, verb, answered, .. } = &all[other];
            let is_update = matches!(verb, Verb::Add | Verb::Mix | Verb::Take);
            answered.as_ref().is_some_and(|(when, _)| *when < asked.when)
                || is_update && *by == asked.by && other < number
        };
        let is_after = |other: usize| all[other].when > *answered;
        let first = order.iter().rposition(|other| is_before(*other)).map_or(0, |last| last + 1);
        let last = order.iter().position(|other| is_after(*other)).unwrap_or(order.len());
        if let Some(place) = places.get(&number) {
            assert!((first..=last).contains(place), "{share}: {asked:?} was done at {place}");
            assert_eq!(replies[*place], *reply, "{share}: {asked:?}, in {order:?}");
        } else {
            // It has changed nothing: so it was done at any moment in between.
            let is_so = |state: &Map| {
                let mut after = state.clone();
                asked.apply(&mut after) == *reply && after == *state
            };
            let is_possible = first <= last && states[first..=last].iter().any(is_so);
            assert!(is_possible, "{share}: {asked:?}, in {order:?} from {first} to {last}");
        }
    }
    map
}
