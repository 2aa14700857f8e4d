//! Checkpoints where a PE has nothing to save, and where ranks move.

use crate::common::job;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ultramarine::Place;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start, bsp};
use ultramarine_journal::Checkpoint;

/// How often something was saved.
static SAVED: AtomicU64 = AtomicU64::new(0);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn count<S: serde::Serializer>(steps: &u64, to: S) -> Result<S::Ok, S::Error> {
    SAVED.fetch_add(1, Relaxed);
    to.serialize_u64(*steps)
}

/// The first rank ends at once.
#[derive(Serialize, Deserialize)]
struct Counted(#[serde(serialize_with = "count")] u64);

impl Program for Counted {
    type Argument = ();
    type Stage = ();
    type Message = ();
    type Output = ();

    fn new(_: &Start, (): &()) -> Self {
        Counted(0)
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        std::thread::sleep(Duration::from_millis(1));
        self.0 += 1;
        if comm.rank() == 0 || self.0 == 400 { Next::End(()) } else { Next::Stage(()) }
    }
}

/// Also where the first PE, which counts the time, has nothing to save.
#[test]
fn checkpoints_by_time_are_as_seldom_as_they_are_to_be() {
    let begun = Instant::now();
    let every = Duration::from_millis(100);
    job(vec![Place::default(); 2], async move |cx| {
        bsp::<Counted>(()).checkpoint_interval(every).run(&cx).await?;
        Ok(())
    });
    let most = begun.elapsed().as_millis() / every.as_millis() + 1;
    let saved = SAVED.load(Relaxed);
    assert!(saved > 0 && u128::from(saved) <= most, "{saved} of {most}");
}

/// Has more to do on its first two ranks, and ends when there is a checkpoint from after these have
/// moved.
#[derive(Serialize, Deserialize)]
struct Heavy {
    path: PathBuf,
    has_moved: bool,
    moved_by: Option<u64>,
}

impl Program for Heavy {
    type Argument = PathBuf;
    type Stage = ();
    type Message = bool;
    type Output = bool;

    fn new(_: &Start, path: &PathBuf) -> Self {
        Heavy { path: path.clone(), has_moved: false, moved_by: None }
    }

    fn restored(&mut self, _: &Start, _: &PathBuf) {
        self.has_moved = true;
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        if let Some((_, is_saved)) = comm.next() {
            return Next::End(is_saved);
        }
        if comm.rank() < 2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        if comm.rank() == 0 {
            let by = self.moved_by.get_or_insert(u64::MAX);
            if self.has_moved && *by == u64::MAX {
                *by = comm.superstep();
            }
            let all = Checkpoint::all_in(&self.path).unwrap_or_default();
            let is_saved =
                all.iter().any(|one| one.superstep > *by && one.is_whole(&self.path, 64));
            if is_saved || comm.superstep() == 1000 {
                comm.send_all(is_saved);
            }
        }
        Next::Stage(())
    }
}

/// The PE that has the first rank holds the lock of the directory.
#[test]
fn checkpoints_go_on_where_the_first_rank_moves() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().to_owned();
    job(vec![Place::default(); 8], async move |cx| {
        let run = bsp::<Heavy>(path.clone()).ranks(64).checkpoint_dir(&path);
        let run = run.checkpoint_interval(Duration::from_millis(20));
        assert_eq!(run.run(&cx).await?, [true; 64]);
        Ok(())
    });
}
