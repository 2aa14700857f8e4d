//! Distributed tables: inserts in bulk beside a local map behind a mutex, a request there and back,
//! memory, and the states of the cube beside one thread.

use crate::child::{needs_pes, on_each_pe};
use crate::launch::{self, Bench};
use crate::proc::resident_bytes;
use crate::sample::seconds_at;
use crate::{Goal, Report, Sample, Unit};
use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::skeletons::table::{Table, TableError, TableRef, table};
use ultramarine::{Histogram, Result};

const PES: u32 = 2;
const ROUNDS: usize = 5;
/// What each PE inserts, in messages of at most 1024 entries.
const ENTRIES_EACH: u64 = 1_500_000;
/// How often a job does it, but for the first time.
const TIMES_EACH: usize = 3;
/// What a program inserts at once.
const AT_ONCE: u64 = 1 << 16;
const GETS: u64 = 20_000;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Inserts on both PEs, and gets.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    copies: usize,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    /// Entries a second and PE, in a table, and in a map of one PE while the other rests.
    table_rate: f64,
    map_rate: f64,
    /// The memory that a PE's entries take, with the copies there, in bytes.
    table_bytes: f64,
    map_bytes: f64,
    /// Of one key, of the other PE, and of this one.
    far: Histogram,
    near: Histogram,
}

/// Keys without order, each once.
fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn entries(of: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    let all = of * ENTRIES_EACH..(of + 1) * ENTRIES_EACH;
    let end = all.end;
    all.step_by(AT_ONCE as usize).map(move |first| first..end.min(first + AT_ONCE))
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        needs_pes(cx, PES)?;
        let mut found = self.once(cx).await?;
        for _ in 0..TIMES_EACH {
            let again = self.once(cx).await?;
            // What memory was new took longer, and counted as growth.
            found = Measurements { table_bytes: found.table_bytes, ..again };
        }
        Ok(found)
    }

    async fn once(&self, cx: &Context) -> Result<Measurements> {
        let (map_rate, map_bytes) = local();
        let before = on_each_pe(cx, async |_, ()| resident_bytes().unwrap_or(0)).await?;
        let numbers = table::<u64, u64>(cx, "numbers").copies(self.copies).open()?;
        let insert = async |cx: Context, table: TableRef<u64, u64>| {
            let numbers = table.on(&cx)?;
            for some in entries(u64::from(cx.pe().number())) {
                numbers.insert_all_if_absent(some.map(|n| (key(n), n))).await?;
            }
            Ok::<_, TableError>(())
        };
        let begun = Instant::now();
        let both = (0..PES).map(|pe| cx.spawn_at(Pe::new(pe), insert, numbers.reference()));
        for done in both.collect::<Vec<_>>() {
            done.await??;
        }
        let table_rate = ENTRIES_EACH as f64 / begun.elapsed().as_secs_f64();
        let after = on_each_pe(cx, async |_, ()| resident_bytes().unwrap_or(0)).await?;
        let grown = after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before));
        let table_bytes = grown.sum::<u64>() as f64 / f64::from(PES);
        let [far, near] = gets(&numbers, cx.pe()).await?;
        Ok(Measurements { table_rate, map_rate, table_bytes, map_bytes, far, near })
    }
}

/// The same in a map of one thread, each entry under a lock; and what the map takes.
fn local() -> (f64, f64) {
    let map = Mutex::new(HashMap::with_hasher(FixedState::default()));
    let begun = Instant::now();
    for some in entries(0) {
        for n in some {
            map.lock().unwrap_or_else(PoisonError::into_inner).entry(key(n)).or_insert(n);
        }
    }
    let rate = ENTRIES_EACH as f64 / begun.elapsed().as_secs_f64();
    let map = map.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A place in eight is free, and each has a byte of its own.
    let places = map.capacity() * 8 / 7;
    (rate, (places * (size_of::<(u64, u64)>() + 1)) as f64)
}

/// The times of gets, by whether the key is owned by the other PE.
async fn gets(numbers: &Table<u64, u64>, me: Pe) -> Result<[Histogram; 2]> {
    let mut times = [Histogram::default(), Histogram::default()];
    for n in 0..GETS {
        let begun = Instant::now();
        numbers.get(key(n)).await?;
        times[usize::from(numbers.owner(&key(n)) == me)].record(begun.elapsed());
    }
    Ok(times)
}

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let per_second = Unit::THOUSAND_PER_SECOND;
    for (copies, part) in [(0, 0.5), (1, 0.25)] {
        let job = bench.on(PES, &bench.child(&format!("--threads 1 table --copies {copies}")));
        let found: Vec<Measurements> = bench.repeat(ROUNDS, job)?;
        let all = |of: &dyn Fn(&Measurements) -> f64| Sample::of(&found, of);
        let name = |what: &str| format!("{what}, copies: {copies}");
        let rate = all(&|found| found.table_rate / 1e3);
        let goal = (copies == 0).then_some(Goal::AtLeast(2000.0));
        report.goal(&name("inserts a PE"), &rate, per_second, goal);
        let map = all(&|found| found.map_rate / 1e3);
        report.figure("inserts into a local map behind a mutex", &map, per_second);
        let goal = Goal::AtLeast(part);
        report.goal(&name("inserts over local ones"), &rate.over(&map), Unit::TIMES, goal);
        let bytes = all(&|found| found.table_bytes / MEBIBYTE);
        report.figure(&name("memory of a PE"), &bytes, Unit::MEBIBYTES);
        let each = (1 + copies) as f64;
        let over = all(&|found| found.table_bytes / each / found.map_bytes);
        let goal = Goal::AtMost(1.1);
        report.goal(&name("memory over a local map's"), &over, Unit::TIMES, goal);
        let p50 = |of: &dyn Fn(&Measurements) -> Histogram| {
            all(&|found| seconds_at(&of(found), 0.5) * 1e6)
        };
        let far = p50(&|found| found.far.clone());
        report.goal(&name("a get from the other PE"), &far, Unit::MICROS, Goal::AtMost(5.0));
        report.figure(&name("a get from this PE"), &p50(&|found| found.near.clone()), Unit::MICROS);
    }
    cube(bench, report)
}

/// All states of the 2×2×2 cube.
fn cube(bench: &Bench, report: &mut Report) -> Result<()> {
    let program = |flags: &str| bench.program("cube", &format!("--json --threads 1 {flags}"));
    let alone = program("--pes 1 --skeleton sequential");
    let [one, two] = [1, PES].map(|pes| bench.on(pes, &program("--copies 0")));
    let [alone, one, two] = bench.in_turn(ROUNDS, [alone, one, two], None)?;
    let [alone, one, two] = [alone, one, two]
        .map(|found| Sample::of(&found, |printed: &launch::Printed| printed.seconds));
    report.figure("the cube by one thread", &alone, Unit::SECONDS);
    report.figure("the cube on 1 PE", &one, Unit::SECONDS);
    report.figure("the cube on 2 PEs", &two, Unit::SECONDS);
    let goal = Goal::AtMost(1.5);
    report.goal("the cube on 1 PE over one thread", &one.over(&alone), Unit::TIMES, goal);
    let goal = Goal::AtMost(1.0);
    report.goal("the cube on 2 PEs over 1 PE", &two.over(&one), Unit::TIMES, goal);
    Ok(())
}
