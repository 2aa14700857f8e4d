//! A process that fails before it takes part in the job: it was given a bad flag, say, or cannot
//! read what it works on.
//!
//! The others wait for it inside MPI, and not every launcher ends them. (Measured, for a process
//! that ends with code 2: Open MPI's mpiexec ends the job after 1.3 s, hydra and `srun
//! --kill-on-bad-exit=0` never do, so that the others wait for `start_deadline`, a minute.) So such
//! a process starts MPI at its exit, and tells the others, as for any other error at the start.
//!
//! One that ends with 0 has been asked for its version, or such, as have all others. And one that a
//! script has started, and not the launcher, may be there for something else than the job.

use super::bootstrap;
use super::connect::testify;
use super::deadline::{StartDeadline, start_deadline};
use super::mpi_thread::{FAILED_WITHIN, MpiThread};
use crate::error::StartError;
use std::ffi::c_void;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use ultramarine_environment::launcher::{Launched, launched};
use ultramarine_environment::variables;
use ultramarine_guard as guard;

/// How long rank 0 has to say why the job did not start.
const RANK_0_SAYS_WITHIN: Duration = Duration::from_millis(500);

/// The process that is expected to take part in a job and has not yet begun to; 0 if there is none.
static EXPECTED: AtomicU32 = AtomicU32::new(0);

ultramarine_guard::before_main!(expect_to_join);

/// If a launcher has just started this process, it must join the job: when it ends before, it tells
/// the others.
fn expect_to_join() {
    if !guard::begin(launched(variables::text), testify) {
        return;
    }
    EXPECTED.store(std::process::id(), Ordering::SeqCst);
    guard::at_exit(tell_the_others);
}

/// This process joins now, and reports its errors in other ways from now on; or it is part of no
/// job.
pub(crate) fn mark_as_joining() {
    EXPECTED.store(0, Ordering::SeqCst);
}

extern "C" fn tell_the_others(code: i32, _: *mut c_void) {
    // What this process has started without a new program ends here, too.
    let was_expected = EXPECTED.swap(0, Ordering::SeqCst) == std::process::id();
    if let Some(launched) = launched(variables::text).filter(|_| was_expected && code != 0) {
        join_to_refuse(launched, code);
    }
}

/// Joins the job only to refuse, so that the other processes learn why.
fn join_to_refuse(launched: Launched, code: i32) {
    let _deadline = StartDeadline::call_after(start_deadline(None), move || guard::exit(code));
    let why = format!("it has ended with code {code} before it joined the job: see what it says");
    let join =
        move |world: &_| bootstrap::join(world, Err(StartError::Options(why)), launched).err();
    // Where MPI does not start, or was started before by the program, there is no way to tell.
    let Ok((mpi, error)) = MpiThread::start(join) else { return };
    match error {
        None | Some(StartError::SaidElsewhere) => {}
        // At the exit of the process there is no other way to say it, nor to say that it failed.
        Some(error) => {
            let _ = writeln!(std::io::stderr(), "ultramarine: the job did not start: {error}");
        }
    }
    let is_finalised = mpi.finalise(FAILED_WITHIN, || true);
    // Some launchers end all when one has failed (Open MPI's does), and rank 0 is to say why.
    thread::sleep(RANK_0_SAYS_WITHIN);
    if !is_finalised {
        guard::exit(code);
    }
}
