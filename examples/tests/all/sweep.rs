//! `sweep` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it those tests say so and pass).

use crate::common::SWEEP;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use ultramarine_testkit::{alone, folder, run};

/// A small sweep, and what it comes to.
const SMALL: &str = "--points 200 --steps 100 --table-mb 1 --json";
const DIGEST: i64 = -5_926_375_051_121_464_854;

/// What is in an output file: each point once, with its value.
fn points(file: &Path) -> BTreeMap<u64, f64> {
    let text = std::fs::read_to_string(file).expect("it was written");
    assert!(text.ends_with('\n'), "{text}");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("point,value"));
    let mut points = BTreeMap::new();
    for line in lines {
        let (point, value) = line.split_once(',').expect("two columns");
        let (point, value) = (point.parse().expect(line), value.parse().expect(line));
        assert_eq!(points.insert(point, value), None, "{line}");
    }
    points
}

#[test]
fn every_skeleton_on_every_lane_writes_the_same() {
    let file = folder!("sweep_skeletons").join("points.csv");
    let command = |flags: &str| {
        let mut command = SWEEP.command(SMALL);
        command.args(flags.split_whitespace()).arg("--output").arg(&file);
        command
    };
    assert_eq!(run(&mut command("--skeleton sequential")).report()["result"], DIGEST);
    let expected = points(&file);
    assert!(expected.keys().copied().eq(0..200));
    for lane in ["memory", "tcp"] {
        for flags in ["--skeleton map", "--skeleton push-map", "--supervised", "--partial"] {
            let report = run(command(flags).args(["--pes", "3", "--threads", "1", "--lane", lane]));
            let report = report.report();
            assert_eq!((&report["result"], &report["points"]), (&DIGEST.into(), &200.into()));
            assert_eq!(points(&file), expected, "{lane} {flags}");
        }
    }
    let other = run(command("--seed 2").args(["--pes", "2"])).report();
    assert_ne!(other["result"], DIGEST);
}

#[test]
fn who_is_asked_to_end_has_written_what_is_there() {
    let file = folder!("sweep_partial").join("points.csv");
    // The whole would take days.
    let flags = "--points 1000000000 --table-mb 1 --pes 2 --threads 1 --partial --json --output";
    let mut command = alone("timeout", "--preserve-status --signal=TERM 2");
    let report = run(command.arg(SWEEP).args(flags.split(' ')).arg(&file)).report();
    let done = report["points"].as_u64().expect("a number");
    assert!(done > 0 && report["of"] == 1_000_000_000, "{report}");
    assert_eq!(points(&file).len() as u64, done);
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let (full, nowhere) = (Path::new("/dev/full"), Path::new("/nowhere/points.csv"));
    for (file, text) in [
        (nowhere, "cannot write the output /nowhere/points.csv: No such file"),
        (full, "cannot write the output /dev/full: No space left"),
    ] {
        run(SWEEP.command(SMALL).arg("--output").arg(file)).fails_with(text);
    }
}

#[test]
fn output_that_fails_in_mid_run_is_an_error_that_names_the_file() {
    let pipe = folder!("sweep_pipe").join("points.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    // The reader takes the first line and closes the pipe.
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || {
            let mut line = [0; 12];
            File::open(pipe).expect("it is there").read_exact(&mut line).expect("a whole line");
            line
        })
    };
    // The whole would take days, so it ends only by the error.
    let endless = "--points 1000000000 --table-mb 1 --pes 1 --threads 1";
    let ended = run(SWEEP.command(endless).arg("--output").arg(&pipe));
    assert_eq!(reader.join().expect("it reads"), *b"point,value\n");
    ended.fails_with(&format!("cannot write the output {}: Broken pipe", pipe.display()));
}

#[test]
fn flags_that_cannot_be_are_refused() {
    SWEEP.refuses(&[
        ("--points 0", "'--points <N>': 0 is not in 1..=1000000000"),
        ("--steps -1", "'--steps <N>'"),
        ("--table-mb 0", "'--table-mb <MB>': 0 is not in 1..=4000"),
        ("--skeleton rayon", "'--skeleton <SKELETON>'"),
        ("--output", "--output"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn ranks_get_the_table_on_either_lane_as_by_mpi_alone() {
    for ranks in 1..=4 {
        for lane in ["mpi", "tcp"] {
            let walks = "--points 200 --steps 10000 --table-mb 1";
            let flags = format!("{walks} --json --lane {lane}");
            let Some(mut command) = SWEEP.launched(ranks, &flags) else { return };
            let report = run(&mut command).report();
            let twin = crate::common::launched(env!("CARGO_BIN_EXE_sweep_mpi"), ranks, walks);
            let twin = run(&mut twin.expect("there is a launcher")).report();
            assert_eq!(report["result"], twin["result"], "{ranks} {lane}");
            assert_eq!(report["points"], 200, "{ranks} {lane}");
        }
    }
}

#[cfg(feature = "mpi")]
#[test]
fn all_points_are_written_though_two_die() {
    let file = folder!("sweep_deaths").join("points.csv");
    for skeleton in ["map", "push-map"] {
        let flags = "--points 300 --steps 30000 --table-mb 5 --json --supervised --kill-at 0.1,0.3";
        let Some(mut command) = SWEEP.launched(4, flags) else { return };
        let ended = run(command.args(["--skeleton", skeleton, "--output"]).arg(&file));
        assert_eq!(ended.report()["points"], 300, "{skeleton}");
        assert_eq!(ended.err.matches("kills itself").count(), 2, "{skeleton}: {}", ended.err);
        assert!(points(&file).keys().copied().eq(0..300), "{skeleton}");
    }
}
