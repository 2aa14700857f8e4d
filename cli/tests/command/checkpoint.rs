//! `ultramarine checkpoint`: what it shows of a directory.

use crate::harness::{run, ultramarine};
use serde_json::Value;
use std::path::Path;
use ultramarine_journal::{Checkpoint, Identity, write_whole};
use ultramarine_testkit::Ended;

/// Writes the file of a checkpoint for these of 8 ranks.
fn write(directory: &Path, superstep: u64, ranks: std::ops::Range<u64>) {
    write_of(0, directory, superstep, ranks);
}

/// The same, of a run whose argument has this digest.
fn write_of(digest: u128, directory: &Path, superstep: u64, ranks: std::ops::Range<u64>) {
    let checkpoint = Checkpoint { generation: 1, superstep };
    let [program, call] = ["solver", "solver::Cg"].map(str::to_owned);
    let identity = Identity { program, call, result: checkpoint.result(), items: 8, digest };
    std::fs::create_dir_all(checkpoint.folder(directory)).expect("there is room");
    let records = ranks.clone().map(|rank| (rank..rank + 1, vec![7; 10]));
    write_whole(checkpoint.file(directory, ranks), &identity, None, records)
        .expect("there is room");
}

fn shown(directory: &Path, flags: &[&str]) -> Ended {
    let words = ["checkpoint".as_ref(), directory.as_os_str()];
    let flags = flags.iter().map(AsRef::as_ref);
    run(&mut ultramarine(&words.into_iter().chain(flags).collect::<Vec<_>>()))
}

#[test]
fn a_directory_is_shown_with_what_is_torn() {
    let folder = tempfile::tempdir().expect("there is room");
    let directory = folder.path();
    write(directory, 100, 0..4);
    write(directory, 100, 4..8);
    write(directory, 200, 0..5);
    let torn = Checkpoint { generation: 1, superstep: 200 }.file(directory, 0..5);
    let mut bytes = std::fs::read(&torn).expect("it is there");
    bytes.pop();
    std::fs::write(&torn, bytes).expect("there is room");
    let ended = shown(directory, &[]);
    let text = ended.succeeded();
    for expected in ["checkpoints of solver (solver::Cg)", " 8 of 8 ", " 4 of 8 ", "is damaged"] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(text.ends_with("a job would go on from superstep 100\n"), "{text}");
    let ended = shown(directory, &["--json"]);
    let object: Value = serde_json::from_str(ended.succeeded()).expect("an object");
    assert_eq!(object["goes_on_from"], 100);
    assert_eq!(object["checkpoints"][1]["ranks_intact"], 4);
}

/// As a job would refuse it.
#[test]
fn files_of_other_checkpoints_or_runs_do_not_count() {
    let folder = tempfile::tempdir().expect("there is room");
    let directory = folder.path();
    write(directory, 100, 0..8);
    write(directory, 200, 0..4);
    write(directory, 200, 4..8);
    let of = |superstep| Checkpoint { generation: 1, superstep };
    std::fs::rename(of(100).file(directory, 0..8), of(200).file(directory, 0..4)).expect("there");
    write_of(1, directory, 300, 0..8);
    write_of(0, directory, 300, 0..4);
    let ended = shown(directory, &[]);
    assert_eq!(ended.code, Some(1));
    for expected in ["is of another checkpoint", "is of another run", "no checkpoint"] {
        assert!((ended.out.clone() + &ended.err).contains(expected), "{} {}", ended.out, ended.err);
    }
}

#[test]
fn a_directory_without_a_checkpoint_is_an_error() {
    let folder = tempfile::tempdir().expect("there is room");
    let directory = folder.path();
    for (path, expected) in
        [(directory, "has no checkpoint"), (&directory.join("x"), "cannot be read")]
    {
        let ended = shown(path, &[]);
        assert_eq!(ended.code, Some(1));
        assert!(ended.err.contains(expected), "{}", ended.err);
    }
}
