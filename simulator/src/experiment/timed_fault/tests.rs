//! Faults on the command line: what they mean, and what is refused.

use super::*;

const MILLISECOND: u64 = 1_000_000;

/// Two racks of two hosts of three PEs.
fn machine() -> Machine {
    Machine::of_shape("2x2x3x1").expect("a machine")
}

#[track_caller]
fn meant(text: &str) -> String {
    let fault: TimedFault = text.parse().expect(text);
    let all: Vec<String> = fault.on(&machine()).expect(text).iter().map(describe).collect();
    all.join(", ")
}

fn describe((at, fault): &(u64, InjectedFault)) -> String {
    format!("{} ms: {fault:?}", at / MILLISECOND)
}

#[track_caller]
fn refused(text: &str) -> String {
    text.parse::<TimedFault>().expect_err(text).to_string()
}

#[track_caller]
fn impossible(text: &str) -> String {
    text.parse::<TimedFault>().expect(text).on(&machine()).expect_err(text).to_string()
}

#[test]
fn each_kind_has_a_meaning() {
    assert_eq!(meant("death:7@2s"), "2000 ms: Death(Pe(7))");
    assert_eq!(meant("host:3@1.5s"), "1500 ms: HostDeaths { first: Pe(9), last: Pe(11) }");
    assert_eq!(meant("rack:1@500ms"), "500 ms: HostDeaths { first: Pe(6), last: Pe(11) }");
    assert_eq!(meant("stop:0@1s+300us"), "1000 ms: Stop(Pe(0), 300000)");
    assert_eq!(meant("oneway:3-7@0s+1ms"), "0 ms: Cut { from: Pe(3), to: Pe(7), ns: 1000000 }");
    let for_ever = u64::MAX;
    assert_eq!(
        meant("cut:3-7@2s"),
        format!(
            "2000 ms: Cut {{ from: Pe(3), to: Pe(7), ns: {for_ever} }}, 2000 ms: Cut {{ from: \
             Pe(7), to: Pe(3), ns: {for_ever} }}"
        )
    );
    let host = "2000 ms: Partition { first: Pe(0), last: Pe(2), ns: 500000000 }";
    assert_eq!(meant("partition:host0@2s+500ms"), host);
    assert_eq!(
        meant("partition:rack1@2s"),
        format!("2000 ms: Partition {{ first: Pe(6), last: Pe(11), ns: {for_ever} }}")
    );
    assert_eq!(meant("overload@1s+200ms"), "1000 ms: Overload(200000000)");
}

#[test]
fn the_example_of_each_kind_is_one() {
    for (kind, form, example) in KINDS {
        assert!(example.parse::<TimedFault>().is_ok(), "{example}");
        assert!(example.starts_with(kind) && form.starts_with(kind), "{kind}");
    }
}

#[test]
fn refusals_say_what_is_allowed() {
    for text in ["", "fire:3@2s", "Death:3@2s", "@2s"] {
        let known = "known are death, host, rack, stop, cut, oneway, partition, overload";
        assert!(refused(text).ends_with(known), "{text}");
    }
    for (text, wrong) in [
        ("death:17", "does not say when"),
        ("death@2s", "has `` for a number"),
        ("death:-1@2s", "has `-1` for a number"),
        ("death:1@2", "has `2` for a time, and times are from 0s to 3600s, in s, ms or us"),
        ("death:1@", "has `` for a time"),
        ("death:1@-2s", "has `-2s` for a time"),
        ("death:1@NaNs", "has `NaNs` for a time"),
        ("death:1@3601s", "has `3601s` for a time"),
        ("death:1@2s+1s", "says how long, and the dead are dead for good"),
        ("stop:1@2s", "does not say for how long, above 0 and up to 10s"),
        ("stop:1@2s+11s", "does not say for how long"),
        ("overload@2s+0s", "lasts for no time"),
        ("cut:3-7@2s+0s", "lasts for no time"),
        ("death:+1@2s", "has `+1` for a number"),
        ("overload:3@2s+1s", "names a PE"),
        ("cut:3@2s", "does not name two PEs"),
        ("cut:3-3@2s", "does not name two PEs"),
        ("oneway:3-x@2s", "has `x` for a number"),
        ("partition:3@2s", "names neither a rack nor a host"),
        ("partition:rack@2s", "has `` for a number"),
    ] {
        let error = refused(text);
        assert!(error.starts_with(&format!("`{text}` {wrong}")), "{error}");
        assert!(error.contains("; write ") && error.contains(", such as "), "{error}");
    }
}

#[test]
fn the_machine_must_have_it_and_the_root_must_live() {
    let beginning = "`death:12@1s` is impossible on 12 cores: 12 PEs on 4 hosts in 2 racks; ";
    assert_eq!(impossible("death:12@1s"), format!("{beginning}its PEs are 0 to 11"));
    for (text, allowed) in [
        ("stop:99@1s+1s", "its PEs are 0 to 11"),
        ("cut:3-12@1s", "its PEs are 0 to 11"),
        ("host:4@1s", "its hosts are 0 to 3"),
        ("partition:rack2@1s", "its racks are 0 to 1"),
        ("death:0@1s", "the root, PE 0, must live; PEs 1 to 11 may die"),
        ("host:0@1s", "the root, PE 0, must live, and is in it"),
        ("rack:0@1s", "the root, PE 0, must live, and is in it"),
    ] {
        assert!(impossible(text).ends_with(allowed), "{}", impossible(text));
    }
    let one_rack = Machine::of_shape("4x1").expect("a machine");
    let fault: TimedFault = "partition:rack0@1s".parse().expect("a fault");
    let error = fault.on(&one_rack).expect_err("nothing is outside").to_string();
    assert!(error.ends_with("some PEs must be outside"), "{error}");
}
