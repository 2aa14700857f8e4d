//! System calls about memory: reading the memory of other processes of this host, and huge pages.
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

/// Copies memory of another process: from each address into the buffer beside it, in this order.
///
/// # Errors
///
/// There is no such process, it has no such memory, or its memory may not be read; or the system
/// does not have the call.
pub(crate) fn read<const N: usize>(from: Pid, copies: [(u64, &mut [u8]); N]) -> io::Result<()> {
    let bytes = copies.iter().map(|(_, into)| into.len()).sum::<usize>();
    let pairs = copies.map(|(address, into)| {
        let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
        let here = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        (here, there)
    });
    let (here, there) = (pairs.map(|(here, _)| here), pairs.map(|(_, there)| there));
    let (from, count) = (from.as_raw_nonzero().get(), N as libc::c_ulong);
    // SAFETY: Each of `here` is a buffer that is borrowed until the call is over. `there` is only
    // read, and the system checks that it can be. Both have `count` elements.
    let copied =
        unsafe { libc::process_vm_readv(from, here.as_ptr(), count, there.as_ptr(), count, 0) };
    match usize::try_from(copied) {
        Ok(copied) if copied == bytes => Ok(()),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
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
