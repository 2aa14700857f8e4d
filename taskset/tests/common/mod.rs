//! Memory that processes share, and processes that share it and may die at any instruction.
//!
//! The closures given here run in a child of a process with several threads: they must not
//! allocate, lock or panic. They say by their result whether all was right.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{io, ptr, slice, sync::atomic::AtomicU64};

use ultramarine_taskset::{Memory, barrier::Barrier, queue::Queue};

/// Slots of the tests' barriers.
pub(crate) const SLOTS: usize = 8;

/// A mapping of an anonymous file, zero at first.
pub(crate) struct Shared {
    start: *mut AtomicU64,
    words: usize,
}

// SAFETY: the memory is only ever read and written through atomics.
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) fn new(bytes: usize) -> Self {
        // SAFETY: a new file and a new mapping; the descriptor is closed, the mapping keeps the
        // file.
        let start = unsafe {
            let file = libc::memfd_create(c"taskset".as_ptr(), 0);
            assert!(file >= 0, "memfd_create: {}", io::Error::last_os_error());
            assert_eq!(libc::ftruncate(file, bytes as libc::off_t), 0);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0);
            libc::close(file);
            start
        };
        assert_ne!(start, libc::MAP_FAILED, "mmap: {}", io::Error::last_os_error());
        Self { start: start.cast(), words: bytes / 8 }
    }

    pub(crate) fn all(&self) -> &[AtomicU64] {
        // SAFETY: that is the mapping, which is aligned to pages and lives as long as `self`.
        unsafe { slice::from_raw_parts(self.start, self.words) }
    }

    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        &self.all()[offset / 8]
    }

    pub(crate) fn queue(&self, offset: usize) -> &Queue {
        self.at(offset)
    }

    pub(crate) fn barrier(&self, offset: usize) -> &Barrier<SLOTS> {
        self.at(offset)
    }

    /// `T` is a structure of atomics, valid when zeroed and `repr(C)`: one of the two above.
    fn at<T>(&self, offset: usize) -> &T {
        assert!(
            offset + size_of::<T>() <= 8 * self.words && offset.is_multiple_of(align_of::<T>())
        );
        // SAFETY: it lies within the mapping and is aligned; any bytes are valid for atomics.
        unsafe { &*self.start.byte_add(offset).cast() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: no reference outlives `self`.
        unsafe { libc::munmap(self.start.cast(), 8 * self.words) };
    }
}

impl Memory for Shared {
    fn words(&self, offset: u64, count: usize) -> Option<&[AtomicU64]> {
        let first = usize::try_from(offset / 8).ok().filter(|_| offset.is_multiple_of(8))?;
        self.all().get(first..first.checked_add(count)?)
    }
}

/// A forked process; killed when this is dropped.
pub(crate) struct Child(libc::pid_t);

impl Child {
    pub(crate) fn run(work: impl FnOnce() -> bool) -> Self {
        // SAFETY: the child does only what the module's head allows, and `_exit`.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: the child dies with the thread that waits for it, or ends here.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    libc::_exit(i32::from(!work()))
                }
            }
            child => {
                assert!(child > 0, "fork: {}", io::Error::last_os_error());
                Self(child)
            }
        }
    }

    /// Whether a child can be stepped here; if not, it says so.
    pub(crate) fn can_be_stepped() -> bool {
        let can = Self::step(|| true, || ());
        if !can {
            println!("skipped: `ptrace` is not allowed here");
        }
        can
    }

    /// Runs `work` instruction by instruction, and calls `look` before each, and at last after all.
    /// Returns how the work ended.
    pub(crate) fn step(work: impl FnOnce() -> bool, mut look: impl FnMut()) -> bool {
        let child = Self::run(|| {
            // SAFETY: stops this process until its parent steps it.
            let is_traced = unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 && libc::raise(libc::SIGSTOP) == 0
            };
            is_traced && work()
        });
        loop {
            let status = child.wait();
            look();
            if !libc::WIFSTOPPED(status) {
                return status == 0;
            }
            // SAFETY: the child is stopped, and traced by this thread.
            let stepped = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child.0, 0, 0) };
            assert_eq!(stepped, 0, "ptrace: {}", io::Error::last_os_error());
        }
    }

    /// Kills it, wherever it is.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Whether it has ended by itself and well.
    pub(crate) fn ends_well(self) -> bool {
        self.wait() == 0
    }

    pub(crate) fn has_ended(&self) -> bool {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is zeroed, which is valid, and stays so if nothing has happened.
        unsafe {
            libc::waitid(libc::P_PID, self.0 as libc::id_t, info.as_mut_ptr(), flags);
            info.assume_init().si_pid() != 0
        }
    }

    fn wait(&self) -> libc::c_int {
        let mut status = 0;
        // SAFETY: `status` is this function's own.
        unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: a child of this process that may not have been waited for; if it has, the number
        // is no child's, and `waitpid` fails.
        unsafe {
            if libc::waitpid(self.0, ptr::null_mut(), libc::WNOHANG) == 0 {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, ptr::null_mut(), 0);
            }
        }
    }
}
