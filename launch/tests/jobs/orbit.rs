//! Searches over states in jobs whose processes are killed.
#![cfg(feature = "mpi")]

use crate::common::job::{die, run_restartable};
use crate::common::launcher::{is_well_over_each_lane, over_each_lane};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use ultramarine::prelude::*;
use ultramarine::skeletons::orbit::{From, reachable};
use ultramarine::skeletons::table::{TableError, table};

const LIMIT: u64 = 12_000;

/// From how many states this process goes on before it dies. 0: from all.
static LIFE: AtomicU64 = AtomicU64::new(0);

/// What follows from a number below a limit.
fn next(limit: u64, n: u64) -> impl Iterator<Item = u64> {
    [2 * n, n + 7, n / 3, n ^ 5].into_iter().filter(move |n| *n < limit)
}

/// This process goes on from a state.
fn live() {
    if LIFE.load(Relaxed) > 0 && LIFE.fetch_sub(1, Relaxed) == 1 {
        die();
    }
}

/// The same, on the PE that goes on from the number.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "states may be of any type")]
fn go_on(limit: &u64, n: &u64, all: &mut Vec<u64>) {
    live();
    all.extend(next(*limit, *n));
}

/// Has PEs die when they have gone on from this number of states.
async fn give_lives(cx: &Context, lives: &[(u32, u64)]) -> Result<(), TaskError> {
    for (pe, life) in lives {
        let give = async |_: Context, life: u64| LIFE.store(life, Relaxed);
        cx.spawn_at(Pe::new(*pe), give, *life).await?;
    }
    Ok(())
}

/// The levels of all numbers, found by one queue.
fn levels() -> BTreeMap<u64, u32> {
    let (mut levels, mut queue) = (BTreeMap::from([(1, 0)]), VecDeque::from([1]));
    while let Some(n) = queue.pop_front() {
        let level = levels[&n];
        for m in next(LIMIT, n) {
            levels.entry(m).or_insert_with(|| {
                queue.push_back(m);
                level + 1
            });
        }
    }
    levels
}

/// Searches all numbers, and looks at what is found.
async fn is_right(cx: &Context, copies: usize) -> Result<(), TableError> {
    let found = reachable(go_on, LIMIT, 1).from().copies(copies).run(cx).await?;
    let wanted = levels();
    let mut of_levels = vec![0; found.levels.len()];
    wanted.values().for_each(|level| of_levels[*level as usize] += 1);
    assert_eq!(found.levels, of_levels);
    assert_eq!(found.table.len().await?, wanted.len() as u64);
    let all = found.table.get_all(wanted.keys().copied()).await?;
    for (entry, (n, level)) in all.into_iter().zip(&wanted) {
        let entry = entry.expect("it can be reached");
        assert_eq!(entry.level, *level, "of {n}");
        let From(before) = entry.origin;
        assert_eq!(before.is_none(), *level == 0, "of {n}");
        if let Some(before) = before {
            assert!(next(LIMIT, before).any(|m| m == *n), "{n} does not follow from {before}");
            assert_eq!(wanted[&before] + 1, *level, "of {before} before {n}");
        }
    }
    Ok(())
}

/// They die one after the other, each in the middle of a level.
#[test]
fn the_levels_are_right_though_pes_die() {
    is_well_over_each_lane(5, async |cx| {
        give_lives(&cx, &[(3, 300), (1, 1000), (4, 1700)]).await?;
        is_right(&cx, 3).await?;
        assert_eq!(cx.dead(), 3);
        Ok(())
    });
}

/// The next root goes on from what the one before has found.
#[test]
fn the_levels_are_right_though_the_root_dies() {
    let main = async |cx: Context| {
        if cx.attempt() == 1 {
            give_lives(&cx, &[(0, 600), (2, 1500)]).await?;
        }
        Ok(is_right(&cx, 2).await?)
    };
    over_each_lane(4, || run_restartable(main)).for_each(|(_, ended)| ended.is_well());
}

/// Nothing is asked of the share that is lost: the level is the last.
#[test]
fn a_lost_share_is_not_taken_for_an_empty_one() {
    is_well_over_each_lane(3, async |cx| {
        give_lives(&cx, &[(2, 1)]).await?;
        let star = |(): &(), n: &u64, all: &mut Vec<u64>| match n {
            0 => all.extend(1..=100),
            _ => live(),
        };
        let error = reachable(star, (), 0_u64).copies(0).run(&cx).await.unwrap_err();
        assert!(matches!(&error, TableError::Lost { dead: 1, holders: 1, .. }), "{error}");
        Ok(())
    });
}

/// The process that dies when a [`Deadly`] comes here the next time.
static VICTIM: AtomicI32 = AtomicI32::new(0);

#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
struct Deadly(u64);

impl<'de> Deserialize<'de> for Deadly {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if let Some(victim) = Pid::from_raw(VICTIM.swap(0, Relaxed)) {
            kill_process(victim, Signal::KILL).expect("it lives");
        }
        u64::deserialize(from).map(Deadly)
    }
}

/// The start's owner dies when the copy has the start, and has not said so.
#[test]
fn the_start_is_found_though_its_owner_dies_at_once() {
    is_well_over_each_lane(3, async |cx| {
        let (owner, copy) = (Pe::new(1), Pe::new(2));
        let probe = table::<Deadly, ()>(&cx, "probe").open()?;
        let start = (0..100).find(|n| probe.owner(&Deadly(*n)) == owner).expect("it has some");
        let victim = cx.spawn_at(owner, async |_, ()| std::process::id(), ()).await?;
        let note = async |_: Context, victim: u32| VICTIM.store(victim.cast_signed(), Relaxed);
        cx.spawn_at(copy, note, victim).await?;
        let next = |end: &u64, n: &Deadly, next: &mut Vec<Deadly>| {
            next.extend((n.0 + 1..*end).take(1).map(Deadly));
        };
        let found = reachable(next, start + 5, Deadly(start)).run(&cx).await?;
        assert_eq!((found.levels, cx.dead()), (vec![1; 5], 1));
        Ok(())
    });
}
