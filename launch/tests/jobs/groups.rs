//! A program's own groups, in jobs whose processes are killed.
#![cfg(feature = "mpi")]

use crate::common::job::{die, kill, run, run_restartable, run_with};
use crate::common::launcher::{is_well_over_each_lane, over_each_lane};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use ultramarine::Options;
use ultramarine::group::{Handle, Outbox, Peer, group};
use ultramarine::prelude::*;
use ultramarine_testkit::PATIENCE;

#[test]
fn a_counter_survives_a_death() {
    is_well_over_each_lane(4, async |cx| {
        let counter = group(&cx, "count", Counter::make, ())?;
        count_on_all(&cx, counter.handle()).await?;
        kill(&cx, Pe::new(2)).await;
        count_on_all(&cx, counter.handle()).await?;
        counter.act(Counter::ask);
        assert_eq!(counter.wait(Counter::sum).await?, 700);
        drop(counter);
        // Another one of that name is a new one.
        let counter = group(&cx, "count", Counter::make, ())?;
        counter.act(Counter::ask);
        assert_eq!(counter.wait(Counter::sum).await?, 0);
        Ok(())
    });
}

/// The next finds what the others have counted.
#[test]
fn a_counter_survives_the_root() {
    let main = async |cx: Context| {
        let counter = group(&cx, "count", Counter::make, ())?;
        if cx.pe() == Pe::ROOT {
            count_on_all(&cx, counter.handle()).await?;
            die();
        }
        counter.act(Counter::ask);
        assert_eq!(counter.wait(Counter::sum).await?, 400);
        Ok(())
    };
    over_each_lane(4, || run_restartable(main)).for_each(|(_, ended)| ended.is_well());
}

/// What comes for the next group of a name may be there before the end of the former is.
#[test]
fn a_name_may_be_used_again_at_once() {
    is_well_over_each_lane(4, async |cx| {
        for _ in 0..100 {
            let counter = group(&cx, "count", Counter::make, ())?;
            let all = (0..cx.pes()).map(Pe::new);
            all.for_each(|pe| counter.handle().send(&cx, pe, Message::Count(1)));
            counter.act(Counter::ask);
            assert_eq!(counter.wait(Counter::sum).await?, 4);
        }
        Ok(())
    });
}

/// A panic at a death ends the job, as any panic of a peer does that no task waits for.
#[test]
fn a_peer_that_panics_at_a_death_ends_the_job() {
    let main = async |cx: Context| {
        let _touchy = group(&cx, "touchy", |cx: &Context, (): &()| Touchy(cx.pe()), ())?;
        kill(&cx, Pe::new(2)).await;
        cx.sleep(PATIENCE).await;
        Ok(())
    };
    over_each_lane(3, || run(main))
        .for_each(|(_, ended)| ended.fails_with("the task panicked on PE 1: it is too much"));
}

struct Touchy(Pe);

impl Peer for Touchy {
    type Message = ();

    fn receive(&mut self, _: Pe, (): (), _: &mut Outbox<()>) {}

    fn died(&mut self, _: Pe, _: &mut Outbox<()>) {
        assert!(self.0 != Pe::new(1), "it is too much");
    }
}

#[test]
fn what_several_threads_have_a_peer_say_comes_in_order() {
    const EACH: u64 = 3000;
    run_with(Options::default().pes(2).threads(4), async |cx| {
        let numbers = group(&cx, "numbers", |_: &Context, (): &()| Numbers::default(), ())?;
        let say = async |cx: Context, numbers: Handle<Numbers>| {
            let mut said = 0;
            while said < EACH {
                let done = numbers.act(&cx, |peer, out| {
                    peer.last += 1;
                    out.send(Pe::ROOT, vec![peer.last]);
                });
                // It may not have been invited yet.
                said += u64::from(done.is_some());
            }
        };
        let tasks = [(); 4].map(|()| cx.spawn_at(Pe::new(1), say, numbers.handle()));
        for task in tasks {
            task.await?;
        }
        let all =
            |peer: &mut Numbers| (peer.heard.len() as u64 == 4 * EACH).then(|| peer.is_sorted());
        assert!(numbers.wait(all).await?);
        Ok(())
    });
}

#[test]
fn a_message_that_cannot_be_sent_fails_the_group() {
    let options = Options::default().pes(2).threads(1).set("message_bytes_max", 100_000);
    run_with(options, async |cx| {
        let make = |_: &Context, (): &()| Numbers::default();
        let numbers = group(&cx, "too large", make, ())?;
        let say = async |cx: Context, numbers: Handle<Numbers>| {
            numbers.send(&cx, Pe::ROOT, vec![u64::MAX; 100_000]);
        };
        cx.spawn_at(Pe::new(1), say, numbers.handle()).await?;
        let error = numbers.wait(|_| None::<()>).await;
        assert!(matches!(error, Err(TaskError::TooLarge { .. })), "{error:?}");

        let numbers = group(&cx, "no such PE", make, ())?;
        numbers.act(|_, out| out.send(Pe::new(2), vec![1]));
        let error = numbers.wait(|_| None::<()>).await;
        assert_eq!(error, Err(TaskError::NoSuchPe { pe: Pe::new(2), pes: 2 }));
        Ok(())
    });
}

#[derive(Default)]
struct Numbers {
    last: u64,
    heard: Vec<u64>,
}

impl Numbers {
    fn is_sorted(&self) -> bool {
        self.heard.is_sorted()
    }
}

impl Peer for Numbers {
    type Message = Vec<u64>;

    fn receive(&mut self, _: Pe, numbers: Vec<u64>, _: &mut Outbox<Vec<u64>>) {
        self.heard.extend(numbers);
    }
}

/// Also where a job ends with groups that are not closed.
#[test]
fn peers_that_panic_when_they_are_dropped_cost_nothing() {
    static DROPPED: AtomicU32 = AtomicU32::new(0);
    struct Bomb;

    impl Peer for Bomb {
        type Message = ();

        fn receive(&mut self, _: Pe, (): (), _: &mut Outbox<()>) {}
    }

    impl Drop for Bomb {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            panic!("a bomb");
        }
    }

    run_with(Options::default().pes(1).threads(1), async |cx| {
        for name in ["first", "second", "third"] {
            std::mem::forget(group(&cx, name, |_: &Context, (): &()| Bomb, ())?);
        }
        Ok(())
    });
    assert_eq!(DROPPED.load(Ordering::Relaxed), 3);
}

/// Counts on all PEs. Each peer knows what it has counted, and what its predecessor has.
struct Counter {
    cx: Context,
    counts: BTreeMap<Pe, u64>,
    missing: BTreeSet<Pe>,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Count(u64),
    Counts(BTreeMap<Pe, u64>),
    Ask,
    Answer(BTreeMap<Pe, u64>),
}

impl Counter {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "`group` passes any argument so")]
    fn make(cx: &Context, (): &()) -> Self {
        Counter { cx: cx.clone(), counts: BTreeMap::new(), missing: BTreeSet::new() }
    }

    fn living(&self) -> BTreeSet<Pe> {
        (0..self.cx.pes()).map(Pe::new).filter(|pe| !self.cx.is_dead(*pe)).collect()
    }

    fn ask(&mut self, out: &mut Outbox<Message>) {
        self.missing = self.living();
        self.missing.iter().for_each(|pe| out.send(*pe, Message::Ask));
    }

    fn learn(&mut self, counts: BTreeMap<Pe, u64>) {
        for (pe, count) in counts {
            let known = self.counts.entry(pe).or_default();
            *known = count.max(*known);
        }
    }

    /// The sum, if all that live have answered.
    fn sum(&mut self) -> Option<u64> {
        self.missing.is_empty().then(|| self.counts.values().sum())
    }
}

impl Peer for Counter {
    type Message = Message;

    fn receive(&mut self, from: Pe, message: Message, out: &mut Outbox<Message>) {
        match message {
            Message::Count(n) => {
                let (me, living) = (self.cx.pe(), self.living());
                *self.counts.entry(me).or_default() += n;
                let next = living.range(me..).nth(1).or(living.first());
                next.into_iter().for_each(|pe| out.send(*pe, Message::Counts(self.counts.clone())));
            }
            Message::Counts(counts) => self.learn(counts),
            Message::Ask => out.send(from, Message::Answer(self.counts.clone())),
            Message::Answer(counts) => {
                self.learn(counts);
                self.missing.remove(&from);
            }
        }
    }

    fn died(&mut self, dead: Pe, _: &mut Outbox<Message>) {
        self.missing.remove(&dead);
    }
}

/// Has each PE count, and its neighbour know that.
async fn count_on_all(cx: &Context, counter: Handle<Counter>) -> Result<(), TaskError> {
    for pe in (0..cx.pes()).map(Pe::new).filter(|pe| !cx.is_dead(*pe)) {
        let count = async |cx: Context, counter: Handle<Counter>| {
            (0..100).for_each(|_| counter.send(&cx, cx.pe(), Message::Count(1)));
            let next = Pe::new((cx.pe().number() + 1) % cx.pes());
            // What was told before has come when this is answered.
            if !cx.is_dead(next) {
                let _ = cx.ask(next, async |_, ()| (), ()).await;
            }
        };
        cx.spawn_at(pe, count, counter).await?;
    }
    Ok(())
}
