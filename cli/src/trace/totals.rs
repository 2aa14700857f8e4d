//! What a trace comes to.

use crate::output::printable;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use ultramarine_trace::{Count, Noted, Reader, SEARCH, Slice};

/// Sums over all slices.
#[derive(Default)]
pub(super) struct Totals {
    functions: BTreeMap<String, Numbers>,
    spans: BTreeMap<String, Numbers>,
    /// By PE.
    pes: BTreeMap<u32, Pe>,
    begin_ns: Option<u64>,
    end_ns: u64,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Numbers {
    runs: u64,
    busy_ns: u64,
    longest_ns: u64,
}

impl Numbers {
    fn add(&mut self, count: &Count) {
        self.runs = self.runs.saturating_add(count.runs);
        self.busy_ns = self.busy_ns.saturating_add(count.busy_ns);
        self.longest_ns = self.longest_ns.max(count.longest_ns);
    }
}

/// What the workers of a PE did, in nanoseconds.
#[derive(Default)]
struct Pe {
    busy: u64,
    search: u64,
    /// When the last thing happened there.
    end: u64,
}

impl Totals {
    /// Adds something.
    pub(super) fn add(&mut self, reader: &Reader, noted: &Noted) {
        if let Noted::Slice(slice) = noted {
            self.add_slice(reader, slice);
        }
    }

    fn add_slice(&mut self, reader: &Reader, slice: &Slice) {
        let begin = self.begin_ns.get_or_insert(slice.begin_ns);
        *begin = slice.begin_ns.min(*begin);
        self.end_ns = self.end_ns.max(slice.end_ns);
        let (name, took) = (slice.name.clone(), slice.took_ns());
        let span = Count { name, runs: 1, busy_ns: took, longest_ns: took };
        let own = slice.is_span.then_some(&span);
        for count in slice.spans.iter().chain(own) {
            self.spans.entry(count.name.clone()).or_default().add(count);
        }
        let Some(thread) = reader.threads().get(&slice.thread) else { return };
        let is_worker = thread.is_worker();
        let pe = self.pes.entry(thread.pe).or_default();
        pe.end = pe.end.max(slice.end_ns);
        for count in &slice.functions {
            let is_search = count.name == SEARCH;
            if !is_search {
                self.functions.entry(count.name.clone()).or_default().add(count);
            }
            let sum = if is_search { &mut pe.search } else { &mut pe.busy };
            *sum = sum.saturating_add(if is_worker { count.busy_ns } else { 0 });
        }
    }

    /// What is to be shown.
    pub(super) fn page(&self, reader: &Reader) -> Page {
        let mut workers: BTreeMap<u32, usize> = BTreeMap::new();
        for (pe, _) in reader.workers() {
            *workers.entry(pe).or_default() += 1;
        }
        let idle = Pe::default();
        let took = self.end_ns - self.begin_ns.unwrap_or(self.end_ns);
        let named = |of: &BTreeMap<String, Numbers>| {
            let mut rows: Vec<Row> = of
                .iter()
                .map(|(name, numbers)| Row { name: name.clone(), numbers: *numbers })
                .collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row.numbers.busy_ns));
            rows
        };
        let pe = |(number, workers): (&u32, &usize)| {
            let pe = self.pes.get(number).unwrap_or(&idle);
            PeRow {
                pe: *number,
                workers: *workers,
                busy: share(pe.busy, took, *workers),
                looking_for_work: share(pe.search, took, *workers),
                ends_s: seconds(pe.end.saturating_sub(self.begin_ns.unwrap_or_default())),
            }
        };
        Page {
            took_s: seconds(took),
            lost: reader.lost(),
            functions: named(&self.functions),
            spans: named(&self.spans),
            pes: workers.iter().map(pe).collect(),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

/// The share of the time of all workers.
fn share(part: u64, took: u64, workers: usize) -> f64 {
    part as f64 / (took as f64 * workers as f64).max(1.0)
}

/// What is printed. In JSON, the names of the fields are the keys.
#[derive(Serialize)]
pub(super) struct Page {
    took_s: f64,
    /// How many runs and spans are missing.
    lost: u64,
    functions: Vec<Row>,
    spans: Vec<Row>,
    pes: Vec<PeRow>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    #[serde(flatten)]
    numbers: Numbers,
}

#[derive(Serialize)]
struct PeRow {
    pe: u32,
    workers: usize,
    /// The share of its workers' time in which they ran tasks, or jobs of rayon between them.
    busy: f64,
    /// The share in which they looked for some.
    looking_for_work: f64,
    /// When the last thing happened there, from the beginning.
    ends_s: f64,
}

/// How many rows of a kind are shown.
const ROWS: usize = 20;

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "took {:.3} s on {} PEs", self.took_s, self.pes.len())?;
        if self.lost > 0 {
            writeln!(f, "{} runs and spans are missing: the disk was too slow", self.lost)?;
        }
        for (what, rows) in [("function", &self.functions), ("span", &self.spans)] {
            if rows.is_empty() {
                continue;
            }
            writeln!(f, "\n{:>12} {:>12} {:>12}  {what}", "runs", "seconds", "longest")?;
            for Row { name, numbers } in rows.iter().take(ROWS) {
                let longest = format!("{:.1?}", Duration::from_nanos(numbers.longest_ns));
                let busy = seconds(numbers.busy_ns);
                let name = printable(name);
                writeln!(f, "{:>12} {busy:>12.3} {longest:>12}  {name}", numbers.runs)?;
            }
            if let Some(more) = rows.len().checked_sub(ROWS).filter(|more| *more > 0) {
                writeln!(f, "{:>40}{more} more", "")?;
            }
        }
        writeln!(
            f,
            "\n{:>8} {:>8} {:>8} {:>8} {:>10}",
            "PE", "workers", "busy", "looking", "ends"
        )?;
        for pe in self.pes.iter().take(ROWS) {
            let (busy, looking) = (100.0 * pe.busy, 100.0 * pe.looking_for_work);
            let (number, workers, ends) = (pe.pe, pe.workers, pe.ends_s);
            writeln!(f, "{number:>8} {workers:>8} {busy:>6.1} % {looking:>6.1} % {ends:>8.3} s")?;
        }
        if let Some(more) = self.pes.len().checked_sub(ROWS).filter(|more| *more > 0) {
            writeln!(f, "{more:>8} more")?;
        }
        Ok(())
    }
}
