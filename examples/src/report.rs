//! The report that an example prints at its end.

use crate::Job;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::Write as _;
use std::time::{Duration, Instant};
use ultramarine::{Error, Result, Statistics};

/// Prints a text to standard output and flushes it.
///
/// # Errors
///
/// The text cannot be written.
pub fn print(text: impl Display) -> Result<()> {
    let mut stdout = std::io::stdout();
    write!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Error::Output)
}

/// The result of an example, and what it took. Its JSON form has the same fields in every example.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    program: &'static str,
    result: serde_json::Value,
    seconds: f64,
    pes: u32,
    threads: usize,
    tasks: u64,
    /// The number of stolen tasks by distance.
    steals: BTreeMap<String, u64>,
    skeleton: String,
    supervised: bool,
    /// Further results by name.
    #[serde(flatten)]
    more: BTreeMap<&'static str, serde_json::Value>,
    /// The number of PEs that have died.
    dead: u32,
    /// The number of supervision messages.
    notifies: u64,
    acks: u64,
    /// The number of tasks that were lost and run again.
    replicas: u64,
    #[serde(skip)]
    statistics: Statistics,
    /// Whether it is printed as JSON.
    #[serde(skip)]
    is_json: bool,
}

impl Job {
    /// The report of a computation by this skeleton that began at `start` and has just ended with
    /// `result`.
    ///
    /// # Errors
    ///
    /// The statistics cannot be gathered.
    pub async fn report(
        &self,
        skeleton: impl Into<String>,
        start: Instant,
        result: impl Serialize,
    ) -> Result<Report> {
        let seconds = start.elapsed().as_secs_f64();
        let Job { cx, program, flags } = self;
        let statistics = cx.statistics().await?;
        let stolen = statistics.by_distance.iter().filter(|row| row.steals > 0);
        // It is about to be printed.
        cx.agree_to_end().await;
        Ok(Report {
            program,
            result: serde_json::to_value(result)?,
            seconds,
            pes: cx.pes(),
            threads: cx.threads(),
            tasks: statistics.tasks,
            steals: stolen.map(|row| (row.distance.to_string(), row.steals)).collect(),
            skeleton: skeleton.into(),
            supervised: flags.supervised,
            more: BTreeMap::new(),
            dead: cx.dead(),
            notifies: statistics.notifies,
            acks: statistics.acks,
            replicas: statistics.replicas,
            statistics,
            is_json: flags.json,
        })
    }
}

impl Report {
    /// Adds another result. Its name must differ from all other fields.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<serde_json::Value>) -> Self {
        self.more.insert(name, value.into());
        self
    }

    /// The counters of the job.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The duration of the computation.
    pub fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Prints the report: in words, or as JSON if the flags say so.
    ///
    /// # Errors
    ///
    /// The report cannot be encoded or written.
    pub fn print(&self) -> Result<()> {
        if self.is_json {
            let json = serde_json::to_string(self)?;
            return print(format_args!("{json}\n"));
        }
        print(self)
    }
}

/// The report in words.
impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({}): {}", self.program, self.skeleton, self.result)?;
        for (name, value) in &self.more {
            writeln!(f, "{name}: {value}")?;
        }
        writeln!(
            f,
            "{:.3} s on {} PEs x {} threads{}",
            self.seconds,
            self.pes,
            self.threads,
            if self.dead > 0 { "; what follows is of those that live" } else { "" }
        )?;
        if self.dead > 0 {
            writeln!(f, "PEs that died: {}", self.dead)?;
        }
        write!(f, "{}", self.statistics)
    }
}
