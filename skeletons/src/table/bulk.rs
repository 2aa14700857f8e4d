//! Requests of many keys, in as few messages as need be.

use super::Table;
use super::error::TableError;
use super::kind::{Answer, Batch, TableKey, TableValue};
use super::store::PIECE_BYTES_MAX;
use futures_util::future::try_join_all;
use serde::Serialize;
use std::mem::replace;
use ultramarine_topology::Pe;

/// The most keys of a message.
const KEYS_AT_ONCE: usize = 4096;

impl<K: TableKey, V: TableValue> Table<K, V> {
    /// Asks many things, those of a share in as few messages as need be. Returns the answers in the
    /// order of the things.
    pub(super) async fn ask_all<T: Serialize, C: Extend<T>, R>(
        &self,
        things: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> &K,
        empty: impl Fn(usize) -> C,
        batch: impl Fn(C) -> Result<Batch<K, V>, TableError>,
        results: impl Fn(Answer<V>) -> Option<Result<Vec<R>, TableError>>,
    ) -> Result<Vec<R>, TableError> {
        let things = things.into_iter();
        let count = things.size_hint().0;
        // Shares have about as many keys: a few more than others, and twice as many at most.
        let room = (2 * count).div_ceil(self.cx.pes() as usize).min(count).min(KEYS_AT_ONCE);
        let empty = || Gathered { things: empty(room), count: 0, bytes: 0 };
        // By share: where its things are gathered, counted from 1.
        let mut places = vec![0_u32; self.cx.pes() as usize];
        let mut gathered: Vec<(Pe, Gathered<C>)> = Vec::new();
        // Of each thing, where it is gathered.
        let (mut order, mut asked, mut of) = (Vec::with_capacity(count), Vec::new(), Vec::new());
        let mut ask = |place: usize, share, of_share: Gathered<C>| {
            asked.push(self.ask(share, batch(of_share.things)?));
            of.push((place, share, of_share.count));
            Ok::<_, TableError>(())
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
                ask(place, share, replace(of_share, empty()))?;
                // The owner begins while the rest is gathered. (Two PEs that insert 65,536 entries
                // at once: 4.5 million a second each, and 3.1 without this; medians of six runs in
                // turn, beside much other work.)
                self.cx.send_now();
            }
            of_share.things.extend(Some(thing));
            of_share.count += 1;
            of_share.bytes += size;
            order.push(place as u32);
        }
        let mut answers: Vec<Vec<R>> = gathered.iter().map(|_| Vec::new()).collect();
        for (place, (share, of_share)) in gathered.into_iter().enumerate() {
            ask(place, share, of_share)?;
        }
        let all = try_join_all(asked).await?;
        for (answer, (place, share, count)) in all.into_iter().zip(of) {
            let of_share = results(self.done(share, answer)?).transpose()?.unwrap_or_default();
            if of_share.len() != count {
                return Err(self.missing());
            }
            answers[place].extend(of_share);
        }
        let mut answers: Vec<_> = answers.into_iter().map(Vec::into_iter).collect();
        let mut all = Vec::with_capacity(order.len());
        all.extend(order.into_iter().filter_map(|place| answers[place as usize].next()));
        Ok(all)
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
    use super::KEYS_AT_ONCE;
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
}
