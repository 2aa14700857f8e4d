//! Scripts with a journal: what they had before their end is not computed again.

use super::{CHECK, file};
use crate::harness::{MARK, Stage, nothing_is_left, run, ultramarine};
use std::process::{Command, Stdio};
use ultramarine_journal::inspect;
use ultramarine_testkit::{eventually, kill, marked};

/// Functions that note in the file `done` what they compute.
const NOTED: &str = "noted := function(x) AppendTo(\"done\", x, \"\\n\"); return x; end;";

fn command(stage: &Stage, pes: &str, script: &str) -> Command {
    let script = file(stage, &format!("{CHECK}ParDefine({NOTED:?});\n{script}"));
    let mut command = ultramarine(&["gap", "--pes", pes, "--journal", "results.journal"]);
    command.arg(script).current_dir(stage.bin()).env("ULTRAMARINE_THREADS", "1");
    command
}

/// What has been computed, in an order.
fn done(stage: &Stage) -> Vec<String> {
    let text = std::fs::read_to_string(stage.bin().join("done")).unwrap_or_default();
    let mut done: Vec<_> = text.lines().map(str::to_owned).collect();
    done.sort();
    done
}

#[test]
fn a_script_that_was_killed_goes_on_where_it_was() {
    let (mark, stage) = ("gap-journal-killed", Stage::new("gap-journal-killed"));
    let script = r#"
wait := function(x)
    while x = 30 and not IsExistingFile("go") do Sleep(0); od;
    return noted(x)^2;
end;;
check(ParReduce({x, y} -> noted(x) + y, [1001..1005]), 5015);
check(ParMap(wait, [1..60] : chunk := 1), List([1..60], x -> x^2));
"#;
    let mut first = command(&stage, "2", script);
    first.env(MARK, mark).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = first.spawn().expect("it was built");
    let journal = stage.bin().join("results.journal");
    // All numbers but one, and six tasks of the sum: of 5, 3 and 2 numbers, by pairs.
    let has_all_but_one = || inspect(&journal).is_ok_and(|found| found.report.records == 59 + 6);
    eventually("one result is missing", has_all_but_one);
    marked(MARK, mark).into_iter().for_each(kill);
    first.wait().expect("it is a child of ours");
    nothing_is_left(mark);
    let before = done(&stage);
    assert!(!before.contains(&"30".to_owned()), "{before:?}");

    std::fs::write(stage.bin().join("go"), "").expect("the folder is our own");
    run(&mut command(&stage, "2", script)).succeeded();
    let mut wanted = before;
    wanted.push("30".to_owned());
    wanted.sort();
    assert_eq!(done(&stage), wanted);
}

/// One of each function that has a journal.
const CALLS: &str = r"
check(ParMap(x -> 2 * noted(x), [1..5]), [2, 4 .. 10]);
check(ParMap2Level(1, x -> 3 * noted(x), [1..5] : chunk := 2), [3, 6 .. 15]);
check(ParMap({x, by} -> by * noted(x), [1..5] : given := 2), [2, 4 .. 10]);
check(ParReduce({x, y} -> noted(x) + y, [1..9]), 45);
check(ParOrbit([(1,2,3)], 1, {x, g} -> noted(x)^g), [1, 2, 3]);
check(ParOrbit([(1,2,3)], 1, {x, g} -> noted(x)^g : length := true), 3);
fibonacci := ParDivideAndConquer(n -> n < 2, noted, n -> [n - 1, n - 2], {n, x} -> Sum(x), 9);;
check(fibonacci, 34);
";

#[test]
fn what_a_script_had_is_not_computed_again_and_what_has_changed_is() {
    let stage = Stage::new("gap-journal");
    let computes = |script: &str, wanted: usize| {
        let before = done(&stage).len();
        run(&mut command(&stage, "1", script)).succeeded();
        assert_eq!(done(&stage).len() - before, wanted, "{script}");
    };
    let doubles = "check(ParMap(x -> 2 * noted(x), [1..5]), [2, 4 .. 10]);\n";
    // 15 of maps, 8 sums, 3 points twice, 55 leaves.
    computes(CALLS, 15 + 8 + 6 + 55);
    // Other tasks, and another call before. The second of two equal calls has results of its own.
    let other_tasks = CALLS.replace("chunk := 2", "chunk := 3");
    let script = format!("check(ParMap(noted, [7, 8]), [7, 8]);\n{other_tasks}{doubles}");
    computes(&script, 2 + 5);
    // Another function, other items, another second argument, another definition before.
    let changed = "\
        check(ParMap(x -> 4 * noted(x), [1..5]), [4, 8 .. 20]);\n\
        check(ParMap(x -> 2 * noted(x), [1..6]), [2, 4 .. 12]);\n\
        check(ParMap({x, by} -> by * noted(x), [1..5] : given := 3), [3, 6 .. 15]);\n\
        ParDefine(\"a := 1;\");\n";
    // All else is there by now.
    computes(&format!("{script}{changed}{doubles}"), 5 + 6 + 5 + 5);
}

#[test]
fn a_file_that_is_no_journal_of_a_script_is_refused() {
    let stage = Stage::new("gap-journal-refused");
    let journal = stage.bin().join("results.journal");
    std::fs::write(&journal, "a text").expect("the folder is our own");
    let ended = run(&mut command(&stage, "1", ""));
    ended.fails_with("is no journal, or has lost its beginning, and was left as it is");
    ended.fails_with("the job has ended before GAP could begin");
}
