//! What the function sees that runs tasks, and what becomes of a task for which it fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Place;
use crate::{Code, Error, Result};

const CODE: Code = [5; 16];
const SUM: Code = [6; 16];

/// Why a test's function fails.
#[derive(Debug, PartialEq)]
enum Why {
    Unwell,
    Arena(String),
}

impl From<Error> for Why {
    fn from(error: Error) -> Self {
        Self::Arena(error.to_string())
    }
}

#[test]
fn a_task_whose_function_fails_runs_again() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let set = worker.set("failing")?;
    for number in 0..3 {
        set.add(number, CODE, &[])?;
    }
    let mut seen = Vec::new();
    let ended = set.try_run(|call| {
        seen.push(call.number());
        if seen.len() < 2 { Ok([7; 1]) } else { Err(Why::Unwell) }
    });
    assert_eq!(ended, Err(Why::Unwell));
    assert!(!set.is_finished()?);
    let ended = set.try_run(|_| set.result(9).map(|_| [0; 1]).map_err(Why::from));
    assert!(matches!(ended, Err(Why::Arena(text)) if text.contains("no task 9")));
    let (mut again, first) = (Vec::new(), seen[0]);
    set.run(|call| {
        assert_eq!(call.deaths(), 0);
        again.push(call.number());
        [8; 1]
    })?;
    again.sort_unstable();
    assert_eq!(again, (0..3).filter(|number| *number != first).collect::<Vec<_>>());
    assert_eq!(set.result(first)?.unwrap(), [7]);
    Ok(())
}

#[test]
fn a_worker_whose_function_panicked_may_go_on() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let set = worker.set("panics")?;
    set.add(1, CODE, &[])?;
    let run = || set.run(|_| -> [u8; 1] { panic!("on purpose") });
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    assert!(worker.sees_work(), "or all would wait for the task");
    set.run(|call| call.deaths().to_le_bytes())?;
    assert_eq!(set.result(1)?.unwrap(), [1, 0]);
    Ok(())
}

/// A worker runs tasks of all sets, and each finds its own.
#[test]
fn a_task_knows_its_set_and_adds_to_it() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let sets = [worker.set("one")?, worker.set("two")?];
    let mut names = worker.set_names();
    names.sort();
    assert_eq!(names, ["one", "two"]);
    for (length, set) in (1..).zip(&sets) {
        set.then(SUM, &[])?;
        set.add(0, CODE, &[length])?;
    }
    for set in &sets {
        set.try_run(|call| -> Result<Vec<u8>> {
            let own = call.set()?;
            if call.code() == SUM {
                let results: Vec<_> = own.results().collect::<Result<_>>()?;
                return Ok(vec![results.iter().map(|(_, result)| result[0]).sum()]);
            }
            let length = call.argument()?[0];
            if call.number() < 4 {
                own.add(call.number() + 1, CODE, &[length])?;
            }
            Ok(vec![length])
        })?;
    }
    assert_eq!(sets[0].outcome()?.unwrap(), [5]);
    assert_eq!(sets[1].outcome()?.unwrap(), [10]);
    Ok(())
}

#[test]
fn results_are_those_of_finished_tasks() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let set = worker.set("results")?;
    set.then(SUM, &[])?;
    for number in 0..300 {
        set.add(number, CODE, &[])?;
    }
    let mut left = 100;
    let stopped = set.try_run(|call| {
        left -= 1;
        if left < 0 { Err(Why::Unwell) } else { Ok(call.number().to_le_bytes()) }
    });
    assert_eq!(stopped, Err(Why::Unwell));
    let found = || set.results().collect::<Result<Vec<_>>>();
    assert_eq!(found()?.len(), 100);
    set.run(|call| call.number().to_le_bytes())?;
    let mut all = found()?;
    all.sort_unstable();
    let expected = (0..300).map(|number: u64| (number, number.to_le_bytes().to_vec()));
    assert_eq!(all, expected.collect::<Vec<_>>());
    Ok(())
}
