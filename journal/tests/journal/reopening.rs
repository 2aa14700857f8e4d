//! What a second start finds, and which files it refuses.

use crate::{identity, listener, open, result_of, scratch};
use proptest::prelude::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ultramarine_journal::{Builds, Identity, Journal, OnFailure, OpenError, inspect};
use ultramarine_testkit::bounded;

const LIMIT: Duration = Duration::from_secs(40);

fn append(path: &Path, items: impl IntoIterator<Item = u64>) {
    let (journal, _) = open(path, OnFailure::Warn).expect("it can be written");
    items.into_iter().for_each(|item| journal.append(item..item + 1, &result_of(item)));
    journal.finish(LIMIT).expect("it can be written");
}

#[track_caller]
fn refused(path: &Path) -> String {
    let path = path.to_owned();
    bounded(move || {
        let content = || path.is_file().then(|| fs::read(&path).expect("it can be read"));
        let before = content();
        let text = open(&path, OnFailure::Warn).err().expect("it is refused").to_string();
        assert_eq!(before, content(), "it was changed");
        let name = path.display().to_string();
        assert!(text.contains(&name), "{text}");
        text.replace(&name, "FILE")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn a_file_that_was_cut_anywhere_goes_on(cut in any::<prop::sample::Index>()) {
        let (_folder, path) = scratch();
        append(&path, 0..20);
        let file = fs::OpenOptions::new().write(true).open(&path).expect("it was made");
        let length = file.metadata().expect("it is open").len();
        file.set_len(cut.index(length as usize + 1) as u64).expect("it is shorter");
        let (journal, report) = open(&path, OnFailure::Warn).expect("no cut is an error");
        let done = report.done.count();
        prop_assert_eq!(report.damaged_places, 0);
        prop_assert!(report.done.ranges().all(|range| range == (0..done)));
        journal.append(20..21, &result_of(20));
        journal.finish(LIMIT).expect("it can be written");
        let (_, report) = open(&path, OnFailure::Warn).expect("it is whole");
        prop_assert_eq!((report.torn_bytes, report.damaged_places), (0, 0));
        prop_assert_eq!(report.records, done + 1);
        prop_assert!(report.done.contains(20));
    }
}

/// A single byte is what a full disk may leave of a record.
#[test]
fn a_torn_tail_is_cut_off_however_short_it_is() {
    for torn_bytes in [1, 2, 47] {
        let (_folder, path) = scratch();
        append(&path, 0..2);
        let whole = fs::read(&path).expect("it was made");
        fs::write(&path, [&whole, &whole[whole.len() - 64..][..torn_bytes]].concat())
            .expect("it was");
        let (journal, report) = open(&path, OnFailure::Warn).expect("no tail is an error");
        assert_eq!(report.torn_bytes, torn_bytes as u64);
        assert_eq!(fs::metadata(&path).expect("it is there").len(), whole.len() as u64);
        journal.finish(LIMIT).expect("it can be written");
    }
}

#[test]
fn a_file_whose_header_is_torn_is_begun_from_its_beginning() {
    for length in [1, 20, 40] {
        let (_folder, path) = scratch();
        append(&path, []);
        let header = fs::read(&path).expect("it was made");
        fs::write(&path, &header[..length]).expect("it was made");
        append(&path, 0..2);
        let report = inspect(&path).expect("it is a journal").report;
        assert_eq!((report.done.count(), report.damaged_places, report.torn_bytes), (2, 0, 0));
    }
}

#[test]
fn damage_stays_and_what_comes_after_it_is_found() {
    let (_folder, path) = scratch();
    append(&path, [0, 1, 2]);
    let mut bytes = fs::read(&path).expect("it was made");
    let length = bytes.len();
    // In the head of the last record, which has 16 bytes: no other head comes after it.
    bytes[length - 20] ^= 1;
    fs::write(&path, bytes).expect("it was made");
    append(&path, [3, 2]);
    append(&path, [2]);
    let found = inspect(&path).expect("it is a journal");
    assert_eq!(found.identity, identity());
    assert!(found.report.done.ranges().eq(std::iter::once(0..4)));
    assert_eq!((found.report.damaged_places, found.report.records_repeated), (1, 1));
    let damage = &found.report.damage[0];
    assert_eq!((damage.offset, damage.bytes), (length as u64 - 64, 64));
}

#[test]
fn a_damaged_result_is_replaced_once_its_item_is_computed_again() {
    let (_folder, path) = scratch();
    append(&path, [0, 1, 2]);
    let mut bytes = fs::read(&path).expect("it was made");
    *bytes.last_mut().expect("the last result's byte") ^= 1;
    fs::write(&path, bytes).expect("it was made");
    let is_replaced = || {
        let report = inspect(&path).expect("it is a journal").report;
        report.is_replaced(&report.damage[0])
    };
    append(&path, [3]);
    assert!(!is_replaced());
    append(&path, [2]);
    assert!(is_replaced());
}

#[test]
fn another_identity_is_refused_and_each_difference_named() {
    let (_folder, path) = scratch();
    append(&path, [0]);
    let other = Identity { items: 7, digest: 1, program: "products".to_owned(), ..identity() };
    let refused = Journal::open(&path, &other, Builds::default(), OnFailure::Warn, |_, _| Ok(()));
    let text = refused.err().expect("it is refused").to_string();
    let expected = format!(
        "the journal `{}` belongs to something else: its program is `sums`, and not `products`; it \
         is for 1000000 items, and not 7; its input differs; name another file, or remove this \
         one",
        path.display()
    );
    assert_eq!(text, expected);
    append(&path, [1]);
}

#[test]
fn what_is_no_journal_is_refused_and_left_as_it_is() {
    let (_folder, path) = scratch();
    fs::write(&path, "a text").expect("there is room");
    let said = "`FILE` is no journal, or has lost its beginning, and was left as it is: name \
                another file";
    assert_eq!(refused(&path), said);
    fs::remove_file(&path).expect("it was made");
    append(&path, [0]);
    let whole = fs::read(&path).expect("it was made");
    for (place, part) in
        [(8, "has format 3, and this program knows formats up to 2"), (50, "is damaged")]
    {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        fs::write(&path, bytes).expect("it was made");
        let text = refused(&path);
        assert!(text.contains(part) && text.contains("remove this one"), "{text}");
        assert!(inspect(&path).is_err());
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let text = "`FILE` is a folder, and a journal is a file: name another path";
    assert_eq!(refused(folder.path()), text);
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("on Unix").success());
    for path in [&pipe, Path::new("/dev/full"), Path::new("/dev/zero")] {
        assert!(refused(path).starts_with("`FILE` is a device, a FIFO or a socket"));
        let path = path.to_owned();
        let inspected = bounded(move || inspect(path));
        assert!(matches!(inspected, Err(OpenError::NoFile { .. })));
    }
    let text = "there is no folder for the journal `FILE`: make it, or mend the path";
    assert_eq!(refused(&folder.path().join("no/such.journal")), text);
    let missing = inspect(folder.path().join("a")).expect_err("it is not there").to_string();
    assert!(missing.ends_with("cannot be opened: No such file or directory (os error 2)"));
}

#[test]
fn a_folder_that_must_not_be_written_is_said() {
    let folder = tempfile::tempdir().expect("there is room");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).expect("it is our own");
    if fs::write(folder.path().join("probe"), "").is_ok() {
        return println!("skipped: this user may write everywhere");
    }
    let text = refused(&folder.path().join("a.journal"));
    assert!(text.ends_with("cannot be opened for writing: Permission denied (os error 13)"));
}

#[test]
fn an_empty_file_is_a_new_journal() {
    let (_folder, path) = scratch();
    fs::write(&path, "").expect("there is room");
    assert!(matches!(inspect(&path), Err(OpenError::Unbegun(_))));
    append(&path, [5]);
    assert_eq!(inspect(&path).expect("it is one now").report.done.count(), 1);
}

/// As after a crash of the machine: the length of the file was on the disk before its bytes were.
#[test]
fn a_file_that_has_only_zeros_is_a_new_journal() {
    let (_folder, path) = scratch();
    for length in [1, 8, 300, 100_000, 3_000_000] {
        fs::write(&path, vec![0; length]).expect("there is room");
        append(&path, [5]);
        assert_eq!(inspect(&path).expect("it is one now").report.done.count(), 1);
    }
    // The beginning of the header was on the disk, and the end was not.
    let mut bytes = fs::read(&path).expect("it was made");
    let header = u32::from_le_bytes(*bytes[12..].first_chunk().expect("a length")) as usize;
    bytes.truncate(header);
    bytes[70..].fill(0);
    fs::write(&path, &bytes).expect("there is room");
    append(&path, [6]);
    assert!(inspect(&path).expect("it is one now").report.done.contains(6));
    // What has other bytes is left as it is.
    let mut bytes = fs::read(&path).expect("it was made");
    bytes[..header].fill(0);
    for bytes in [bytes, [vec![0; 2_000_000], b"end".to_vec()].concat()] {
        fs::write(&path, bytes).expect("there is room");
        assert!(refused(&path).contains("is no journal"));
    }
}

#[test]
fn a_journal_has_one_owner_at_a_time() {
    let (_folder, path) = scratch();
    let (journal, _) = open(&path, OnFailure::Warn).expect("it can be written");
    let text = "the journal `FILE` is in use, by another job or another skeleton of this one: wait \
                until that has ended, or name another file";
    assert_eq!(refused(&path), text);
    assert!(inspect(&path).is_ok());
    drop(journal);
    append(&path, [0]);
}

/// A process that is just being started has the files of its parent open.
#[test]
fn a_start_of_another_program_does_not_keep_the_lock() {
    let (_folder, path) = scratch();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert!(Command::new("true").status().expect("on Unix").success());
            }
        });
        let error = (0..200).find_map(|_| open(&path, OnFailure::Warn).err());
        is_over.store(true, Ordering::Relaxed);
        assert!(error.is_none(), "{error:?}");
    });
}

#[test]
fn a_record_that_the_owner_cannot_use_ends_the_opening() {
    let (_folder, path) = scratch();
    append(&path, [6, 7]);
    let before = fs::read(&path).expect("it was made");
    let opened =
        Journal::open(&path, &identity(), Builds::default(), OnFailure::Warn, |items, _| {
            if items.start == 7 { Err("seven".into()) } else { Ok(()) }
        });
    let text = opened.err().expect("it is refused").to_string();
    assert!(text.contains("items 7..8") && text.contains("(seven)"), "{text}");
    assert_eq!(before, fs::read(&path).expect("it was made"));
}

#[test]
fn what_is_appended_is_soon_in_the_file_and_later_on_the_disk() {
    let (_folder, path) = scratch();
    let (told, call) = listener();
    let (journal, _) = open(&path, call).expect("it can be written");
    (0..1000).for_each(|item| journal.append(item..item + 1, &result_of(item)));
    ultramarine_testkit::eventually("it is in the file", || {
        inspect(&path).is_ok_and(|found| found.report.done.count() == 1000)
    });
    ultramarine_testkit::eventually("it is on the disk", || {
        journal.figures().records_durable == 1000
    });
    drop(journal);
    assert!(told.lock().expect("no thread panics").is_empty());
}
