//! What searches over states ask of a table, beside what all programs do.

use super::error::TableError;
use super::kind::{TableKey, TableValue};
use super::{Table, seen::SeenKeys};
use std::mem::replace;
use std::sync::PoisonError;
use std::time::Duration;
use ultramarine_topology::Pe;

/// How often a PE looks whether it has heard of deaths.
const LOOK_EVERY: Duration = Duration::from_micros(200);

impl<K: TableKey, V: TableValue> Table<K, V> {
    /// Inserts entries, but for those whose keys this PE has inserted lately. It must be
    /// [forgotten](Self::forget_seen) what these are before a key is taken away.
    pub(crate) async fn insert_unless_seen(
        &self,
        mut entries: Vec<(K, V)>,
    ) -> Result<(), TableError> {
        let mut far = Vec::new();
        // This PE's own share is looked up as fast as what it has seen.
        if self.cx.pes() > 1 {
            self.with_seen(|seen| {
                entries.retain(|(key, _)| {
                    let is_far = self.owner(key) != self.cx.pe();
                    let is_asked_for = !is_far || !seen.has(key);
                    far.extend((is_far && is_asked_for).then(|| key.clone()));
                    is_asked_for
                });
            });
        }
        self.insert_all(entries).await?;
        // Not before: until then a death may undo it, and this PE would not ask again.
        self.with_seen(|seen| far.into_iter().for_each(|key| seen.note(key)));
        Ok(())
    }

    /// Forgets what this PE has inserted lately.
    pub(crate) fn forget_seen(&self) {
        self.with_seen(|seen| drop(replace(seen, SeenKeys::new())));
    }

    fn with_seen(&self, act: impl FnOnce(&mut SeenKeys<K>)) {
        if let Some(seen) = self.member.with(|_, part| part.seen.clone()) {
            act(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Takes the keys of those entries that were inserted on this PE as their owner, and for which
    /// `f` holds.
    pub(crate) fn take_new(&self, f: impl Fn(&V) -> bool) -> Vec<K> {
        let Some(store) = self.member.with(|_, part| part.store.clone()) else { return Vec::new() };
        store.lock().unwrap_or_else(PoisonError::into_inner).take_new(f)
    }

    /// Waits until this PE's part has heard of these deaths: then it owns what it should.
    pub(crate) async fn hear_of(&self, dead: &[Pe]) {
        while self.member.with(|_, part| part.has_heard_of(dead)) == Some(false) {
            self.cx.sleep(LOOK_EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::part::TablePart;
    use crate::table::{job_of_two, table};
    use futures_util::FutureExt;
    use ultramarine_group::{Groups, Site};

    impl<K: TableKey, V: TableValue> Table<K, V> {
        /// Has this PE's part hear of a death, whether there is one or not.
        pub(crate) fn take_for_dead(&self, pe: Pe) {
            Groups::<TablePart<K, V>>::on(&self.cx).died(pe);
        }
    }

    #[test]
    fn a_key_is_noted_when_its_insert_is_done() {
        job_of_two(async |cx| {
            let table = table::<u32, ()>(&cx, "states").open().unwrap();
            let far = (0..100).find(|n| table.owner(n) != cx.pe()).unwrap();
            let has_seen = || {
                let mut has = false;
                table.with_seen(|seen| has = seen.has(&far));
                has
            };
            // It is asked for, and not awaited.
            let insert = table.insert_unless_seen(vec![(far, ())]);
            assert_eq!((insert.now_or_never(), has_seen()), (None, false));
            table.insert_unless_seen(vec![(far, ())]).await.unwrap();
            assert!(has_seen());
            table.forget_seen();
            assert!(!has_seen());
        });
    }
}
