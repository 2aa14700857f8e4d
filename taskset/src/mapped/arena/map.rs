//! The mapped file, and its locks: the system calls of this crate that need `unsafe`.
//!
//! A mapping gives references to atomics alone, and only within its length, so that no content of
//! the file can make this process read or write anything else.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::{NonNull, null_mut};
use std::slice;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::mapped::shared::Shared;

/// A file in this process's memory, shared with all that map it.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: It gives references to atomics alone, which any thread may use.
unsafe impl Send for Mapping {}
// SAFETY: As above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first `bytes` of the file.
    pub(crate) fn new(file: &File, bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: The system chooses an address where nothing is.
        let base = unsafe { mmap(null_mut(), bytes, rights, flags, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes })
    }

    /// What lies at this offset, or `None` if it does not fit there.
    #[inline]
    pub(super) fn get<T: Shared>(&self, offset: u64) -> Option<&T> {
        self.slice(offset, 1).map(|one| &one[0])
    }

    /// `count` of them, one behind the other.
    #[inline]
    pub(crate) fn slice<T: Shared>(&self, offset: u64, count: usize) -> Option<&[T]> {
        let start = usize::try_from(offset).ok()?;
        let end = size_of::<T>().checked_mul(count)?.checked_add(start)?;
        if end > self.bytes || !start.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: `start` to `end` lies in the mapping, which lives as long as `self`, and is
        // aligned, since a mapping begins with a page. Any bytes are a `T`, and since that is made
        // of atomics, others may change them.
        Some(unsafe { slice::from_raw_parts(self.base.as_ptr().add(start).cast(), count) })
    }

    /// Where this word lies.
    #[inline]
    pub(super) fn offset_of<T: Shared>(&self, word: &T) -> u64 {
        (std::ptr::from_ref(word).addr() - self.base.addr().get()) as u64
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: References into it have ended with their borrow of `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// How a byte of the file is locked: by one, by all that share it, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    Alone,
    Shared,
    None,
}

/// Locks one byte of the file, or changes its lock, at once or not at all; `false` if another
/// process holds it otherwise. The lock is of this opening of the file: the system gives it up when
/// the process ends, however it does.
pub(super) fn lock(file: &File, byte: i64, lock: Lock) -> io::Result<bool> {
    let kind = match lock {
        Lock::Alone => libc::F_WRLCK,
        Lock::Shared => libc::F_RDLCK,
        Lock::None => libc::F_UNLCK,
    };
    let range = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: The descriptor is open, and the system only reads `range`.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}
