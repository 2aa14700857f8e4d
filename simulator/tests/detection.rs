//! How long a death takes until all PEs know, and what detection costs, with the default
//! settings: a PE, a host and a rack die in a job of 128 PEs, or none does. For larger jobs:
//! `cargo xtask simulate detector`.

use clap::ValueEnum;
use std::time::Duration;
use ultramarine_runtime::detector::DetectorSettings;
use ultramarine_simulator::experiment::{Detector, Experiment, Incident, Setup};
use ultramarine_simulator::table::Row;

/// A row for each incident.
fn rows(machine: &str, seed: u64) -> Vec<(Incident, Row)> {
    let setup = Setup { machine: Some(machine.parse().unwrap()), seed, ..Setup::default() };
    let mut rows = Vec::new();
    let detector = Detector { setup, ..Detector::default() };
    let mut each = |row| {
        rows.push(row);
        Ok(())
    };
    detector.run(&mut each).unwrap();
    Incident::value_variants().iter().copied().zip(rows).collect()
}

fn deaths(rows: &[(Incident, Row)]) -> Vec<u32> {
    rows.iter().map(|(_, row)| number(row, "deaths") as u32).collect()
}

fn number(row: &Row, key: &str) -> f64 {
    row.number(key).unwrap_or_else(|| panic!("no number `{key}` in {}", row.json()))
}

#[test]
fn a_rack_may_be_one_pe() {
    assert_eq!(deaths(&rows("2x1x1x1", 1)), [1, 1, 1, 1, 1, 1, 0]);
}

/// Four racks, two, and two groups of two.
#[test]
fn all_know_soon_after_the_time_limit_and_a_pe_sends_few_messages() {
    let DetectorSettings { dead_after, heartbeat, .. } = DetectorSettings::default();
    let second = Duration::from_secs(1);
    for (machine, seed) in [("4x8x4x1", 1), ("2x16x4x1", 2), ("2x2x8x4x1", 3)] {
        let rows = rows(machine, seed);
        let rack = if machine.starts_with("2x16") { 64 } else { 32 };
        assert_eq!(deaths(&rows), [1, 4, rack, 1, 4, rack, 0], "{machine}");
        for (incident, row) in rows {
            assert_eq!(row.words("incident"), incident.name());
            let limit = match incident {
                Incident::PeDies | Incident::RootDies => Some(second),
                Incident::HostDies | Incident::RackDies => Some(dead_after + second),
                // The others on that host would be next, and are looked at when the root is lost.
                Incident::RootHostDies => Some(2 * dead_after + second),
                // Half of all PEs have no majority.
                Incident::RootRackDies if machine.starts_with("2x16") => None,
                // Sixteen are looked at at a time.
                Incident::RootRackDies => Some((1 + rack / 16) * dead_after + second),
                Incident::Trouble => None,
            };
            let (known, limit) =
                (row.number("known_seconds"), limit.map(|limit| limit.as_secs_f64()));
            assert_eq!(known.is_some(), limit.is_some(), "{machine}, {incident:?}");
            assert!(known <= limit, "{machine}, {incident:?}: {known:?} s");
            assert_eq!(number(&row, "false_verdicts") as u32, 0, "{machine}, {incident:?}");
            let is_roots = matches!(
                incident,
                Incident::RootDies | Incident::RootHostDies | Incident::RootRackDies
            );
            let has_new_root = is_roots && limit.is_some();
            let elected = row.number("elected_millis");
            assert_eq!(elected.is_some(), has_new_root, "{machine}, {incident:?}");
            assert!(elected <= Some(1.0), "{machine}, {incident:?}: {elected:?} ms");
            if is_roots {
                continue;
            }
            // Four partners.
            let (beats, each) =
                (4.0 / heartbeat.as_secs_f64(), number(&row, "messages_per_pe_second"));
            assert!(
                each < beats * 1.2,
                "{machine}, {incident:?}: {each} messages per PE and second"
            );
            let connections = number(&row, "connections_per_pe");
            assert!((3.5..4.5).contains(&connections), "{machine}, {incident:?}: {connections}");
        }
    }
}
