//! What the user sees of the simulator's command line: results of small runs, and refusals.

mod detection;
mod input;
mod results;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn simulate(words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ultramarine-simulator"));
    command.args(words.split_whitespace()).output().expect("the simulator starts")
}

/// Starts it, to be read while it runs.
fn start(words: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ultramarine-simulator"));
    command.args(words.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the simulator starts")
}

/// The rows that an experiment prints as JSON.
#[track_caller]
fn rows(words: &str) -> Vec<Value> {
    let output = simulate(&format!("{words} --json"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn number(row: &Value, key: &str) -> f64 {
    row.get(key).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number `{key}` in {row}"))
}

/// What holds for all runs: an efficiency from 0 to 1, a time, and what it cost to simulate.
#[track_caller]
fn check(row: &Value) {
    let efficiency = number(row, "efficiency");
    assert!(efficiency > 0.0 && efficiency <= 1.0, "{row}");
    for key in ["cores", "pes", "seconds", "tasks", "events", "rss_bytes", "work_seconds"] {
        assert!(number(row, key) > 0.0, "`{key}` in {row}");
    }
    assert!(number(row, "wall_seconds") >= 0.0 && number(row, "gone_seconds") >= 0.0, "{row}");
}

/// The text of a refusal, with this exit code.
#[track_caller]
fn refusal(words: &str, code: i32) -> String {
    let output = simulate(words);
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{words}: {errors}");
    assert!(output.stdout.is_empty(), "{words}");
    errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn refuses(words: &str, code: i32, parts: &[&str]) {
    let text = refusal(words, code);
    assert!(text.starts_with("error: "), "{words}: {text}");
    for part in parts {
        assert!(text.contains(part), "{words}: `{part}` is not in `{text}`");
    }
}

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It is not there the first time.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder");
    path
}
