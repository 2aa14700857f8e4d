//! Requests of many keys, in as few messages as need be.

use super::Table;
use super::ask::Asking;
use super::error::TableError;
use super::kind::{Answer, Batch, Many, TableKey, TableValue};
use super::store::PIECE_BYTES_MAX;
use serde::Serialize;
use std::collections::VecDeque;
use std::mem::replace;
use ultramarine_topology::Pe;

/// The most keys of a message.
const KEYS_AT_ONCE: usize = 4096;

/// The number of messages without answers at which the gathering waits, if there are fewer PEs.
const MESSAGES_AT_ONCE: usize = 8;

/// What is asked for. (The type of the caller's iterator would be a part of each future that waits
/// for the answers, and where its closures take references, the compiler does not see that such a
/// future is `Send`.)
pub(super) type Things<'a, T> = Box<dyn Iterator<Item = T> + Send + 'a>;

impl<K: TableKey, V: TableValue> Table<K, V> {
    /// Asks many things, those of a share in as few messages as need be. Returns the answers in the
    /// order of the things. No more things are gathered while as many messages as there are PEs, or
    /// [`MESSAGES_AT_ONCE`] if those are more, wait for their answers.
    pub(super) async fn ask_all<T: Serialize, C: Extend<T>, R>(
        &self,
        things: Things<'_, T>,
        key: impl Fn(&T) -> &K,
        empty: impl Fn(usize) -> C,
        batch: impl Fn(C) -> Result<Batch<K, V>, TableError>,
        results: impl Fn(Answer<V>) -> Option<Result<Vec<R>, TableError>>,
    ) -> Result<Vec<R>, TableError> {
        let (count, pes) = (things.size_hint().0, self.cx.pes() as usize);
        // Shares have about as many keys: a few more than others, and twice as many at most.
        let room = (2 * count).div_ceil(pes).min(count).min(KEYS_AT_ONCE);
        let empty = || Gathered { things: empty(room), count: 0, bytes: 0 };
        // By share: where its things are gathered, counted from 1.
        let mut places = vec![0_u32; pes];
        let mut gathered: Vec<(Pe, Gathered<C>)> = Vec::new();
        let mut all = Ordered::with_room(count);
        let mut asked = VecDeque::new();
        let ask = |place, share, of_share: Gathered<C>| {
            let batch = batch(of_share.things)?;
            let keys = if let Batch::Get(keys) = &batch { Some(keys.clone()) } else { None };
            let answer = self.ask(share, batch);
            Ok::<_, TableError>(Asked { place, share, count: of_share.count, keys, answer })
        };
        for thing in things {
            let (share, size) = (self.share(key(&thing)), self.size(&thing)?);
            let place = &mut places[share.index()];
            if *place == 0 {
                gathered.push((share, empty()));
                *place = gathered.len() as u32;
            }
            let place = *place as usize - 1;
            let of_share = &mut gathered[place].1;
            let is_full = of_share.count == KEYS_AT_ONCE || of_share.bytes + size > PIECE_BYTES_MAX;
            if is_full && of_share.count > 0 {
                asked.push_back(ask(place, share, replace(of_share, empty()))?);
                // The owner begins while the rest is gathered. (Two PEs that insert 65,536 entries
                // at once: 4.5 million a second each, and 3.1 without this; medians of six runs in
                // turn, beside much other work.)
                self.cx.send_now();
                if asked.len() >= pes.max(MESSAGES_AT_ONCE)
                    && let Some(first) = asked.pop_front()
                {
                    all.add(first.place, self.answered(first, &results).await?);
                    // An answer of this PE is there at once.
                    self.cx.yield_now().await;
                }
            }
            let of_share = &mut gathered[place].1;
            of_share.things.extend(Some(thing));
            of_share.count += 1;
            of_share.bytes += size;
            all.expect(place);
        }
        for (place, (share, of_share)) in gathered.into_iter().enumerate() {
            asked.push_back(ask(place, share, of_share)?);
        }
        for next in asked {
            all.add(next.place, self.answered(next, &results).await?);
        }
        Ok(all.done)
    }

    /// What comes of a message, for each of its things.
    async fn answered<R>(
        &self,
        asked: Asked<K, V>,
        results: impl Fn(Answer<V>) -> Option<Result<Vec<R>, TableError>>,
    ) -> Result<Vec<R>, TableError> {
        let Asked { share, count, mut keys, answer, .. } = asked;
        let results =
            |answer| results(self.done(share, answer)?).transpose().map(Option::unwrap_or_default);
        let mut all = results(answer.await?)?;
        while all.len() < count {
            // The values of the first keys only had room in the answer.
            let rest = keys.take().filter(|_| !all.is_empty()).ok_or_else(|| self.missing())?;
            let rest = Many::from(rest[rest.len() - (count - all.len())..].to_vec());
            let before = all.len();
            all.extend(results(self.ask(share, Batch::Get(rest.clone())).await?)?);
            keys = (all.len() > before).then_some(rest);
        }
        if all.len() == count { Ok(all) } else { Err(self.missing()) }
    }
}

/// A message whose answer is awaited.
struct Asked<K: TableKey, V: TableValue> {
    /// Where its things were gathered.
    place: usize,
    share: Pe,
    count: usize,
    /// If their values are wanted.
    keys: Option<Many<K>>,
    answer: Asking<K, V>,
}

/// Puts what comes of each thing into the order of the things.
struct Ordered<R> {
    done: Vec<R>,
    /// Of each thing that is not done, where it was gathered.
    order: VecDeque<u32>,
    /// By that place: what has come of its next things.
    early: Vec<VecDeque<R>>,
}

impl<R> Ordered<R> {
    fn with_room(count: usize) -> Self {
        let (order, early) = (VecDeque::with_capacity(count.min(KEYS_AT_ONCE)), Vec::new());
        Ordered { done: Vec::with_capacity(count), order, early }
    }

    /// The next thing is gathered there.
    fn expect(&mut self, place: usize) {
        self.order.push_back(place as u32);
    }

    /// That has come of the next things there.
    fn add(&mut self, place: usize, results: Vec<R>) {
        if self.early.len() <= place {
            self.early.resize_with(place + 1, VecDeque::new);
        }
        self.early[place].extend(results);
        while let Some(place) = self.order.front()
            && let Some(next) = self.early.get_mut(*place as usize).and_then(VecDeque::pop_front)
        {
            self.order.pop_front();
            self.done.push(next);
        }
    }
}

/// What is gathered for a share.
struct Gathered<C> {
    things: C,
    count: usize,
    /// About what they take in a message.
    bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::{KEYS_AT_ONCE, MESSAGES_AT_ONCE};
    use crate::table::{job_of_two, table};

    #[test]
    fn answers_come_in_the_order_of_what_is_asked() {
        job_of_two(async |cx| {
            let table = table::<u32, u64>(&cx, "many").open().unwrap();
            // Several messages for each share, of which the last are not full.
            let all = || 0..3 * KEYS_AT_ONCE as u32 + 17;
            let entry = |key: u32| (key, u64::from(key) * 3);
            let odd = all().filter(|key| key % 2 == 1);
            let new = table.insert_all_if_absent(odd.map(entry)).await.unwrap();
            assert_eq!(new, vec![true; all().len() / 2]);
            let new = table.insert_all_if_absent(all().map(entry)).await.unwrap();
            assert!(new.into_iter().eq(all().map(|key| key % 2 == 0)));
            let found = table.get_all(all().rev()).await.unwrap();
            assert!(found.into_iter().eq(all().rev().map(|key| Some(entry(key).1))));
            let take = |_: &u32, value: &mut Option<u64>, (): ()| value.take();
            let twice = || all().chain(all());
            let taken = table.update_all(take, twice().map(|key| (key, ()))).await.unwrap();
            let first = all().map(|key| Some(entry(key).1));
            assert!(taken.into_iter().eq(first.chain(all().map(|_| None))));
            assert!(table.insert_all_if_absent([]).await.unwrap().is_empty());
        });
    }

    /// A long iterator leaves room to others, and is not kept in memory.
    #[test]
    fn few_messages_wait_for_their_answers() {
        job_of_two(async |cx| {
            let table = table::<u32, u64>(&cx, "many").open().unwrap();
            let mut most = 0;
            let asked = || table.member.with(|_, part| part.asked.len()).unwrap_or(0);
            let entries = (0..40 * KEYS_AT_ONCE as u32).map(|key| {
                if key % 64 == 0 {
                    most = asked().max(most);
                }
                (key, 0)
            });
            let new = table.insert_all_if_absent(entries).await.unwrap();
            assert_eq!(new, vec![true; 40 * KEYS_AT_ONCE]);
            assert!((2..=MESSAGES_AT_ONCE).contains(&most), "{most}");
        });
    }

    #[test]
    fn values_of_any_size_are_got_at_once() {
        job_of_two(async |cx| {
            // An answer has room for few of them.
            let table = table::<u64, String>(&cx, "long").open().unwrap();
            let text = |key: u64| key.to_string().repeat(60_000);
            assert!(table.insert_all_if_absent((0..200).map(|key| (key, text(key)))).await.is_ok());
            let found = table.get_all((0..201).rev()).await.unwrap();
            assert!(found.into_iter().eq((0..201).rev().map(|key| (key < 200).then(|| text(key)))));
        });
    }
}
