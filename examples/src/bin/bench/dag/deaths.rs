//! What deaths cost: of 20 PEs up to three are killed at moments that are uniformly random within
//! the first two seconds (Leliveld, ch. 5). The root is not among them.
//!
//! If the PEs share fewer cores, the survivors get the cores of the dead. Then a death costs what
//! is computed again, and what is waited for, but no computing power.

use super::Printed;
use crate::launch::{self, LaunchError};
use crate::report::Report;
use crate::sample::{Sample, Unit};
use crate::{Bench, detection};
use std::ops::RangeInclusive;
use ultramarine_examples::random;

const ROUNDS: usize = 8;
const PES: u32 = 20;
const DEATHS: RangeInclusive<u32> = 1..=3;
const WITHIN_SECONDS: f64 = 2.0;
/// Two points for each PE; some seconds on two cores.
const GRID: &str = "--pattern random-nearest --width 40 --steps 1000 --iterations 10000";

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let rounds = (0..bench.rounds(ROUNDS)).map(|round| jobs(bench, round as u64));
    let rounds: Result<Vec<Vec<Printed>>, _> = rounds.collect();
    let Some(rounds) = report.accept("deaths", rounds) else { return };
    let seconds = |deaths: u32| -> Sample {
        rounds.iter().map(|round| round[deaths as usize].seconds).collect()
    };
    let free = seconds(0);
    report.figure(&format!("a graph on {PES} PEs, none killed"), &free, Unit::SECONDS);
    let mut each = Vec::new();
    for deaths in DEATHS {
        let (killed, what) = (seconds(deaths), format!("a graph on {PES} PEs, {deaths} killed"));
        report.figure(&what, &killed, Unit::SECONDS);
        let more = killed.with(&free, |killed, free| killed - free);
        report.figure(&format!("{what}: more than without"), &more, Unit::SECONDS);
        each.extend(more.values().map(|more| more / f64::from(deaths)));
        let came = rounds.iter().filter(|round| round[deaths as usize].dead == deaths).count();
        if came < rounds.len() {
            report.text(&format!("{} jobs ended before all had died", rounds.len() - came));
        }
    }
    let each: Sample = each.into_iter().collect();
    report.figure("a death costs, median", &Sample::one(each.median()), Unit::SECONDS);
    report.figure("a death costs, longest", &Sample::one(each.max()), Unit::SECONDS);
    let known = detection::killed_millis(bench, PES).map(|millis| millis.into_iter().collect());
    let Some(known) = report.accept("detection", known) else { return };
    let what = format!("known to a survivor of {PES} idle PEs after");
    report.figure(&what, &known, Unit::MILLIS);
}

/// A job without deaths, with one, and so on: all have the same result.
fn jobs(bench: &Bench, round: u64) -> Result<Vec<Printed>, LaunchError> {
    let mut jobs: Vec<Printed> = Vec::new();
    for deaths in 0..=*DEATHS.end() {
        let mut command = bench.launcher.sibling("task_bench");
        command.args(GRID.split(' ')).args(["--threads", "1", "--json"]);
        let seed = round * 10 + u64::from(deaths);
        let mut draw = random(seed);
        let mut moment = || (draw() >> 11) as f64 / (1_u64 << 53) as f64 * WITHIN_SECONDS;
        let moments: Vec<String> = (0..deaths).map(|_| format!("{:.3}", moment())).collect();
        if deaths > 0 {
            // Who dies is drawn by this seed.
            command.args(["--kill-at", &moments.join(","), "--set", &format!("seed={seed}")]);
        }
        let mut launched = bench.launcher.launched(PES, &command);
        let printed: Printed = launch::run_quietly(&mut launched)?.json()?;
        let first = jobs.first().map_or(&printed.result, |job| &job.result);
        if printed.result != *first {
            let reason = format!("{} came out instead of {first}", printed.result);
            return Err(LaunchError::Output { program: "task_bench".to_owned(), reason });
        }
        jobs.push(printed);
    }
    Ok(jobs)
}
