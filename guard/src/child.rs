//! What a process with a guard tells it.

use super::finalize::{self, Server};
use super::segments::Segment;
use super::startup::Startup;
use super::testimony::Testimony;
use super::{shared_memory, status_channel, sys, watch};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};
use ultramarine_environment::launcher::{Launched, PMI_FD};

/// How long a process that calls `exit` amid the job may take to write what C code has printed: a
/// thread that waits for input may keep it from that for ever.
const EXIT_SECONDS_MAX: u32 = 5;

/// The process whose job goes on; 0 if there is none.
static AMID_JOB: AtomicU32 = AtomicU32::new(0);

/// The channel to this process's guard, for code that does not have its [`GuardedChild`].
static CHANNEL: OnceLock<UnixStream> = OnceLock::new();

/// What the MPI library says of itself, as `MPI_Get_library_version` has it.
pub(super) type LibraryVersion = fn() -> String;

/// This process, as its guard knows it.
#[derive(Debug)]
pub struct GuardedChild {
    /// The channel to the guard, if there is one.
    guard: Option<UnixStream>,
    library_version: LibraryVersion,
    /// Before MPI starts.
    began: SystemTime,
    /// Until it joins the job.
    start: Option<Startup>,
}

impl GuardedChild {
    pub(super) fn with(
        guard: Option<UnixStream>,
        start_deadline: Duration,
        library_version: LibraryVersion,
    ) -> Self {
        let began = SystemTime::now();
        if let Some(channel) = &guard {
            // Before MPI ends all processes with pages of its own words, and the guards with them.
            if !shared_memory::finds_out_itself() {
                shared_memory::shortage().iter().for_each(|shortage| watch::log(shortage));
            }
            // A guard that is no more is killing this process.
            let _ = status_channel::starts(channel, began, start_deadline);
        }
        if let Some(channel) = guard.as_ref().and_then(|channel| channel.try_clone().ok()) {
            let _ = CHANNEL.set(channel);
        }
        // Without a thread to spare it just ends with its guard.
        let start = guard.as_ref().and_then(|channel| Startup::begin(channel, began).ok());
        GuardedChild { guard, library_version, began, start }
    }

    /// Whether there is a guard.
    pub fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// From now on the job survives the death of this process by a signal, unless it is the root,
    /// and gives it up when it is stopped for longer than `stalled_after`. If there are `others`,
    /// the job survives its root, too, as long as one of them still listens at its address. The
    /// guard gives the `testimony` when this process has died. To be called after MPI has started.
    pub fn joined(
        &mut self,
        stalled_after: Duration,
        others: &[SocketAddr],
        testimony: Option<Testimony>,
    ) {
        if let Some(channel) = &self.guard {
            let segments = Segment::own(self.began);
            let _ = status_channel::joined(
                channel,
                stalled_after,
                &Server::own(self.library_version),
                &segments,
                others,
            );
            if let Some(testimony) = testimony {
                let _ = status_channel::hands_over(channel, &testimony);
            }
            AMID_JOB.store(std::process::id(), Ordering::SeqCst);
            sys::at_exit(end_amid_job);
        }
        if let Some(start) = self.start.take() {
            start.end();
        }
    }

    /// The job is over. In one that outlives its root the death of this process counts from now on
    /// only if it `is_vital`: if it alone can say that the job has failed.
    pub fn job_is_over(&self, is_vital: bool) {
        if let Some(channel) = &self.guard {
            let _ = status_channel::job_is_over(channel, is_vital);
        }
    }

    /// MPI was finalised, together with all other processes.
    pub fn finalised(&self) {
        AMID_JOB.store(0, Ordering::SeqCst);
        if let Some(channel) = &self.guard {
            let _ = status_channel::finalised(channel);
            wake_guard();
        }
    }

    /// Why MPI does without shared memory in this process, if it was told to, in words.
    pub fn lacks_shared_memory(&self, launched: Launched) -> Option<String> {
        let reason = shared_memory::lacks(launched);
        reason.filter(|_| self.is_guarded() && shared_memory::is_left_out())
    }

    /// Whether MPI does without shared memory, also if the user has chosen that.
    pub fn goes_without_shared_memory(&self) -> bool {
        shared_memory::is_left_out()
    }

    /// This process is about to end the whole job through MPI.
    pub fn aborts(&self) {
        AMID_JOB.store(0, Ordering::SeqCst);
        if let Some(channel) = &self.guard {
            let _ = status_channel::aborts(channel);
        }
    }

    /// This process leaves a job that goes on without it: what it has started is not wanted,
    /// either.
    ///
    /// If it cannot reach the others any more, it `is_as_dead` to them, and the guard says so.
    pub fn gives_up(&self, is_as_dead: bool) {
        if let Some(channel) = &self.guard {
            let _ = status_channel::gives_up(channel, is_as_dead);
        }
    }

    /// This process will end without finalising MPI. The guard takes leave of the launcher for it.
    /// Libraries do nothing at the end of the process: they might wait for one that is dead. The
    /// program's own code goes on to its end, and decides with which code.
    pub fn leaves(self) {
        AMID_JOB.store(0, Ordering::SeqCst);
        if let Some(channel) = &self.guard {
            let _ = status_channel::leaves(channel);
            wake_guard();
        } else {
            // This much can be done without one.
            Segment::own(self.began).iter().for_each(Segment::remove);
            if std::env::var_os(PMI_FD).is_some() {
                let _ = finalize::on_behalf_of(Server::own(self.library_version), parent_id());
            }
        }
        sys::end_without_ado();
    }
}

/// Ends a process that calls `exit` amid the job, in a task say. It ends at once, as by `abort`:
/// what the MPI library does at an exit may wait for others, and its threads still run.
extern "C" fn end_amid_job(code: i32, _: *mut std::ffi::c_void) {
    match AMID_JOB.load(Ordering::SeqCst) {
        0 => {}
        own if own == std::process::id() => {
            sys::end_within(EXIT_SECONDS_MAX);
            sys::flush_and_exit(code)
        }
        // What this process has started without a new program: the libraries' threads are not
        // there, and what they would end is not its own.
        _ => sys::flush_and_exit(code),
    }
}

/// Has the guard end this process at the second interrupt. Whether there is a guard.
pub fn counts_interrupts() -> bool {
    CHANNEL.get().is_some_and(|channel| status_channel::listens(channel).is_ok())
}

/// The job has ended on another process: from now on the death of this one does not count, though
/// the others may have left before its guard can ask for them.
pub fn job_ended_elsewhere() {
    if let Some(channel) = CHANNEL.get() {
        let _ = status_channel::job_is_over(channel, false);
    }
}

/// Lets a stopped guard go on: the launcher waits for it.
fn wake_guard() {
    sys::send(parent_id() as i32, libc::SIGCONT);
}
