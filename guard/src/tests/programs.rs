//! The programs of the tests' jobs.

use super::segments::Segment;
use super::*;
use mpi::environment::Universe;
use mpi::traits::CommunicatorCollectives;
use std::io::Read as _;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;
use ultramarine_environment::launcher::launched;

mod entry {
    #![allow(unsafe_code, reason = "the macro is of this crate")]
    crate::before_main!(super::before_main);
}

/// Runs the program that this process was started for, if any. This is no place to unwind to: who
/// panics is aborted.
pub(super) fn before_main() {
    begin(launched(variables::text), NO_TESTIMONY);
    match variables::text(PROGRAM).as_deref() {
        None => return,
        Some("work") => work(),
        Some("work_with_threads") => work_with_threads(),
        Some("finalise") => finalise(),
        Some("die_early") => die_early(),
        Some("fail") => fail(),
        Some("leave_with_3") => leave_with_3(),
        Some("look_around") => look_around(),
        Some("defy") => defy(),
        Some("linger_at_the_start") => linger_at_the_start(),
        Some("stand_inside") => stand_inside(),
        Some(other) => panic!("{other} is no program"),
    }
    std::process::exit(0)
}

const NO_TESTIMONY: Testify = |_, _| {};

fn library_version() -> String {
    mpi::environment::library_version().unwrap_or_default()
}

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("a test has started this").into()
}

fn rank() -> u32 {
    launched(variables::text).expect("a launcher has started this").rank
}

/// Starts MPI on all processes, behind guards. It is not finalised by itself, as that would wait
/// for the others.
fn start_mpi() -> (GuardedChild, ManuallyDrop<Universe>) {
    let child = install(
        launched(variables::text).expect("a launcher has started this"),
        true,
        STALLED_AFTER,
        library_version,
        NO_TESTIMONY,
    );
    assert!(child.is_guarded(), "it has a guard");
    let (universe, _) =
        mpi::initialize_with_threading(mpi::Threading::Serialized).expect("MPI starts once");
    universe.world().barrier();
    (child, ManuallyDrop::new(universe))
}

/// Shows who is here, and waits for leave to go on.
fn wait_at_work() {
    let (folder, rank) = (folder(), rank());
    let segments = Segment::own(SystemTime::UNIX_EPOCH).into_iter();
    let segments: Vec<_> = segments.map(|one| one.path.display().to_string()).collect();
    let file = folder.join(format!("{rank}.{SEGMENTS}"));
    std::fs::write(file, segments.join("\n")).expect("the folder is there");
    let line = format!("{} {}\n", parent_id(), std::process::id());
    std::fs::write(folder.join(rank.to_string()), line).expect("the folder is there");
    eventually_within(CHILDREN_WAIT, "the test lets this go on", || folder.join("go").exists());
}

/// Goes through a job without MPI, and leaves as after a death.
fn work() {
    assert!(sys::is_alone(), "this process is to split");
    let (mut child, _universe) = start_mpi();
    child.joined(STALLED_AFTER, &[], None);
    wait_at_work();
    println!("rank {} leaves", rank());
    child.leaves();
    std::process::exit(0)
}

/// As `work`, but a request to end passes it by.
fn defy() {
    let has_come = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGTERM, libc::SIGINT] {
        signal_hook::flag::register(signal, has_come.clone()).expect("the signal can be caught");
    }
    work();
}

/// Has a file in shared memory as MPI has while it starts, and does not get further.
fn linger_at_the_start() {
    let (_child, _universe) = start_mpi();
    let name = format!("mpich_shar_tmp-guard-test-{}", std::process::id());
    let file = PathBuf::from("/dev/shm").join(name);
    std::fs::write(&file, "something").expect("there is room");
    sys::map(&file).expect("it can be mapped");
    wait_at_work();
}

fn work_with_threads() {
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let thread = thread::spawn(move || receive.recv());
    let (mut child, _universe) = start_mpi();
    child.joined(STALLED_AFTER, &[], None);
    let guard = std::fs::read_to_string(format!("/proc/{}/status", parent_id()));
    let guard = guard.expect("the guard is there");
    assert!(guard.contains("\nThreads:\t1\n"), "{guard}");
    assert!(guard.starts_with("Name:\tultra-guard\n"), "{guard}");
    wait_at_work();
    drop(send);
    thread.join().expect("no panic").expect_err("nothing was sent");
    println!("rank {} leaves", rank());
    child.leaves();
    std::process::exit(0)
}

fn finalise() {
    let (mut child, universe) = start_mpi();
    child.joined(STALLED_AFTER, &[], None);
    wait_at_work();
    drop(ManuallyDrop::into_inner(universe));
    child.finalised();
}

fn die_early() {
    let (child, _universe) = start_mpi();
    if rank() == 1 {
        sys::send(std::process::id() as i32, libc::SIGKILL);
    }
    wait_at_work();
    child.leaves();
    std::process::exit(0)
}

fn fail() {
    let (_child, _universe) = start_mpi();
    wait_at_work();
    if rank() == 1 {
        sys::exit(7);
    }
    // The launcher ends the others.
    eventually_within(CHILDREN_WAIT, "the launcher ends this", || false);
}

fn leave_with_3() {
    let (mut child, _universe) = start_mpi();
    child.joined(STALLED_AFTER, &[], None);
    wait_at_work();
    child.leaves();
    std::process::exit(if rank() == 0 { 3 } else { 0 })
}

fn look_around() {
    let (mut reader, writer) = io::pipe().expect("there is room");
    let (mut child, universe) = start_mpi();
    child.joined(STALLED_AFTER, &[], None);
    drop(writer);
    let mut nothing = Vec::new();
    reader.read_to_end(&mut nothing).expect("no copy of the other end is open");
    let mark = variables::text(MARK).expect("a child has it");
    assert!(mark.starts_with(&format!("{}:", parent_id())), "{mark}");
    // What this process starts stands beside it, and is not guarded.
    let inner =
        Command::new(own_file()).env(PROGRAM, "stand_inside").stdout(Stdio::null()).status();
    assert!(inner.expect("it starts").success());
    drop(ManuallyDrop::into_inner(universe));
    child.finalised();
    println!("all is well");
}

fn stand_inside() {
    let own = std::process::id();
    let child = install(
        launched(variables::text).expect("it has its starter's variables"),
        true,
        STALLED_AFTER,
        library_version,
        NO_TESTIMONY,
    );
    assert!(!child.is_guarded() && std::process::id() == own);
}
