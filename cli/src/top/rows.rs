//! What a job has said, as rows.

use crate::output::printable;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use ultramarine_status::{JobStatus, PeStatus};

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    Host,
    Pe,
}

/// What a job said last, and before that.
pub(super) struct Seen {
    now: JobStatus,
    before: Option<JobStatus>,
}

/// What PEs do together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) pes: u64,
    pub(super) workers: u64,
    pub(super) idle: u64,
    pub(super) waiting: u64,
    pub(super) started: u64,
    pub(super) per_s: f64,
    pub(super) stolen: u64,
    pub(super) again: u64,
    pub(super) lost: u64,
    pub(super) moved: u64,
    pub(super) memory: u64,
}

impl Sums {
    fn add(&mut self, pe: &PeStatus, per_s: f64) {
        self.pes += 1;
        self.workers = self.workers.saturating_add(pe.workers);
        self.idle = self.idle.saturating_add(pe.idle);
        self.waiting = self.waiting.saturating_add(pe.waiting);
        self.started = self.started.saturating_add(pe.started);
        self.per_s += per_s;
        self.stolen = self.stolen.saturating_add(pe.stolen_tasks());
        self.again = self.again.saturating_add(pe.again);
        self.lost = self.lost.saturating_add(pe.lost);
        self.moved = self.moved.saturating_add(pe.moved_bytes);
        self.memory = self.memory.saturating_add(pe.memory);
    }

    /// The share of the workers that have a task.
    pub(super) fn busy(&self) -> f64 {
        1.0 - self.idle as f64 / self.workers.max(1) as f64
    }
}

/// A column: its title, how wide it is, and what is in it.
type Column = (&'static str, usize, fn(&Sums) -> String);

/// The most important first: a terminal that is narrow shows those that fit.
const COLUMNS: [Column; 9] = [
    ("busy", 7, |row| format!("{:.0} %", 100.0 * row.busy())),
    ("waiting", 9, |row| row.waiting.to_string()),
    ("tasks/s", 10, |row| format!("{:.0}", row.per_s)),
    ("memory", 11, |row| bytes(row.memory)),
    ("moved", 11, |row| bytes(row.moved)),
    ("stolen", 11, |row| row.stolen.to_string()),
    ("started", 13, |row| row.started.to_string()),
    ("again", 8, |row| row.again.to_string()),
    ("PEs", 7, |row| row.pes.to_string()),
];

/// The longest name that is shown whole.
const NAME_COLUMNS_MAX: usize = 30;

impl Seen {
    pub(super) fn new(now: JobStatus) -> Self {
        Seen { now, before: None }
    }

    /// The job has said something new.
    pub(super) fn add(&mut self, now: JobStatus) {
        self.before = Some(std::mem::replace(&mut self.now, now));
    }

    /// The tasks that a PE has started in a second, since it was asked before, or since the start.
    fn per_s(&self, pe: &PeStatus) -> f64 {
        let before = self.before.as_ref().and_then(|job| {
            let known = job.pes.iter().find(|known| known.pe == pe.pe)?;
            Some((job.seconds, known.started))
        });
        let (seconds, started) = before.unwrap_or_default();
        let took = self.now.seconds - seconds;
        if took > 0.0 { pe.started.saturating_sub(started) as f64 / took } else { 0.0 }
    }

    /// The rows by name, in the order of the hierarchy, and their sums.
    fn rows(&self, each: Each) -> (Vec<(String, Sums)>, Sums) {
        let (mut rows, mut all): (Vec<(String, Sums)>, _) = (Vec::new(), Sums::default());
        let mut places = BTreeMap::new();
        for pe in &self.now.pes {
            let name = match each {
                Each::Host => printable(&pe.host),
                Each::Pe => format!("{} {}", pe.pe, printable(&pe.host)),
            };
            let at = *places.entry(name.clone()).or_insert_with(|| {
                rows.push((name, Sums::default()));
                rows.len() - 1
            });
            let per_s = self.per_s(pe);
            rows[at].1.add(pe, per_s);
            all.add(pe, per_s);
        }
        (rows, all)
    }

    /// The titles and the cells of those columns that fit into this width; each row's name first.
    pub(super) fn table(&self, each: Each, width: usize) -> Table {
        let (rows, _) = self.rows(each);
        let names = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let name_width = names.clamp(5, NAME_COLUMNS_MAX);
        let mut left = width.saturating_sub(name_width);
        let fits = |column: &&Column| {
            let width = left.checked_sub(column.1);
            left = width.unwrap_or_default();
            width.is_some()
        };
        let columns: Vec<_> = COLUMNS.iter().take_while(fits).collect();
        let first = if each == Each::Host { "host" } else { "PE" };
        let titles = std::iter::once(first).chain(columns.iter().map(|column| column.0));
        let cells = |(name, row): &(String, Sums)| {
            let own = std::iter::once(name.clone());
            own.chain(columns.iter().map(|column| (column.2)(row))).collect()
        };
        Table {
            titles: titles.map(str::to_owned).collect(),
            widths: std::iter::once(name_width).chain(columns.iter().map(|of| of.1)).collect(),
            rows: rows.iter().map(cells).collect(),
        }
    }

    /// The share of all workers that have a task.
    pub(super) fn busy(&self) -> f64 {
        self.rows(Each::Host).1.busy()
    }

    /// What the job is, and does altogether.
    pub(super) fn summary(&self) -> [String; 2] {
        let (hosts, all) = self.rows(Each::Host);
        let JobStatus { program, seconds, dead, silent, .. } = &self.now;
        let program = printable(program);
        let not_there = |pes: &[u32], what: &str| match pes.len() {
            0 => String::new(),
            count => format!(", {count} {what}"),
        };
        let (died, no_answer) = (not_there(dead, "died"), not_there(silent, "without an answer"));
        let lost = match all.lost {
            0 => String::new(),
            count => format!(", {count} lost"),
        };
        [
            format!(
                "{program} after {seconds:.1} s: {} PEs on {} hosts{died}{no_answer}; {} workers, \
                 {:.0} % busy",
                all.pes,
                hosts.len(),
                all.workers,
                100.0 * all.busy(),
            ),
            format!(
                "tasks: {} started, {:.0} a second, {} wait, {} stolen, {} run again{lost}; {}",
                all.started,
                all.per_s,
                all.waiting,
                all.stolen,
                all.again,
                bytes(all.memory),
            ),
        ]
    }

    /// All of it as text.
    pub(super) fn text(&self, each: Each) -> String {
        let mut text = self.summary().join("\n") + "\n\n";
        let table = self.table(each, usize::MAX);
        for row in std::iter::once(&table.titles).chain(&table.rows) {
            for (at, (cell, width)) in row.iter().zip(&table.widths).enumerate() {
                let _ = match at {
                    0 => write!(text, "{cell:<width$}"),
                    _ => write!(text, "{cell:>width$}"),
                };
            }
            text.push('\n');
        }
        text
    }
}

/// What is shown of each row.
pub(super) struct Table {
    pub(super) titles: Vec<String>,
    pub(super) widths: Vec<usize>,
    pub(super) rows: Vec<Vec<String>>,
}

/// As in `3.5 GiB`.
fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(seconds: f64, started: u64) -> JobStatus {
        let pe = |pe: u32, host: &str| PeStatus {
            pe,
            host: host.to_owned(),
            workers: 4,
            idle: pe.into(),
            waiting: 5,
            started,
            memory: 1 << 30,
            ..PeStatus::default()
        };
        let pes = vec![pe(0, "far"), pe(1, "near"), pe(2, "near")];
        JobStatus {
            program: "prover".to_owned(),
            seconds,
            dead: vec![3],
            pes,
            ..Default::default()
        }
    }

    #[test]
    fn hosts_are_sums_and_rates_are_of_the_last_time() {
        let mut seen = Seen::new(job(10.0, 100));
        assert!(seen.text(Each::Host).contains("300 started, 30 a second"), "since the start");
        seen.add(job(12.0, 150));
        let text = seen.text(Each::Host);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "prover after 12.0 s: 3 PEs on 2 hosts, 1 died; 12 workers, 75 % busy",
                "tasks: 450 started, 75 a second, 15 wait, 0 stolen, 0 run again; 3.0 GiB"
            ]
        );
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(lines[4])[..5], ["far", "100", "%", "5", "25"]);
        assert_eq!(words(lines[5])[..5], ["near", "62", "%", "10", "50"]);
        assert_eq!(seen.table(Each::Pe, usize::MAX).rows.len(), 3);
    }

    #[test]
    fn a_narrow_terminal_shows_the_columns_that_fit() {
        let seen = Seen::new(job(1.0, 1));
        for width in 0..120 {
            let table = seen.table(Each::Host, width);
            let used: usize = table.widths.iter().sum();
            assert!(used <= width.max(5), "{used} of {width}");
        }
        assert_eq!(seen.table(Each::Host, 20).titles, ["host", "busy"]);
    }
}
