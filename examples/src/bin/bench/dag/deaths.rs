//! What deaths cost: of 20 PEs up to three are killed at moments that are uniformly random within
//! the first two seconds (Leliveld, ch. 5). The root is not among them.
//!
//! If the PEs share fewer cores, the survivors get the cores of the dead. Then a death costs what
//! is computed again, and what is waited for, but no computing power.

use crate::launch::{self, Bench, Printed};
use crate::{Report, Sample, Unit, detection};
use std::ops::RangeInclusive;
use ultramarine::Result;
use ultramarine_examples::random;

const ROUNDS: usize = 8;
const PES: u32 = 20;
const DEATHS: RangeInclusive<u32> = 1..=3;
const WITHIN_SECONDS: f64 = 2.0;
/// Two points for each PE; some seconds on two cores.
const GRID: &str = "--pattern random-nearest --width 40 --steps 1000 --iterations 10000";

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let rounds = (0..bench.rounds(ROUNDS)).map(|round| jobs(bench, round as u64));
    let rounds: Vec<Vec<Printed>> = rounds.collect::<Result<_>>()?;
    let seconds = |deaths: u32| Sample::of(&rounds, |round| round[deaths as usize].seconds);
    let free = seconds(0);
    report.figure(&format!("a graph on {PES} PEs, none killed"), &free, Unit::SECONDS);
    let mut each = Sample::new();
    for deaths in DEATHS {
        let (killed, what) = (seconds(deaths), format!("a graph on {PES} PEs, {deaths} killed"));
        report.figure(&what, &killed, Unit::SECONDS);
        let more = killed.with(&free, |killed, free| killed - free);
        report.figure(&format!("{what}: more than without"), &more, Unit::SECONDS);
        more.values().for_each(|more| each.push(more / f64::from(deaths)));
        let early = rounds.iter().filter(|round| round[deaths as usize].dead != deaths).count();
        if early > 0 {
            report.text(&format!("{early} jobs ended before all had died"));
        }
    }
    report.figure("a death costs, median", &Sample::one(each.median()), Unit::SECONDS);
    report.figure("a death costs, longest", &Sample::one(each.max()), Unit::SECONDS);
    let known = detection::death_millis(bench, PES, "killed", 1)?;
    let what = format!("known to a survivor of {PES} idle PEs after");
    report.figure(&what, &known, Unit::MILLIS);
    Ok(())
}

/// A job without deaths, with one, and so on: all have the same result.
fn jobs(bench: &Bench, round: u64) -> Result<Vec<Printed>> {
    let mut known = None;
    let job = |deaths: u32| {
        let seed = round * 10 + u64::from(deaths);
        let mut draw = random(seed);
        let mut moment = || (draw() >> 11) as f64 / (1_u64 << 53) as f64 * WITHIN_SECONDS;
        let moments: Vec<String> = (0..deaths).map(|_| format!("{:.3}", moment())).collect();
        let mut program = bench.program("task_bench", &format!("{GRID} --threads 1 --json"));
        if deaths > 0 {
            // Who dies is drawn by this seed.
            program.args(["--kill-at", &moments.join(","), "--set", &format!("seed={seed}")]);
        }
        launch::run_quietly(&mut bench.on(PES, &program))?.printed(&mut known)
    };
    (0..=*DEATHS.end()).map(job).collect()
}
