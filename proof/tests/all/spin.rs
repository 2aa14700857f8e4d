//! The model in Promela; and mutants of it, which SPIN must find.
//!
//! A search prints how many states it has visited.

use std::path::Path;
use ultramarine_proof::spin::{Spin, check};

#[track_caller]
fn spin(name: &str, macros: &[&str]) -> Spin {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("spin-{name}"));
    let result = check(macros, &folder).unwrap_or_else(|error| panic!("{error}"));
    println!("{name}: {result}");
    result
}

#[test]
fn the_future_is_full_in_the_end() {
    // The death of all three takes minutes: `cargo run -p ultramarine-proof -- spin`.
    assert!(!spin("supervision", &["MORTALS=2"]).is_violated);
}

#[test]
fn the_rule_about_those_known_to_be_dead_is_needed() {
    assert!(spin("dead", &["WITHOUT_KNOWN_DEAD_RULE"]).is_violated);
}

#[test]
fn the_rule_about_ages_is_needed() {
    assert!(spin("age", &["WITHOUT_AGE_RULE"]).is_violated);
}

#[test]
fn the_rule_about_replicas_is_needed() {
    assert!(spin("replica", &["WITHOUT_REPLICA_RULE", "MORE_HOPS=1"]).is_violated);
}
