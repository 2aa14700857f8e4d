//! A network as a real job measured it: from the line that `ultramarine topo --json` prints.
//!
//! The line has a table `latency`, one row for each distance, of round trips of an empty task:
//!
//! ```json
//! {"latency": [{"distance": "1/2", "share": "host", "p50_us": 21.0, "p99_us": 23.0}]}
//! ```
//!
//! A round trip is two messages, the task and its result, and for each of them the runtime's own
//! code at both ends: encoding, queues, waking a worker. Half of it is split as MPI's half round
//! trips are ([`Preset`](super::Preset)): a fifth for the sender, two fifths on the way, two fifths
//! for the receiver. The gap is the sender's overhead. A simulation that adds the runtime's own
//! time to each message counts it twice.
//!
//! The tail is taken for exponential: its mean is `(p99 - p50) / ln 50`, halved.
//!
//! What the line does not have is assumed: 10 GB/s for bytes, and for PEs that share what no row
//! names, the next farther row, or else the farthest one.

use super::transfer::LinkCosts;
use crate::machine::Tier;
use serde_json::Value;

/// The slowest round trip that is believed: 10 s.
const ROUND_TRIP_MAX_US: f64 = 1e7;

/// The time of a byte: 10 GB/s.
const GAP_PER_BYTE_PS: u64 = 100;

/// Why a measurement cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasuredError {
    /// The text is not JSON.
    #[error(
        "the measured network is not JSON: {0}; give the line that `ultramarine topo --json` prints"
    )]
    NotJson(#[from] serde_json::Error),
    /// There is no table of round trips, or it is empty.
    #[error(
        "the measured network has no round trips in it: run `ultramarine topo --json` in a job of \
         two PEs or more, as in `mpiexec -n 8 ultramarine topo --json`, without --hosts and \
         --no-latency"
    )]
    NoLatency,
    /// A row of the table, in JSON, has something under this key that is not valid.
    #[error(
        "the row `{0}` of the measured network has no believable {1}: round trips take above 0 \
         and at most {ROUND_TRIP_MAX_US} µs, and p99_us is at least p50_us"
    )]
    Row(Value, &'static str),
    /// A row, in JSON, is of PEs that share something unknown.
    #[error(
        "the row `{0}` of the measured network has an unknown `share`; known are package, numa, \
         host, switch, site and null"
    )]
    Share(Value),
}

/// What messages cost between PEs that share a package, a host, a rack, the machine.
pub(super) fn costs(json: &str) -> Result<[LinkCosts; 4], MeasuredError> {
    let line: Value = serde_json::from_str(json)?;
    let rows = line.get("latency").and_then(Value::as_array).ok_or(MeasuredError::NoLatency)?;
    let mut known: [Option<LinkCosts>; 4] = [None; 4];
    for row in rows {
        let tier = tier(row)?;
        let costs = of_row(row)?;
        // Nested switches: the slower row is of those that are farther.
        let slot = &mut known[tier as usize];
        if slot.is_none_or(|slot| slot.half_round_trip_ns() < costs.half_round_trip_ns()) {
            *slot = Some(costs);
        }
    }
    let farthest = known.into_iter().flatten().last().ok_or(MeasuredError::NoLatency)?;
    let mut all = [farthest; 4];
    for (place, costs) in all.iter_mut().enumerate() {
        *costs = known[place..].iter().flatten().next().copied().unwrap_or(farthest);
    }
    Ok(all)
}

fn tier(row: &Value) -> Result<Tier, MeasuredError> {
    match row.get("share").filter(|share| !share.is_null()).map(Value::as_str) {
        None | Some(Some("site")) => Ok(Tier::Machine),
        Some(Some("package" | "numa")) => Ok(Tier::Package),
        Some(Some("host")) => Ok(Tier::Host),
        Some(Some("switch")) => Ok(Tier::Rack),
        Some(_) => Err(MeasuredError::Share(row.clone())),
    }
}

fn of_row(row: &Value) -> Result<LinkCosts, MeasuredError> {
    let micros = |key: &'static str, least: f64| {
        let value = row.get(key).and_then(Value::as_f64);
        let believed = value.filter(|us| *us > 0.0 && *us >= least && *us <= ROUND_TRIP_MAX_US);
        believed.ok_or_else(|| MeasuredError::Row(row.clone(), key))
    };
    let median = micros("p50_us", 0.0)?;
    let tail = micros("p99_us", median)? - median;
    let half_ns = median * 1e3 / 2.0;
    let part = |fifths: f64| (half_ns * fifths / 5.0).round() as u64;
    let jitter = tail * 1e3 / 2.0 / 50f64.ln();
    Ok(LinkCosts {
        latency_ns: part(2.0),
        send_overhead_ns: part(1.0),
        receive_overhead_ns: part(2.0),
        gap_ns: part(1.0),
        gap_per_byte_ps: GAP_PER_BYTE_PS,
        jitter_ns: jitter.round() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(json: &str) -> [u64; 4] {
        costs(json).expect(json).map(|costs| costs.half_round_trip_ns())
    }

    fn refusal(json: &str) -> String {
        costs(json).expect_err(json).to_string()
    }

    #[test]
    fn a_round_trip_is_split_by_hand() {
        let json = r#"{"latency": [{"distance": "1", "share": null, "pairs": 8,
                       "round_trips": 200, "p50_us": 20.0, "p99_us": 59.1}]}"#;
        let expected = LinkCosts {
            latency_ns: 4_000,
            send_overhead_ns: 2_000,
            receive_overhead_ns: 4_000,
            gap_ns: 2_000,
            gap_per_byte_ps: 100,
            // 39.1 µs / 2 / 3.912.
            jitter_ns: 4_997,
        };
        assert_eq!(costs(json).expect("costs"), [expected; 4]);
    }

    #[test]
    fn a_line_of_the_command_is_read() {
        let line = r#"{"distances":["1"],"latency":[{"distance":"1","p50_us":296.1,"p99_us":633.4,
                       "pairs":4,"round_trips":432,"share":"numa"}],"network":"loopback","pes":
                       [{"pe":0,"place":[["host","vm"],["numa","0"]],"power":1,"rank":0}],
                       "upkeep":null,"warnings":[]}"#;
        assert_eq!(half(line), [148_050; 4]);
    }

    #[test]
    fn rows_go_to_what_pes_share() {
        let row =
            |share: &str, us: u32| format!(r#"{{"share":{share},"p50_us":{us},"p99_us":{us}}}"#);
        let all =
            [row("null", 80), row("\"switch\"", 60), row("\"host\"", 40), row("\"numa\"", 20)];
        assert_eq!(
            half(&format!(r#"{{"latency":[{}]}}"#, all.join(","))),
            [10_000, 20_000, 30_000, 40_000]
        );
        let two = [row("null", 80), row("\"host\"", 40)];
        let expected = [20_000, 20_000, 40_000, 40_000];
        assert_eq!(half(&format!(r#"{{"latency":[{}]}}"#, two.join(","))), expected);
        let host = format!(r#"{{"latency":[{}]}}"#, row("\"host\"", 40));
        assert_eq!(half(&host), [20_000; 4], "one host says nothing of farther ones");
        let nested = [row("\"switch\"", 60), row("\"switch\"", 40)];
        assert_eq!(half(&format!(r#"{{"latency":[{}]}}"#, nested.join(","))), [30_000; 4]);
    }

    #[test]
    fn refusals_say_what_to_do() {
        for json in ["{}", r#"{"latency": []}"#, r#"{"latency": 5}"#, "[]"] {
            assert!(refusal(json).contains("without --hosts and --no-latency"), "{json}");
        }
        for (p50, p99) in [("-1", "2"), ("0", "2"), ("2", "1"), ("1e8", "1e8"), ("\"2\"", "3")] {
            let json = format!(r#"{{"latency":[{{"share":null,"p50_us":{p50},"p99_us":{p99}}}]}}"#);
            assert!(refusal(&json).contains("above 0 and at most 10000000 µs"), "{json}");
        }
        assert!(refusal(r#"{"latency":[{"share":null}]}"#).contains("no believable p50_us"));
        let odd = r#"{"latency":[{"share":"rack","p50_us":1,"p99_us":1}]}"#;
        assert!(refusal(odd).contains("unknown `share`"), "{}", refusal(odd));
    }
}
