//! The program by itself, as the command `ultramarine gap` starts it.

use std::process::Command;
use ultramarine_testkit::run;

fn program(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ultramarine-gap"));
    command.args(flags);
    command
}

#[test]
fn pipes_that_are_not_there_are_an_error_that_says_where_they_must_be() {
    let ended = run(&mut program(&["--folder", "/nowhere", "--pes", "1", "--threads", "1"]));
    ended.fails_with("the pipe /nowhere/replies to GAP cannot be opened");
    ended.fails_with("must be on the host of `ultramarine gap`");
}

#[test]
fn it_says_who_calls_it() {
    let ended = run(&mut program(&["--help"]));
    assert!(ended.out.contains("Called by the command `ultramarine gap`"), "{}", ended.out);
}
