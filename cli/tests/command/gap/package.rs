//! GAP's package: that it loads, and what it does with functions and definitions.

use super::{file, on_two_pes, succeeds};
use crate::harness::{Stage, run, ultramarine};

#[test]
fn a_gap_that_cannot_load_the_package_is_an_error() {
    let stage = Stage::new("gap-old");
    let old = stage.script("old", "exec gap -c 'GAPInfo.Version := \"4.9.3\";' \"$@\"");
    let mut command = ultramarine(&["gap", "--pes", "1"]);
    let ended = run(command.arg(file(&stage, "Print(1);")).env("ULTRAMARINE_GAP", old));
    ended
        .fails_with("Error, GAP 4.9.3 cannot load the package `ultramarine`, which needs GAP 4.12");
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
}

#[test]
fn the_tests_of_the_package_pass() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../gap/pkg/ultramarine/tst/ultramarine.tst");
    let script = format!("if not Test({tests:?}) then QuitGap(1); fi;\n");
    on_two_pes("gap-tst", &script).succeeded();
}

#[test]
fn what_a_function_prints_is_in_no_result() {
    let script = "noisy := function(x) Print(\"noise\\n\"); return [x]; end;;\n\
         Print(ParMap(noisy, [1..3]), \"\\n\");\n";
    assert_eq!(on_two_pes("gap-noise", script).succeeded(), "[ [ 1 ], [ 2 ], [ 3 ] ]\n");
}

#[test]
fn definitions_are_kept_once() {
    succeeds(
        "gap-kept",
        r#"
# The memory of the process that has started this GAP, in kB.
rss := function(x)
    local words;
    words := SplitString(ReadAll(InputTextFile("/proc/self/stat")), " ");
    words := ReadAll(InputTextFile(Concatenation("/proc/", words[4], "/status")));
    words := words{[ PositionSublist(words, "VmRSS:") .. Length(words) ]};
    return Int(SplitString(words, "", " \t\n")[2]);
end;;
before := ParMap(rss, [1])[1];;
text := Concatenation("UltramarineLong := \"", ListWithIdenticalEntries(10^5, 'x'), "\";");;
for n in [1 .. 100] do
    ParDefine(text);
    check(ParMap(x -> x + 1, [1, 2]), [2, 3]);
od;
# What is free goes back to the system. The texts have 10 MB; each kept with those before it, they
# would have 505 MB.
Exec("sleep 3");
check(ParMap(rss, [1])[1] - before < 300000, true);
"#,
    );
}

#[test]
fn a_map_of_two_levels_ends_at_an_error() {
    for call in ["ParMap2Level", "ParMap2LevelRelaxed"] {
        let script = format!(
            r#"
notes := function(x) AppendTo("notes", "x"); if IsOddInt(x) then Error("odd"); fi; return x; end;;
OnBreak := function() Print(Length(StringFile("notes")) < 1000, "\n"); QuitGap(1); end;;
{call}(1, notes, [1 .. 1000] : chunk := 1);
"#
        );
        let ended = on_two_pes("gap-two-levels", &script);
        ended.fails_with(": Error, odd");
        assert_eq!(ended.out, "true\n");
    }
}
