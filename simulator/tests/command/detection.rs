//! How long a death takes until all PEs know, and what detection costs, with the default settings.
//! For larger jobs: `cargo xtask simulate detector`.

use super::*;
use std::time::Duration;
use ultramarine_runtime::detector::DetectorSettings;

fn deaths(rows: &[Value]) -> Vec<u32> {
    rows.iter().map(|row| number(row, "deaths") as u32).collect()
}

#[test]
fn a_rack_may_be_one_pe() {
    assert_eq!(deaths(&rows("detector --machine 2x1x1x1")), [1, 1, 1, 1, 1, 1, 0]);
}

#[test]
fn detectors_are_measured() {
    let rows = rows("detector --machine 3x4x2x1");
    assert_eq!(deaths(&rows), [1, 2, 8, 1, 2, 8, 0]);
    for row in rows {
        // Two PEs a host: the other one, and one on each of two other hosts.
        assert_eq!(row["connections_per_pe"], 3.0, "{row}");
        assert!(number(&row, "connections_max") > 3.0 && number(&row, "dials") >= 36.0, "{row}");
        let (mean, most) = ("messages_per_pe_second", "messages_max_per_second");
        assert!(number(&row, mean) > 5.0 && number(&row, most) > number(&row, mean), "{row}");
    }
    let one = simulate("detector --machine 3x4x2x1 --incident rack-dies");
    let text = String::from_utf8(one.stdout).expect("text");
    assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("a rack dies")), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
    refuses("detector --machine 1x4x2x1", 2, &["it needs two racks at least"]);
}

/// Jobs of 128 PEs on four racks, two, and two groups of two.
#[test]
fn all_know_soon_after_the_time_limit_and_a_pe_sends_few_messages() {
    let DetectorSettings { dead_after, heartbeat, .. } = DetectorSettings::default();
    let second = Duration::from_secs(1);
    for (machine, seed) in [("4x8x4x1", 1), ("2x16x4x1", 2), ("2x2x8x4x1", 3)] {
        let rows = rows(&format!("detector --machine {machine} --seed {seed}"));
        let rack = if machine.starts_with("2x16") { 64 } else { 32 };
        assert_eq!(deaths(&rows), [1, 4, rack, 1, 4, rack, 0], "{machine}");
        let limits = [
            ("a PE dies", Some(second)),
            ("a host dies", Some(dead_after + second)),
            ("a rack dies", Some(dead_after + second)),
            ("the root dies", Some(second)),
            // The others on that host would be next, and are looked at when the root is lost.
            ("its host dies", Some(2 * dead_after + second)),
            // Sixteen are looked at at a time. Half of all PEs have no majority.
            ("its rack dies", (rack < 64).then(|| (1 + rack / 16) * dead_after + second)),
            ("stops, late packets", None),
        ];
        for (row, (incident, limit)) in rows.iter().zip(limits) {
            assert_eq!(row["incident"], incident);
            let (known, elected) = (row["known_seconds"].as_f64(), row["elected_millis"].as_f64());
            assert_eq!(known.is_some(), limit.is_some(), "{machine}: {row}");
            assert!(known <= limit.map(|limit| limit.as_secs_f64()), "{machine}: {row}");
            assert_eq!(row["false_verdicts"], 0, "{machine}: {row}");
            let is_roots = incident == "the root dies" || incident.starts_with("its ");
            assert_eq!(elected.is_some(), is_roots && limit.is_some(), "{machine}: {row}");
            assert!(elected <= Some(1.0), "{machine}: {row}");
            if is_roots {
                continue;
            }
            // Four partners.
            let beats = 4.0 / heartbeat.as_secs_f64();
            assert!(number(row, "messages_per_pe_second") < beats * 1.2, "{machine}: {row}");
            assert!((3.5..4.5).contains(&number(row, "connections_per_pe")), "{machine}: {row}");
        }
    }
}
