//! Where GAP dies of a call, other PEs try.

use super::{file, on_two_pes, succeeds};
use crate::harness::{Stage, run, ultramarine};

/// The first two GAPs that call `dies` end: those of the PE that a task is on.
pub(super) const DIES_TWICE: &str = r#"ParDefine("""
dies := function(x)
    local n;
    for n in [1, 2] do
        if not IsExistingFile(Concatenation("died", String(n))) then
            PrintTo(Concatenation("died", String(n)), x);
            QuitGap(9);
        fi;
    od;
    return x;
end;
""");
"#;

#[test]
fn another_pe_tries_a_step_of_divide_and_conquer() {
    let steps = "ReturnTrue, x -> dies(x), x -> [x], {x, all} -> x, 5";
    succeeds("gap-step", &format!("{DIES_TWICE}check(ParDivideAndConquer({steps}), 5);\n"));
}

#[test]
fn what_the_last_gap_says_is_said() {
    let ended =
        on_two_pes("gap-last", &format!("{DIES_TWICE}ParMap(x -> 1 / (dies(x) - 1), [1]);"));
    ended.fails_with("GAP died amid the call (tries: 2): it ended with code 9");
    ended.fails_with("item 1: Error, Rational operations: <divisor> must not be zero");
}

#[test]
fn no_pe_beyond_the_radius_tries() {
    let script = r#"
OnBreak := function() Print(StringFile("notes")); QuitGap(1); end;;
ParMapLocal(0, function(x) AppendTo("notes", x, "\n"); QuitGap(9); end, [1]);
"#;
    let ended = on_two_pes("gap-radius", script);
    ended.fails_with("GAP died amid the call (tries: 2): it ended with code 9");
    assert_eq!(ended.out, "1\n1\n");
}

#[test]
fn a_gap_beyond_its_limits_is_killed() {
    let stage = Stage::new("gap-limits");
    let script = "OnBreak := function() end;; BreakOnError := false;;\n\
         CALL_WITH_CATCH(ParMapLocal, [0, function(x) while true do od; end, [1]]);\n\
         CALL_WITH_CATCH(ParMapLocal, [0, x -> List([1 .. 10^8], y -> [y, x]), [1]]);\n";
    let mut command = ultramarine(&["gap", "--pes", "1", "--call-limit", "20s"]);
    let command = command.args(["--gap-memory", "200 MiB"]).arg(file(&stage, script));
    let said = run(command.current_dir(stage.bin())).err;
    for what in
        ["it took longer than 20s, and was killed", "it needed more memory than it may have"]
    {
        assert!(said.contains(what), "`{what}` is not in:\n{said}");
    }
    for (flag, value) in
        [("--call-limit", "soon"), ("--gap-memory", "much"), ("--gap-memory", "0MiB")]
    {
        let ended = run(&mut ultramarine(&["gap", flag, value]));
        ended.fails_with(&format!("invalid value '{value}' for '{flag}"));
    }
}
