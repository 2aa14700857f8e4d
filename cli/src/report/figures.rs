//! Adds up what a trace tells. It is read once, and what is kept grows with the number of PEs and
//! of functions, not with that of tasks.

use super::heat::Heat;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use ultramarine_trace::{
    Count, Event, GAUGES, Noted, Process, Reader, SEARCH, Sample, Slice, WORKER,
};

/// How many of the longest tasks are shown.
const LONGEST: usize = 10;

/// A PE that is busy for less than this share of a piece of time does not work yet, or not any
/// more.
const WORKS: f64 = 0.05;

/// Hosts are compared that have run a function this often.
const RUNS_COMPARED: u64 = 20;

/// How many events are shown.
const EVENTS_MAX: usize = 100;

/// Times of runs are counted by their binary logarithms in nanoseconds: up to four seconds and
/// more.
pub(super) const CLASSES: usize = 33;

/// What has been read so far.
#[derive(Default)]
pub(super) struct Figures {
    begin_ns: Option<u64>,
    end_ns: u64,
    functions: BTreeMap<String, Function>,
    /// How long the workers computed.
    computing: u64,
    heat: Heat,
    /// The longest first.
    longest: Vec<Task>,
    events: Vec<Event>,
    /// How many events there were beyond the first ones.
    more_events: usize,
    /// By what they count, and PE.
    counters: BTreeMap<String, BTreeMap<u32, u64>>,
    /// How often a function ran on a PE, and how long that took.
    by_pe: BTreeMap<(String, u32), (u64, u64)>,
}

/// How many runs took how long.
pub(super) type Classes = [u64; CLASSES];

/// What a function took.
#[derive(Clone)]
pub(super) struct Function {
    pub(super) runs: u64,
    pub(super) busy_ns: u64,
    pub(super) longest_ns: u64,
    pub(super) classes: Classes,
}

/// What a trace comes to.
pub(super) struct Summary<'a> {
    pub(super) command: &'a [String],
    pub(super) hosts: BTreeSet<&'a str>,
    pub(super) pes: Vec<u32>,
    pub(super) workers: usize,
    pub(super) begin_ns: u64,
    pub(super) took_ns: u64,
    pub(super) times: Times,
    /// Those that took the most first.
    pub(super) functions: Vec<(&'a String, &'a Function)>,
    /// How long a piece of `busy` is, in seconds.
    pub(super) piece_s: f64,
    /// The share of the time in which the workers of each PE were busy, piece by piece.
    pub(super) busy: Vec<Vec<f64>>,
    /// The longest first.
    pub(super) longest: &'a [Task],
    pub(super) events: &'a [Event],
    pub(super) more_events: usize,
    /// The sums over all PEs of what they have counted, unless it is nothing.
    pub(super) counters: BTreeMap<&'a str, u64>,
    /// How long a run of the first function takes on each host, in nanoseconds.
    pub(super) by_host: Vec<(&'a str, f64)>,
    /// How many runs and spans are missing.
    pub(super) lost: u64,
}

/// Where the time of all workers went, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) computing: u64,
    /// Before their first work.
    pub(super) start: u64,
    /// Between two tasks.
    pub(super) between: u64,
    /// After their last work.
    pub(super) end: u64,
}

impl Times {
    /// All of it.
    pub(super) fn all_ns(&self) -> u64 {
        self.computing + self.start + self.between + self.end
    }

    /// A part as a share of all of it.
    pub(super) fn share(&self, part_ns: u64) -> f64 {
        part_ns as f64 / self.all_ns().max(1) as f64
    }
}

/// A long task.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) function: String,
    pub(super) pe: u32,
    /// When it began; or, if it was counted together with others, when the first of them did.
    pub(super) begin_ns: u64,
    pub(super) took_ns: u64,
}

impl Figures {
    /// Adds something.
    pub(super) fn add(&mut self, reader: &Reader, noted: Noted) {
        match noted {
            Noted::Slice(slice) if !slice.is_span => self.add_slice(reader, &slice),
            Noted::Slice(_) => {}
            Noted::Event(_) if self.events.len() >= EVENTS_MAX => self.more_events += 1,
            Noted::Event(event) => self.events.push(event),
            Noted::Sample(Sample { pe, counter, value, .. }) => {
                self.counters.entry(counter).or_default().insert(pe, value);
            }
        }
    }

    fn add_slice(&mut self, reader: &Reader, slice: &Slice) {
        let begin = self.begin_ns.get_or_insert(slice.begin_ns);
        *begin = slice.begin_ns.min(*begin);
        self.end_ns = self.end_ns.max(slice.end_ns);
        let Some(thread) = reader.threads().get(&slice.thread) else { return };
        let pe = thread.pe;
        let mut busy_ns = 0;
        for count in slice.functions.iter().filter(|count| count.name != SEARCH) {
            busy_ns += count.busy_ns;
            self.functions.entry(count.name.clone()).or_default().add(count);
            let (runs, ns) = self.by_pe.entry((count.name.clone(), pe)).or_default();
            (*runs, *ns) = (*runs + count.runs, *ns + count.busy_ns);
            let (function, took_ns) = (count.name.clone(), count.longest_ns);
            self.add_long(Task { function, pe, begin_ns: slice.begin_ns, took_ns });
        }
        if thread.name.starts_with(WORKER) {
            self.computing += busy_ns;
            self.heat.add(pe, (slice.begin_ns, slice.end_ns), busy_ns);
        }
    }

    fn add_long(&mut self, task: Task) {
        let at = self.longest.partition_point(|other| other.took_ns >= task.took_ns);
        if at < LONGEST {
            self.longest.insert(at, task);
            self.longest.truncate(LONGEST);
        }
    }

    /// What all of it comes to.
    pub(super) fn summed_up<'a>(&'a self, reader: &'a Reader) -> Summary<'a> {
        let begin_ns = self.begin_ns.unwrap_or_default();
        let took_ns = self.end_ns - begin_ns;
        let known = reader.workers();
        let mut workers: BTreeMap<u32, u64> = BTreeMap::new();
        known.iter().for_each(|(pe, _)| *workers.entry(*pe).or_default() += 1);
        let busy = self.heat.shares(&workers);
        let all = took_ns * known.len() as u64;
        let mut times = Times { computing: self.computing, ..Times::default() };
        for (row, workers) in busy.iter().zip(workers.values()) {
            let works = |share: &f64| *share >= WORKS;
            let before = row.iter().position(works).unwrap_or(row.len());
            let after = row.iter().rev().position(works).unwrap_or_default();
            let ns = |pieces: usize| pieces as u64 * workers * self.heat.piece_ns();
            times.start += ns(before);
            times.end += ns(after);
        }
        // A piece may begin before the job does.
        let waiting = all.saturating_sub(times.computing);
        times.start = times.start.min(waiting);
        times.end = times.end.min(waiting - times.start);
        times.between = waiting - times.start - times.end;
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_by_key(|(_, function)| Reverse(function.busy_ns));
        let host = |pe: &u32| host_of(reader.processes(), *pe);
        let hosts: BTreeSet<&str> = reader.processes().keys().map(host).collect();
        Summary {
            command: reader.processes().values().next().map_or(&[], |process| &process.command),
            took_ns,
            begin_ns,
            times,
            functions,
            piece_s: self.heat.piece_ns() as f64 / 1e9,
            busy,
            pes: workers.into_keys().collect(),
            workers: known.len(),
            longest: &self.longest,
            events: &self.events,
            more_events: self.more_events,
            counters: self
                .counters
                .iter()
                .map(|(name, by_pe)| (name.as_str(), by_pe.values().sum()))
                .filter(|(name, sum)| !GAUGES.contains(name) && *sum > 0)
                .collect(),
            by_host: self.by_host(reader),
            hosts,
            lost: reader.lost(),
        }
    }

    /// How long a run of the function that took the most time takes on each host.
    fn by_host<'a>(&self, reader: &'a Reader) -> Vec<(&'a str, f64)> {
        let most = self.functions.iter().max_by_key(|(_, function)| function.busy_ns);
        let Some((most, _)) = most else { return Vec::new() };
        let mut hosts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for ((_, pe), (runs, ns)) in self.by_pe.iter().filter(|((name, _), _)| name == most) {
            let host = hosts.entry(host_of(reader.processes(), *pe)).or_default();
            *host = (host.0 + runs, host.1 + ns);
        }
        let known = hosts.into_iter().filter(|(_, (runs, _))| *runs >= RUNS_COMPARED);
        known.map(|(host, (runs, ns))| (host, ns as f64 / runs as f64)).collect()
    }
}

/// The host of a PE, which its process is named after.
fn host_of(processes: &BTreeMap<u32, Process>, pe: u32) -> &str {
    let name = processes.get(&pe).map(|process| process.name.as_str());
    name.and_then(|name| name.split_once(" on ")).map_or("an unknown host", |(_, host)| host)
}

impl Default for Function {
    fn default() -> Self {
        Function { runs: 0, busy_ns: 0, longest_ns: 0, classes: [0; CLASSES] }
    }
}

impl Function {
    /// Adds runs. Of those that were counted together only the longest and the mean are known.
    fn add(&mut self, count: &Count) {
        self.runs += count.runs;
        self.busy_ns += count.busy_ns;
        self.longest_ns = self.longest_ns.max(count.longest_ns);
        let others = count.runs.saturating_sub(1);
        self.classes[class(count.longest_ns)] += count.runs - others;
        let rest = count.busy_ns.saturating_sub(count.longest_ns);
        if let Some(mean) = rest.checked_div(others) {
            self.classes[class(mean)] += others;
        }
    }

    pub(super) fn mean_ns(&self) -> u64 {
        self.busy_ns.checked_div(self.runs).unwrap_or_default()
    }
}

fn class(ns: u64) -> usize {
    (ns.max(1).ilog2() as usize).min(CLASSES - 1)
}
