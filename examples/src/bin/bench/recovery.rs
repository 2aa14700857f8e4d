//! The cost of deaths. SymGridPar2 figure 13: one of 10 PEs dies at 10 % … 90 % of the failure-free
//! time. HdpH-RS figure 6.8: 5 of 20 PEs die at once, with lazy and with eager placement. The work
//! is the Summatory Liouville function, as in the papers.
//!
//! If the PEs share fewer cores, the survivors get the cores of the dead. Then a death costs no
//! computing power, and jobs of 9 and 10 PEs take the same time. So the first experiment is
//! repeated with tasks that sleep, as if each PE had a core. This shows the cost of the runtime
//! alone.

use crate::launch::{self, Bench, Printed};
use crate::plot::{Chart, Series};
use crate::{Goal, Report, Sample, Unit, cores};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use ultramarine::Result;
use ultramarine::prelude::*;

const ROUNDS: usize = 5;
/// The cost that a death may have beyond the lost work: 20 ms to detect it, 100 ms to recover.
const BEYOND_SECONDS: f64 = 0.12;

/// L(10^9). The numbers of tasks are those of the papers.
const UPTO: &str = "1000000000";
const RESULT: i64 = -25216;
const SLEEP_MILLIS: u64 = 50;

struct Experiment {
    name: &'static str,
    title: &'static str,
    pes: u32,
    /// The number of PEs that die at once.
    deaths: u32,
    tasks: u32,
    /// The moments of the deaths, in percent of the failure-free time.
    moments: &'static [u32],
    spreadings: &'static [Spreading],
}

/// A way to spread the work.
struct Spreading {
    name: &'static str,
    skeleton: &'static str,
    /// Whether the tasks sleep instead of computing.
    sleeps: bool,
}

const ONE_OF_TEN: Experiment = Experiment {
    name: "one-of-10",
    title: "L(10^9), 300 tasks dealt out to 10 PEs, one of which dies",
    pes: 10,
    deaths: 1,
    tasks: 300,
    moments: &[10, 20, 30, 40, 50, 60, 70, 80, 90],
    spreadings: &[Spreading { name: "eager", skeleton: "push-map", sleeps: false }],
};

const FIVE_OF_TWENTY: Experiment = Experiment {
    name: "five-of-20",
    title: "L(10^9), 70 tasks on 20 PEs, five of which die at once",
    pes: 20,
    deaths: 5,
    tasks: 70,
    moments: &[15, 30, 45, 60, 75, 90],
    spreadings: &[
        Spreading { name: "lazy", skeleton: "par-map", sleeps: false },
        Spreading { name: "eager", skeleton: "push-map", sleeps: false },
    ],
};

const ASLEEP: Experiment = Experiment {
    name: "one-of-10-asleep",
    title: "NO COMPUTING: 300 tasks that sleep 50 ms, dealt out to 10 PEs, one of which dies",
    spreadings: &[Spreading { name: "eager, asleep", skeleton: "push-map", sleeps: true }],
    ..ONE_OF_TEN
};

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for experiment in [ONE_OF_TEN, FIVE_OF_TWENTY, ASLEEP] {
        report.text(&format!("{}:", experiment.title));
        if let Some(cores) = experiment.shared_cores() {
            report.text(&format!(
                "{} PEs share {cores} cores here: the survivors take over the cores of the dead",
                experiment.pes
            ));
        }
        experiment.run(bench, report)?;
    }
    Ok(())
}

/// The jobs of one way to spread the work.
struct Jobs {
    /// Without deaths, of all PEs.
    free: Vec<Printed>,
    /// Without deaths, of the survivors.
    fewer: Vec<Printed>,
    /// With deaths, by moment.
    deaths: Vec<(u32, Vec<Printed>)>,
}

/// Their times with their launchers, in seconds.
fn whole(jobs: &[Printed]) -> Sample {
    Sample::of(jobs, |job| job.whole)
}

impl Experiment {
    /// The number of cores, if the PEs compute and there are fewer cores than PEs.
    fn shared_cores(&self) -> Option<usize> {
        let sleeps = self.spreadings.iter().any(|spreading| spreading.sleeps);
        Some(cores()).filter(|cores| self.pes as usize > *cores && !sleeps)
    }

    fn run(&self, bench: &Bench, report: &mut Report) -> Result<()> {
        let title = match self.shared_cores() {
            Some(cores) => format!("{} ({cores} cores)", self.title),
            None => self.title.to_owned(),
        };
        let mut chart = Chart { title, series: vec![] };
        for spreading in self.spreadings {
            let jobs = self.jobs(spreading, bench)?;
            chart.series.push(self.report(spreading, &jobs, report));
        }
        let path = bench.plots.join(format!("recovery-{}.svg", self.name));
        match chart.write(&path) {
            Ok(()) => report.text(&format!("drawn in {}", path.display())),
            Err(error) => report.missing(&path.display().to_string(), &error.to_string()),
        }
        Ok(())
    }

    /// Reports the jobs of one way to spread the work; returns what the chart shows of them.
    fn report(&self, spreading: &Spreading, jobs: &Jobs, report: &mut Report) -> Series {
        let Jobs { free, fewer, deaths } = jobs;
        let (pes, survivors) = (self.pes, self.pes - self.deaths);
        let usual = whole(free).median();
        let named = |what: &str| format!("{} of {pes}, {}: {what}", self.deaths, spreading.name);
        let mut levels = vec![];
        for (pes, jobs) in [(pes, free), (survivors, fewer)] {
            let (what, seconds) = (named(&format!("{pes} PEs, no deaths")), whole(jobs));
            report.figure(&what, &seconds, Unit::SECONDS);
            levels.push((what, seconds.median()));
        }
        let computing = Sample::of(free, |job| job.seconds).median();
        let beyond = |(moment, jobs): &(u32, Vec<Printed>)| {
            let due = self.due(spreading, computing, f64::from(*moment) / 100.0);
            Sample::of(jobs, |job| job.whole - (due + usual - computing))
        };
        let beyond: Vec<_> = deaths.iter().map(beyond).collect();
        let worst = Sample::one(Sample::of(&beyond, Sample::median).max());
        let what = named("cost beyond the lost work, median at the worst moment");
        report.goal(&what, &worst, Unit::SECONDS, Goal::AtMost(BEYOND_SECONDS));
        let worst = Sample::one(Sample::of(&beyond, Sample::max).max());
        let what = named("cost beyond the lost work, worst job of all");
        report.figure(&what, &worst, Unit::SECONDS);
        let all: Vec<_> = deaths.iter().flat_map(|(_, jobs)| jobs).collect();
        let early = all.iter().filter(|job| job.dead < self.deaths).count();
        if early > 0 {
            let all = all.len();
            report.text(&format!("{early} of {all} jobs ended before all deaths had come"));
        }
        report.text(&table(deaths, usual));
        Series { levels, ..series(spreading, deaths) }
    }

    fn jobs(&self, spreading: &Spreading, bench: &Bench) -> Result<Jobs> {
        let (mut free, mut fewer) = (vec![], vec![]);
        let mut deaths: Vec<_> = self.moments.iter().map(|moment| (*moment, vec![])).collect();
        for _ in 0..bench.rounds(ROUNDS) {
            free.push(self.job(spreading, bench, self.pes, None)?);
            fewer.push(self.job(spreading, bench, self.pes - self.deaths, None)?);
            let usual = Sample::of(&free, |job| job.seconds).median();
            for (moment, jobs) in &mut deaths {
                let at = usual * f64::from(*moment) / 100.0;
                jobs.push(self.job(spreading, bench, self.pes, Some(at))?);
            }
        }
        Ok(Jobs { free, fewer, deaths })
    }

    fn job(
        &self,
        spreading: &Spreading,
        bench: &Bench,
        pes: u32,
        death: Option<f64>,
    ) -> Result<Printed> {
        let kill_at = |at| vec![format!("{at:.3}"); self.deaths as usize].join(",");
        let flags = death.map_or(String::new(), |at| format!("--kill-at {}", kill_at(at)));
        let flags = format!("--threads 1 {flags}");
        let tasks = self.tasks;
        let (program, expected) = if spreading.sleeps {
            (bench.child(&format!("{flags} sleep --tasks {tasks}")), i64::from(tasks))
        } else {
            let work = format!("--upto {UPTO} --tasks {tasks} --supervised --json");
            let flags = format!("{flags} {work} --skeleton {}", spreading.skeleton);
            (bench.program("liouville", &flags), RESULT)
        };
        let finished = launch::run_quietly(&mut bench.on(pes, &program))?;
        finished.printed(&mut Some(Value::from(expected)))
    }

    /// The time of a job if deaths cost only the lost work and the lost cores. They come after the
    /// part `moment` of the usual time.
    fn due(&self, spreading: &Spreading, usual: f64, moment: f64) -> f64 {
        let power =
            |pes: u32| if spreading.sleeps { pes as usize } else { cores().min(pes as usize) };
        let slower = power(self.pes) as f64 / power(self.pes - self.deaths) as f64;
        // The unfinished tasks of the dead run again, and the last one may run alone.
        let task = usual / f64::from(self.tasks);
        let again = task * f64::from(self.deaths);
        let last = task * power(self.pes) as f64;
        usual * moment + (usual * (1.0 - moment) + again) * slower + last
    }
}

fn series(spreading: &Spreading, deaths: &[(u32, Vec<Printed>)]) -> Series {
    let mut series =
        Series { name: spreading.name.to_owned(), dots: vec![], again: vec![], levels: vec![] };
    for (moment, jobs) in deaths {
        let moment = f64::from(*moment);
        series.dots.extend(jobs.iter().map(|job| (moment, job.whole)));
        let again: u64 = jobs.iter().map(|job| job.replicas).sum();
        series.again.push((moment, again as f64 / jobs.len() as f64));
    }
    series
}

fn table(deaths: &[(u32, Vec<Printed>)], usual: f64) -> String {
    let mut text =
        "  death at   time of the job              against no death   tasks again\n".to_owned();
    for (moment, jobs) in deaths {
        let (seconds, again) = (whole(jobs), Sample::of(jobs, |job| job.replicas as f64));
        let more = 100.0 * (seconds.median() / usual - 1.0);
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "  {moment:>6} %   {:<28} {more:>+14.1} %   {}",
            seconds.shown(Unit::SECONDS),
            again.shown(Unit::COUNT)
        );
    }
    text
}

/// Runs tasks that sleep, placed on all PEs in turn.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    tasks: u64,
}

impl Job {
    /// Prints what the examples print.
    pub(crate) async fn run(&self, cx: &Context) -> Result<Value> {
        let nap = |_: u64| -> u64 {
            std::thread::sleep(Duration::from_millis(SLEEP_MILLIS));
            1
        };
        let start = Instant::now();
        let slept = push_map(&cx.supervised(), nap, 0..self.tasks).await?;
        let seconds = start.elapsed().as_secs_f64();
        let (result, replicas) = (slept.iter().sum::<u64>(), cx.statistics().await?.replicas);
        let dead = cx.dead();
        Ok(json!({ "result": result, "seconds": seconds, "dead": dead, "replicas": replicas }))
    }
}
