//! `ultramarine journal`: what it shows of whole, damaged and foreign files.

use crate::harness::{run, ultramarine};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use ultramarine_journal::{Builds, Identity, Journal, OnFailure};

/// A journal with the results of 3 of 8 items, in 2 records of 50 and 52 bytes after a note.
fn journal(path: &Path) -> Journal {
    let [program, call, result] = ["sums", "sums::f", "u64"].map(str::to_owned);
    let identity = Identity { program, call, result, items: 8, digest: 0 };
    let builds = Builds { this: Some(0xabc), ..Builds::default() };
    let opened = Journal::open(path, &identity, builds, OnFailure::Warn, |_, _| Ok(()));
    let (journal, _) = opened.expect("there is room");
    journal.append(5..7, b"57");
    journal.append(0..1, b"zero");
    journal
}

fn finished(path: &Path) {
    journal(path).finish(Duration::from_secs(40)).expect("there is room");
}

/// The lines without those that tell the time.
fn lines(path: &Path) -> String {
    let text = run(&mut ultramarine(&["journal".as_ref(), path.as_os_str()]));
    let is_time = |line: &&str| line.starts_with("begun  ") || line.starts_with("last written  ");
    let (times, others): (Vec<_>, Vec<_>) = text.succeeded().lines().partition(is_time);
    assert!(times.len() == 2 && times.iter().all(|line| line.ends_with('Z')), "{times:?}");
    others.join("\n")
}

fn json(path: &Path) -> Value {
    let ended = run(&mut ultramarine(&["journal".as_ref(), path.as_os_str(), "--json".as_ref()]));
    serde_json::from_str(ended.succeeded()).expect("an object")
}

#[test]
fn a_whole_journal_is_shown() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("a.journal");
    finished(&path);
    let expected = "\
program       sums
function      sums::f
result        u64
items done    3 of 8 (37.5 %)
records       2, 6 bytes of results in a file of 257 bytes
builds        3 items by the build 0000000000000abc
torn tail     none
damaged       nothing";
    assert_eq!(lines(&path), expected);
    let object = json(&path);
    assert_eq!((&object["program"], &object["items_done"]), (&"sums".into(), &3.into()));
    assert_eq!((&object["done_percent"], &object["damage"]), (&37.5.into(), &Value::Array(vec![])));
    let (begun, last) = (object["begun_unix_s"].as_u64(), object["last_written_unix_s"].as_u64());
    assert!(begun > Some(1_700_000_000) && begun <= last, "{object}");
}

#[test]
fn the_builds_that_have_computed_the_results_are_shown() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("a.journal");
    let journal = journal(&path);
    journal.append_of(None, 1..3, b"12");
    journal.finish(Duration::from_secs(40)).expect("there is room");
    let builds = "\
builds        3 items by the build 0000000000000abc
              2 items by the build that is not known
";
    let text = lines(&path);
    assert!(text.contains(builds), "{text}");
    let object = json(&path);
    let expected = serde_json::json!([
        { "build": "0000000000000abc", "items_done": 3, "records": 2 },
        { "build": null, "items_done": 2, "records": 1 },
    ]);
    assert_eq!(object["builds"], expected);
}

#[test]
fn a_journal_that_is_being_written_is_shown_and_not_changed() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("a.journal");
    let journal = journal(&path);
    ultramarine_testkit::eventually("the records are there", || json(&path)["records"] == 2);
    journal.append(7..8, b"seven");
    journal.finish(Duration::from_secs(40)).expect("no one has cut or locked it");
    assert_eq!(json(&path)["records"], 3);
}

#[test]
fn damage_is_said_plainly() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("a.journal");
    finished(&path);
    let mut bytes = std::fs::read(&path).expect("it was made");
    // The last byte of the first record. The second one is 52 bytes long.
    let last = bytes.len() - 53;
    bytes[last] ^= 1;
    bytes.extend(b"torn");
    std::fs::write(&path, &bytes).expect("there is room");
    let text = lines(&path);
    let offset = bytes.len() - 4 - 102;
    let damage = format!("50 bytes at offset {offset}: the result for the items 5..7 is damaged");
    let torn = "torn tail     4 bytes: a record that was being written just now, or when the job \
                was killed";
    let end = format!("{torn}\ndamaged       1 place, 50 bytes in all:\n              {damage}");
    assert!(text.contains("items done    1 of 8 (12.5 %)\n") && text.ends_with(&end), "{text}");
    let object = json(&path);
    assert_eq!((&object["torn_bytes"], &object["damaged_bytes"]), (&4.into(), &50.into()));
    assert_eq!(object["damage"][0]["offset_bytes"], offset);
    assert_eq!(object["damage"][0]["text"], damage);
    assert_eq!(std::fs::read(&path).expect("it is there"), bytes);
}

#[test]
fn what_is_no_journal_is_refused() {
    let refused = |path: &str| run(&mut ultramarine(&["journal", path])).refuses();
    let missing = refused("/no/such.journal");
    assert!(missing.starts_with("the journal `/no/such.journal` cannot be opened: "), "{missing}");
    let device = "`/dev/zero` is a device, a FIFO or a socket, and a journal is a file: name \
                  another path";
    assert_eq!(refused("/dev/zero"), device);
    let foreign = refused(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    assert!(foreign.contains("is no journal"), "{foreign}");
}
