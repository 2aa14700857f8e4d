//! Results of other builds of the program: whose are whose, and which count.

use crate::{identity, scratch};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use ultramarine_journal::{Builds, Journal, OnFailure, OpenError, OtherBuilds, Report, inspect};
use xxhash_rust::xxh3::xxh3_64;

const LIMIT: Duration = Duration::from_secs(40);

/// The results that count, by their positions, as an owner learns of them.
type Results = BTreeMap<u64, (u64, Vec<u8>)>;

/// Opens a journal as this build.
fn open(
    path: &Path,
    this: impl Into<Option<u64>>,
    others: OtherBuilds,
) -> Result<(Journal, Report, Results), OpenError> {
    let mut results = Results::new();
    let builds = Builds { this: this.into(), others };
    let visit = |positions: Range<u64>, bytes: Option<&[u8]>| {
        match bytes {
            Some(bytes) => drop(results.insert(positions.start, (positions.end, bytes.to_vec()))),
            None => results.retain(|first, _| !positions.contains(first)),
        }
        Ok(())
    };
    let opened = Journal::open(path, &identity(), builds, OnFailure::Warn, visit);
    let (journal, report) = opened?;
    let done: u64 = results.iter().map(|(first, (end, _))| end - first).sum();
    assert_eq!((done, results.len() as u64), (report.done.count(), report.records));
    Ok((journal, report, results))
}

/// Goes on with a journal as this build, which computes its own number.
fn go_on(path: &Path, this: u64, others: OtherBuilds, groups: &[(u64, u64)]) {
    let (journal, ..) = open(path, this, others).expect("it can be written");
    let append = |(first, end): &(u64, u64)| journal.append(*first..*end, &this.to_le_bytes());
    groups.iter().for_each(append);
    journal.finish(LIMIT).expect("it can be written");
}

/// Each build that has results, and how many items those are for.
fn builds(report: &Report) -> Vec<(Option<u64>, u64)> {
    report.builds.iter().map(|results| (results.build, results.done.count())).collect()
}

#[test]
fn each_result_is_known_by_its_build() {
    let (_folder, path) = scratch();
    go_on(&path, 7, OtherBuilds::Keep, &[(0, 3), (5, 6)]);
    let once = fs::metadata(&path).expect("it was made").len();
    // The same build needs no further note.
    go_on(&path, 7, OtherBuilds::Refuse, &[(6, 7)]);
    assert_eq!(fs::metadata(&path).expect("it was made").len(), once + 56);
    go_on(&path, 8, OtherBuilds::Keep, &[(10, 20)]);
    go_on(&path, 7, OtherBuilds::Keep, &[(20, 21)]);
    let (journal, report, _) = open(&path, 9, OtherBuilds::Keep).expect("it is whole");
    // A copy has the results of others.
    journal.append_of(Some(8), 30..31, b"");
    journal.append(31..32, b"");
    journal.append_of(None, 32..33, b"");
    journal.finish(LIMIT).expect("it can be written");
    assert_eq!(builds(&report), [(Some(7), 6), (Some(8), 10)]);
    assert_eq!([7, 8, 9].map(|build| report.items_of_others(Some(build))), [10, 6, 16]);
    let report = inspect(&path).expect("it is a journal").report;
    assert_eq!(builds(&report), [(Some(7), 6), (Some(8), 11), (Some(9), 1), (None, 1)]);
    assert_eq!(
        [2, 15, 20, 32, 40].map(|item| report.build_of(item)),
        [Some(7), Some(8), Some(7), None, None]
    );
    assert_eq!((report.damaged_places, report.records_dropped), (0, 0));
}

#[test]
fn results_of_other_builds_are_refused_if_they_are_to_be() {
    let (_folder, path) = scratch();
    go_on(&path, 7, OtherBuilds::Refuse, &[(0, 130)]);
    go_on(&path, 8, OtherBuilds::Keep, &[(130, 200)]);
    let before = fs::read(&path).expect("it was made");
    for (build, others, own) in [(7, 70, 130), (8, 130, 70), (9, 200, 0)] {
        let error = open(&path, build, OtherBuilds::Refuse).err().expect("it is refused");
        let text = error.to_string();
        let counts = format!(
            "has results of {others} items from another build of the program, and of {own} from \
             this one"
        );
        assert!(text.contains(&counts), "{text}");
    }
    assert_eq!(fs::read(&path).expect("it was made"), before);
}

#[test]
fn results_that_are_computed_anew_count_and_those_of_other_builds_do_not() {
    let (_folder, path) = scratch();
    go_on(&path, 7, OtherBuilds::Keep, &[(0, 3), (3, 6), (8, 9)]);
    go_on(&path, 8, OtherBuilds::Keep, &[(10, 12)]);
    // As long as nothing is appended, nothing is dropped.
    let (journal, report, results) = open(&path, 8, OtherBuilds::Anew).expect("it is whole");
    journal.finish(LIMIT).expect("it can be written");
    assert_eq!((report.done.count(), report.records_dropped, results.len()), (2, 3, 1));
    assert_eq!(inspect(&path).expect("it is a journal").report.done.count(), 9);
    // Other groups of the same items.
    go_on(&path, 8, OtherBuilds::Anew, &[(0, 2), (2, 4)]);
    let (_, report, results) = open(&path, 7, OtherBuilds::Keep).expect("it is whole");
    assert_eq!(builds(&report), [(Some(8), 6)]);
    assert_eq!(results.keys().copied().collect::<Vec<_>>(), [0, 2, 10]);
    assert!(results.values().all(|(_, bytes)| bytes[..] == 8_u64.to_le_bytes()));
    // And back again: what was dropped stays dropped.
    go_on(&path, 7, OtherBuilds::Keep, &[(4, 5)]);
    go_on(&path, 7, OtherBuilds::Anew, &[(0, 1)]);
    let (_, report, results) = open(&path, 7, OtherBuilds::Refuse).expect("all is of build 7");
    assert_eq!(results.keys().copied().collect::<Vec<_>>(), [0, 4]);
    assert_eq!((report.records_dropped, report.damaged_places), (6, 0));
}

/// A file as an earlier version of this program has begun it: the header's version is another, and
/// there are no notes.
#[test]
fn a_file_of_format_1_is_gone_on_with() {
    let (_folder, path) = scratch();
    let (journal, ..) = open(&path, None, OtherBuilds::Keep).expect("it can be written");
    journal.append(0..5, b"old");
    journal.finish(LIMIT).expect("it can be written");
    let mut bytes = fs::read(&path).expect("it was made");
    bytes[8] = 1;
    let sum = xxh3_64(&bytes[..16]).to_le_bytes();
    bytes[16..24].copy_from_slice(&sum);
    let end = u32::from_le_bytes(*bytes[12..].first_chunk().expect("a length")) as usize - 8;
    let sum = xxh3_64(&bytes[..end]).to_le_bytes();
    bytes[end..end + 8].copy_from_slice(&sum);
    fs::write(&path, bytes).expect("there is room");
    assert!(open(&path, 7, OtherBuilds::Refuse).is_err(), "the build is not known");
    go_on(&path, 7, OtherBuilds::Keep, &[(5, 7)]);
    let (_, report, results) = open(&path, 7, OtherBuilds::Keep).expect("it is whole");
    assert_eq!(builds(&report), [(None, 5), (Some(7), 2)]);
    assert_eq!(results[&0].1, b"old");
    assert_eq!(fs::read(&path).expect("it is there")[8], 1);
}

/// There may have been a note.
#[test]
fn after_damage_the_build_is_not_known() {
    let folder = tempfile::tempdir().expect("there is room");
    for of_its_head in [true, false] {
        let path = folder.path().join(format!("{of_its_head}.journal"));
        go_on(&path, 7, OtherBuilds::Keep, &[(0, 1)]);
        let end = fs::metadata(&path).expect("it was made").len() as usize;
        go_on(&path, 8, OtherBuilds::Keep, &[(1, 2)]);
        let mut bytes = fs::read(&path).expect("it was made");
        bytes[end + if of_its_head { 9 } else { 50 }] ^= 1;
        fs::write(&path, bytes).expect("there is room");
        go_on(&path, 8, OtherBuilds::Keep, &[(2, 3)]);
        let report = inspect(&path).expect("it is a journal").report;
        assert_eq!(builds(&report), [(Some(7), 1), (None, 1), (Some(8), 1)]);
        assert_eq!((report.damaged_places, report.damaged_bytes), (1, 57));
        // Up to the next note, which comes soon.
        let single: Vec<_> = (3..1000).map(|item| (item, item + 1)).collect();
        let end = fs::metadata(&path).expect("it was made").len() as usize;
        go_on(&path, 8, OtherBuilds::Keep, &single);
        let mut bytes = fs::read(&path).expect("it was made");
        // In the head of a record. Each has 56 bytes.
        bytes[end + 20 * 56 + 5] ^= 1;
        fs::write(&path, bytes).expect("there is room");
        let report = inspect(&path).expect("it is a journal").report;
        let unknown = report.builds.iter().find(|of| of.build.is_none()).expect("there are some");
        assert!((2..80).contains(&unknown.records), "{}", unknown.records);
        assert!((900..1000).contains(&report.builds.last().expect("there are some").records));
    }
}
