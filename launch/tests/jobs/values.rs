//! Values that stay in a process, in jobs whose processes are killed.
#![cfg(feature = "mpi")]

use crate::common::job::kill;
use crate::common::launcher::is_well_over_each_lane;
use futures_util::future::join;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{Remote, Shared};

#[test]
fn a_shared_value_survives_those_that_have_it() {
    is_well_over_each_lane(5, async |cx| {
        let supervised = cx.supervised();
        let expected: Vec<_> = (0..2000_u64).map(|n| (n % 100) as usize).collect();
        for dead in [1, 4] {
            let length = async |cx: Context, table: Shared<Table>, n: u64| {
                cx.sleep(Duration::from_micros(100)).await;
                table.0[&n].len()
            };
            let lengths = map_async_with(Table::new(), length, 0..2000).chunks(20);
            let lose = async {
                cx.sleep(Duration::from_millis(10)).await;
                kill(&cx, Pe::new(dead)).await;
            };
            let (lengths, ()) = join(lengths.run(&supervised), lose).await;
            assert_eq!(lengths?, expected);
        }
        // One whose supervisor and home die, while another has what it made.
        let table = cx.share(Table::new());
        let read = async |_, table: Shared<Table>| table.0[&77].len();
        for pe in [0, 2, 3] {
            assert_eq!(cx.spawn_at(Pe::new(pe), read, table.clone()).await?, 77);
        }
        Ok(())
    });
}

#[test]
fn a_remote_value_is_lost_with_the_last_that_has_it() {
    is_well_over_each_lane(4, async |cx| {
        let make = async |_, n: u64| vec![n; 100_000];
        let sum = async |_, values: Remote<Vec<u64>>| {
            values.get().await.map(|values| values.iter().sum::<u64>())
        };
        let (one, two) = (Pe::new(1), Pe::new(2));
        let copied = cx.remote(one, make, 3);
        let alone = cx.remote(one, make, 4);
        assert_eq!(cx.spawn_at(two, sum, copied.clone()).await?, Ok(300_000));
        assert_eq!(cx.spawn_at(one, sum, alone.clone()).await?, Ok(400_000));
        kill(&cx, one).await;
        let three = Pe::new(3);
        assert_eq!(cx.spawn_at(three, sum, copied.clone()).await?, Ok(300_000));
        assert_eq!(copied.get().await?[0], 3);
        let lost = cx.spawn_at(three, sum, alone.clone()).await;
        let lost = lost.and_then(|lost| lost);
        assert!(matches!(lost, Err(TaskError::ValueLost { .. })), "{lost:?}");
        assert!(matches!(alone.get().await, Err(TaskError::ValueLost { .. })));
        // One that was still to be made is made elsewhere, if it is supervised.
        let slow = async |cx: Context, n: u64| {
            cx.sleep(Duration::from_millis(100)).await;
            vec![n; 1000]
        };
        let made_again = cx.supervised().remote(two, slow, 5);
        let waiting = cx.supervised().spawn_at(three, sum, made_again.clone());
        cx.sleep(Duration::from_millis(20)).await;
        kill(&cx, two).await;
        assert_eq!(waiting.await?, Ok(5000));
        assert_eq!(made_again.get().await?.len(), 1000);
        Ok(())
    });
}

#[test]
fn large_values_travel_between_processes() {
    is_well_over_each_lane(3, async |cx| {
        let table: Vec<f64> = (0..4 << 20).map(f64::from).collect();
        let sum =
            |table: &Vec<f64>, part: usize| table[part << 20..(part + 1) << 20].iter().sum::<f64>();
        let expected: Vec<f64> = (0..4).map(|part| sum(&table, part)).collect();
        assert_eq!(map_with(table, sum, 0..4).push().run(&cx).await?, expected);
        Ok(())
    });
}

#[test]
fn one_that_cannot_read_a_shared_value_keeps_it_from_no_other() {
    is_well_over_each_lane(3, async |cx| {
        // From PE 1 the value goes on to PE 2.
        let refuse = async |_: Context, ()| REFUSES.store(true, Ordering::Relaxed);
        cx.spawn_at(Pe::new(1), refuse, ()).await?;
        let shared = cx.share(Picky(5));
        let read = async |_: Context, shared: Shared<Picky>| shared.0;
        assert_eq!(cx.spawn_at(Pe::new(2), read, shared.clone()).await, Ok(5));
        let refused = cx.spawn_at(Pe::new(1), read, shared).await;
        assert!(matches!(refused, Err(TaskError::Codec { .. })), "{refused:?}");
        Ok(())
    });
}

#[test]
fn a_result_without_a_box_may_be_large() {
    is_well_over_each_lane(2, async |cx| {
        let fill = async |_: Context, number| bulky(number);
        let filled = cx.spawn_at(Pe::new(1), fill, 7).await?;
        assert!(filled.0.iter().all(|number| *number == 7));
        Ok(())
    });
}

/// Whether this process decodes no [`Picky`].
static REFUSES: AtomicBool = AtomicBool::new(false);

/// A value that some processes cannot decode.
#[derive(Serialize)]
struct Picky(u64);

impl<'de> Deserialize<'de> for Picky {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(from)?;
        let refuses = REFUSES.load(Ordering::Relaxed);
        if refuses { Err(serde::de::Error::custom("not here")) } else { Ok(Picky(number)) }
    }
}

/// A quarter of a megabyte that is no array of the heap, and short on its way.
struct Bulky([u64; 32_768]);

#[expect(clippy::large_stack_arrays, reason = "that is what is tried")]
fn bulky(number: u64) -> Bulky {
    Bulky([number; 32_768])
}

impl Serialize for Bulky {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0[0].serialize(to)
    }
}

impl<'de> Deserialize<'de> for Bulky {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u64::deserialize(from).map(bulky)
    }
}

/// A table that has to be encoded.
#[derive(Serialize, Deserialize)]
struct Table(BTreeMap<u64, String>);

impl Table {
    fn new() -> Self {
        Table((0..2000).map(|n| (n, "x".repeat(n as usize % 100))).collect())
    }
}

/// What a mailbox of values of all sizes gets, alone and within others.
#[derive(Serialize, Deserialize)]
struct Mail {
    number: u32,
    values: Vec<u64>,
    others: Vec<Vec<u16>>,
}

impl Mail {
    fn of(number: u32) -> Mail {
        let length = [0, 3, 700, 20_000, 300_000][number as usize % 5];
        let others = vec![vec![number as u16; length / 8]; number as usize % 3];
        Mail { number, values: vec![u64::from(number); length], others }
    }

    fn is_whole(&self) -> bool {
        let Mail { values, others, .. } = Mail::of(self.number);
        values == self.values && others == self.others
    }
}

#[test]
fn mail_of_all_sizes_arrives_in_order() {
    const COUNT: u32 = 150;
    is_well_over_each_lane(3, async |cx| {
        let key = cx.new_key();
        let send = async |cx: Context, key| {
            let mail = cx.mailbox(key);
            (0..COUNT).try_for_each(|number| mail.send(Pe::ROOT, Mail::of(number)))
        };
        let sent = [1, 2].map(|pe| cx.spawn_at(Pe::new(pe), send, key));
        let (mail, mut next) = (cx.mailbox::<Mail>(key), [0; 2]);
        for _ in 0..2 * COUNT {
            let (from, found) = mail.receive_any().await?;
            let next = &mut next[from.index() - 1];
            assert_eq!(found.number, *next, "of {from}");
            assert!(found.is_whole(), "number {next} of {from}");
            *next += 1;
        }
        for sent in sent {
            sent.await??;
        }
        Ok(())
    });
}
