//! `--record FILE` of the examples that map, as its user sees it.

use crate::common::{NAPS, Program, SUM_EULER};
use serde_json::Value;
use std::fs;
use std::path::Path;
use ultramarine_testkit::{alone, folder, run};

fn recorded(program: Program, flags: &str, file: &Path) -> Value {
    let mut command = alone(program, flags);
    run(command.arg("--record").arg(file)).report();
    let text = fs::read_to_string(file).expect("there is a file");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn a_recording_has_the_times_in_the_order_of_the_items() {
    let file = folder!("times").join("naps.json");
    let flags = "--tasks 40 --shortest 1000 --longest 9000 --pes 3 --threads 1 --json";
    let recording = recorded(NAPS, flags, &file);
    for (key, value) in [("program", "naps"), ("skeleton", "par-map")] {
        assert_eq!(recording[key], value);
    }
    for (key, value) in [("pes", 3), ("threads", 1), ("items", 40), ("dead", 0)] {
        assert_eq!(recording[key], value, "{key}");
    }
    let times: Vec<u64> = recording["task_ns"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|time| time.as_u64().expect("whole nanoseconds"))
        .collect();
    let slept_us = recording["result"].as_u64().expect("microseconds");
    assert_eq!(times.len(), 40);
    assert!(times.iter().all(|ns| *ns >= 1_000_000), "{times:?}");
    assert!(times.iter().sum::<u64>() >= slept_us * 1000, "a nap takes at least its time");
    assert!(recording["makespan_ns"].as_u64() >= times.iter().max().copied());
}

#[test]
fn counters_are_those_of_the_map_alone() {
    let file = folder!("counters").join("sum.json");
    let flags = "--upto 500 --tasks 50 --supervised --threads 1 --json";
    let recording = recorded(SUM_EULER, flags, &file);
    for key in ["fishes", "forwards", "schedules", "stolen", "no_works", "notifies", "acks"] {
        assert_eq!(recording[key], 0, "{key} of a single PE");
    }
    assert_eq!(recording["supervised"], true);
    assert_eq!(recording["result"], 76_116);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_before_the_work() {
    let folder = folder!("refused");
    let flags = "--upto 500 --tasks 5 --threads 1";
    for (place, reason) in [
        (folder.clone(), "something else than a file is there"),
        (folder.join("no/such.json"), "No such file or directory"),
        ("/dev/full".into(), "something else than a file is there"),
    ] {
        let mut command = alone(SUM_EULER, flags);
        let ended = run(command.arg("--record").arg(&place));
        ended.fails_with(&format!("cannot write the recording {}: {reason}", place.display()));
        ended.fails_with("give a file in a folder that exists and that you may write to");
    }
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0, "nothing is left behind");
}

#[test]
fn naps_of_no_possible_length_are_refused() {
    let ended = NAPS.run("--shortest 20 --longest 10");
    ended.fails_with("--shortest 20 is more than --longest 10; give at most that");
}
