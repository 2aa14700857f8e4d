//! Where GAP dies of a call, other PEs try.

use super::{on_two_pes, succeeds};

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
    let steps = "dies, x -> x, x -> [x], {x, all} -> x, true";
    succeeds("gap-step", &format!("{DIES_TWICE}check(ParDivideAndConquer({steps}), true);\n"));
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
