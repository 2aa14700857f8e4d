//! The best local alignment of two sequences by Smith and Waterman, tile by tile.

use crate::ranged;
use crate::read_text;
use serde::{Deserialize, Serialize};
use std::path::Path;
use ultramarine::{Error, Result};

/// The largest size of a file: 64 MiB.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What a pair of letters, or a gap, adds to the score.
#[derive(Clone, Copy, clap::Args, Serialize, Deserialize)]
pub(crate) struct Scoring {
    /// What two equal letters add to the score.
    #[arg(long = "match", value_name = "N", default_value_t = 2)]
    #[arg(value_parser = ranged::<i32>(-1000..=1000))]
    matching: i32,
    /// What two different letters add to the score.
    #[arg(long, value_name = "N", default_value_t = -1, value_parser = ranged::<i32>(-1000..=1000))]
    mismatch: i32,
    /// What a letter beside a gap adds to the score.
    #[arg(long, value_name = "N", default_value_t = -2, value_parser = ranged::<i32>(-1000..=1000))]
    gap: i32,
}

/// What the tiles below and to the right need of a tile, and the best score in it and in those that
/// it needs.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Edges {
    /// The last row, with the entry to the left of it.
    row: Vec<i32>,
    /// The last column.
    column: Vec<i32>,
    pub(crate) best: i32,
}

impl Edges {
    /// The edges of a tile of this size above or to the left of the matrix, where all is 0.
    pub(crate) fn outside(rows: usize, columns: usize) -> Self {
        Edges { row: vec![0; columns + 1], column: vec![0; rows], best: 0 }
    }
}

/// A tile: the letters of its rows and columns, and the tiles to the left of it and above it.
pub(crate) fn tile(scoring: Scoring, (a, b): (&[u8], &[u8]), left: &Edges, up: &Edges) -> Edges {
    let mut row = up.row.clone();
    let (mut column, mut best) = (Vec::with_capacity(a.len()), left.best.max(up.best));
    for (letter, left) in a.iter().zip(&left.column) {
        let mut diagonal = std::mem::replace(&mut row[0], *left);
        for (at, other) in b.iter().enumerate() {
            let pair = if letter == other { scoring.matching } else { scoring.mismatch };
            let gap = row[at].max(row[at + 1]) + scoring.gap;
            let score = (diagonal + pair).max(gap).max(0);
            diagonal = std::mem::replace(&mut row[at + 1], score);
            best = best.max(score);
        }
        column.push(row[b.len()]);
    }
    Edges { row, column, best }
}

/// The letters of the first record of a FASTA file.
pub(crate) fn read_fasta(path: &Path) -> Result<Vec<u8>> {
    let text = read_text(path, "FASTA file", FILE_BYTES_MAX)?;
    let bad = |what: &str| Err(Error::other(format!("{}: {what}", path.display())));
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    if !lines.next().is_some_and(|line| line.starts_with('>')) {
        return bad("a FASTA file begins with a line `>` and a name");
    }
    let letters: String = lines.take_while(|line| !line.starts_with('>')).map(str::trim).collect();
    if letters.is_empty() {
        return bad("the first record has no letters");
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'*' | b'-');
    match letters.bytes().find(|byte| !is_letter(byte)) {
        Some(byte) => bad(&format!("`{}` is no letter of a sequence", byte.escape_ascii())),
        None => Ok(letters.to_ascii_uppercase().into_bytes()),
    }
}
