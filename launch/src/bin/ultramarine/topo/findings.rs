//! What is found out about a job, as text and as JSON.

use serde_json::{Value, json};
use std::fmt::{self, Formatter};
use ultramarine::latency::{self, Latency};
use ultramarine::{LevelKind, Pe, Statistics, Topology, Upkeep};

/// What is known of a job.
pub(super) struct Findings<'a> {
    pub(super) topology: &'a Topology,
    /// By ascending distance; empty if it was not measured.
    pub(super) latency: Vec<Latency>,
    /// What its PEs have counted, if it runs.
    pub(super) statistics: Option<Statistics>,
}

impl<'a> Findings<'a> {
    /// A job that does not run.
    pub(super) fn described(topology: &'a Topology) -> Self {
        Findings { topology, latency: Vec::new(), statistics: None }
    }

    /// Says where the hierarchy promises what is not so.
    pub(super) fn warn(&self) {
        latency::doubts(&self.latency).iter().for_each(|doubt| eprintln!("warning: {doubt}"));
    }

    pub(super) fn json(&self) -> Value {
        let distances = self.topology.radii().iter().skip(1).rev().map(ToString::to_string);
        let doubts = latency::doubts(&self.latency);
        json!({
            "pes": (0..self.topology.pes()).map(|pe| self.pe(Pe::new(pe))).collect::<Vec<_>>(),
            "distances": distances.collect::<Vec<_>>(),
            "latency": self.latency.iter().rev().map(row).collect::<Vec<_>>(),
            "warnings": doubts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "upkeep": self.statistics.as_ref().map(|s| json!({ "sum": s.upkeep, "most": s.upkeep_most })),
        })
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
        self.statistics.as_ref().map_or(Ok(()), |statistics| write_upkeep(f, statistics))
    }
}

/// What it takes to find each other and to keep in touch. PEs of one process need nothing of it.
fn write_upkeep(f: &mut Formatter<'_>, statistics: &Statistics) -> fmt::Result {
    let (most, sum) = (statistics.upkeep_most, statistics.upkeep);
    if most == Upkeep::default() {
        return Ok(());
    }
    writeln!(f)?;
    if most.bootstrap_received_bytes > 0 {
        let (sent, received) = (most.bootstrap_sent_bytes, most.bootstrap_received_bytes);
        writeln!(
            f,
            "start-up: a PE told the others {sent} bytes at most, and was told {received}"
        )?;
    }
    let (opened, accepted) = (most.connections_opened, most.connections_accepted);
    writeln!(
        f,
        "TCP connections so far: a PE has opened {opened} at most, and accepted {accepted}; all together \
         opened {}",
        sum.connections_opened
    )
}
