//! Checkpoints in directories.

use crate::common::job;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;
use ultramarine::Place;
use ultramarine::prelude::OtherBuilds;
use ultramarine::skeletons::bsp::{BspError, Comm, Next, Program, Start, bsp, op};
use ultramarine_journal::{inspect, read_whole, write_whole};

const LAST: u64 = 200;
const RANKS: u32 = 6;

/// The superstep in which rank 1 panics, and the number of steps taken: of one test each, since
/// tests run beside each other.
static BREAKS: [AtomicU64; 12] = [const { AtomicU64::new(u64::MAX) }; 12];
static STEPS: [AtomicU64; 12] = [const { AtomicU64::new(0) }; 12];

/// Adds up what the neighbours have, and sleeps now and then.
#[derive(Serialize, Deserialize)]
struct Ring {
    test: usize,
    number: f64,
    array: Vec<f64>,
}

impl Program for Ring {
    type Argument = usize;
    type Stage = ();
    type Message = Vec<f64>;
    type Output = (f64, Vec<f64>);

    fn new(start: &Start, &test: &usize) -> Self {
        Ring { test, number: f64::from(start.rank), array: vec![0.5; 5000] }
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        let (rank, superstep) = (comm.rank(), comm.superstep());
        STEPS[self.test].fetch_add(1, Relaxed);
        if rank == 0 {
            // So that there are some checkpoints, whatever the disk is like.
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(rank != 1 || superstep != BREAKS[self.test].load(Relaxed), "it breaks");
        while let Some((_, numbers)) = comm.next() {
            self.number += numbers[0] / 3.0;
            self.array[superstep as usize] = self.number;
        }
        self.number += comm.result::<f64>().unwrap_or(0.0).sin();
        if rank == 5 && superstep >= 100 {
            // It ends before the others.
            return Next::End((self.number, self.array[..50].to_vec()));
        }
        if superstep == LAST {
            return Next::End((self.number, self.array[..50].to_vec()));
        }
        if rank < 4 {
            comm.send((rank + 1) % 5, vec![self.number; 1000]);
            comm.all_reduce(&self.number, op::sum::<f64>);
        }
        // Rank 4 is woken by what rank 3 sends.
        if rank == 4 && superstep + 1 < LAST { Next::Sleep(()) } else { Next::Stage(()) }
    }
}

/// Runs it on some PEs.
fn run(
    test: usize,
    pes: usize,
    folder: &Path,
    in_memory: bool,
) -> Result<Vec<(f64, Vec<f64>)>, BspError> {
    STEPS[test].store(0, Relaxed);
    let (send, receive) = mpsc::channel();
    let folder = folder.to_owned();
    job(vec![Place::default(); pes], async move |cx| {
        let ring = bsp::<Ring>(test).ranks(RANKS).checkpoint_dir(folder);
        let ring = ring.checkpoint_every(const { NonZeroU64::new(3).unwrap() });
        send.send(ring.checkpoints_in_memory(in_memory).run(&cx).await)?;
        Ok(())
    });
    receive.recv().expect("it is sent")
}

/// The outputs without checkpoints.
fn outputs(test: usize) -> Vec<(f64, Vec<f64>)> {
    let (send, receive) = mpsc::channel();
    job(vec![Place::default()], async move |cx| {
        send.send(bsp::<Ring>(test).ranks(RANKS).without_checkpoints().run(&cx).await?)?;
        Ok(())
    });
    receive.recv().expect("it is sent")
}

/// A directory in which there are checkpoints of a run that broke in this superstep.
fn broken_at(test: usize, superstep: u64, pes: usize) -> TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    BREAKS[test].store(superstep, Relaxed);
    let error = run(test, pes, &folder.path().join("new"), true).expect_err("it breaks");
    assert!(error.to_string().contains("rank 1 panicked"), "{error}");
    BREAKS[test].store(u64::MAX, Relaxed);
    settle(&folder.path().join("new"));
    folder
}

/// Waits until nothing is written any more: what was begun when a run ended is still.
fn settle(folder: &Path) {
    let is_begun = |(_, files): &(u64, Vec<PathBuf>)| {
        files.is_empty() || files.iter().any(|file| file.extension().is_some())
    };
    let mut before = Vec::new();
    for _ in 0..200 {
        let now = checkpoints(folder);
        if now == before && !now.iter().any(is_begun) {
            return;
        }
        before = now;
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it is still written to: {before:?}");
}

/// The checkpoints, the newest last, with their files.
fn checkpoints(folder: &Path) -> Vec<(u64, Vec<PathBuf>)> {
    let entries =
        |folder: &Path| folder.read_dir().expect("it is there").flatten().collect::<Vec<_>>();
    let mut all: Vec<_> = entries(folder)
        .iter()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().expect("it is text");
            let superstep = name.strip_prefix("superstep-")?.split_once('.')?.0.parse().ok()?;
            let mut files: Vec<_> =
                entries(&entry.path()).iter().map(std::fs::DirEntry::path).collect();
            files.sort();
            Some((superstep, files))
        })
        .collect();
    all.sort();
    all
}

/// Those of which all files are whole, one of each PE.
fn whole(folder: &Path, pes: usize) -> Vec<(u64, Vec<PathBuf>)> {
    let is_whole = |file: &&PathBuf| file.extension().is_none();
    let mut all = checkpoints(folder);
    all.retain(|(_, files)| files.iter().filter(is_whole).count() == pes);
    all
}

#[test]
fn another_job_goes_on_with_other_pes() {
    let expected = outputs(0);
    for (pes, in_memory) in [(1, true), (2, false), (4, true), (7, false)] {
        let folder = broken_at(0, 150, 3);
        let folder = folder.path().join("new");
        let last = whole(&folder, 3).last().expect("there are some").0;
        assert!(last >= 6, "{last}");
        assert_eq!(run(0, pes, &folder, in_memory), Ok(expected.clone()), "{pes} PEs");
        let steps = STEPS[0].load(Relaxed);
        assert!(steps <= u64::from(RANKS) * (LAST + 1 - last), "{steps} steps from {last} on");
        let left = checkpoints(&folder);
        // One may be just being written, and one about to be removed.
        let supersteps: Vec<_> = left.iter().map(|(superstep, _)| *superstep).collect();
        assert!(left.len() <= 5 && supersteps.last() >= Some(&last), "{last}: {supersteps:?}");
        // Once more: it goes on from the last, or later.
        assert_eq!(run(0, pes, &folder, in_memory), Ok(expected.clone()), "{pes} PEs");
        assert!(STEPS[0].load(Relaxed) <= steps);
    }
}

/// What was broken in the middle of a file, and then everywhere.
#[test]
fn what_is_damaged_is_not_used() {
    let expected = outputs(1);
    let folder = broken_at(1, 150, 3);
    let folder = folder.path().join("new");
    let all = whole(&folder, 3);
    let [.., before, last] = &all[..] else { panic!("{all:?}") };
    let damage = |file: &PathBuf| {
        // It may be about to be removed.
        let Ok(mut bytes) = std::fs::read(file) else { return };
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).expect("there is room");
    };
    damage(&last.1[0]);
    assert_eq!(run(1, 2, &folder, true), Ok(expected.clone()));
    let steps = STEPS[1].load(Relaxed);
    assert!(steps <= u64::from(RANKS) * (LAST + 1 - before.0), "{steps} steps");
    for (_, files) in checkpoints(&folder) {
        files.iter().for_each(damage);
    }
    assert_eq!(run(1, 2, &folder, true), Ok(expected));
    assert!(STEPS[1].load(Relaxed) > steps, "it begins anew");
}

#[test]
fn checkpoints_of_something_else_are_refused_and_left() {
    let folder = broken_at(2, 100, 2);
    let folder = folder.path().join("new");
    let before = checkpoints(&folder);
    let error = run(3, 2, &folder, true).expect_err("its argument is another").to_string();
    assert!(error.contains("the program's argument was another"), "{error}");
    let other = folder.clone();
    job(vec![Place::default(); 2], async move |cx| {
        let ring = bsp::<Ring>(2).ranks(RANKS - 1).checkpoint_dir(other);
        let error = ring.run(&cx).await.expect_err("it has fewer ranks").to_string();
        assert!(error.contains("they are of 6 ranks, and not of 5"), "{error}");
        Ok(())
    });
    assert_eq!(checkpoints(&folder), before);
    for file in before.iter().flat_map(|(_, files)| files) {
        inspect(file).expect("it is as it was");
    }
}

/// Has another build have written a file.
fn write_by_another_build(file: &Path) {
    let (found, mut records) = (inspect(file).expect("it is intact"), Vec::new());
    let visit = |items, bytes: &[u8]| {
        records.push((items, bytes.to_vec()));
        Ok(())
    };
    read_whole(file, &found.identity, visit).expect("it is intact");
    write_whole(file, &found.identity, Some(1), records).expect("there is room");
}

#[test]
fn checkpoints_of_another_build_are_refused_unless_they_are_wanted() {
    let expected = outputs(8);
    let folder = broken_at(8, 100, 2);
    let path = folder.path().join("new");
    for file in checkpoints(&path).iter().flat_map(|(_, files)| files) {
        write_by_another_build(file);
    }
    let before = checkpoints(&path);
    let last = whole(&path, 2).last().expect("there are some").0;
    assert!(last > 20, "{last}");
    let error = run(8, 2, &path, true).expect_err("they are of another build").to_string();
    assert!(error.contains("another build") && error.contains("other_builds"), "{error}");
    assert_eq!(checkpoints(&path), before);
    for (builds, is_anew) in [(OtherBuilds::Keep, false), (OtherBuilds::Anew, true)] {
        let (expected, path) = (expected.clone(), path.clone());
        STEPS[8].store(0, Relaxed);
        job(vec![Place::default(); 2], async move |cx| {
            let run = bsp::<Ring>(8).ranks(RANKS).checkpoint_dir(path).other_builds(builds);
            // What it leaves is of this build, so it leaves nothing.
            assert_eq!(run.without_checkpoints().run(&cx).await?, expected);
            Ok(())
        });
        let left = u64::from(RANKS) * (LAST + 1 - last);
        assert_eq!(STEPS[8].load(Relaxed) > left, is_anew, "{builds:?} from {last} on");
    }
}

/// A file that was copied from one checkpoint to another is not mixed with the rest.
#[test]
fn a_file_of_another_checkpoint_is_not_used_and_foreign_files_stay() {
    let expected = outputs(10);
    let folder = broken_at(10, 150, 3);
    let folder = folder.path().join("new");
    let all = whole(&folder, 3);
    let [.., before, last] = &all[..] else { panic!("{all:?}") };
    std::fs::copy(&before.1[1], &last.1[1]).expect("there is room");
    let foreign = before.1[0].with_file_name("thesis");
    let empty = folder.join("superstep-1.1");
    std::fs::create_dir(&empty).expect("there is room");
    for path in [&foreign, &empty.join("ranks-0-6")] {
        std::fs::write(path, "mine").expect("there is room");
    }
    assert_eq!(run(10, 2, &folder, true), Ok(expected));
    let steps = STEPS[10].load(Relaxed);
    assert!(steps <= u64::from(RANKS) * (LAST + 1 - before.0), "{steps} steps from {}", before.0);
    settle(&folder);
    assert!(!before.1[0].exists(), "it was the run's own");
    for path in [&foreign, &empty.join("ranks-0-6")] {
        assert_eq!(std::fs::read_to_string(path).expect("it is there"), "mine");
    }
}

/// Where a rank is in two files, one of which is damaged, the other is read.
#[test]
fn a_damaged_file_beside_an_intact_one_does_no_harm() {
    let expected = outputs(9);
    let folder = broken_at(9, 150, 3);
    let folder = folder.path().join("new");
    let all = whole(&folder, 3);
    let last = all.last().expect("there are some");
    let file = last.1.iter().find(|file| file.ends_with("ranks-2-4")).expect("PE 1 has those");
    let mut bytes = std::fs::read(file).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file.with_file_name("ranks-1-4"), bytes).expect("there is room");
    assert_eq!(run(9, 2, &folder, true), Ok(expected));
    let steps = STEPS[9].load(Relaxed);
    assert!(steps <= u64::from(RANKS) * (LAST + 1 - last.0), "{steps} steps from {}", last.0);
}

#[test]
fn one_job_at_a_time_uses_a_directory() {
    let folder = tempfile::tempdir().expect("there is room");
    let lock = File::create(folder.path().join("lock")).expect("there is room");
    lock.lock().expect("no one has it");
    let error = run(4, 2, folder.path(), true).expect_err("it is locked").to_string();
    assert!(error.contains("in use by another job"), "{error}");
    // A process that is about to end lets go a little later.
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(lock);
    });
    run(4, 2, folder.path(), true).expect("it is free");
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("file");
    std::fs::write(&path, "").expect("there is room");
    for path in [path.clone(), path.join("within")] {
        let error = run(5, 2, &path, true).expect_err("it is a file").to_string();
        assert!(error.contains('`') && error.contains("cannot be made"), "{error}");
    }
}

/// One after the other, in one job: the second finds what the first has left.
#[test]
fn a_directory_may_be_used_twice_in_a_job() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().to_owned();
    job(vec![Place::default(); 3], async move |cx| {
        let run = || bsp::<Ring>(7).ranks(RANKS).checkpoint_dir(&path);
        let every = const { NonZeroU64::new(3).unwrap() };
        let first = run().checkpoint_every(every).run(&cx).await?;
        let steps = STEPS[7].swap(0, Relaxed);
        assert_eq!(run().run(&cx).await?, first);
        assert!(STEPS[7].load(Relaxed) < steps);
        Ok(())
    });
}

/// As on a disk that is full.
#[test]
fn the_run_goes_on_if_a_checkpoint_cannot_be_written() {
    let folder = tempfile::tempdir().expect("there is room");
    // Where the checkpoints would be there are files.
    for superstep in 3..=LAST {
        std::fs::write(folder.path().join(format!("superstep-{superstep}.1")), "").expect("room");
    }
    for in_memory in [true, false] {
        assert_eq!(run(6, 3, folder.path(), in_memory), Ok(outputs(6)));
    }
}

/// A rank that says why it cannot be read again.
#[derive(Serialize, Deserialize)]
struct Closed {
    path: PathBuf,
    #[serde(deserialize_with = "refuse")]
    superstep: u64,
}

fn refuse<'de, D: serde::Deserializer<'de>>(_: D) -> Result<u64, D::Error> {
    Err(serde::de::Error::custom("it stays closed"))
}

impl Program for Closed {
    type Argument = PathBuf;
    type Stage = ();
    type Message = ();
    type Output = bool;

    fn new(_: &Start, path: &PathBuf) -> Self {
        Closed { path: path.clone(), superstep: 0 }
    }

    /// It ends once there is a checkpoint.
    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        std::thread::sleep(Duration::from_millis(1));
        self.superstep = comm.superstep();
        let is_saved = !whole(&self.path, 1).is_empty();
        if is_saved || self.superstep == 20_000 { Next::End(is_saved) } else { Next::Stage(()) }
    }
}

#[test]
fn a_state_that_cannot_be_read_is_an_error_that_says_why() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().to_owned();
    job(vec![Place::default(); 3], async move |cx| {
        let run = || {
            let run = bsp::<Closed>(path.clone()).ranks(1).checkpoint_dir(&path);
            run.checkpoint_interval(Duration::from_millis(5)).run(&cx)
        };
        assert_eq!(run().await?, [true]);
        let error = run().await.expect_err("it stays closed").to_string();
        assert!(error.contains("rank 0") && error.contains("it stays closed"), "{error}");
        Ok(())
    });
}

/// As on a disk that is full for one PE: what the others have stored would take its room for ever.
#[test]
fn what_is_there_of_a_checkpoint_that_failed_is_removed() {
    let folder = tempfile::tempdir().expect("there is room");
    let of = |superstep| folder.path().join(format!("superstep-{superstep}.1"));
    for superstep in 3..=LAST {
        // Where PE 1 would write there is a folder.
        std::fs::create_dir_all(of(superstep).join("ranks-3-6.new")).expect("there is room");
    }
    assert_eq!(run(11, 2, folder.path(), true), Ok(outputs(11)));
    let left = (3..=LAST).filter(|superstep| of(*superstep).join("ranks-0-3").exists()).count();
    // The last one is not known to have failed yet, and the one before may be about to go.
    assert!(left <= 2, "{left}");
}
