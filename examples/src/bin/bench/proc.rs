//! What the system says about this process and about the machine.

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

/// Processor time since the machine was started, in the system's own unit.
#[derive(Clone, Copy)]
pub(crate) struct Processors {
    all: u64,
    busy: u64,
    /// Of this program and of those that it has launched and that have ended.
    own: u64,
}

impl Processors {
    pub(crate) fn now() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let first = stat.lines().next().ok_or_else(|| unreadable("stat"))?;
        // user nice system idle iowait irq softirq steal
        let all: Vec<u64> = first.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let [_, _, _, idle, waiting, ..] = all[..] else { return Err(unreadable("stat")) };
        let all: u64 = all.iter().take(8).sum();
        let stat = fs::read_to_string("/proc/self/stat")?;
        // After the name, which may hold anything: the 14th to 17th field of the file.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let own = fields.skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum();
        Ok(Processors { all, busy: all - idle - waiting, own })
    }

    /// The part of all processor time since `before` that other programs had, in percent.
    pub(crate) fn percent_of_others(self, before: Processors) -> f64 {
        let (all, busy) = (self.all - before.all, self.busy - before.busy);
        100.0 * busy.saturating_sub(self.own - before.own) as f64 / all.max(1) as f64
    }
}

fn unreadable(file: &str) -> io::Error {
    io::Error::other(format!("/proc: {file} is not as expected"))
}
