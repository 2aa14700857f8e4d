//! Adds up what a trace tells. It is read once, and what is kept grows with the number of PEs and
//! of functions, not with that of tasks.

use super::heat::Heat;
use super::waiting::{Times, Worked};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use ultramarine_trace::{Count, DIED, Event, GAUGES, Noted, Process, Reader, Sample, Slice};

/// How many of the longest tasks are shown.
const LONGEST: usize = 10;

/// Hosts are compared that have run a function this often.
const RUNS_COMPARED: u64 = 20;

/// How many events are kept that differ.
const EVENTS_MAX: usize = 1000;

/// How many of the long tasks at the end of each thread are kept.
const LAST_MAX: usize = 8;

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
    /// By thread, long runs that no later run there is longer than: the longest first.
    last: HashMap<u64, Vec<Task>>,
    /// By what was said.
    events: BTreeMap<String, Happened>,
    /// When PEs have died.
    deaths: BTreeMap<u32, u64>,
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
    /// Those of each PE.
    pub(super) workers_of: Vec<u64>,
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
    /// Long runs that were the last ones of their thread, the longest first.
    pub(super) last: Vec<&'a Task>,
    /// The first at first.
    pub(super) events: Vec<(&'a str, &'a Happened)>,
    /// The sums over all PEs of what they have counted, unless it is nothing.
    pub(super) counters: BTreeMap<&'a str, u64>,
    /// How long a run of the first function takes on each host, in nanoseconds.
    pub(super) by_host: Vec<(&'a str, f64)>,
    /// How right the clocks of all PEs are, where there are several.
    pub(super) clocks: Option<String>,
    /// How many runs and spans are missing.
    pub(super) lost: u64,
}

/// What was said of one event.
pub(super) struct Happened {
    /// When it was said first.
    pub(super) first_ns: u64,
    /// The PE that did.
    pub(super) pe: u32,
    /// How many said it.
    pub(super) times: u64,
}

/// A long task.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) function: String,
    pub(super) pe: u32,
    pub(super) took_ns: u64,
    /// When it ended; or, if it was counted together with others, when the last of them did.
    pub(super) end_ns: u64,
}

impl Figures {
    /// Adds something.
    pub(super) fn add(&mut self, reader: &Reader, noted: Noted) {
        match noted {
            Noted::Slice(slice) if !slice.is_span => self.add_slice(reader, &slice),
            Noted::Event(event) => self.add_event(event),
            Noted::Slice(_) | Noted::Compared(_) => {}
            Noted::Sample(Sample { pe, counter, value, .. }) => {
                self.counters.entry(counter).or_default().insert(pe, value);
            }
        }
    }

    fn add_event(&mut self, Event { pe, at_ns, text }: Event) {
        let died = text.strip_suffix(DIED).and_then(|name| name.strip_prefix("PE "));
        if let Some(dead) = died.and_then(|number| number.trim().parse().ok()) {
            let known = self.deaths.entry(dead).or_insert(at_ns);
            *known = at_ns.min(*known);
        }
        if self.events.len() < EVENTS_MAX || self.events.contains_key(&text) {
            let new = || Happened { first_ns: at_ns, pe, times: 0 };
            let known = self.events.entry(text).or_insert_with(new);
            known.times += 1;
            if at_ns < known.first_ns {
                (known.first_ns, known.pe) = (at_ns, pe);
            }
        }
    }

    fn add_slice(&mut self, reader: &Reader, slice: &Slice) {
        let begin = self.begin_ns.get_or_insert(slice.begin_ns);
        *begin = slice.begin_ns.min(*begin);
        self.end_ns = self.end_ns.max(slice.end_ns);
        self.heat.cover((slice.begin_ns, slice.end_ns));
        let Some(thread) = reader.threads().get(&slice.thread) else { return };
        let (pe, end_ns) = (thread.pe, slice.end_ns);
        let mut busy_ns = 0u64;
        for count in slice.functions.iter().filter(|count| count.is_of_program()) {
            busy_ns = busy_ns.saturating_add(count.busy_ns);
            self.functions.entry(count.name.clone()).or_default().add(count);
            let (runs, ns) = self.by_pe.entry((count.name.clone(), pe)).or_default();
            (*runs, *ns) = (runs.saturating_add(count.runs), ns.saturating_add(count.busy_ns));
            let task = Task { function: count.name.clone(), pe, took_ns: count.longest_ns, end_ns };
            let last = self.last.entry(slice.thread).or_default();
            let longer = last.partition_point(|other| other.took_ns > task.took_ns);
            last.truncate(longer.min(LAST_MAX - 1));
            last.push(task.clone());
            self.add_long(task);
        }
        if thread.is_worker() {
            self.computing = self.computing.saturating_add(busy_ns);
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

    /// What all of it comes to. This is said of the clocks.
    pub(super) fn summed_up<'a>(
        &'a self,
        reader: &'a Reader,
        clocks: Option<String>,
    ) -> Summary<'a> {
        let begin_ns = self.begin_ns.unwrap_or_default();
        let took_ns = self.end_ns.saturating_sub(begin_ns);
        let known = reader.workers();
        let mut workers: BTreeMap<u32, u64> = BTreeMap::new();
        known.iter().for_each(|(pe, _)| *workers.entry(*pe).or_default() += 1);
        let busy = self.heat.shares(&workers);
        let worked = busy.iter().zip(&workers).map(|(row, (pe, workers))| {
            let died = self.deaths.get(pe).map(|at| self.heat.piece_of(*at));
            (Worked::of(row, *workers, died), *workers)
        });
        let times = Times::of(self.computing, took_ns, self.heat.piece_ns(), worked);
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_by_key(|(_, function)| Reverse(function.busy_ns));
        let host = |pe: &u32| host_of(reader.processes(), *pe);
        let hosts: BTreeSet<&str> = reader.processes().keys().map(host).collect();
        let mut last: Vec<_> = self.last.values().flatten().collect();
        last.sort_by_key(|task| Reverse(task.took_ns));
        let mut events: Vec<_> =
            self.events.iter().map(|(text, happened)| (text.as_str(), happened)).collect();
        events.sort_by_key(|(_, happened)| happened.first_ns);
        let sum = |by_pe: &BTreeMap<u32, u64>| {
            by_pe.values().fold(0, |sum: u64, n| sum.saturating_add(*n))
        };
        Summary {
            command: reader.processes().values().next().map_or(&[], |process| &process.command),
            took_ns,
            begin_ns,
            times,
            by_host: functions
                .first()
                .map_or_else(Vec::new, |(most, _)| self.by_host(reader, most)),
            functions,
            piece_s: self.heat.piece_ns() as f64 / 1e9,
            busy,
            workers: known.len(),
            workers_of: workers.values().copied().collect(),
            pes: workers.into_keys().collect(),
            longest: &self.longest,
            last,
            events,
            counters: self
                .counters
                .iter()
                .map(|(name, by_pe)| (name.as_str(), sum(by_pe)))
                .filter(|(name, sum)| !GAUGES.contains(name) && *sum > 0)
                .collect(),
            hosts,
            clocks,
            lost: reader.lost(),
        }
    }

    /// How long a run of this function takes on each host.
    fn by_host<'a>(&self, reader: &'a Reader, most: &str) -> Vec<(&'a str, f64)> {
        let mut hosts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for ((_, pe), (runs, ns)) in self.by_pe.iter().filter(|((name, _), _)| name == most) {
            let host = hosts.entry(host_of(reader.processes(), *pe)).or_default();
            *host = (host.0.saturating_add(*runs), host.1.saturating_add(*ns));
        }
        let known = hosts.into_iter().filter(|(_, (runs, ns))| *runs >= RUNS_COMPARED && *ns > 0);
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
        self.runs = self.runs.saturating_add(count.runs);
        self.busy_ns = self.busy_ns.saturating_add(count.busy_ns);
        self.longest_ns = self.longest_ns.max(count.longest_ns);
        let others = count.runs.saturating_sub(1);
        self.classify(count.longest_ns, count.runs - others);
        let rest = count.busy_ns.saturating_sub(count.longest_ns);
        if let Some(mean) = rest.checked_div(others) {
            self.classify(mean, others);
        }
    }

    fn classify(&mut self, ns: u64, runs: u64) {
        let class = &mut self.classes[class(ns)];
        *class = class.saturating_add(runs);
    }

    pub(super) fn mean_ns(&self) -> u64 {
        self.busy_ns.checked_div(self.runs).unwrap_or_default()
    }
}

fn class(ns: u64) -> usize {
    (ns.max(1).ilog2() as usize).min(CLASSES - 1)
}
