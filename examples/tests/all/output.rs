//! What a user sees of a program whose output cannot be written.

use crate::common::QUEENS;
use std::ffi::OsString;
use std::process::Command;
use ultramarine_testkit::{alone, behind, run};

/// The command behind a shell that redirects something.
fn redirected(command: &Command, redirection: &str) -> Command {
    behind(["sh", "-c", &format!("exec \"$@\" {redirection}"), "sh"], command)
}

/// A program of two PEs as threads; and as processes, where there is a launcher: there each of them
/// is redirected.
fn commands(redirection: &str) -> Vec<Command> {
    let flags = "--board 8 --supervised --threads 1 --json";
    let mut commands = vec![redirected(&alone(QUEENS, &format!("{flags} --pes 2")), redirection)];
    if let Some(bare) = crate::common::launched("sh", 2, "-c") {
        let mut command = Command::new(bare.get_program());
        let words = redirected(&alone(QUEENS, flags), redirection);
        command.args(["-n", "2", "sh"]).args(words.get_args().map(OsString::from));
        for (name, value) in bare.get_envs() {
            value.map(|value| command.env(name, value));
        }
        commands.push(command);
    }
    commands
}

#[test]
fn the_guide_names_the_fields_that_all_reports_have() {
    let guide = include_str!("../../../docs/guide/performance.md");
    let (_, table) = guide.split_once("| field | what |").expect("the table");
    let rows = table.trim_start().lines().take_while(|line| line.starts_with('|'));
    let named = rows.filter_map(|row| row.split('|').nth(1));
    let named: Vec<_> = named.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let report = run(&mut alone(QUEENS, "--board 8 --threads 1 --json")).report();
    let known: Vec<_> = report.as_object().expect("an object").keys().collect();
    assert!(named.len() > 10 && named.iter().all(|name| known.iter().any(|key| key == name)));
    let own: Vec<_> = known.iter().filter(|key| !named.contains(&key.as_str())).collect();
    assert!(own.is_empty(), "`queens` has no fields of its own: {own:?}");
}

#[test]
fn a_full_disk_of_standard_error_changes_nothing() {
    for mut command in commands("2>/dev/full") {
        let report = run(command.env("ULTRAMARINE_LOG", "debug")).report();
        assert_eq!(report["result"], 92, "{command:?}");
    }
}

#[test]
fn a_full_disk_of_standard_output_is_an_error_that_says_so() {
    for mut command in commands(">/dev/full") {
        let ended = run(&mut command);
        ended.fails_with("standard output cannot be written (No space left on device");
    }
}
