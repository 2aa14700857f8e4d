//! How often each word occurs in text files, as a graph: the words of each part of a file, and a
//! tree of merged counts.

use crate::{GraphFlags, Job, ranged, run_program};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Instant;
use ultramarine::skeletons::dag::{Builder, Node, dag};
use ultramarine::{Error, Result};

/// Count the words of text files. All PEs must be able to read them.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// Text files, in UTF-8.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The size of the part of a file that a node reads, in KiB.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = ranged::<u64>(1..=1_048_576))]
    part_kib: u64,
    /// Print the most frequent words, this number of them.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    graph: GraphFlags,
}

/// How often each word occurs.
type Counts = BTreeMap<String, u64>;

/// A part of a file: the words that begin in it.
#[derive(Serialize, Deserialize)]
struct Part {
    file: PathBuf,
    begin: u64,
    end: u64,
}

/// The longest word, in bytes. What has longer ones is no text.
const WORD_MAX: u64 = 1 << 20;

impl Part {
    /// How often each word begins in this part. An error says what is wrong with the file.
    fn counts(&self) -> std::result::Result<Counts, String> {
        let counted = self.text().and_then(|text| {
            let mut counts = Counts::new();
            for word in text.split(u8::is_ascii_whitespace) {
                let word = std::str::from_utf8(word).map_err(io::Error::other)?;
                let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
                if !word.is_empty() {
                    *counts.entry(word).or_default() += 1;
                }
            }
            Ok(counts)
        });
        counted
            .map_err(|error| format!("cannot count the words of {}: {error}", self.file.display()))
    }

    /// The words that begin in this part, whole.
    fn text(&self) -> io::Result<Vec<u8>> {
        let mut file = BufReader::new(File::open(&self.file)?);
        // From the byte before, which says whether a word goes on.
        let begin = self.begin.saturating_sub(1);
        file.seek(SeekFrom::Start(begin))?;
        let mut text = Vec::new();
        file.by_ref().take(self.end - begin).read_to_end(&mut text)?;
        if self.begin > 0 {
            let Some(first) = text.iter().position(u8::is_ascii_whitespace) else {
                return Ok(Vec::new());
            };
            text.drain(..first);
        }
        for byte in file.take(WORD_MAX).bytes() {
            if text.last().is_none_or(u8::is_ascii_whitespace) {
                return Ok(text);
            }
            text.push(byte?);
        }
        Ok(text)
    }
}

/// The files, and the size of a part in bytes.
type Input = (Vec<(PathBuf, u64)>, u64);

fn build(g: &mut Builder, (files, part): &Input) -> Node<std::result::Result<Counts, String>> {
    let mut parts = Vec::new();
    for (file, size) in files {
        for begin in (0..*size).step_by(*part as usize) {
            let (file, end) = (file.clone(), (begin + part).min(*size));
            parts.push(g.source(Part::counts, Part { file, begin, end }));
        }
    }
    let merge = |(): &(), all: &[&std::result::Result<Counts, String>]| {
        let mut merged = Counts::new();
        for counts in all {
            for (word, count) in counts.as_ref().map_err(String::clone)? {
                *merged.entry(word.clone()).or_default() += count;
            }
        }
        Ok(merged)
    };
    let counts = g.reduce_tree(merge, (), 4, parts);
    counts.unwrap_or_else(|| g.source(|()| Ok(Counts::new()), ()))
}

/// A file with its size; one without content is none to count in.
fn sized(file: PathBuf) -> Result<(PathBuf, u64)> {
    let name = file.display();
    let data = fs::metadata(&file).map_err(|e| Error::other(format!("cannot read {name}: {e}")))?;
    match (data.is_file(), data.len()) {
        (false, _) => Err(Error::other(format!("{name} is no file"))),
        (true, 0) => Err(Error::other(format!("the file {name} is empty"))),
        (true, size) => Ok((file, size)),
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("wordcount", wordcount)
}

async fn wordcount(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { files, part_kib, top, graph } = arguments;
    let mut graph = graph.begin("dag", None)?;
    let files = files.into_iter().map(sized).collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    let counts = graph.run(&job, dag(build, (files, part_kib << 10))).await?;
    let counts = counts.map_err(Error::other)?;
    let words: u64 = counts.values().sum();
    let report = job.report("dag", start, words).await?;
    let mut most: Vec<(&String, &u64)> = counts.iter().collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    most.truncate(top);
    let most: Vec<String> = most.iter().map(|(word, count)| format!("{word} {count}")).collect();
    report.with("distinct", counts.len()).with("top", most.join(", ")).print()?;
    graph.finish()
}
