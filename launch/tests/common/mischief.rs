//! What tasks should not do.
#![allow(unsafe_code, reason = "that is what is wrong with it")]

use std::fs::File;
use std::os::fd::{AsRawFd as _, RawFd};

/// How the child of a fork ends which does this.
pub(crate) fn fork(act: fn()) -> i32 {
    let mut status = 0;
    // SAFETY: what the child does then is what is tested; the status is valid for writing.
    unsafe {
        match libc::fork() {
            0 => {
                act();
                -1
            }
            child => {
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                libc::WEXITSTATUS(status)
            }
        }
    }
}

/// Puts nothing in the place of a file that belongs to other code of this process. (The file is not
/// just closed, or the standard library would end the process when it closes it itself.)
pub(crate) fn spoil(file: RawFd) {
    let nothing = File::open("/dev/null").expect("it is there");
    // SAFETY: touches no memory. What the owner does with the file then is what is tested.
    unsafe { libc::dup2(nothing.as_raw_fd(), file) };
}
