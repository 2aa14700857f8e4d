//! `wavefront` as its user sees it: the best score is that of the plain algorithm.

use crate::common::WAVEFRONT;
use std::path::PathBuf;
use ultramarine_testkit::{Ended, alone, run};

/// A sequence of this many letters that looks random.
fn sequence(length: usize, mut seed: u32) -> String {
    let mut letter = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ['A', 'C', 'G', 'T'][(seed >> 24) as usize % 4]
    };
    (0..length).map(|_| letter()).collect()
}

/// The best score by the textbook, with the whole matrix.
fn expected(a: &str, b: &str, [matching, mismatch, gap]: [i32; 3]) -> i32 {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut scores = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let pair = if a[i - 1] == b[j - 1] { matching } else { mismatch };
            let gapped = scores[i - 1][j].max(scores[i][j - 1]) + gap;
            scores[i][j] = (scores[i - 1][j - 1] + pair).max(gapped).max(0);
        }
    }
    scores.into_iter().flatten().max().unwrap_or(0)
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Files(tempfile::tempdir().expect("there is room"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("there is room");
        path
    }

    fn fasta(&self, name: &str, sequence: &str) -> PathBuf {
        let lines: Vec<&str> = sequence
            .as_bytes()
            .chunks(70)
            .map(|line| std::str::from_utf8(line).expect("ASCII"))
            .collect();
        self.write(name, &format!(">{name} of a test\n{}\n>another\nAAAA\n", lines.join("\n")))
    }
}

fn align(a: &PathBuf, b: &PathBuf, flags: &str) -> Ended {
    run(alone(WAVEFRONT, flags).args([a, b]))
}

#[test]
fn the_best_score_is_that_of_the_plain_algorithm() {
    let files = Files::new();
    let common = sequence(60, 5);
    let (a, b) = (sequence(300, 1) + &common, sequence(90, 2) + &common + &sequence(150, 3));
    let (first, second) = (files.fasta("a", &a), files.fasta("b", &b));
    let usual = expected(&a, &b, [2, -1, -2]);
    for (pes, tile) in [(1, 512), (3, 50), (2, 7), (4, 100)] {
        for skeleton in ["dag", "memo"] {
            let flags =
                format!("--pes {pes} --threads 1 --tile {tile} --skeleton {skeleton} --json");
            assert_eq!(align(&first, &second, &flags).report()["result"], usual, "{flags}");
        }
    }
    assert_eq!(align(&first, &second, "--skeleton sequential --json").report()["result"], usual);
    let flags = "--pes 2 --tile 64 --match 5 --mismatch -4 --gap -3 --json";
    let other = expected(&a, &b, [5, -4, -3]);
    assert_eq!(align(&first, &second, flags).report()["result"], other);
    let none = (files.fasta("c", "AAAA"), files.fasta("d", "TTT"));
    assert_eq!(align(&none.0, &none.1, "--json").report()["result"], 0);
}

#[test]
fn what_is_no_sequence_is_refused() {
    let files = Files::new();
    let good = files.fasta("good", "ACGT");
    for (text, why) in [
        ("", "a FASTA file begins with a line `>`"),
        ("ACGT\n", "a FASTA file begins with a line `>`"),
        (">name\n\n", "the first record has no letters"),
        (">name\nAC1T\n", "`1` is no letter of a sequence"),
    ] {
        align(&good, &files.write("bad", text), "").fails_with(why);
    }
    let missing = files.0.path().join("missing");
    align(&missing, &good, "").fails_with("cannot read the FASTA file");
    align(&good, &good, "--tile 0").fails_with("0 is not in 1..=100000");
}

#[cfg(feature = "mpi")]
mod mpi {
    use super::*;

    #[test]
    fn the_score_comes_though_processes_die() {
        let files = Files::new();
        let (a, b) = (sequence(3000, 1), sequence(4000, 2));
        let (first, second) = (files.fasta("a", &a), files.fasta("b", &b));
        let score = expected(&a, &b, [2, -1, -2]);
        let ways = ["dag", "memo --copies 3"];
        let moments = ["0.05", "0.05,0.1", "0.02,0.05,0.2"];
        for (at, way) in moments.into_iter().flat_map(|at| ways.map(|way| (at, way))) {
            let flags = format!(
                "--threads 1 --tile 40 --supervised --json --kill-at {at} --skeleton {way}"
            );
            let Some(mut command) = WAVEFRONT.launched(4, &flags) else { return };
            assert_eq!(run(command.args([&first, &second])).report()["result"], score, "{flags}");
        }
    }
}
