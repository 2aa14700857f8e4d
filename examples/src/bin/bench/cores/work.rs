//! What is measured on ever more cores, and the jobs for it.

use super::Done;
use crate::launch::Bench;
use crate::sample::Unit;
use std::process::Command;

/// A program, or a job of this one.
pub(super) struct Work {
    pub(super) name: &'static str,
    pub(super) program: &'static str,
    pub(super) unit: Unit,
    /// The least cores for which it is measured.
    pub(super) cores_min: u32,
    /// The number of PEs of an independent job: 2 where PEs talk to each other.
    pub(super) copy_pes: u32,
    flags: fn(Size) -> String,
}

/// For which job flags are.
#[derive(Clone, Copy)]
struct Size {
    cores: u32,
    /// An independent job of few PEs.
    is_copy: bool,
    quick: bool,
}

const fn work(
    name: &'static str,
    program: &'static str,
    [cores_min, copy_pes]: [u32; 2],
    unit: Unit,
    flags: fn(Size) -> String,
) -> Work {
    Work { name, program, unit, cores_min, copy_pes, flags }
}

const OWN: &str = "bench";

#[rustfmt::skip]
pub(super) static WORKS: [Work; 10] = [
    work("fib", "fibonacci", [1, 1], Unit::SECONDS, fib),
    work("Cholesky", "cholesky", [1, 1], Unit::SECONDS, cholesky),
    work("SumEuler", "sum_euler", [1, 1], Unit::SECONDS, sum_euler),
    work("stolen tasks", OWN, [1, 1], Unit::MILLION_PER_SECOND, |_| "noop".to_owned()),
    work("placed tasks", OWN, [2, 2], Unit::MILLION_PER_SECOND, |_| "ring".to_owned()),
    work("bulk, 8 MiB", OWN, [2, 2], Unit::GIGABYTES_PER_SECOND, |_| "ring --bulk".to_owned()),
    work("UTS T1L", "uts", [1, 1], Unit::SECONDS, |size| match size {
        Size { quick: true, .. } => "-t 1 -a 3 -d 10 -b 4 -r 19".to_owned(),
        // A quarter of the tree.
        Size { is_copy: true, .. } => "-t 1 -a 3 -d 12 -b 4 -r 29".to_owned(),
        _ => "-t 1 -a 3 -d 13 -b 4 -r 29".to_owned(),
    }),
    work("UTS T3L", "uts", [1, 1], Unit::SECONDS, |size| match size {
        Size { quick: true, .. } => "-t 0 -b 2000 -q 0.124875 -m 8 -r 42".to_owned(),
        _ => "-t 0 -b 2000 -q 0.200014 -m 5 -r 7".to_owned(),
    }),
    work("UTS T1XL", "uts", [16, 1], Unit::SECONDS, |size| {
        let depth = if size.is_copy { 12 } else { 15 };
        format!("-t 1 -a 3 -d {depth} -b 4 -r 29")
    }),
    // Independent jobs count a smaller tree of the same kind, of 19 million nodes.
    work("UTS T3XXL", "uts", [16, 1], Unit::SECONDS, |size| {
        format!("-t 0 -b 2000 -q 0.499995 -m 2 -r {}", if size.is_copy { 6 } else { 316 })
    }),
];

impl Work {
    /// Whether its PEs do nothing but send to each other.
    pub(super) fn talks(&self) -> bool {
        self.copy_pes > 1
    }

    /// A job on this number of cores, with these flags of the runtime; or an independent job.
    pub(super) fn job(&self, bench: &Bench, cores: u32, flags: &str, is_copy: bool) -> Command {
        let own = (self.flags)(Size { cores, is_copy, quick: bench.quick });
        if self.program == OWN {
            return bench.child(&format!("{flags} {own}"));
        }
        bench.program(self.program, &format!("{own} {flags} --json"))
    }

    /// What is printed: the seconds of a program, the rate of tasks or transfers.
    pub(super) fn figure(&self, done: &Done) -> f64 {
        match self.unit {
            Unit::SECONDS => done.seconds,
            Unit::MILLION_PER_SECOND => done.rate() / 1e6,
            _ => done.rate(),
        }
    }
}

/// F(N) and the work for it grow by three fifths with each N, so that the time hardly depends on
/// the number of cores.
fn fib(size: Size) -> String {
    let smallest = if size.quick { 32 } else { 38 };
    let more = if size.is_copy { 0 } else { f64::from(size.cores).log(1.618).round() as u32 };
    format!("--n {}", smallest + more)
}

/// The same for independent jobs, because the work does not grow evenly. From 16 cores on it is
/// four times as large.
fn sum_euler(Size { cores, quick, .. }: Size) -> String {
    match (quick, cores) {
        (true, _) => "--upto 4000".to_owned(),
        (_, 0..16) => "--upto 20000 --tasks 400".to_owned(),
        _ => "--upto 40000 --tasks 4000".to_owned(),
    }
}

/// Of 8192 rows from 8 cores on, or as many as fit a quarter of the memory that is available.
fn cholesky(Size { cores, is_copy, quick }: Size) -> String {
    let (mut rows, jobs) = match (quick, is_copy, cores) {
        (true, ..) => (1024, cores),
        (_, true, _) => (4096, cores),
        (_, _, 0..8) => (4096, 1),
        _ => (8192, 1),
    };
    let memory = available_memory().unwrap_or(u64::MAX);
    while rows > 1024 && 4 * 8 * rows * rows * u64::from(jobs) > memory {
        rows /= 2;
    }
    format!("--size {rows} --drop-used")
}

/// In bytes.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_grows_with_the_cores_but_not_in_independent_jobs() {
        let size = |cores, is_copy| Size { cores, is_copy, quick: false };
        assert_eq!(fib(size(1, false)), "--n 38");
        assert_eq!(fib(size(128, false)), "--n 48");
        assert_eq!(fib(size(128, true)), "--n 38");
        assert_eq!(sum_euler(size(64, true)), sum_euler(size(64, false)));
        // No machine has the memory for these.
        assert_eq!(cholesky(size(u32::MAX, true)), "--size 1024 --drop-used");
    }

    #[test]
    fn the_memory_is_known() {
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
