//! Tables whose owners and copies are killed while several PEs ask, each job beside one map: three
//! jobs, or as many as the environment variable `TABLE_JOBS` says.
#![cfg(feature = "mpi")]

use crate::common::job::{kill, run};
use crate::common::launcher::launched_with;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::skeletons::table::{Table, TableError, TableRef, table};
use ultramarine_testkit::itself;

const PES: u32 = 5;
const KEYS: u64 = 300;

/// The number of rounds for which a PE asks after the deaths.
const ROUNDS: u64 = 10;

/// What a job draws from.
const SEED: &str = "TABLE_SEED";

/// The entries: the keys of each PE, which only that one asks for, and those that all count.
type Map = BTreeMap<(u32, u64), u64>;

/// In the place of the PE: all count this key.
const SHARED: u32 = u32::MAX;

/// Numbers that look random, those of one seed always the same.
#[derive(Clone, Copy)]
struct Draw(u64);

impl Draw {
    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % limit
    }
}

type Values = Table<(u32, u64), u64>;

/// What becomes of a value depends on the order of its updates.
fn mix(_: &(u32, u64), value: &mut Option<u64>, more: u64) -> Option<u64> {
    *value = match *value {
        Some(value) if (value + more).is_multiple_of(7) => None,
        value => Some(value.unwrap_or(0).wrapping_mul(31) + more % 1000),
    };
    *value
}

fn count(_: &(u32, u64), value: &mut Option<u64>, more: u64) {
    *value = Some(value.unwrap_or(0) + more);
}

/// Asks for this and that, and does the same with a map.
async fn ask_some(
    cx: &Context,
    table: &Values,
    map: &mut Map,
    draw: &mut Draw,
) -> Result<(), TableError> {
    let me = cx.pe().number();
    let several = 1 + draw.below(60);
    let keys: Vec<_> = (0..several).map(|_| (me, draw.below(KEYS))).collect();
    let entries: Vec<_> = keys.iter().map(|key| (*key, draw.below(1 << 40))).collect();
    match draw.below(4) {
        0 => {
            let inserted = table.insert_all_if_absent(entries.clone()).await?;
            for ((key, value), is_new) in entries.into_iter().zip(inserted) {
                assert_eq!(is_new, !map.contains_key(&key), "{key:?}");
                map.entry(key).or_insert(value);
            }
        }
        1 => {
            let updated = table.update_all(mix, entries.clone()).await?;
            for ((key, more), found) in entries.into_iter().zip(updated) {
                let mut value = map.remove(&key);
                assert_eq!(found, mix(&key, &mut value, more), "{key:?}");
                map.extend(value.map(|value| (key, value)));
            }
        }
        2 => {
            let found = table.get_all(keys.iter().copied()).await?;
            assert!(found.into_iter().eq(keys.iter().map(|key| map.get(key).copied())));
        }
        _ => {
            let more = keys.iter().map(|(_, key)| ((SHARED, *key), 1));
            table.update_all(count, more.clone()).await?;
            for (key, more) in more {
                *map.entry(key).or_default() += more;
            }
        }
    }
    let key = keys[0];
    assert_eq!(table.get(key).await?, map.get(&key).copied(), "{key:?}");
    Ok(())
}

/// Asks until this many PEs have died, and for some rounds after that.
async fn ask(
    cx: Context,
    (table, seed, deaths): (TableRef<(u32, u64), u64>, u64, u32),
) -> Result<Map, TableError> {
    let (table, mut map) = (table.on(&cx)?, Map::new());
    let mut draw = Draw(seed ^ (u64::from(cx.pe().number() + 1) << 32));
    let mut last = ROUNDS;
    while last > 0 {
        ask_some(&cx, &table, &mut map, &mut draw).await?;
        last -= u64::from(cx.dead() >= deaths);
    }
    Ok(map)
}

/// The PEs that are killed at once: the owner of a key, the first copy of one, or one of each.
fn victims(table: &Values, draw: &mut Draw, which: u64) -> Vec<Pe> {
    let mut holder_but = |place: u32, others: &[Pe]| loop {
        let owner = table.owner(&(0, draw.below(KEYS)));
        // All PEs are on one host: the copies of a share are on the next ones.
        let holder = Pe::new((owner.number() + place) % PES);
        if holder != Pe::ROOT && !others.contains(&holder) {
            return holder;
        }
    };
    match which {
        0 => vec![holder_but(0, &[])],
        1 => vec![holder_but(1, &[])],
        _ => {
            let owner = holder_but(0, &[]);
            vec![owner, holder_but(1, &[owner])]
        }
    }
}

/// PEs die while the others ask.
async fn job(cx: Context) -> ultramarine::Result<()> {
    let seed: u64 = std::env::var(SEED).expect("it is set").parse()?;
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // One death at once needs one copy, two need two.
    let which = seed % 3;
    let copies = 1 + usize::from(which == 2);
    let table = table::<(u32, u64), u64>(&cx, "values").copies(copies).open()?;
    let dying = victims(&table, &mut draw, which);
    let deaths = dying.len() as u32;
    let askers = (0..PES).map(Pe::new).filter(|pe| !dying.contains(pe));
    let asking = askers.map(|pe| cx.spawn_at(pe, ask, (table.reference(), seed, deaths)));
    let asking: Vec<_> = asking.collect();
    cx.sleep(Duration::from_millis(draw.below(80))).await;
    join_all(dying.iter().map(|pe| kill(&cx, *pe))).await;
    let mut map = Map::new();
    for asker in asking {
        for (key, value) in asker.await?? {
            *map.entry(key).or_default() += value;
        }
    }
    let keys = (0..PES).chain([SHARED]).flat_map(|pe| (0..KEYS).map(move |key| (pe, key)));
    let found = table.get_all(keys.clone()).await?;
    let found: Map = keys.zip(found).filter_map(|(key, value)| Some((key, value?))).collect();
    assert_eq!(found, map);
    assert_eq!(table.len().await?, map.len() as u64);
    Ok(())
}

#[test]
fn tables_are_as_one_map_whatever_holders_of_keys_die() {
    let program = itself(|| run(job));
    let jobs = std::env::var("TABLE_JOBS").map_or(3, |jobs| jobs.parse().expect("a number"));
    for seed in 0..jobs {
        let lane = ["mpi", "tcp"][seed as usize / 3 % 2];
        let variables = [(SEED, u64::to_string(&seed).into())];
        let Some(ended) = launched_with(PES, lane, &variables, &program) else { return };
        assert!(ended.out.contains("all is well"), "job {seed}: {}{}", ended.out, ended.err);
    }
}
