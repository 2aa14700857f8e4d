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

/// Inserts on both PEs, and gets; or inserts into a local map.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    copies: usize,
    #[arg(long)]
    local: bool,
}

#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Measurements {
    /// Entries a second and PE.
    rate: f64,
    /// By how much the memory of a PE has grown, in bytes.
    bytes: f64,
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
        let mut first = None;
        for _ in 0..TIMES_EACH {
            let found = if self.local { local()? } else { self.once(cx).await? };
            first.get_or_insert(found.bytes);
        }
        // Memory grows in the first round, which is slower for that.
        let found = if self.local { local()? } else { self.once(cx).await? };
        Ok(Measurements { bytes: first.unwrap_or(found.bytes), ..found })
    }

    async fn once(&self, cx: &Context) -> Result<Measurements> {
        needs_pes(cx, PES)?;
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
        let rate = ENTRIES_EACH as f64 / begun.elapsed().as_secs_f64();
        let after = on_each_pe(cx, async |_, ()| resident_bytes().unwrap_or(0)).await?;
        let grown = after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before));
        let bytes = grown.sum::<u64>() as f64 / f64::from(PES);
        let [far, near] = gets(&numbers, cx.pe()).await?;
        Ok(Measurements { rate, bytes, far, near })
    }
}

/// The same in a map of one thread, each entry under a lock.
fn local() -> Result<Measurements> {
    let before = resident_bytes()?;
    let map = Mutex::new(HashMap::with_hasher(FixedState::default()));
    let begun = Instant::now();
    for some in entries(0) {
        for n in some {
            map.lock().unwrap_or_else(PoisonError::into_inner).entry(key(n)).or_insert(n);
        }
    }
    let rate = ENTRIES_EACH as f64 / begun.elapsed().as_secs_f64();
    let bytes = resident_bytes()?.saturating_sub(before) as f64;
    Ok(Measurements { rate, bytes, ..Measurements::default() })
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
    let table = |copies: usize| {
        bench.on(PES, &bench.child(&format!("--threads 1 table --copies {copies}")))
    };
    let mut jobs =
        [bench.child("--pes 1 --threads 1 table --copies 0 --local"), table(0), table(1)];
    let mut found: [Vec<Measurements>; 3] = Default::default();
    for _ in 0..bench.rounds(ROUNDS) {
        for (job, found) in jobs.iter_mut().zip(&mut found) {
            found.push(launch::run(job)?.json()?);
        }
    }
    let [map, none, one] = found;
    let rate = |found: &[Measurements]| Sample::of(found, |found| found.rate / 1e3);
    let bytes = |found: &[Measurements]| Sample::of(found, |found| found.bytes / MEBIBYTE);
    let what = "inserts into a local map behind a mutex";
    report.figure(what, &rate(&map), Unit::THOUSAND_PER_SECOND);
    report.figure("memory of a local map", &bytes(&map), Unit::MEBIBYTES);
    for (found, held, part) in [(none, 1.0, 0.5), (one, 2.0, 0.25)] {
        let name = |what: &str| format!("{what}, copies: {}", held - 1.0);
        let goal = (held < 2.0).then_some(Goal::AtLeast(2000.0));
        report.goal(&name("inserts a PE"), &rate(&found), Unit::THOUSAND_PER_SECOND, goal);
        let (what, goal) = (name("inserts over local ones"), Goal::AtLeast(part));
        report.goal(&what, &rate(&found).over(&rate(&map)), Unit::TIMES, goal);
        report.figure(&name("memory of a PE"), &bytes(&found), Unit::MEBIBYTES);
        let over = bytes(&found).with(&bytes(&map), |table, map| table / held / map);
        report.goal(&name("memory over local"), &over, Unit::TIMES, Goal::AtMost(1.1));
        let p50 = |times: fn(&Measurements) -> &Histogram| {
            Sample::of(&found, move |found| seconds_at(times(found), 0.5) * 1e6)
        };
        let far = p50(|found| &found.far);
        report.goal(&name("a get from the other PE"), &far, Unit::MICROS, Goal::AtMost(5.0));
        report.figure(&name("a get from this PE"), &p50(|found| &found.near), Unit::MICROS);
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
