//! Files that are refused, arenas that are too small, and damage.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::Config;

use tempfile::TempDir;

use super::{Place, options};
use crate::barrier::Outcome;
use crate::mapped::arena::{Identity, PENDING, Space};
use crate::mapped::collect::used;
use crate::mapped::set::SetRef;
use crate::mapped::task::TaskRef;
use crate::state::{Runner, State, Status};
use crate::{Arena, Error, Options, Result};

const CODE: [u8; 16] = [5; 16];

fn refusal(path: &Path) -> Error {
    Arena::open(path, &options()).expect_err("it is refused")
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

/// An arena with a set that is half done.
fn half_done() -> Place {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join().unwrap();
    let [ended, set] = [worker.set("ended").unwrap(), worker.set("half").unwrap()];
    ended.then(CODE, &[3; 30]).unwrap();
    for number in 0..100 {
        ended.add(number, CODE, &[1; 50]).unwrap();
    }
    ended.run(|call| [7; 40][..call.number() as usize % 40].to_vec()).unwrap();
    ended.cell(1).unwrap().update(|_| vec![3; 99]).unwrap();
    for number in 0..100 {
        set.add(number, CODE, &[2; 50]).unwrap();
        set.after(&[set.task(number).unwrap()], 1000 + number, CODE, &[]).unwrap();
    }
    drop(worker);
    drop(arena);
    place
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let place = Place::new();
    let path = place.path();
    fs::write(&path, "a text").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(matches!(refusal(&path), Error::NoArena(_)));
    assert_eq!(fs::read(&path).unwrap(), b"a text");
    let folder = path.parent().unwrap();
    assert!(matches!(refusal(folder), Error::Io { action: "opened", .. }));
    assert!(matches!(refusal(&folder.join("no/file")), Error::Io { action: "opened", .. }));
    symlink(&path, folder.join("link")).unwrap();
    assert!(matches!(refusal(&folder.join("link")), Error::Io { action: "opened", .. }));
}

#[test]
fn arenas_of_others_are_refused() {
    let place = half_done();
    let path = place.path();
    let open = |options: &Options| Arena::open(&path, options);
    assert!(matches!(open(&Options::new(1, 3)), Err(Error::OtherBuild { found: 2, this: 3, .. })));
    let ours = place.open();
    assert!(matches!(open(&Options::new(9, 2)), Err(Error::Busy(_))));
    assert!(open(&options()).is_ok());
    drop(ours);
    // A new job, whatever its number.
    drop(open(&Options::new(9, 2)).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(refusal(&path), Error::OtherUser { mode: 0o640, .. }));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    if chown(&path, Some(12_345), None).is_ok() {
        assert!(matches!(refusal(&path), Error::OtherUser { owner: 12_345, .. }));
    } else {
        println!("only root can give a file away: not tested");
    }
}

/// One that opens an arena takes long; others of its job wait, and those of another do not.
#[test]
fn processes_of_one_job_wait_while_one_opens_the_arena() {
    let place = Place::new();
    let path = place.path();
    let open = |job, prepare: &dyn Fn()| {
        let identity = Identity { job, build: 2, size_bytes: 1 << 24, workers: 4 };
        Space::open(&path, &identity, |_, _| {
            prepare();
            Ok(())
        })
    };
    thread::scope(|scope| {
        let (begun, has_begun) = mpsc::channel();
        let (end, is_to_end) = mpsc::channel();
        let slow = move || {
            begun.send(()).unwrap();
            is_to_end.recv().unwrap();
        };
        let open = &open;
        let first = scope.spawn(move || open(1, &slow).map(drop));
        has_begun.recv().unwrap();
        let second = scope.spawn(move || open(1, &|| ()).map(drop));
        assert!(matches!(open(3, &|| ()), Err(Error::Busy(_))));
        assert!(matches!(open(3, &|| ()), Err(Error::Busy(_))));
        end.send(()).unwrap();
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
}

#[test]
fn damaged_headers_are_refused() {
    let damaged = |at: u64, bytes: &[u8]| {
        let place = half_done();
        overwrite(&place.path(), at, bytes);
        refusal(&place.path())
    };
    assert!(matches!(damaged(0, b"X"), Error::NoArena(_)));
    assert!(matches!(damaged(8, &[9]), Error::OtherLayout { found: 9, .. }));
    for at in [16, 24, 32, 40, 48] {
        assert!(matches!(damaged(at, &[0xff]), Error::DamagedHeader(_)), "byte {at}");
    }
    // How many pages are reserved.
    assert!(matches!(damaged(64, &[0xff; 8]), Error::DamagedHeader(_)));
    let place = half_done();
    let length = fs::metadata(place.path()).unwrap().len();
    let file = OpenOptions::new().write(true).open(place.path()).unwrap();
    file.set_len(length - 1).unwrap();
    assert!(matches!(refusal(&place.path()), Error::Truncated { needed, .. } if needed == length));
    file.set_len(20).unwrap();
    assert!(matches!(refusal(&place.path()), Error::DamagedHeader(_)));
}

#[test]
fn an_arena_that_was_never_finished_is_made_anew() -> Result<()> {
    let place = half_done();
    overwrite(&place.path(), 0, b"UMbegun\n");
    let arena = place.open();
    assert!(matches!(arena.join()?.set("ended")?.result(1), Err(Error::NoTask(1))));
    Ok(())
}

#[test]
fn a_small_arena_says_what_it_needs() -> Result<()> {
    let place = Place::new();
    let arena = Arena::open(place.path(), &options().size_bytes(1 << 20).workers(1))?;
    let worker = arena.join()?;
    assert!(matches!(arena.join(), Err(Error::NoSlot(1))));
    let set = worker.set("small")?;
    set.add(0, CODE, &[])?;
    let (size_bytes, large) = (1 << 20, vec![1; 3 << 20]);
    let add = set.add(1, CODE, &large);
    assert!(
        matches!(add, Err(Error::Full { size_bytes: size, needed_bytes }) if size == size_bytes
        && (3 << 20..5 << 20).contains(&needed_bytes))
    );
    let run = set.run(|_| &large[..]);
    assert!(matches!(run, Err(Error::Full { .. })));
    // It is as good as before, to the last block.
    let before = used(arena.space());
    let full = (10..).find_map(|number| set.add(number, CODE, &[0; 1000]).err()).unwrap();
    assert!(matches!(full, Error::Full { .. }));
    // Each takes 1536 bytes.
    assert!(used(arena.space()).0 > before.0 + 400, "{before:?}, {:?}", used(arena.space()));
    set.run(|_| [1; 16])?;
    assert_eq!(set.result(0)?.unwrap(), [1; 16]);
    Ok(())
}

/// The arena ends no process that touches a hole of it, as one that was copied has them.
#[test]
fn what_is_used_is_reserved_again() -> Result<()> {
    let place = half_done();
    let path = place.path();
    let blocks = || fs::metadata(&path).unwrap().blocks();
    let used = blocks();
    let copied = path.with_extension("copy");
    let copy = Command::new("cp").arg("--sparse=always").args([&path, &copied]).status();
    assert!(copy.unwrap().success());
    fs::rename(&copied, &path).unwrap();
    assert!(blocks() < used);
    drop(place.open());
    assert!(blocks() >= used, "{} of {used}", blocks());
    // How many pages are reserved, damaged: as many as there may be.
    let Some(small) = Small::new("8m") else { return Ok(()) };
    drop(Arena::open(small.path(), &options())?);
    overwrite(&small.path(), 64, &1024_u64.to_ne_bytes());
    assert!(matches!(refusal(&small.path()), Error::NoRoom { .. }));
    Ok(())
}

/// A damaged word must not have workers wait for one that is not there.
#[test]
fn no_worker_waits_for_what_only_damage_says() -> Result<()> {
    let place = half_done();
    let arena = place.open();
    let worker = arena.join()?;
    let half = SetRef::named(arena.space(), &worker.blocks, "half")?;
    let _ = half.set.barrier.join(9, 1).unwrap();
    // Its next life, which does not know of it.
    let task = TaskRef::open(arena.space(), worker.next().unwrap())?.offset;
    let next = Runner { incarnation: worker.runner.incarnation + 1, ..worker.runner };
    State::claim(&TaskRef::open(arena.space(), task)?.task.state, next).unwrap();
    drop(worker);
    drop(arena);
    let arena = place.open();
    let worker = arena.join()?;
    assert_eq!(worker.runner, next);
    assert_eq!(TaskRef::open(arena.space(), task)?.state().status, Status::Ready);
    let barrier = &SetRef::named(arena.space(), &worker.blocks, "half")?.set.barrier;
    let mut alone = barrier.join(20, 1).unwrap();
    let met = barrier.wait(&mut alone, |_| panic!("it is alone"));
    assert_eq!(met, Ok(Outcome::Released { leader: true }));
    barrier.leave(alone);
    worker.set("half")?.run(|_| [1; 1])
}

#[test]
fn what_is_crowded_is_not_called_too_large() -> Result<()> {
    let place = Place::new();
    let arena = place.open();
    let worker = arena.join()?;
    let _hands: Vec<_> = (0..PENDING).map(|_| worker.blocks.take(8).unwrap()).collect();
    let error = worker.set("crowded").unwrap_err();
    assert!(error.to_string().contains("cannot hold more blocks in the hands"), "{error}");
    Ok(())
}

/// All that can be called, but for what would wait for lost tasks.
fn use_all(arena: &Arena) -> Result<()> {
    let worker = arena.join()?;
    for name in ["ended", "half", "new"] {
        let Ok(set) = worker.set(name) else { continue };
        for number in (0..100).chain(1000..1100) {
            let _ = set.result(number);
            let _ = set.add(number, CODE, &[2; 50]);
        }
        let _ = set.outcome();
        let _ = set.cell(1).and_then(|cell| cell.update(|old| [old, &[1]].concat()));
        let space = arena.space();
        if let Ok(set) = SetRef::named(space, &worker.blocks, name) {
            let _ = worker.sweep(set);
        }
    }
    for task in std::iter::from_fn(|| worker.next()).take(1000) {
        let _ = worker.execute(task, &mut |call| {
            let _ = call.argument();
            Ok::<_, Error>([1; 20])
        });
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    #[test]
    fn damage_is_an_error_and_no_crash(
        places in prop::collection::vec((0_u64..1 << 20, any::<u64>(), 0..3), 1..60)
    ) {
        let place = half_done();
        let first = place.open().space().page_offset(0);
        for (at, value, kind) in places {
            // The front, descriptors and pages; most of what is used lies in the first few.
            let at = if kind == 0 { 56 + at % 20_000 } else { first - 4096 + at % (12 << 16) } & !7;
            overwrite(&place.path(), at, &(value >> (value % 64)).to_le_bytes());
        }
        for _ in 0..2 {
            if let Ok(arena) = Arena::open(place.path(), &options()) {
                let _ = use_all(&arena);
            }
        }
    }
}

/// A small file system, until it is dropped.
struct Small(TempDir);

impl Small {
    /// `None`, and it says so, if none can be made here.
    fn new(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={size}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path());
        let is_there = mount.status().is_ok_and(|status| status.success());
        if !is_there {
            println!("skipped: no file system can be mounted here");
        }
        is_there.then_some(Self(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("arena")
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_file_system_is_an_error() {
    let (Some(small), Some(tiny)) = (Small::new("1m"), Small::new("4k")) else { return };
    let arena = Arena::open(small.path(), &options()).unwrap();
    let worker = arena.join().unwrap();
    let set = worker.set("full").unwrap();
    set.add(0, CODE, &[]).unwrap();
    // More than is reserved at a time.
    let long = set.add(1, CODE, &vec![0; 8 << 20]).unwrap_err();
    assert!(matches!(long, Error::NoRoom { needed_bytes: 8_000_000.., .. }), "{long}");
    let full = (1..).find_map(|number| set.add(number, CODE, &[0; 1000]).err()).unwrap();
    assert!(matches!(full, Error::NoRoom { needed_bytes: 65_536, .. }), "{full}");
    set.run(|_| [1; 16]).unwrap();
    assert_eq!(set.result(0).unwrap().unwrap(), [1; 16]);
    drop(worker);
    drop(arena);
    assert!(matches!(refusal(&tiny.path()), Error::NoRoom { .. }));
    // It is tried again from the beginning.
    assert!(matches!(refusal(&tiny.path()), Error::NoRoom { .. }));
}
