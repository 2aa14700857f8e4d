//! A program's own groups, in jobs whose processes are killed.
#![cfg(feature = "mpi")]

use crate::common::job::{die, kill, run_restartable};
use crate::common::launcher::{is_well_over_each_lane, over_each_lane};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use ultramarine::group::{Handle, Outbox, Peer, group};
use ultramarine::prelude::*;

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
