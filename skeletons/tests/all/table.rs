//! Distributed tables in whole jobs.

use crate::common::{job, on_all_hierarchies};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use ultramarine::prelude::*;
use ultramarine::skeletons::table::{Table, TableError, TableRef, table};
use ultramarine::{LaneKind, Options, Place};
use ultramarine_testkit::{bounded, racks};

#[test]
fn each_entry_is_inserted_once_and_found_by_all() {
    on_all_hierarchies(async |cx: Context| {
        let squares = table::<u64, u64>(&cx, "squares").open()?;
        let insert = async |cx: Context, (table, from): (TableRef<u64, u64>, u64)| {
            let entries = (from..from + 3000).map(|n| (n, n * n));
            let inserted = table.on(&cx)?.insert_all_if_absent(entries).await?;
            Ok::<_, TableError>(inserted.into_iter().filter(|is_new| *is_new).count())
        };
        // Each PE inserts what the one before has inserted in part.
        let tasks = (0..cx.pes()).map(|pe| {
            let argument = (squares.reference(), u64::from(pe) * 1500);
            cx.spawn_at(Pe::new(pe), insert, argument)
        });
        let mut inserted = 0;
        for task in tasks.collect::<Vec<_>>() {
            inserted += task.await??;
        }
        let all = 1500 * (u64::from(cx.pes()) + 1);
        assert_eq!((inserted as u64, squares.len().await?), (all, all));
        assert_eq!(squares.get(1234).await?, Some(1234 * 1234));
        let got = squares.get_all((0..all + 2).rev()).await?;
        let wanted = (0..all + 2).rev().map(|n| (n < all).then_some(n * n));
        assert!(got.into_iter().eq(wanted));
        let local = async |cx: Context, table: TableRef<u64, u64>| {
            let mut local = 0;
            let count = |n: &u64, square: &u64| {
                assert_eq!(n * n, *square);
                local += 1;
            };
            table.on(&cx)?.for_each_local(count).await;
            Ok::<u64, TableError>(local)
        };
        let mut owned = 0;
        for pe in 0..cx.pes() {
            owned += cx.spawn_at(Pe::new(pe), local, squares.reference()).await??;
        }
        assert_eq!(owned, all);
        Ok(())
    });
}

#[test]
fn updates_of_a_key_are_done_in_order_and_say_what_they_return() {
    on_all_hierarchies(async |cx: Context| {
        let texts = table::<String, Vec<u32>>(&cx, "texts").copies(2).open()?;
        let push = |_: &String, list: &mut Option<Vec<u32>>, n: u32| {
            let list = list.get_or_insert_default();
            list.push(n);
            list.len()
        };
        let keys = ["a", "b", "c"].map(str::to_owned);
        let updates = (0..30).map(|n| (keys[n as usize % 3].clone(), n));
        let lengths = texts.update_all(push, updates).await?;
        assert!(lengths.into_iter().eq((0..30).map(|n| n / 3 + 1)));
        let all = texts.get_all(keys.clone()).await?;
        for (list, first) in all.into_iter().zip(0..) {
            assert!(list.unwrap().into_iter().eq((first..30).step_by(3)));
        }
        let take = |key: &String, list: &mut Option<Vec<u32>>, ()| (key.clone(), list.take());
        let (key, list) = texts.update(take, keys[1].clone(), ()).await?;
        assert_eq!((key, list.map(|list| list.len())), (keys[1].clone(), Some(10)));
        assert_eq!(texts.get(keys[1].clone()).await?, None);
        assert_eq!((texts.len().await?, texts.is_empty().await?), (2, false));
        Ok(())
    });
}

#[test]
fn a_table_has_no_more_than_its_limit() {
    job(vec![Place::default(); 2], async |cx: Context| {
        let texts = table::<u64, String>(&cx, "texts").memory_max(100_000).open()?;
        let text = |n: u64| (n, "x".repeat(1000));
        let mut inserted = 0;
        let error = loop {
            match texts.insert_if_absent(text(inserted).0, text(inserted).1).await {
                Ok(is_new) => assert!(is_new),
                Err(error) => break error,
            }
            inserted += 1;
        };
        assert!(matches!(&error, TableError::Full { limit: 100_000, .. }), "{error}");
        // Two PEs with a copy of each entry.
        assert!((80..100).contains(&inserted), "{inserted}");
        assert_eq!((texts.len().await?, texts.get(inserted).await?), (inserted, None));
        // What is smaller, or goes, has room.
        let remove = |_: &u64, text: &mut Option<String>, ()| drop(text.take());
        texts.update_all(remove, (0..inserted / 2).map(|n| (n, ()))).await?;
        assert!(texts.insert_if_absent(inserted, text(0).1).await?);
        Ok(())
    });
}

/// No message has room for what is asked of a share here, but for a few entries at a time.
#[test]
fn bulk_requests_are_bounded_in_bytes() {
    let options = Options::default().places(vec![Place::default(); 2]).lane(LaneKind::Memory);
    let options = options.threads(1).set("message_bytes_max", "400000");
    let main = async |cx: Context| {
        let texts = table::<u64, String>(&cx, "texts").open()?;
        let entries = || (0..200).map(|n| (n, "x".repeat(10_000)));
        assert_eq!(texts.insert_all_if_absent(entries()).await?, [true; 200]);
        let set = |_: &u64, text: &mut Option<String>, new: String| *text = Some(new);
        texts.update_all(set, entries()).await?;
        Ok(())
    };
    bounded(move || options.run(main)).expect("each message is short");
}

/// What updates make of short arguments is told to the copy, and read, in several messages.
#[test]
fn values_may_be_longer_than_a_message_together_and_alone() {
    let options = Options::default().places(vec![Place::default(); 2]).lane(LaneKind::Memory);
    let options = options.threads(1).set("message_bytes_max", "400000");
    let main = async |cx: Context| {
        let texts = table::<u64, String>(&cx, "texts").open()?;
        let repeat = |n: &u64, text: &mut Option<String>, times: u64| {
            let text = text.get_or_insert_default();
            text.push_str(&n.to_string().repeat(times as usize));
            text.len() as u64
        };
        // Each fits into a message, and all that a share has do not.
        let times = (100..400).map(|n| (n, 5_000));
        assert_eq!(texts.update_all(repeat, times).await?, [15_000; 300]);
        let got = texts.get_all(100..401).await?;
        let all = (100..400).map(|n: u64| Some(n.to_string().repeat(5_000))).chain([None]);
        assert!(got.into_iter().eq(all));
        for n in 1..9_u64 {
            assert_eq!(texts.update(repeat, n, 1_000_000).await?, 1_000_000);
            assert_eq!(texts.get(n).await?, Some(n.to_string().repeat(1_000_000)));
        }
        let got = texts.get_all(1..9).await?;
        assert!(got.into_iter().eq((1..9).map(|n: u64| Some(n.to_string().repeat(1_000_000)))));
        Ok(())
    };
    bounded(move || options.run(main)).expect("each message is short");
}

#[test]
fn a_name_is_of_one_table_until_that_is_closed() {
    job(vec![Place::default(); 3], async |cx: Context| {
        let first = table::<u64, u64>(&cx, "table").open()?;
        let error = table::<u64, u32>(&cx, "table").open().unwrap_err();
        assert!(matches!(&error, TableError::OtherTypes { .. }), "{error}");
        for other in [
            table::<u64, u64>(&cx, "table").copies(2),
            table::<u64, u64>(&cx, "table").memory_max(5000),
        ] {
            let error = other.open().unwrap_err();
            assert!(matches!(&error, TableError::OtherOptions { .. }), "{error}");
        }
        assert!(first.insert_if_absent(1, 2).await?);
        let on_another_pe = async |cx: Context, ()| {
            let own = table::<u64, u32>(&cx, "table").copies(2).open()?;
            let error = table::<u64, u64>(&cx, "table").open().unwrap_err();
            assert!(matches!(&error, TableError::OtherTypes { .. }), "{error}");
            own.is_empty().await
        };
        let is_empty = cx.spawn_at(Pe::new(1), on_another_pe, ()).await?;
        assert!(is_empty?, "it is another table");
        let again = table::<u64, u64>(&cx, "table").open()?;
        assert_eq!(again.get(1).await?, Some(2), "it is the same one");
        let reference = first.reference();
        drop(first);
        assert_eq!(again.get(1).await?, Some(2), "it is open still");
        drop(again);
        let error = reference.on(&cx).map(|_: Table<u64, u64>| ()).unwrap_err();
        assert!(matches!(&error, TableError::Closed { .. }), "{error}");
        let anew = table::<u64, u32>(&cx, "table").open()?;
        assert!(anew.is_empty().await?);
        Ok(())
    });
}

/// A key that some code of the user's does not like.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Picky(u32);

impl Hash for Picky {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn what_panics_at_the_owner_is_an_error_of_all_that_ask() {
    job(vec![Place::default(); 3], async |cx: Context| {
        let picky = table::<Picky, u32>(&cx, "picky").open()?;
        picky.insert_all_if_absent((0..10).map(|n| (Picky(n), n))).await?;
        let update = |_: &Picky, _: &mut Option<u32>, n: u32| assert_ne!(n, 7, "not seven");
        let updates = (0..10).map(|n| (Picky(n), n));
        let error = picky.update_all(update, updates).await.unwrap_err();
        let TableError::Panicked { table, message } = &error else { panic!("{error}") };
        assert!(table == "picky" && message.contains("not seven"), "{error}");
        for pe in 0..3 {
            let get =
                async |cx: Context, picky: TableRef<Picky, u32>| picky.on(&cx)?.get(Picky(1)).await;
            let got = cx.spawn_at(Pe::new(pe), get, picky.reference()).await?;
            assert_eq!(got.unwrap_err(), error, "the table is over everywhere");
        }
        Ok(())
    });
}

/// A key that cannot always be encoded.
#[derive(Clone, PartialEq, Eq, Hash, serde::Deserialize)]
struct Mute(String);

impl serde::Serialize for Mute {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.starts_with("mute") {
            return Err(serde::ser::Error::custom("it is mute"));
        }
        self.0.serialize(to)
    }
}

#[test]
fn what_cannot_be_encoded_is_refused_and_the_table_goes_on() {
    job(vec![Place::default(); 2], async |cx: Context| {
        let table = table::<Mute, u32>(&cx, "mute").open()?;
        let key = |n: &str| Mute(n.to_owned());
        // Of both PEs: what goes to another is encoded in any case.
        for n in 0..10 {
            let mute = || key(&format!("mute {n}"));
            for inserted in [
                table.insert_if_absent(mute(), 1).await.map(|is_new| vec![is_new]),
                table.insert_all_if_absent([(mute(), 2)]).await,
            ] {
                let error = inserted.unwrap_err().to_string();
                assert!(error.contains("it is mute"), "{error}");
            }
        }
        for n in 0..100 {
            assert!(table.insert_if_absent(key(&n.to_string()), n).await?);
        }
        assert_eq!(table.len().await?, 100);
        Ok(())
    });
}

/// A key or value that cannot always be decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
struct Odd(u32);

impl<'de> serde::Deserialize<'de> for Odd {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u32::deserialize(from)? {
            n if n % 2 == 0 => Err(serde::de::Error::custom("it is even")),
            n => Ok(Odd(n)),
        }
    }
}

#[test]
fn what_cannot_be_decoded_is_refused_and_the_table_goes_on() {
    job(vec![Place::default(); 2], async |cx: Context| {
        let odd = table::<Odd, Odd>(&cx, "odd").copies(0).open()?;
        let is_far = |n: &u32| odd.owner(&Odd(*n)) != cx.pe();
        let far = (0..).step_by(2).find(is_far).expect("one in two is");
        let update = |_: &Odd, _: &mut Option<Odd>, ()| true;
        let refused = [
            odd.insert_if_absent(Odd(far), Odd(1)).await.map(|is_new| vec![is_new]),
            odd.insert_all_if_absent([(Odd(1), Odd(3)), (Odd(far), Odd(1))]).await,
            odd.update_all(update, [(Odd(far), ())]).await,
        ];
        for error in refused.map(Result::unwrap_err) {
            let text = error.to_string();
            assert!(text.contains("request to the table `odd` with (all::table::Odd"), "{text}");
            assert!(text.ends_with("it is even"), "{text}");
        }
        // The owner inserts a value that no other PE can read.
        let far = Odd((1..).step_by(2).find(is_far).expect("one in two is"));
        let insert = async |cx: Context, (odd, key): (TableRef<Odd, Odd>, Odd)| {
            odd.on(&cx)?.insert_if_absent(key, Odd(0)).await
        };
        assert!(cx.spawn_at(odd.owner(&far), insert, (odd.reference(), far.clone())).await??);
        let text = odd.get(far).await.unwrap_err().to_string();
        assert!(text.contains("answer of the table `odd`"), "{text}");
        let more = odd.insert_all_if_absent((51..100).step_by(2).map(|n| (Odd(n), Odd(n)))).await?;
        assert_eq!(more, [true; 25]);
        Ok(())
    });
}

#[test]
fn copies_that_cannot_follow_end_the_table_and_not_the_job() {
    job(vec![Place::default(); 2], async |cx: Context| {
        let odd = table::<Odd, u32>(&cx, "odd").open()?;
        let near = (0..).step_by(2).map(Odd).find(|key| odd.owner(key) == cx.pe());
        let error = odd.insert_if_absent(near.expect("one in two is"), 1).await.unwrap_err();
        let text = "the copies of the table `odd` cannot be told of a change: decoding failed: it \
                    is even";
        assert_eq!(error.to_string(), text);
        assert_eq!(odd.len().await.unwrap_err(), error);
        Ok(())
    });
}

/// The sums of a table do not depend on who adds, nor in which order.
#[test]
fn many_tasks_count_together() {
    job(racks(&[2, 2], 1), async |cx: Context| {
        let counts = table::<u64, u64>(&cx, "counts").copies(3).open()?;
        let count = async |cx: Context, (table, from): (TableRef<u64, u64>, u64)| {
            let table = table.on(&cx)?;
            let add = |_: &u64, count: &mut Option<u64>, more: u64| {
                *count = Some(count.unwrap_or(0) + more);
            };
            for n in from..from + 50 {
                table.update(add, n % 7, n).await?;
            }
            Ok::<(), TableError>(())
        };
        let tasks =
            (0..20).map(|task| cx.spawn(Distance::ONE, count, (counts.reference(), task * 50)));
        for task in tasks.collect::<Vec<_>>() {
            task.await??;
        }
        let mut wanted = BTreeMap::new();
        (0..1000_u64).for_each(|n| *wanted.entry(n % 7).or_insert(0) += n);
        let got = counts.get_all(0..7).await?;
        assert!(got.into_iter().flatten().eq(wanted.into_values()));
        Ok(())
    });
}
