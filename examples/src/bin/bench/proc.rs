//! What the system says about this process.

use std::fs;
use std::io;
use std::time::Duration;

/// Bytes of a page, on all machines that this is measured on.
const PAGE_BYTES: u64 = 4096;

/// Memory in use, in bytes.
pub(crate) fn resident_bytes() -> io::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.map(|pages| pages * PAGE_BYTES).ok_or_else(|| unreadable("statm"))
}

/// Time on a processor of all threads that live, to the nanosecond (`/proc/self/stat` counts in
/// hundredths of a second).
pub(crate) fn cpu_time() -> io::Result<Duration> {
    let mut total = Duration::ZERO;
    for thread in fs::read_dir("/proc/self/task")? {
        // A thread that has just ended cannot be read.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        total += Duration::from_nanos(nanos.ok_or_else(|| unreadable("schedstat"))?);
    }
    Ok(total)
}

fn unreadable(file: &str) -> io::Error {
    io::Error::other(format!("/proc/self/{file} is not as expected"))
}
