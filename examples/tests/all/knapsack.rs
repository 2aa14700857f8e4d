//! `knapsack` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it those tests say so and pass). What is best is found here by dynamic programming.

use crate::common::KNAPSACK;
use serde_json::Value;
use std::path::PathBuf;
use ultramarine_examples::random;
use ultramarine_testkit::{Ended, folder, run};

const SPLITTINGS: [&str; 6] =
    ["ordered", "steal-driven", "depth:0", "depth:2", "budget:1", "budget:50"];

/// What can be carried, and the weight and value of each item.
struct Items {
    capacity: usize,
    items: Vec<(usize, u64)>,
}

impl Items {
    /// Weights up to 60, and values that have something to do with them or nothing.
    fn drawn(count: usize, seed: u64) -> Self {
        let mut random = random(seed);
        let draw = |_| {
            let weight = 1 + random() % 60;
            let value = if seed.is_multiple_of(2) { weight + 10 } else { 1 + random() % 60 };
            (weight as usize, value)
        };
        let items: Vec<_> = (0..count).map(draw).collect();
        Items { capacity: items.iter().map(|(weight, _)| weight).sum::<usize>() / 2, items }
    }

    /// The greatest value for each capacity up to this one, item by item.
    fn best(&self) -> u64 {
        let mut best = vec![0; self.capacity + 1];
        for &(weight, value) in &self.items {
            for room in (weight..=self.capacity).rev() {
                best[room] = best[room].max(best[room - weight] + value);
            }
        }
        best[self.capacity]
    }

    fn write(&self, test: &str) -> PathBuf {
        let lines = self.items.iter().map(|(weight, value)| format!("{weight} {value}\n"));
        file(test, format!("{}\n{}", self.capacity, lines.collect::<String>()))
    }

    /// The report is of items that can be carried, and worth what they could be at best.
    fn is_best(&self, report: &Value) {
        let numbers = report["items"].as_array().expect("they are listed");
        let chosen = |number: &Value| self.items[number.as_u64().expect("a number") as usize - 1];
        let weight: usize = numbers.iter().map(|number| chosen(number).0).sum();
        let value: u64 = numbers.iter().map(|number| chosen(number).1).sum();
        assert!(numbers.windows(2).all(|pair| pair[0].as_u64() < pair[1].as_u64()), "{report}");
        assert_eq!(report["room"], self.capacity - weight, "{report}");
        assert_eq!((&report["result"], value), (&self.best().into(), self.best()), "{report}");
    }
}

/// A file for one test.
fn file(test: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let file = folder!(test).join("items.txt");
    std::fs::write(&file, content).expect("the folder is ours");
    file
}

#[test]
fn the_best_comes_out_however_the_work_is_split() {
    for seed in 1..=4 {
        let items = Items::drawn(30, seed);
        let file = items.write("splittings");
        for skeleton in ["sequential", "rayon"] {
            let flags = format!("--skeleton {skeleton} --json --pes 1 --threads 2");
            items.is_best(&run(&mut KNAPSACK.given(&file, &flags)).report());
        }
        for (lane, splitting) in
            ["memory", "tcp"].into_iter().flat_map(|lane| SPLITTINGS.map(|by| (lane, by)))
        {
            let mut command = KNAPSACK.given(&file, "--pes 3 --threads 1 --json --supervised");
            command.args(["--lane", lane, "--splitting", splitting]);
            items.is_best(&run(&mut command).report());
        }
    }
}

#[test]
fn drawn_items_are_the_same_for_all() {
    let result = |flags: &str| KNAPSACK.result(&format!("{flags} --threads 2 --items 40"));
    let first = result("--skeleton sequential");
    assert_eq!(first, result("--pes 2"));
    assert_eq!(first, result("--skeleton rayon --seed 2"));
    assert_ne!(first, result("--seed 3"));
}

/// Runs items of this content.
fn given(content: impl AsRef<[u8]>) -> Ended {
    run(&mut KNAPSACK.given(&file("given", content), "--pes 2 --threads 1 --json"))
}

#[test]
fn unusual_files_are_read() {
    for (content, result) in [
        ("0\n", 0),
        ("5\n6 100\n", 0),
        ("\n 5 \r\n\r\n5\t7\r\n", 7),
        ("5\n1000000000 1\n5 1000000000", 1_000_000_000),
        ("1000000000000\n3 4\n1 1\n", 5),
    ] {
        assert_eq!(given(content).report()["result"], result, "{content:?}");
    }
}

#[test]
fn malformed_files_are_refused() {
    let many = format!("1\n{}", "1 1\n".repeat(1001));
    for (content, text) in [
        ("", "line 1: `CAPACITY` is expected"),
        ("5 6\n", "line 1: `CAPACITY` is expected, not `5 6`"),
        ("five\n", "line 1: `five`: invalid digit"),
        ("-5\n", "line 1: `-5`: invalid digit"),
        ("1000000000001\n", "1000000000001 is not from 0 to 1000000000000"),
        ("5\n1 2\n3\n", "line 3: `WEIGHT VALUE` is expected, not `3`"),
        ("5\n\n1 2 3\n", "line 3: `WEIGHT VALUE` is expected, not `1 2 3`"),
        ("5\n0 1\n", "line 2: 0 is not from 1 to 1000000000"),
        ("5\n1 -1\n", "line 2: `-1`: invalid digit"),
        ("5\n1 99999999999999999999\n", "number too large"),
        (&many, "line 1002: there are more than 1000 items"),
    ] {
        let ended = run(&mut KNAPSACK.given(&file("malformed", content), "--pes 2 --threads 1"));
        ended.fails_with(text);
        ended.fails_with("items.txt is malformed: line");
    }
}

#[test]
fn flags_that_cannot_be_are_refused() {
    let good = file("good", "5\n1 2\n");
    run(&mut KNAPSACK.given(&good, "--items 5")).fails_with("cannot be used with");
    KNAPSACK.refuses_what_is_no_file("items");
    KNAPSACK.refuses(&[
        ("--items 0", "0 is not in 1..=1000"),
        ("--items 1001", "1001 is not in 1..=1000"),
        ("--skeleton par-map", "'--skeleton <SKELETON>'"),
        ("--splitting budget:0", "a task visits one node at least"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_finds_it_on_either_lane() {
    let items = Items::drawn(60, 2);
    let file = items.write("ranks");
    let flags = format!("--file {}", file.display());
    KNAPSACK.on_ranks(4, &flags, |report| items.is_best(report));
}

#[cfg(feature = "mpi")]
#[test]
fn the_best_is_found_though_two_die() {
    // No weights are odd, and the capacity is: nothing is as good as the bound, and much is
    // visited.
    let items =
        (0..22).map(|n| 100 + 2 * (n * n * 7 % 61)).map(|w| (w, w as u64)).collect::<Vec<_>>();
    let capacity = (items.iter().map(|(weight, _)| weight).sum::<usize>() / 2) | 1;
    let items = Items { capacity, items };
    let file = items.write("deaths");
    for splitting in SPLITTINGS {
        let flags = format!("--splitting {splitting} --file {}", file.display());
        KNAPSACK.survives("0.02,0.06", &flags, |report| items.is_best(report));
    }
}
