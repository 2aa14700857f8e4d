//! `ultramarine checkpoint`: what is in a directory of checkpoints.

use crate::error::Result;
use crate::journal::time;
use serde::Serialize;
use std::fmt;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use ultramarine_journal::{Checkpoint, Identity, Inspection, Part, inspect};

/// Show what is in a directory of checkpoints: of which program they are, from which superstep a
/// job would go on, and what is torn or damaged.
///
/// Nothing is locked or changed, and a job may be writing there. Exits with 1 if the directory
/// cannot be read, or holds no checkpoint from which a job could go on.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The directory that the program was told to put its checkpoints into.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print a JSON object instead.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let found = Contents::of(&arguments.directory)?;
    let mut out = std::io::stdout();
    if arguments.json {
        let object = serde_json::to_string_pretty(&found).map_err(std::io::Error::other)?;
        writeln!(out, "{object}")?;
    } else {
        write!(out, "{found}")?;
    }
    if found.goes_on_from.is_none() {
        let directory = arguments.directory.display();
        let message = format!("`{directory}` has no checkpoint that is whole");
        return Err(std::io::Error::other(message).into());
    }
    Ok(())
}

/// What is printed. In JSON, the names of the fields are the keys.
#[derive(Serialize, Default)]
struct Contents {
    /// Of the first file.
    #[serde(skip)]
    identity: Option<Identity>,
    program: Option<String>,
    /// The type of the program, with its path.
    kind: Option<String>,
    goes_on_from: Option<u64>,
    checkpoints: Vec<Row>,
}

/// A checkpoint.
#[derive(Serialize, Default)]
struct Row {
    superstep: u64,
    generation: u32,
    /// The number of ranks of which there are intact copies.
    ranks_intact: u64,
    ranks: u64,
    bytes: u64,
    last_written_unix_s: u64,
    /// Why some cannot be read.
    problems: Vec<String>,
}

impl Contents {
    fn of(directory: &Path) -> Result<Self> {
        let mut contents = Contents::default();
        let all = Checkpoint::all_in(directory).map_err(|error| {
            std::io::Error::other(format!("`{}` cannot be read: {error}", directory.display()))
        })?;
        for checkpoint in all {
            let Checkpoint { generation, superstep } = checkpoint;
            let mut row = Row { superstep, generation, ..Row::default() };
            let mut done = Vec::new();
            for part in checkpoint.parts(directory)? {
                match inspect(&part.path) {
                    Ok(found) if found.identity.result != checkpoint.result() => {
                        let path = part.path.display();
                        row.problems.push(format!("`{path}` is of another checkpoint"));
                    }
                    Ok(found) => contents.add(&mut row, &mut done, &part, found),
                    Err(error) => row.problems.push(error.to_string()),
                }
            }
            if row.ranks == 0 && row.problems.is_empty() {
                // Nothing of a checkpoint is there.
                continue;
            }
            row.ranks_intact = count(done);
            if row.is_whole() {
                contents.goes_on_from = Some(superstep);
            }
            contents.checkpoints.push(row);
        }
        Ok(contents)
    }

    /// Adds a file.
    fn add(&mut self, row: &mut Row, done: &mut Vec<Range<u64>>, part: &Part, found: Inspection) {
        let Inspection { identity, report, last_written, .. } = found;
        let identity = Identity { result: String::new(), ..identity };
        if self.identity.get_or_insert_with(|| identity.clone()) != &identity {
            row.problems.push(format!("`{}` is of another run", part.path.display()));
            return;
        }
        done.extend(report.done.ranges());
        if report.done.count() < part.items.end - part.items.start {
            row.problems.push(format!("`{}` is damaged", part.path.display()));
        }
        let written = last_written.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        row.last_written_unix_s = row.last_written_unix_s.max(written);
        row.ranks = identity.items;
        row.bytes += report.file_bytes;
        (self.program, self.kind) = (Some(identity.program), Some(identity.call));
    }
}

/// The number of items in these ranges, which may overlap.
fn count(mut ranges: Vec<Range<u64>>) -> u64 {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut count, mut end) = (0, 0);
    for range in ranges {
        count += range.end.saturating_sub(range.start.max(end));
        end = end.max(range.end);
    }
    count
}

impl Row {
    fn is_whole(&self) -> bool {
        self.ranks > 0 && self.ranks_intact == self.ranks
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(program), Some(kind)) = (&self.program, &self.kind) {
            writeln!(f, "checkpoints of {program} ({kind})")?;
            writeln!(
                f,
                "{:>12} {:>11} {:>15} {:>15}  written",
                "superstep", "generation", "ranks", "bytes"
            )?;
        }
        for row in &self.checkpoints {
            let ranks = format!("{} of {}", row.ranks_intact, row.ranks);
            let at = time(row.last_written_unix_s);
            let Row { superstep, generation, bytes, .. } = row;
            writeln!(f, "{superstep:>12} {generation:>11} {ranks:>15} {bytes:>15}  {at}")?;
            row.problems.iter().try_for_each(|problem| writeln!(f, "{:>12} {problem}", ""))?;
        }
        match self.goes_on_from {
            Some(superstep) => writeln!(f, "a job would go on from superstep {superstep}"),
            None => Ok(()),
        }
    }
}
