//! What thieves find while a worker divides a problem.

use crate::common::job;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine_testkit::{eventually, racks};

#[test]
fn parts_far_below_are_stolen_while_a_long_one_is_solved() {
    const LAST: u32 = 12;
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    job(racks(&[1, 1], 1), async |cx| {
        // One part after the other, and at last two: the first waits until the second is solved.
        let chain = DivideAndConquer::new(
            |level: &u32| *level >= LAST,
            |level| match level {
                LAST => eventually("another PE solves it", || HAS_BEGUN.load(Relaxed)),
                _ => HAS_BEGUN.store(true, Relaxed),
            },
            |level| if level + 1 < LAST { vec![level + 1] } else { vec![LAST, LAST + 1] },
            |_, _| (),
        );
        Ok(par_divide_and_conquer(&cx, |_| Distance::ONE, chain, 0).await?)
    });
}

/// Parts of a chain that goes on until another PE takes what is `Far`.
#[derive(Clone, Serialize, Deserialize)]
enum Link {
    Chain(u32),
    Near,
    Far,
}

#[test]
fn a_thief_that_may_take_nothing_on_offer_has_more_offered() {
    const LEVELS: u32 = 400;
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    job(racks(&[2, 1], 1), async |cx| {
        let chain = DivideAndConquer::with_context(
            |_, link: &Link| match link {
                Link::Chain(level) => *level == LEVELS || IS_TAKEN.load(Relaxed),
                Link::Near | Link::Far => true,
            },
            |cx, link| match link {
                Link::Chain(_) => assert!(IS_TAKEN.load(Relaxed), "PE 2 has got nothing"),
                Link::Near => eventually("PE 2 takes one", || IS_TAKEN.load(Relaxed)),
                Link::Far => _ = IS_TAKEN.fetch_or(cx.pe() == Pe::new(2), Relaxed),
            },
            |_, link| {
                std::thread::sleep(Duration::from_millis(10));
                match link {
                    // As many as are offered without a thief, and one that its rack takes.
                    Link::Chain(0) => [vec![Link::Chain(1)], vec![Link::Near; 5]].concat(),
                    Link::Chain(level) => vec![Link::Chain(level + 1), Link::Far],
                    Link::Near | Link::Far => unreachable!("they are trivial"),
                }
            },
            |_, _, _| (),
        );
        let radius = |link: &Link| match link {
            Link::Near => Distance::ONE.half(),
            Link::Chain(_) | Link::Far => Distance::ONE,
        };
        Ok(par_divide_and_conquer(&cx, radius, chain, Link::Chain(0)).await?)
    });
}
