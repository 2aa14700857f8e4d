//! `wordcount` as its user sees it: each word is counted once, wherever a file is divided.

use crate::common::WORDCOUNT;
use std::collections::BTreeMap;
use std::path::PathBuf;
use ultramarine_testkit::{Ended, alone, run};

/// A text of this many lines, with words that are shorter and longer than others.
fn text(lines: usize) -> String {
    let word = |n: usize| {
        let words = ["The", "quick", "größte", "brown", "it's", "—", "a", "fox,", "\"jumps\""];
        words[n * n % 23 % words.len()].repeat(1 + n % 3 * usize::from(n.is_multiple_of(5)))
    };
    let line = |line| (0..9).map(|n| word(line * 9 + n)).collect::<Vec<_>>().join(" ");
    (0..lines).map(line).collect::<Vec<_>>().join("\n")
}

fn expected(texts: &[&str]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for word in texts.iter().flat_map(|text| text.split_ascii_whitespace()) {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if !word.is_empty() {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

fn count(files: &[&PathBuf], flags: &str) -> Ended {
    run(alone(WORDCOUNT, flags).args(files))
}

#[test]
fn each_word_is_counted_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let (long, short) = (text(3000), " one\n\n  ONE two ".to_owned());
    let files = [("long", &long), ("short", &short)].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("there is room");
        path
    });
    let counts = expected(&[&long, &short]);
    let top = counts.iter().max_by_key(|(_, count)| **count).expect("there are words");
    for (pes, part) in [(1, 1024), (3, 1), (2, 7)] {
        let flags = format!("--pes {pes} --threads 1 --part-kib {part} --top 1 --json");
        let report = count(&[&files[0], &files[1]], &flags).report();
        assert_eq!(report["result"], counts.values().sum::<u64>(), "{flags}");
        assert_eq!(report["distinct"], counts.len(), "{flags}");
        assert_eq!(report["top"], format!("{} {}", top.0, top.1), "{flags}");
    }
}

#[test]
fn what_is_no_text_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("there is room");
        path
    };
    count(&[&write("empty", b"")], "").fails_with("is empty");
    count(&[&write("bytes", b"a \xff\xfe b")], "").fails_with("cannot count the words of");
    count(&[&folder.path().join("missing")], "").fails_with("cannot read");
    count(&[&folder.path().to_path_buf()], "").fails_with("is no file");
    count(&[], "").fails_with("<FILES>");
}
