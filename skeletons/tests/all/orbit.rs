//! Orbits and searches over states in whole jobs.

use crate::common::{job, job_with_workers, on_all_hierarchies};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use ultramarine::Place;
use ultramarine::prelude::*;
use ultramarine::skeletons::orbit::{By, Found, Reached, orbit, reachable, reachable_batched};
use ultramarine::skeletons::table::TableError;

/// What follows from a number below a limit.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "states may be of any type")]
fn next(limit: &u64, n: &u64, next: &mut Vec<u64>) {
    next.extend([2 * n, n + 7, n / 3].into_iter().filter(|n| n < limit));
}

/// The levels of all numbers, found by one queue.
fn levels(limit: u64) -> BTreeMap<u64, u32> {
    let (mut levels, mut queue) = (BTreeMap::from([(1, 0)]), VecDeque::from([1]));
    while let Some(n) = queue.pop_front() {
        let level = levels[&n];
        let mut follow = Vec::new();
        next(&limit, &n, &mut follow);
        for m in follow {
            levels.entry(m).or_insert_with(|| {
                queue.push_back(m);
                level + 1
            });
        }
    }
    levels
}

#[test]
fn each_state_has_the_level_that_one_queue_finds() {
    on_all_hierarchies(async |cx: Context| {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = told.clone();
        let search = reachable(next, 20_000, 1);
        let search = search.progress(move |now| tell.lock().unwrap().push(now.levels.len()));
        let Reached { levels: counts, table } = search.run(&cx).await?;
        let wanted = levels(20_000);
        let mut of_levels = vec![0; counts.len()];
        wanted.values().for_each(|level| of_levels[*level as usize] += 1);
        assert_eq!(counts, of_levels);
        assert!(told.lock().unwrap().iter().copied().eq(1..=counts.len()));
        let found = table.get_all(wanted.keys().copied()).await?;
        let found = found.into_iter().map(|found| found.map(|found| found.level));
        assert!(found.eq(wanted.into_values().map(Some)));
        Ok(())
    });
}

#[test]
fn the_state_before_and_its_number_lead_back_to_the_start() {
    job_with_workers(2, vec![Place::default(); 3], async |cx: Context| {
        // A turn of five, and an exchange of two: all permutations of five.
        let generators: Vec<[u8; 5]> = vec![[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]];
        let act = |by: &[u8; 5], point: &[u8; 5]| point.map(|n| by[n as usize]);
        let start = [0, 1, 2, 3, 4];
        let all = orbit(act, generators.clone(), start).by().run(&cx).await?;
        assert_eq!((all.count(), all.levels[..3].to_vec()), (120, vec![1, 2, 3]));
        let undo = |point: &[u8; 5], number: u32| {
            let by = generators[number as usize];
            point.map(|n| by.iter().position(|image| *image == n).unwrap() as u8)
        };
        let last = [4, 3, 2, 1, 0];
        let way = all.way_to(last, undo).await?.unwrap();
        let at_end = way.iter().fold(start, |point, n| act(&generators[*n as usize], &point));
        let Found { level, origin: By(number) } = all.table.get(last).await?.unwrap();
        assert_eq!((at_end, level as usize, number), (last, way.len(), way.last().copied()));
        assert_eq!(all.way_to([9; 5], undo).await?, None);
        drop(all);

        let all = orbit(act, generators.clone(), start).from().run(&cx).await?;
        let states = all.way_to(last).await?.unwrap();
        assert_eq!((states[0], states[way.len()], states.len()), (start, last, way.len() + 1));
        for pair in states.windows(2) {
            assert!(generators.iter().any(|by| act(by, &pair[0]) == pair[1]));
        }
        assert_eq!(all.way_to([9; 5]).await?, None);
        Ok(())
    });
}

#[test]
fn batches_find_what_single_states_find() {
    on_all_hierarchies(async |cx: Context| {
        let batch = async |cx: Context, limit: Shared<u64>, numbers: Vec<u64>| {
            cx.yield_now().await;
            assert!(numbers.len() <= 7);
            let mut all = vec![Vec::new(); numbers.len()];
            numbers.iter().zip(&mut all).for_each(|(n, found)| next(&limit, n, found));
            Ok(all)
        };
        let found = reachable_batched(batch, 5000, 1).batch(7).by().run(&cx).await?;
        let wanted = reachable(next, 5000, 1).by().run(&cx).await?;
        assert_eq!(found.levels, wanted.levels);
        // One way leads to 4: by the first successor, twice.
        let undo = |n: &u64, number| if number == 0 { n / 2 } else { n - 7 };
        assert_eq!(found.way_to(4, undo).await?, Some(vec![0, 0]));
        Ok(())
    });
}

#[test]
fn what_ends_a_search_is_an_error() {
    job(vec![Place::default(); 2], async |cx: Context| {
        let tough = |(): &(), n: &u64, next: &mut Vec<u64>| {
            assert_ne!(*n, 50, "not fifty");
            next.push(n + 1);
        };
        let error = reachable(tough, (), 0_u64).run(&cx).await.unwrap_err();
        assert!(error.to_string().contains("not fifty"), "{error}");
        let endless = |(): &(), n: &u64, next: &mut Vec<u64>| next.extend([2 * n, 2 * n + 1]);
        let error = reachable(endless, (), 1_u64).memory_max(1 << 20).run(&cx).await.unwrap_err();
        assert!(matches!(error, TableError::Full { .. }), "{error}");
        let refuse = async |_: Context, _: Shared<()>, _: Vec<u64>| Err("not today".to_owned());
        let error = reachable_batched(refuse, (), 0_u64).run(&cx).await.unwrap_err();
        assert_eq!(error, TableError::Failed { message: "not today".to_owned() });
        let short = async |_: Context, _: Shared<()>, _: Vec<u64>| Ok(Vec::new());
        let error = reachable_batched(short, (), 0_u64).run(&cx).await.unwrap_err();
        assert!(error.to_string().contains("successors of 1 states are 0 lists"), "{error}");
        // A search that is done finds all of it there while its table is open.
        let first = reachable(next, 5000, 1).name("numbers").run(&cx).await?;
        let again = reachable(next, 5000, 1).name("numbers").run(&cx).await?;
        assert_eq!(first.levels, again.levels);
        Ok(())
    });
}
