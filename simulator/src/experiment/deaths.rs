//! Deaths on the way: PEs die one by one at random moments, or a whole rack falls silent.

use super::number::real_number;
use super::output::{Each, series};
use super::weak::EulerSums;
use super::{Base, Experiment, ExperimentError, RunFigures, Setup, Skeleton, figures};
use crate::chart::{Axis, Chart, Series};
use crate::dice::Dice;
use crate::fault::InjectedFault;
use crate::machine::Tier;
use crate::network::Preset;
use crate::published::{FIVE_DEATHS, FIVE_DEATHS_UNDISTURBED_S};
use crate::table::{Cell, Column};
use std::collections::BTreeMap;
use ultramarine_topology::Pe;

/// The options of deaths at random moments.
#[derive(Clone, Debug, clap::Args)]
pub struct Deaths {
    /// What it runs on.
    #[command(flatten)]
    pub setup: Setup,

    #[command(flatten)]
    pub(super) sums: EulerSums,

    /// How many of the PEs die, in percent; one at least
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    #[arg(value_parser = real_number(0.0..=100.0))]
    pub percent: f64,

    /// The skeleton
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    #[arg(default_values = ["par_map", "par_map_2level_relaxed"])]
    pub skeleton: Vec<Skeleton>,
}

/// The options of a rack that dies.
#[derive(Clone, Debug, clap::Args)]
pub struct Rack {
    /// What it runs on.
    #[command(flatten)]
    pub setup: Setup,

    #[command(flatten)]
    pub(super) sums: EulerSums,

    /// When the last rack dies, in percent of the time of a job without deaths
    #[arg(long, value_name = "PERCENT", value_delimiter = ',')]
    #[arg(default_values_t = [10.0, 50.0, 90.0], value_parser = real_number(0.0..=100.0))]
    pub at: Vec<f64>,

    /// The skeleton
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    #[arg(default_values = ["par_map", "par_map_2level_relaxed"])]
    pub skeleton: Vec<Skeleton>,
}

/// A job with deaths beside the same one without.
#[derive(Clone, Debug)]
pub struct DeathsRow {
    /// With deaths. Work that was lost and done again does not make it more efficient.
    pub figures: RunFigures,
    /// When it happened, in percent of the other's time, if all at once.
    pub at_percent: Option<f64>,
    /// The time of the same job without deaths, in seconds.
    pub undisturbed_seconds: f64,
    /// What was computed more than without deaths, in percent of the work.
    pub again_percent: f64,
    /// How much longer the job takes at least, in percent: if nothing is lost, and the others share
    /// all that is left to do.
    pub at_best_percent: f64,
}

impl DeathsRow {
    /// How much longer the job takes, in percent.
    pub fn overhead_percent(&self) -> f64 {
        100.0 * (self.figures.seconds / self.undisturbed_seconds - 1.0)
    }

    /// Runs a job with these deaths, beside this one without.
    fn of(
        (base, skeleton, sums): (&Base, Skeleton, &EulerSums),
        undisturbed: &RunFigures,
        at_percent: Option<f64>,
        deaths: Vec<(u64, InjectedFault)>,
    ) -> Result<DeathsRow, ExperimentError> {
        let at_best = at_best(base, undisturbed.seconds * 1e9, &deaths);
        let job = sums.on(base, skeleton, true);
        let name = match at_percent {
            Some(at) => format!("{}, at {at} %", skeleton.name()),
            None => skeleton.name().to_owned(),
        };
        let mut figures = RunFigures::of(&name, base, job, deaths)?;
        let work = undisturbed.report.computed.as_secs_f64();
        let again = figures.report.computed.as_secs_f64() - work;
        figures.efficiency = work / (figures.seconds * figures.cores as f64);
        skeleton.name().clone_into(&mut figures.series);
        Ok(DeathsRow {
            figures,
            at_percent,
            undisturbed_seconds: undisturbed.seconds,
            again_percent: 100.0 * again / work,
            at_best_percent: 100.0 * (at_best - 1.0),
        })
    }
}

fn columns() -> Vec<Column<DeathsRow>> {
    let of: fn(&DeathsRow) -> &RunFigures = |row| &row.figures;
    let mut columns = figures::head("skeleton", of);
    columns.extend([
        Column::new("dead", "", "deaths", |row: &DeathsRow| {
            Cell::Count(row.figures.report.deaths.into())
        })
        .only_in_text(),
        Column::new("at", "%", "at_percent", |row: &DeathsRow| Cell::real(row.at_percent, 0)),
    ]);
    columns.extend(figures::times(of));
    columns.extend([
        Column::new("without", "s", "undisturbed_seconds", |row: &DeathsRow| {
            Cell::Real(row.undisturbed_seconds, 4)
        }),
        Column::new("longer", "%", "overhead_percent", |row: &DeathsRow| {
            Cell::Real(row.overhead_percent(), 1)
        }),
        Column::new("at best", "%", "at_best_percent", |row: &DeathsRow| {
            Cell::Real(row.at_best_percent, 1)
        }),
        Column::new("again", "%", "again_percent", |row: &DeathsRow| {
            Cell::Real(row.again_percent, 2)
        }),
        Column::new("copies", "", "replicas", |row: &DeathsRow| {
            Cell::Count(row.figures.report.replicas)
        })
        .only_in_text(),
        Column::new("innocents", "", "", |row: &DeathsRow| {
            Cell::Count(row.figures.report.innocents.into())
        })
        .only_in_text(),
    ]);
    columns.extend(figures::counts(of));
    columns
}

impl Experiment for Deaths {
    type Row = DeathsRow;

    fn columns(&self) -> Vec<Column<DeathsRow>> {
        columns()
    }

    fn run(&self, each: &mut Each<'_, DeathsRow>) -> Result<(), ExperimentError> {
        self.setup.refuse_faults("deaths of its own")?;
        for base in self.setup.bases(&[2048, 4096], 16, Preset::Gemini)? {
            let count = death_count(base.machine.pes(), self.percent)?;
            for skeleton in &self.skeleton {
                let job = self.sums.on(&base, *skeleton, true);
                let undisturbed = RunFigures::of(skeleton.name(), &base, job, Vec::new())?;
                let end_ns = (undisturbed.seconds * 1e9) as u64;
                let faults = random_deaths(base.machine.pes(), count, end_ns, base.seed);
                let what = (&base, *skeleton, &self.sums);
                each(DeathsRow::of(what, &undisturbed, None, faults)?)?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[DeathsRow]) -> Vec<(&'static str, Chart)> {
        let title = format!("{} % of the PEs die on the way", self.percent);
        let overhead = |row: &DeathsRow| Some((row.figures.cores as f64, row.overhead_percent()));
        let lines = series(rows, |row| row.figures.series.clone(), overhead);
        let best = |row: &DeathsRow| Some((row.figures.cores as f64, row.at_best_percent));
        let references = series(of_first(rows), |_| AT_BEST.to_owned(), best);
        let x = Axis::log2("cores");
        vec![("deaths", Chart { series: lines, references, ..empty_chart(title, x) })]
    }
}

impl Experiment for Rack {
    type Row = DeathsRow;

    fn columns(&self) -> Vec<Column<DeathsRow>> {
        columns()
    }

    fn run(&self, each: &mut Each<'_, DeathsRow>) -> Result<(), ExperimentError> {
        self.setup.refuse_faults("deaths of its own")?;
        for base in self.setup.bases(&[2048], 16, Preset::Gemini)? {
            let rack = last_rack(&base)?;
            for skeleton in &self.skeleton {
                let job = self.sums.on(&base, *skeleton, true);
                let undisturbed = RunFigures::of(skeleton.name(), &base, job, Vec::new())?;
                for at in &self.at {
                    let at_ns = (undisturbed.seconds * 1e9 * at / 100.0) as u64;
                    let deaths = rack.iter().map(|pe| (at_ns, InjectedFault::SilentDeath(*pe)));
                    let what = (&base, *skeleton, &self.sums);
                    each(DeathsRow::of(what, &undisturbed, Some(*at), deaths.collect())?)?;
                }
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[DeathsRow]) -> Vec<(&'static str, Chart)> {
        let overhead = |row: &DeathsRow| Some((row.at_percent?, row.overhead_percent()));
        let name = |row: &DeathsRow| format!("{}, {} cores", row.figures.series, row.figures.cores);
        let lines = series(rows, name, overhead);
        let best = |row: &DeathsRow| Some((row.at_percent?, row.at_best_percent));
        let best_name = |row: &DeathsRow| format!("{AT_BEST}, {} cores", row.figures.cores);
        let mut references = series(of_first(rows), best_name, best);
        references.push(published());
        let x = Axis::percent("when it dies, % of the time without deaths");
        let title = "A rack dies".to_owned();
        vec![("rack", Chart { series: lines, references, ..empty_chart(title, x) })]
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
fn of_first(rows: &[DeathsRow]) -> Vec<&DeathsRow> {
    let first = rows.first().map(|row| &row.figures.series);
    rows.iter().filter(|row| Some(&row.figures.series) == first).collect()
}

/// How many times as long as without deaths the job takes if no work is lost: all cores have as
/// much time together as they had without.
fn at_best(base: &Base, end_ns: f64, deaths: &[(u64, InjectedFault)]) -> f64 {
    let (mut time, mut alive) = (base.machine.cores() as f64 * end_ns, base.machine.cores());
    for (at, fault) in deaths {
        if let InjectedFault::Death(pe) | InjectedFault::SilentDeath(pe) = fault {
            let workers = base.machine.workers(*pe);
            time -= f64::from(workers) * *at as f64;
            alive -= u64::from(workers);
        }
    }
    time / alive as f64 / end_ns
}

fn empty_chart(title: String, x: Axis) -> Chart {
    let name = "longer than without deaths, %".to_owned();
    let y = Axis { name, at_least: Some((0.0, 10.0)), ..Axis::linear("") };
    Chart { title, x, y, series: Vec::new(), references: Vec::new(), goals: Vec::new() }
}

/// How many PEs are this part of all; one at least.
fn death_count(pes: u32, percent: f64) -> Result<u32, ExperimentError> {
    let count = ((f64::from(pes) * percent / 100.0).round() as u32).max(1);
    if count < pes {
        return Ok(count);
    }
    Err(ExperimentError::Refused {
        what: format!("{count} of {pes} PEs cannot die"),
        allowed: "the root survives: at most all others may die".to_owned(),
    })
}

/// Deaths of this number of PEs, never of the root, each at a moment of its own.
fn random_deaths(pes: u32, count: u32, end_ns: u64, seed: u64) -> Vec<(u64, InjectedFault)> {
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
        return Err(ExperimentError::Refused {
            what: format!("a machine of {machine} has no rack to lose beside the root's"),
            allowed: "it needs two racks at least, such as --cores 2048 or --machine 2x8x1x4"
                .to_owned(),
        });
    }
    Ok((0..machine.pes()).map(Pe::new).filter(is_near).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Machine, Variation};
    use crate::network::Network;

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
        let shape = "4x4".parse().expect("a shape");
        let machine = Machine::new(&shape, &Variation::default()).expect("a machine");
        let base = Base::new(machine, Network::of(Preset::Ideal), 1);
        // A quarter of the cores dies at 40 %: 60 % of the time becomes 80 %.
        let death = (40, InjectedFault::Death(Pe::new(3)));
        assert!((at_best(&base, 100.0, &[death]) - 1.2).abs() < 1e-9);
    }

    #[test]
    fn a_rack_is_the_last_one() {
        let base = |shape: &str| {
            let shape = shape.parse().expect("a shape");
            let machine = Machine::new(&shape, &Variation::default()).expect("a machine");
            Base::new(machine, Network::of(Preset::Ideal), 1)
        };
        let pes: Vec<Pe> = (8..12).map(Pe::new).collect();
        assert_eq!(last_rack(&base("3x2x2x4")).expect("racks"), pes);
        assert!(last_rack(&base("1x2x2x4")).is_err());
    }
}
