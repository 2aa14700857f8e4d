//! What is found out about a job, as text and as JSON.

use serde_json::{Value, json};
use std::fmt::{self, Formatter};
use std::io;
use ultramarine::latency::{self, Latency};
use ultramarine::{LevelKind, Pe, Statistics, Topology, Upkeep};

/// What is known of a job.
pub(super) struct Findings<'a> {
    pub(super) topology: &'a Topology,
    /// By ascending distance; empty if it was not measured.
    pub(super) latency: Vec<Latency>,
    /// What its PEs have counted, if it runs.
    pub(super) statistics: Option<Statistics>,
    /// Over which of the root's networks they call each other, if they do.
    pub(super) network: Option<&'static str>,
}

impl<'a> Findings<'a> {
    /// A job that does not run.
    pub(super) fn described(topology: &'a Topology) -> Self {
        Findings { topology, latency: Vec::new(), statistics: None, network: None }
    }

    /// Says where the hierarchy promises what is not so.
    pub(super) fn warn(&self, to: &mut impl io::Write) -> io::Result<()> {
        latency::doubts(&self.latency).iter().try_for_each(|doubt| writeln!(to, "warning: {doubt}"))
    }

    pub(super) fn json(&self) -> Value {
        let distances = self.topology.radii().iter().skip(1).rev().map(ToString::to_string);
        let doubts = latency::doubts(&self.latency);
        let upkeep = self.statistics.as_ref();
        let upkeep = upkeep.map(|s| json!({ "sum": s.upkeep, "most": s.upkeep_most }));
        json!({
            "pes": (0..self.topology.pes()).map(|pe| self.pe(Pe::new(pe))).collect::<Vec<_>>(),
            "distances": distances.collect::<Vec<_>>(),
            "latency": self.latency.iter().rev().map(row).collect::<Vec<_>>(),
            "warnings": doubts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "network": self.network,
            "upkeep": upkeep,
        })
    }

    /// What it takes to find each other and to keep in touch. PEs of one process need nothing of
    /// it.
    fn write_upkeep(&self, f: &mut Formatter<'_>, statistics: &Statistics) -> fmt::Result {
        let (most, sum) = (statistics.upkeep_most, statistics.upkeep);
        if most == Upkeep::default() {
            return Ok(());
        }
        writeln!(f)?;
        if most.bootstrap_received_bytes > 0 {
            let (sent, received) = (most.bootstrap_sent_bytes, most.bootstrap_received_bytes);
            writeln!(f, "start-up: a PE sent {sent} bytes at most, and received {received}")?;
        }
        if let Some(network) = self.network {
            writeln!(f, "TCP connections: over {network}, as the root has it")?;
        }
        let (opened, accepted) = (most.connections_opened, most.connections_accepted);
        writeln!(
            f,
            "so far a PE has opened {opened} at most, and accepted {accepted}; all together opened \
             {}",
            sum.connections_opened
        )
    }

    fn pe(&self, pe: Pe) -> Value {
        let labels = self.topology.place(pe).labels().iter();
        json!({
            "pe": pe.number(),
            "rank": self.topology.rank_of(pe),
            "power": self.topology.power(pe),
            "place": labels.map(|l| json!([l.kind.to_string(), l.name])).collect::<Vec<_>>(),
        })
    }
}

/// A distance in the table of latencies.
fn row(latency: &Latency) -> Value {
    json!({
        "distance": latency.distance.to_string(),
        "share": latency.shared.map(|kind| kind.to_string()),
        "pairs": latency.pairs,
        "round_trips": latency.count(),
        "p50_us": micros(latency, 0.5),
        "p99_us": micros(latency, 0.99),
    })
}

/// A quantile in microseconds, to tenths.
pub(super) fn micros(latency: &Latency, q: f64) -> f64 {
    (latency.quantile(q).as_secs_f64() * 1e7).round() / 10.0
}

impl fmt::Display for Findings<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.topology)?;
        if !self.latency.is_empty() {
            writeln!(f, "\ndistance  share    pairs  round trips    p50 µs    p99 µs")?;
        }
        for latency in self.latency.iter().rev() {
            let (pairs, count) = (latency.pairs, latency.count());
            let shared = latency.shared.as_ref().map_or("-".to_owned(), LevelKind::to_string);
            let [p50, p99] = [0.5, 0.99].map(|q| micros(latency, q));
            let distance = latency.distance.to_string();
            writeln!(
                f,
                "{distance:<8}  {shared:<7}  {pairs:>5}  {count:>11}  {p50:>8.1}  {p99:>8.1}"
            )?;
        }
        self.statistics.as_ref().map_or(Ok(()), |statistics| self.write_upkeep(f, statistics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use ultramarine::{Distance, Place};

    /// Two hosts of two PEs, with these round trips inside a host and between hosts.
    fn findings(
        topology: &Topology,
        within_micros: [u64; 4],
        between_micros: [u64; 4],
    ) -> Findings<'_> {
        let row = |distance, shared, micros: [u64; 4]| {
            Latency::of(distance, shared, 2, micros.map(Duration::from_micros).to_vec())
        };
        let latency = vec![
            row(Distance::ONE.half(), Some(LevelKind::Host), within_micros),
            row(Distance::ONE, None, between_micros),
        ];
        Findings { latency, ..Findings::described(topology) }
    }

    fn two_hosts() -> Topology {
        let places = ["a", "a", "b", "b"].map(|host| Place::from_pairs([(LevelKind::Host, host)]));
        Topology::new(&places, &[1; 4]).expect("a hierarchy")
    }

    fn warnings(findings: &Findings<'_>) -> (String, Value) {
        let mut text = Vec::new();
        findings.warn(&mut text).expect("there is room");
        (String::from_utf8(text).expect("text"), findings.json()["warnings"].clone())
    }

    #[test]
    fn a_near_pe_that_answers_late_is_warned_of() {
        let topology = two_hosts();
        let odd = findings(&topology, [40, 41, 42, 43], [20, 21, 22, 23]);
        let doubt = "PEs that share a host, at distance 1/2, answer later (half of them after 41.0 \
                     µs) than those at distance 1 (21.0 µs): this level makes no difference, or \
                     the wrong one. If that is so each time, look whether a host runs more \
                     processes than it has cores";
        assert_eq!(warnings(&odd), (format!("warning: {doubt}\n"), json!([doubt])));
        let even = findings(&topology, [20, 21, 22, 23], [40, 41, 42, 43]);
        assert_eq!(warnings(&even), (String::new(), json!([])));
    }

    #[test]
    fn the_table_is_the_same_as_text_and_as_json() {
        let topology = two_hosts();
        let findings = findings(&topology, [20, 21, 22, 23], [40, 41, 42, 43]);
        let text = findings.to_string();
        let table: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("distance")).collect();
        assert_eq!(
            table,
            [
                "distance  share    pairs  round trips    p50 µs    p99 µs",
                "1         -            2            4      41.0      43.0",
                "1/2       host         2            4      21.0      23.0",
            ]
        );
        let near = json!({
            "distance": "1/2", "share": "host", "pairs": 2, "round_trips": 4,
            "p50_us": 21.0, "p99_us": 23.0
        });
        assert_eq!(findings.json()["latency"][1], near);
    }
}
