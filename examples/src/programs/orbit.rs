//! The orbit of a tuple of points under the permutations of a file: the tuples that products of
//! these make of it, as of GAP's `Orbit` with `OnTuples`.

use crate::{Job, StateFlags, read_text, run_program};
use std::path::{Path, PathBuf};
use ultramarine::{Error, Result};

/// Find the orbit of a tuple of points under permutations.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// A file of permutations in cycles, such as `(1,2,3)(4,5)`, one a line. What follows a `#` is
    /// a comment.
    #[arg(long, value_name = "FILE")]
    generators: PathBuf,
    /// The points of the tuple, from 1.
    #[arg(long, value_name = "POINTS", value_delimiter = ',', required = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=POINTS_MAX))]
    tuple: Vec<u32>,
    #[command(flatten)]
    search: StateFlags,
}

/// The greatest point.
const POINTS_MAX: i64 = 1 << 24;

/// What is longer is no file of permutations.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A permutation: the images of 1, 2, …; further points stay where they are.
type Images = Vec<u32>;

/// Adds the images of a tuple.
#[expect(clippy::ptr_arg, reason = "a search knows its data and states by reference")]
pub fn images(generators: &Vec<Images>, tuple: &Vec<u32>, next: &mut Vec<Vec<u32>>) {
    next.extend(generators.iter().map(|generator| {
        let image = |point: &u32| generator.get(*point as usize - 1).copied().unwrap_or(*point);
        tuple.iter().map(image).collect()
    }));
}

fn read(path: &Path) -> Result<Vec<Images>> {
    let text = read_text(path, "permutations", FILE_BYTES_MAX)?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines = lines.zip(1..).filter(|(line, _)| !line.is_empty());
    let read = |(line, number): (&str, u64)| {
        let located = |reason| Error::other(format!("{}:{number}: {reason}", path.display()));
        permutation(line).map_err(located)
    };
    lines.map(read).collect()
}

/// The permutation with these cycles.
fn permutation(line: &str) -> std::result::Result<Images, String> {
    let (mut images, mut is_used) = (Images::new(), Vec::new());
    for cycle in line.split_inclusive(')').map(str::trim) {
        let inner = cycle.strip_prefix('(').and_then(|cycle| cycle.strip_suffix(')'));
        let inner = inner.ok_or("cycles are expected, such as (1,2,3)(4,5)")?.trim();
        let points = inner.split(',').map(str::trim).filter(|_| !inner.is_empty());
        let points = points.map(point).collect::<std::result::Result<Vec<_>, _>>()?;
        let most = points.iter().copied().max().unwrap_or(0);
        images.extend(images.len() as u32 + 1..=most);
        is_used.resize(images.len(), false);
        for (at, point) in points.iter().enumerate() {
            let place = *point as usize - 1;
            if std::mem::replace(&mut is_used[place], true) {
                return Err(format!("the point {point} is there twice"));
            }
            images[place] = points[(at + 1) % points.len()];
        }
    }
    Ok(images)
}

fn point(text: &str) -> std::result::Result<u32, String> {
    let point = text.parse().ok().filter(|point| (1..=POINTS_MAX).contains(&i64::from(*point)));
    point.ok_or_else(|| format!("`{text}` is no point: 1 to {POINTS_MAX} are"))
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("orbit", async |job: Job, arguments: Arguments| {
        let Arguments { generators, tuple, search } = arguments;
        search.run(&job, images, read(&generators)?, tuple).await
    })
}
