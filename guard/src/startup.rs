//! What a child does while MPI starts if its guard is killed.
//!
//! A launcher that ends a job kills the processes that it has started, with their process groups
//! (hydra: `kill(-group, SIGKILL)`). A guard that is killed so removes nothing, and MPICH's shared
//! memory has a name for a while of the start (30 to 150 ms for 4 processes on two busy cores). So
//! until it joins the job, the child is in a separate process group, and hears of its guard's
//! end: it leaves a copy of itself behind, which removes the files (see [`sweep`]), and ends. If
//! the child has been stopped, the system has it go on for that (SIGCONT; without it the system
//! ends such a child only where process 1 is in another session): else a launcher would wait for
//! ever for the child's output. Once it has joined, the system kills the child with its guard.
//!
//! (A program that starts its job from another thread than its first is killed with its guard from
//! the beginning.)

use super::{sweep, sys};
use rustix::process::{Pid, Signal, set_parent_process_death_signal, setpgid};
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::SystemTime;

/// The time until the child joins the job.
#[derive(Debug)]
pub(super) struct Startup {
    channel: UnixStream,
    guard: u32,
    /// The process group to go back to.
    group: Option<Pid>,
    is_over: Arc<AtomicBool>,
}

impl Startup {
    /// Begins it. From now on the guard's end does not end this process, but a thread does.
    pub(super) fn begin(channel: &UnixStream, began: SystemTime) -> io::Result<Self> {
        let (channel, mut guards) = (channel.try_clone()?, channel.try_clone()?);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let outlive = move || {
            // The guard says nothing: what comes is its end, or the end of this.
            while guards.read(&mut [0]).is_err_and(|e| e.kind() == io::ErrorKind::Interrupted) {}
            if !over.load(Ordering::SeqCst) {
                sweep::after_guard(began);
                sys::exit(1);
            }
        };
        thread::Builder::new().name("guard's end".to_owned()).spawn(outlive)?;
        let group = sys::process_group().filter(|_| setpgid(None, None).is_ok());
        set_parent_process_death_signal(Some(Signal::CONT))?;
        Ok(Startup { channel, guard: parent_id(), group, is_over })
    }

    /// Ends it: from now on the guard's end ends this process at once.
    pub(super) fn end(self) {
        sys::end_with(self.guard);
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.channel.shutdown(Shutdown::Read);
        if self.group.is_some() {
            let _ = setpgid(None, self.group);
        }
    }
}
