//! Opening an arena, as programs see it.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::barrier::require_lock_free;
use crate::limits::WORKERS_MAX;
use crate::mapped::arena::{Access, Identity, Space};
use crate::mapped::collect;
use crate::mapped::error::{Error, Result};
use crate::mapped::worker::life::{Life, Phase};
use crate::mapped::worker::{Own, Watch, Worker};
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::fill;

/// Beats of a process while another waits for one.
const BEATS: u32 = 8;

/// How an arena is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    identity: Identity,
    silent_after: Duration,
}

impl Options {
    /// For one job: its processes all give the same `job`, a number that no other job has. `build`
    /// identifies the build of the program: an arena of another build is refused.
    pub fn new(job: u64, build: u64) -> Self {
        let workers = WORKERS_MAX as u64;
        let identity = Identity { job, build, size_bytes: 1 << 34, workers };
        Self { identity, silent_after: Duration::from_secs(30) }
    }

    /// The largest size that the arena may come to have, if it is made now: 16 GiB. Only what is
    /// used takes memory.
    #[must_use]
    pub fn size_bytes(mut self, size: u64) -> Self {
        self.identity.size_bytes = size;
        self
    }

    /// The largest number of workers at a time, if it is made now: 1 to 256, which is the default.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.identity.workers = workers as u64;
        self
    }

    /// After how long without a beat a worker on another host is taken for dead: 30 s. On this host
    /// the system says which processes have ended.
    #[must_use]
    pub fn silent_after(mut self, limit: Duration) -> Self {
        self.silent_after = limit;
        self
    }
}

/// A file that the processes of a job have in their memory, with their task sets.
#[derive(Debug)]
pub struct Arena {
    space: Arc<Space>,
    watch: Mutex<Watch>,
    pulse: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Arena {
    /// Opens the arena in this file, which is made if there is none. If no other process has it
    /// open, this takes over all that a former job has left in it, and begins a new job.
    ///
    /// # Errors
    /// See [`Error`]. A file that is refused is left as it was.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        require_lock_free()?;
        let space = Space::open(path.as_ref(), &options.identity, |space, access| {
            if access == Access::Alone {
                collect::prepare(space);
            }
            Ok(())
        })?;
        let space = Arc::new(space);
        let pulse = beat(&space, options.silent_after / BEATS).map_err(|source| Error::Io {
            path: path.as_ref().to_owned(),
            action: "given a pulse",
            source,
        })?;
        let watch = Mutex::new(Watch::new(Own::get(), options.silent_after));
        Ok(Self { space, watch, pulse: Some(pulse) })
    }

    /// Makes the calling thread a worker.
    ///
    /// # Errors
    /// There are as many as there may be, or there is no room for its queue.
    pub fn join(&self) -> Result<Worker<'_>> {
        Worker::join(&self.space, &self.watch)
    }

    #[cfg(test)]
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.pulse.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// Shows other hosts that this process lives.
fn beat(space: &Arc<Space>, pause: Duration) -> std::io::Result<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = mpsc::channel();
    let space = Arc::clone(space);
    let own = Own::get();
    let beat = move || {
        while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            for slot in space.workers().map(|worker| space.slot(worker)) {
                let is_own = Life::load(&slot.life).phase == Phase::Alive(own.process)
                    && slot.home.load(Acquire) == own.home;
                if is_own {
                    let count = &slot.beat.count;
                    fill(count, count.load(Relaxed).wrapping_add(1));
                }
            }
        }
    };
    let thread = thread::Builder::new().name("taskset-beat".to_owned()).spawn(beat)?;
    Ok((stop, thread))
}
