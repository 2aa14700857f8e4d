//! `ultramarine journal`: what the journal of a job holds.

use crate::error::Result;
use serde::Serialize;
use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ultramarine_journal::{BuildResults, Identity, Inspection, inspect};

/// Show what the journal of a job holds: whose results, how many of how many items, which builds of
/// the program have computed them, and whether it is damaged.
///
/// The file is neither locked nor changed, and a job may be writing it. Exits with 1 if it cannot
/// be read or is no journal. A damaged place costs the results that are in it: the next start of
/// the job computes those again.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The file that the program was told to keep its results in.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print a JSON object instead.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let summary = Summary::from(inspect(&arguments.file)?);
    let mut out = std::io::stdout();
    if arguments.json {
        let object = serde_json::to_string_pretty(&summary).map_err(std::io::Error::other)?;
        return Ok(writeln!(out, "{object}")?);
    }
    Ok(write!(out, "{summary}")?)
}

/// What is printed. In JSON, the names of the fields are the keys.
#[derive(Serialize)]
struct Summary {
    program: String,
    function: String,
    result: String,
    begun_unix_s: u64,
    last_written_unix_s: u64,
    items: u64,
    items_done: u64,
    done_percent: f64,
    records: u64,
    records_repeated: u64,
    records_dropped: u64,
    builds: Vec<BuildShare>,
    result_bytes: u64,
    file_bytes: u64,
    torn_bytes: u64,
    damaged_places: u64,
    damaged_bytes: u64,
    /// The first of them.
    damage: Vec<Place>,
}

#[derive(Serialize)]
struct BuildShare {
    /// `None` if it is not known.
    build: Option<String>,
    items_done: u64,
    records: u64,
}

#[derive(Serialize)]
struct Place {
    offset_bytes: u64,
    length_bytes: u64,
    text: String,
}

impl From<Inspection> for Summary {
    fn from(found: Inspection) -> Self {
        let (identity, report) = (found.identity, found.report);
        let last_written = found.last_written.duration_since(UNIX_EPOCH).unwrap_or_default();
        let place = |damage: &ultramarine_journal::Damage| Place {
            offset_bytes: damage.offset,
            length_bytes: damage.bytes,
            text: if report.is_replaced(damage) {
                format!("{damage}, and there is another")
            } else {
                damage.to_string()
            },
        };
        let build = |of: &BuildResults| BuildShare {
            build: of.build.map(|build| format!("{build:016x}")),
            items_done: of.done.count(),
            records: of.records,
        };
        Summary {
            program: identity.program,
            function: identity.call,
            result: identity.result,
            begun_unix_s: found.begun_unix_s,
            last_written_unix_s: last_written.as_secs(),
            items: identity.items,
            items_done: report.done.count(),
            done_percent: percent(report.done.count(), identity.items),
            records: report.records,
            records_repeated: report.records_repeated,
            records_dropped: report.records_dropped,
            builds: report.builds.iter().map(build).collect(),
            result_bytes: report.result_bytes,
            file_bytes: report.file_bytes,
            torn_bytes: report.torn_bytes,
            damaged_places: report.damaged_places,
            damaged_bytes: report.damaged_bytes,
            damage: report.damage.iter().map(place).collect(),
        }
    }
}

/// With one digit after the point, rounded down: 100 means all.
fn percent(done: u64, items: u64) -> f64 {
    let thousandths = (u128::from(done) * 1000).checked_div(u128::from(items));
    thousandths.unwrap_or(1000) as f64 / 10.0
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program       {}", self.program)?;
        writeln!(f, "function      {}", self.function)?;
        writeln!(f, "result        {}", self.result)?;
        writeln!(f, "begun         {}", time(self.begun_unix_s))?;
        writeln!(f, "last written  {}", time(self.last_written_unix_s))?;
        let Summary { items, items_done, done_percent, .. } = self;
        match *items {
            Identity::ANY_NUMBER => writeln!(f, "items done    {items_done}")?,
            _ => writeln!(f, "items done    {items_done} of {items} ({done_percent:.1} %)")?,
        }
        let Summary { records, result_bytes, file_bytes, .. } = self;
        write!(f, "records       {records}, {result_bytes} bytes of results")?;
        writeln!(f, " in a file of {file_bytes} bytes")?;
        if self.records_repeated > 0 {
            let repeated = self.records_repeated;
            writeln!(f, "repeated      {repeated} more records, of items with an earlier result")?;
        }
        if self.records_dropped > 0 {
            let dropped = self.records_dropped;
            writeln!(
                f,
                "dropped       {dropped} more records, of other builds than a later start"
            )?;
        }
        for (index, BuildShare { build, items_done, .. }) in self.builds.iter().enumerate() {
            let label = if index == 0 { "builds" } else { "" };
            let build = build.as_deref().unwrap_or("that is not known");
            writeln!(f, "{label:<14}{items_done} items by the build {build}")?;
        }
        match self.torn_bytes {
            0 => writeln!(f, "torn tail     none")?,
            bytes => {
                let hint = "being written just now, or when the job was killed";
                writeln!(f, "torn tail     {bytes} bytes: a record that was {hint}")?;
            }
        }
        if self.damaged_places == 0 {
            return writeln!(f, "damaged       nothing");
        }
        let Summary { damaged_places, damaged_bytes, .. } = self;
        let places = if *damaged_places == 1 { "place" } else { "places" };
        writeln!(f, "damaged       {damaged_places} {places}, {damaged_bytes} bytes in all:")?;
        for place in &self.damage {
            writeln!(f, "              {}", place.text)?;
        }
        match damaged_places - self.damage.len() as u64 {
            0 => Ok(()),
            more => writeln!(f, "              and {more} more"),
        }
    }
}

/// As in `2026-01-31T12:00:00Z`.
pub(crate) fn time(unix_s: u64) -> impl fmt::Display {
    /// The last second of the year 9999: later times cannot be shown.
    const MAX: u64 = 253_402_300_799;
    let time: SystemTime = UNIX_EPOCH + Duration::from_secs(unix_s.min(MAX));
    humantime::format_rfc3339_seconds(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_items_are_100_percent() {
        assert_eq!(percent(0, 3).to_string(), "0");
        assert_eq!(percent(2, 3).to_string(), "66.6");
        assert_eq!(percent(u64::MAX - 1, u64::MAX).to_string(), "99.9");
        assert_eq!(percent(3, 3).to_string(), "100");
        assert_eq!(percent(0, 0).to_string(), "100");
    }

    #[test]
    fn any_time_can_be_shown() {
        assert_eq!(time(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(time(u64::MAX).to_string(), "9999-12-31T23:59:59Z");
    }
}
