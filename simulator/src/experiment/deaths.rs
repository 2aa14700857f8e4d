//! Deaths on the way: PEs die one by one at random moments, or a whole rack falls silent.

use super::number::real_number;
use super::output::{Each, by, lines};
use super::sum_euler::EulerSums;
use super::{Base, Experiment, ExperimentError, RunFigures, Setup};
use crate::chart::{Axis, Chart, Series};
use crate::dice::Dice;
use crate::fault::InjectedFault;
use crate::machine::Tier;
use crate::network::Preset;
use crate::published::{FIVE_DEATHS, FIVE_DEATHS_UNDISTURBED_S};
use crate::table::Row;
use crate::workload::map::Skeleton;
use std::collections::BTreeMap;
use ultramarine_topology::Pe;

/// The options of deaths at random moments.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Deaths {
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    sums: EulerSums,
    /// How many of the PEs die, in percent; one at least
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    #[arg(value_parser = real_number(0.0..=100.0))]
    percent: f64,
    /// The skeleton
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    #[arg(default_values = ["par_map", "par_map_2level_relaxed"])]
    skeleton: Vec<Skeleton>,
}

/// The options of a rack that dies.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Rack {
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    sums: EulerSums,
    /// When the last rack dies, in percent of the time of a job without deaths
    #[arg(long, value_name = "PERCENT", value_delimiter = ',')]
    #[arg(default_values_t = [10.0, 50.0, 90.0], value_parser = real_number(0.0..=100.0))]
    at: Vec<f64>,
    /// The skeleton
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    #[arg(default_values = ["par_map", "par_map_2level_relaxed"])]
    skeleton: Vec<Skeleton>,
}

/// A job without deaths, which others are beside.
struct Undisturbed<'a> {
    base: &'a Base,
    sums: &'a EulerSums,
    skeleton: Skeleton,
    figures: RunFigures,
}

impl<'a> Undisturbed<'a> {
    fn of(
        base: &'a Base,
        sums: &'a EulerSums,
        skeleton: Skeleton,
    ) -> Result<Self, ExperimentError> {
        let job = sums.on(base, skeleton, true);
        let figures = RunFigures::of(skeleton.name(), base, job, Vec::new())?;
        Ok(Undisturbed { base, sums, skeleton, figures })
    }

    /// Its time, in nanoseconds.
    fn ns(&self) -> f64 {
        self.figures.seconds * 1e9
    }

    /// Runs the same job with these deaths, which are at this part of the time, in percent, if they
    /// are all at once. Work that was lost and done again does not make it more efficient.
    fn disturb(
        &self,
        at_percent: Option<f64>,
        deaths: Vec<(u64, InjectedFault)>,
    ) -> Result<Row, ExperimentError> {
        let at_best = at_best(self.base, self.ns(), &deaths);
        let job = self.sums.on(self.base, self.skeleton, true);
        let name = self.skeleton.name();
        let shown = at_percent.map_or(name.to_owned(), |at| format!("{name}, at {at} %"));
        let mut figures = RunFigures::of(&shown, self.base, job, deaths)?;
        let work = self.figures.report.computed.as_secs_f64();
        let again = figures.report.computed.as_secs_f64() - work;
        figures.efficiency = work / (figures.seconds * figures.cores as f64);
        name.clone_into(&mut figures.series);
        let longer = 100.0 * (figures.seconds / self.figures.seconds - 1.0);
        let dead = Row::default().count("dead", "", figures.report.deaths).real(
            "at %",
            "at_percent",
            at_percent,
            0,
        );
        let beside = Row::default()
            .real("without s", "undisturbed_seconds", self.figures.seconds, 4)
            .real("longer %", "overhead_percent", longer, 1)
            .real("at best %", "at_best_percent", 100.0 * (at_best - 1.0), 1)
            .real("again %", "again_percent", 100.0 * again / work, 2)
            .count("copies", "", figures.report.replicas)
            .count("innocents", "", figures.report.innocents);
        let row = figures.head("skeleton").and(dead).and(figures.times()).and(beside);
        Ok(row.and(figures.counts()))
    }
}

impl Experiment for Deaths {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        self.setup.refuse_faults("deaths of its own")?;
        for base in self.setup.bases(&[2048, 4096], 16, Preset::Gemini)? {
            let pes = base.machine.pes();
            let count = death_count(pes, self.percent)?;
            for skeleton in &self.skeleton {
                let undisturbed = Undisturbed::of(&base, &self.sums, *skeleton)?;
                let faults = random_deaths(pes, count, undisturbed.ns() as u64, base.seed);
                each(undisturbed.disturb(None, faults)?)?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let title = format!("{} % of the PEs die on the way", self.percent);
        let best = lines(of_first(rows), |_| AT_BEST.to_owned(), ("cores", "at best %"));
        let longer = lines(rows, by("skeleton"), ("cores", "longer %"));
        vec![("deaths", chart(title, Axis::log2("cores"), longer, best))]
    }
}

impl Experiment for Rack {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        self.setup.refuse_faults("deaths of its own")?;
        for base in self.setup.bases(&[2048], 16, Preset::Gemini)? {
            let rack = last_rack(&base)?;
            for skeleton in &self.skeleton {
                let undisturbed = Undisturbed::of(&base, &self.sums, *skeleton)?;
                for at in &self.at {
                    let at_ns = (undisturbed.ns() * at / 100.0) as u64;
                    let deaths = rack.iter().map(|pe| (at_ns, InjectedFault::SilentDeath(*pe)));
                    each(undisturbed.disturb(Some(*at), deaths.collect())?)?;
                }
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let cores = |row: &Row| row.number("cores").unwrap_or_default();
        let name = |row: &Row| format!("{}, {} cores", row.words("skeleton"), cores(row));
        let longer = lines(rows, name, ("at %", "longer %"));
        let best_name = |row: &Row| format!("{AT_BEST}, {} cores", cores(row));
        let mut references = lines(of_first(rows), best_name, ("at %", "at best %"));
        references.push(published());
        let x = Axis::percent("when it dies, % of the time without deaths");
        vec![("rack", chart("A rack dies".to_owned(), x, longer, references))]
    }
}

/// Of a paper, on the axes of the chart of a rack. It is another job, and a quarter of its PEs.
fn published() -> Series {
    let at_percent = |(at_s, longer)| (100.0 * at_s / FIVE_DEATHS_UNDISTURBED_S, longer);
    let points = FIVE_DEATHS.map(at_percent).to_vec();
    Series::new("Liouville, parMapSlicedFT, 5 of 20 nodes (HdpH-RS §6.5.1)", points)
}

/// What is said of the time that a job would take if the deaths cost nothing but cores.
const AT_BEST: &str = "if no work were lost";

/// The rows of the first skeleton: what others would take at best is the same, but for the moments
/// of the deaths.
fn of_first(rows: &[Row]) -> impl Iterator<Item = &Row> {
    let first = rows.first().map_or("", |row| row.words("skeleton"));
    rows.iter().filter(move |row| row.words("skeleton") == first)
}

fn chart(title: String, x: Axis, longer: Vec<Series>, references: Vec<Series>) -> Chart {
    let y = Axis::linear("longer than without deaths, %").showing(0.0, 10.0);
    Chart { references, ..Chart::new(title, (x, y), longer) }
}

/// How many times as long as without deaths the job takes if no work is lost: all cores have as
/// much time together as they had without.
fn at_best(base: &Base, end_ns: f64, deaths: &[(u64, InjectedFault)]) -> f64 {
    let (mut time, mut alive) = (base.machine.cores() as f64 * end_ns, base.machine.cores());
    for (at, fault) in deaths {
        if let Some(pe) = fault.victim() {
            let workers = base.machine.workers(pe);
            time -= f64::from(workers) * *at as f64;
            alive -= u64::from(workers);
        }
    }
    time / alive as f64 / end_ns
}

/// How many PEs are this part of all; one at least.
fn death_count(pes: u32, percent: f64) -> Result<u32, ExperimentError> {
    let count = ((f64::from(pes) * percent / 100.0).round() as u32).max(1);
    if count < pes {
        return Ok(count);
    }
    Err(ExperimentError::Refused(format!(
        "{count} of {pes} PEs cannot die; the root survives: at most all others may die"
    )))
}

/// Deaths of this number of PEs, never of the root, each at a moment of its own.
pub(super) fn random_deaths(
    pes: u32,
    count: u32,
    end_ns: u64,
    seed: u64,
) -> Vec<(u64, InjectedFault)> {
    let mut dice = Dice::new(seed ^ 0xdead);
    let mut when = BTreeMap::new();
    while when.len() < count as usize {
        let pe = dice.within(1..=u64::from(pes) - 1) as u32;
        when.entry(pe).or_insert_with(|| dice.within(end_ns / 20..=end_ns * 19 / 20));
    }
    when.into_iter().map(|(pe, at)| (at, InjectedFault::Death(Pe::new(pe)))).collect()
}

/// The PEs of the last rack, which is not the root's.
pub(super) fn last_rack(base: &Base) -> Result<Vec<Pe>, ExperimentError> {
    let machine = &base.machine;
    let last = Pe::new(machine.pes() - 1);
    let is_near = |pe: &Pe| machine.tier(last, *pe).is_none_or(|tier| tier <= Tier::Rack);
    if is_near(&Pe::ROOT) {
        return Err(ExperimentError::Refused(format!(
            "a machine of {machine} has no rack to lose beside the root's; it needs two racks at \
             least, such as --cores 2048 or --machine 2x8x1x4"
        )));
    }
    Ok((0..machine.pes()).map(Pe::new).filter(is_near).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::network::Network;

    fn base(shape: &str) -> Base {
        Base::new(Machine::of_shape(shape).expect("a machine"), Network::of(Preset::Ideal), 1)
    }

    #[test]
    fn the_root_never_dies() {
        let deaths = random_deaths(100, 99, 1_000, 1);
        assert_eq!(deaths.len(), 99);
        for (at, fault) in deaths {
            assert!((50..=950).contains(&at));
            assert!(matches!(fault, InjectedFault::Death(pe) if pe != Pe::ROOT), "{fault:?}");
        }
    }

    #[test]
    fn one_dies_at_least_and_one_lives() {
        let count = |pes, percent| death_count(pes, percent).ok();
        assert_eq!(
            (count(20, 1.0), count(300, 1.0), count(8192, 1.0)),
            (Some(1), Some(3), Some(82))
        );
        assert_eq!((count(1, 1.0), count(20, 100.0), count(20, 90.0)), (None, None, Some(18)));
    }

    #[test]
    fn at_best_the_others_share_what_is_left() {
        let base = base("4x4");
        // A quarter of the cores dies at 40 %: 60 % of the time becomes 80 %.
        let death = (40, InjectedFault::Death(Pe::new(3)));
        assert!((at_best(&base, 100.0, &[death]) - 1.2).abs() < 1e-9);
    }

    #[test]
    fn a_rack_is_the_last_one() {
        let pes: Vec<Pe> = (8..12).map(Pe::new).collect();
        assert_eq!(last_rack(&base("3x2x2x4")).expect("racks"), pes);
        assert!(last_rack(&base("1x2x2x4")).is_err());
    }
}
