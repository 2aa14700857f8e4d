//! System calls about memory: reading the memory of other processes of this host, memory that is
//! kept, and huge pages.
//!
//! They need `unsafe`.

#![allow(unsafe_code)]

use rustix::mm::{Advice, madvise};
use rustix::process::{PTracer, Pid, set_ptracer};
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;

/// Lets all processes of this user read this process's memory, where a security module (Yama) would
/// let only its ancestors do so.
pub(crate) fn allow_reading() {
    // This fails where there is no such module, and so nothing to allow.
    let _ = set_ptracer(PTracer::Any);
}

/// Copies memory of another process from this address, and after it that at `then`. Returns the
/// first.
///
/// # Errors
///
/// There is no such process, it has no such memory, or its memory may not be read; or the system
/// does not have the call.
pub(crate) fn read<'a>(
    from: Pid,
    address: u64,
    into: &'a mut [MaybeUninit<u8>],
    (then, behind): (u64, &mut [u8]),
) -> io::Result<&'a mut [u8]> {
    let place = |base: *mut c_void, iov_len| libc::iovec { iov_base: base, iov_len };
    let bytes = [into.len(), behind.len()];
    let here =
        [place(into.as_mut_ptr().cast(), bytes[0]), place(behind.as_mut_ptr().cast(), bytes[1])];
    let there = [place(address as *mut _, bytes[0]), place(then as *mut _, bytes[1])];
    let from = from.as_raw_nonzero().get();
    // SAFETY: Each of `here` is a buffer that is borrowed until the call is over. `there` is only
    // read, and the system checks that it can be. Both have two elements.
    let copied = unsafe { libc::process_vm_readv(from, here.as_ptr(), 2, there.as_ptr(), 2, 0) };
    match usize::try_from(copied) {
        Ok(copied) if copied == bytes[0] + bytes[1] => {
            // SAFETY: The system has written all of it.
            Ok(unsafe { std::slice::from_raw_parts_mut(into.as_mut_ptr().cast(), bytes[0]) })
        }
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Has memory that is freed kept for the next arrays, since new pages cost more than what is
/// written into them, until the process [rests](give_back_freed). (Larger blocks are those of
/// [`Allocator`](crate::Allocator). Three arrays, 800 kB together, from one mailbox to another:
/// 0.38 ms instead of 1.0.)
pub(crate) fn keep_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: It only sets the limits of the allocator, under a lock of its own.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

/// Gives the pages of freed memory back. The process has been at rest for a while. (After a burst
/// of small arrays hundreds of megabytes would be kept for good, wherever one of them is still in
/// use behind the others.)
pub(crate) fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: It only gives back what is free, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Asks the system to use huge pages for memory that is about to be written for the first time:
/// each small page would cost a fault.
pub(crate) fn prefer_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    const HUGE_BYTES: usize = 2 << 20;
    let (begin, bytes) = (memory.as_mut_ptr().cast::<c_void>(), size_of_val(memory));
    let skipped = begin.align_offset(HUGE_BYTES).min(bytes);
    let whole = (bytes - skipped) / HUGE_BYTES * HUGE_BYTES;
    if whole > 0 {
        // SAFETY: It is memory of the caller's alone, and the advice does not change what is in it.
        // It may fail, and then nothing is lost.
        let _ = unsafe { madvise(begin.byte_add(skipped), whole, Advice::LinuxHugepage) };
    }
}
