//! Values that panic when they are dropped, encoded or decoded. They cost no future, no PE and no
//! job.

use crate::common::on_both_lanes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use ultramarine::prelude::*;

/// Panics when it is dropped: not what comes out of its encoding, which the test has to drop
/// itself.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Bomb {
    number: u64,
    #[serde(skip)]
    is_armed: bool,
}

impl Bomb {
    fn armed(number: u64) -> Self {
        Bomb { number, is_armed: true }
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.is_armed {
            // The payload is another one, once.
            std::panic::panic_any(Bomb { number: 0, is_armed: self.number > 0 });
        }
    }
}

/// Checks that all PEs still run tasks.
async fn all_live(cx: &Context) {
    for pe in (0..cx.pes()).map(Pe::new) {
        assert_eq!(cx.spawn_at(pe, async |_, n: u64| n + 1, 6).await, Ok(7));
    }
    assert_eq!(cx.spawn_fn(Distance::ONE, |n: u64| n + 2, 6).await, Ok(8));
}

fn is_panic<R: std::fmt::Debug>(result: &Result<R, TaskError>) -> bool {
    matches!(result, Err(TaskError::Panicked { .. }))
}

#[test]
fn the_payload_of_a_panic() {
    on_both_lanes(2, async |cx| {
        for pe in (0..2).map(Pe::new) {
            let early = |_: Context, ()| -> std::future::Ready<()> {
                std::panic::panic_any(Bomb::armed(1))
            };
            assert!(is_panic(&cx.spawn_at(pe, early, ()).await));
            let late = async |cx: Context, ()| {
                cx.yield_now().await;
                std::panic::panic_any(Bomb::armed(1))
            };
            let late = cx.spawn_at::<_, _, _>(pe, late, ()).await;
            assert!(is_panic::<()>(&late), "{late:?}");
        }
        let plain = cx.spawn_fn(Distance::ZERO, |()| std::panic::panic_any(Bomb::armed(1)), ());
        assert!(is_panic::<()>(&plain.await));
        all_live(&cx).await;
        Ok(())
    });
}

#[test]
fn a_result_that_was_encoded() {
    on_both_lanes(2, async |cx| {
        for supervised in [true, false] {
            let make = async |_: Context, n: u64| Bomb::armed(n);
            let cx = if supervised { cx.supervised() } else { cx.clone() };
            assert_eq!(cx.spawn_at(Pe::new(1), make, 5).await?.number, 5);
        }
        all_live(&cx).await;
        Ok(())
    });
}

#[test]
fn an_argument_that_was_encoded() {
    on_both_lanes(2, async |cx| {
        let there = async |_: Context, bomb: Bomb| bomb.number;
        assert_eq!(cx.spawn_at(Pe::new(1), there, Bomb::armed(5)).await, Ok(5));
        all_live(&cx).await;
        Ok(())
    });
}

#[test]
fn an_argument_inside_its_task() {
    on_both_lanes(2, async |cx| {
        let here = cx.spawn_at(Pe::new(0), async |_, bomb: Bomb| drop(bomb), Bomb::armed(5));
        assert!(is_panic(&here.await));
        all_live(&cx).await;
        Ok(())
    });
}

#[test]
fn a_result_whose_future_is_dropped() {
    on_both_lanes(2, async |cx| {
        for pe in (0..2).map(Pe::new) {
            drop(cx.spawn_at(pe, async |_, n: u64| Bomb::armed(n), 5));
        }
        drop(cx.spawn_fn(Distance::ONE, Bomb::armed, 5));
        all_live(&cx).await;
        Ok(())
    });
}

/// A future that is ready at its second poll, or panics then; and panics when it is dropped.
struct Fused {
    polls: u32,
    panics: bool,
    _bomb: Bomb,
}

impl Future for Fused {
    type Output = u32;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<u32> {
        self.polls += 1;
        assert!(!self.panics || self.polls < 2, "at the second poll");
        cx.waker().wake_by_ref();
        if self.polls < 2 { Poll::Pending } else { Poll::Ready(self.polls) }
    }
}

#[test]
fn a_future_that_has_ended() {
    on_both_lanes(2, async |cx| {
        for pe in (0..2).map(Pe::new) {
            let fused =
                |_: Context, panics: bool| Fused { polls: 0, panics, _bomb: Bomb::armed(1) };
            assert_eq!(cx.spawn_at(pe, fused, false).await, Ok(2), "it was ready before");
            let panicked = cx.spawn_at(pe, fused, true).await.expect_err("it panics").to_string();
            assert!(panicked.contains("at the second poll"), "{panicked}");
        }
        all_live(&cx).await;
        Ok(())
    });
}

#[test]
fn values_that_are_left_when_the_job_ends() {
    on_both_lanes(2, async |cx| {
        let key = cx.new_key();
        for pe in (0..2).map(Pe::new) {
            let keeps = async |cx: Context, key| drop(cx.shared(key, || Bomb::armed(1)));
            cx.spawn_at(pe, keeps, key).await?;
            for _ in 0..3 {
                let waits = async |_: Context, bomb: Bomb| {
                    std::future::pending::<()>().await;
                    drop(bomb);
                };
                drop(cx.spawn_at(pe, waits, Bomb::armed(1)));
                let sleeps = async |cx: Context, ()| {
                    let _bomb = Bomb::armed(1);
                    cx.sleep(Duration::from_hours(1)).await;
                };
                drop(cx.spawn_at(pe, sleeps, ()));
            }
        }
        all_live(&cx).await;
        for _ in 0..100 {
            drop(cx.spawn_fn(Distance::ZERO, |bomb: Bomb| bomb.number, Bomb::armed(1)));
        }
        Ok(())
    });
}

/// What goes wrong with its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Encode,
    Decode,
}

impl Serialize for Codec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Codec::Encode => std::panic::panic_any(Bomb::armed(1)),
            Codec::Decode => serializer.serialize_u8(7),
        }
    }
}

impl<'de> Deserialize<'de> for Codec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u8::deserialize(deserializer)? {
            7 => std::panic::panic_any(Bomb::armed(1)),
            _ => Err(D::Error::custom("seven is expected")),
        }
    }
}

#[test]
fn code_that_encodes_or_decodes() {
    on_both_lanes(2, async |cx| {
        for wrong in [Codec::Encode, Codec::Decode] {
            let argument = cx.spawn_at(Pe::new(1), async |_, _: Codec| (), wrong).await;
            assert!(matches!(argument, Err(TaskError::Codec { .. })), "{argument:?}");
            let decode = wrong == Codec::Decode;
            let make = async |_: Context, decode: bool| {
                if decode { Codec::Decode } else { Codec::Encode }
            };
            let result = cx.spawn_at(Pe::new(1), make, decode).await;
            assert!(matches!(result, Err(TaskError::Codec { .. })), "{result:?}");
        }
        all_live(&cx).await;
        Ok(())
    });
}
