//! Figures of the system (`/proc`) about this process and the machine.

use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The size of a page in bytes, on all machines where this is measured.
const PAGE_BYTES: u64 = 4096;

/// The memory in use by this process, in bytes.
pub(crate) fn resident_bytes() -> io::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.map(|pages| pages * PAGE_BYTES).ok_or_else(|| unreadable("statm"))
}

/// The peak memory of each process of a program.
pub(crate) struct Peaks {
    program: PathBuf,
    bytes: HashMap<u32, u64>,
}

impl Peaks {
    /// Of no process so far.
    pub(crate) fn of(program: &Path) -> io::Result<Self> {
        Ok(Peaks { program: program.canonicalize()?, bytes: HashMap::new() })
    }

    /// Looks at the current processes. Call it repeatedly until they end.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        for process in fs::read_dir("/proc")? {
            let folder = process?.path();
            let id = folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            // A process that has just ended, or that belongs to another user, cannot be read.
            let is_of = |file: PathBuf| file == self.program;
            let (Some(id), Ok(true)) = (id, fs::read_link(folder.join("exe")).map(is_of)) else {
                continue;
            };
            let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kibibytes =
                peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            if let Some(kibibytes) = kibibytes {
                self.bytes.insert(id, 1024 * kibibytes);
            }
        }
        Ok(())
    }

    /// The sum over all processes.
    pub(crate) fn sum(&self) -> u64 {
        self.bytes.values().sum()
    }
}

/// The CPU time of this process, to the nanosecond (`/proc/self/stat` counts in hundredths of a
/// second).
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor time since the start of the machine, in the system's unit.
#[derive(Clone, Copy)]
pub(crate) struct Processors {
    all: u64,
    busy: u64,
    /// The time of this program and of its children that have ended.
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
        // The 14th to 17th field, counted from after the name, which may contain any character.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let own = fields.skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum();
        Ok(Processors { all, busy: all - idle - waiting, own })
    }

    /// The share of all processor time since `before` that other programs used, in percent.
    pub(crate) fn percent_of_others(self, before: Processors) -> f64 {
        let (all, busy) = (self.all - before.all, self.busy - before.busy);
        100.0 * busy.saturating_sub(self.own - before.own) as f64 / all.max(1) as f64
    }
}

fn unreadable(file: &str) -> io::Error {
    io::Error::other(format!("/proc: {file} is not as expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_this_program_is_seen() {
        let mut peaks = Peaks::of(&std::env::current_exe().expect("it runs")).expect("it is there");
        assert_eq!(peaks.sum(), 0);
        let before = vec![1_u8; 20_000_000];
        drop(std::hint::black_box(before));
        peaks.look().expect("there is a /proc");
        assert!(peaks.sum() > 20_000_000, "{}", peaks.sum());
    }
}
