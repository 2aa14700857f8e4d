//! The cost of deaths. SymGridPar2 figure 13: one of 10 PEs dies at 10 % … 90 % of the failure-free
//! time. HdpH-RS figure 6.8: 5 of 20 PEs die at once, with lazy and with eager placement. The work
//! is the Summatory Liouville function, as in the papers.
//!
//! If the PEs share fewer cores, the survivors get the cores of the dead. Then a death costs no
//! computing power, and jobs of 9 and 10 PEs take the same time. So the first experiment is
//! repeated with tasks that sleep, as if each PE had a core. This shows the cost of the runtime
//! alone.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::plot::{Chart, Series};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::process::Command;
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

/// The output of a job.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    result: i64,
    /// Until the main task had its result.
    seconds: f64,
    /// Until the launcher had ended.
    #[serde(skip)]
    whole: f64,
    /// The number of PEs that died by then.
    dead: u32,
    /// The number of tasks that were run again.
    replicas: u64,
}

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

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    for experiment in [ONE_OF_TEN, FIVE_OF_TWENTY, ASLEEP] {
        report.text(&format!("{}:", experiment.title));
        if let Some(cores) = experiment.shared_cores() {
            report.text(&format!(
                "{} PEs share {cores} cores here: the survivors take over the cores of the dead",
                experiment.pes
            ));
        }
        experiment.run(bench, report);
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Experiment {
    /// The number of cores, if the PEs compute and there are fewer cores than PEs.
    fn shared_cores(&self) -> Option<usize> {
        let sleeps = self.spreadings.iter().any(|spreading| spreading.sleeps);
        Some(cores()).filter(|cores| self.pes as usize > *cores && !sleeps)
    }

    fn run(&self, bench: &Bench, report: &mut Report) {
        let title = match self.shared_cores() {
            Some(cores) => format!("{} ({cores} cores)", self.title),
            None => self.title.to_owned(),
        };
        let mut chart = Chart { title, series: vec![] };
        for spreading in self.spreadings {
            let measured = self.measure(spreading, bench);
            let Some((free, fewer, deaths)) = report.accept(spreading.name, measured) else {
                return;
            };
            let whole =
                |jobs: &[Measurements]| jobs.iter().map(|job| job.whole).collect::<Sample>();
            let (pes, survivors) = (self.pes, self.pes - self.deaths);
            let usual = whole(&free);
            let named =
                |what: &str| format!("{} of {pes}, {}: {what}", self.deaths, spreading.name);
            let mut levels = vec![];
            for (pes, sample) in [(pes, &usual), (survivors, &whole(&fewer))] {
                let what = named(&format!("{pes} PEs, no deaths"));
                report.figure(&what, sample, Unit::SECONDS);
                levels.push((what, sample.median()));
            }
            let computing = free.iter().map(|job| job.seconds).collect::<Sample>().median();
            let around = usual.median() - computing;
            let beyond = |(moment, jobs): &(u32, Vec<Measurements>)| {
                let due = self.due(spreading, computing, f64::from(*moment) / 100.0) + around;
                jobs.iter().map(|job| job.whole - due).collect::<Sample>()
            };
            let beyond: Vec<_> = deaths.iter().map(beyond).collect();
            let worst = beyond.iter().map(Sample::median).collect::<Sample>().max();
            let limit = Goal::AtMost(BEYOND_SECONDS);
            let what = named("cost beyond the lost work, median at the worst moment");
            report.goal(&what, &Sample::one(worst), Unit::SECONDS, limit);
            let worst = beyond.iter().map(Sample::max).collect::<Sample>().max();
            let what = named("cost beyond the lost work, worst job of all");
            report.figure(&what, &Sample::one(worst), Unit::SECONDS);
            let jobs = || deaths.iter().flat_map(|(_, jobs)| jobs);
            let early = jobs().filter(|job| job.dead < self.deaths).count();
            if early > 0 {
                let all = jobs().count();
                report.text(&format!("{early} of {all} jobs ended before all deaths had come"));
            }
            report.text(&table(&deaths, usual.median()));
            chart.series.push(Series { levels, ..series(spreading, &deaths) });
        }
        let path = bench.plots.join(format!("recovery-{}.svg", self.name));
        match chart.write(&path) {
            Ok(()) => report.text(&format!("drawn in {}", path.display())),
            Err(error) => report.missing(&path.display().to_string(), &error.to_string()),
        }
    }

    /// Jobs without deaths, of all PEs and of the survivors; and jobs with deaths, by moment.
    #[expect(clippy::type_complexity, reason = "three lists, taken apart at once")]
    fn measure(
        &self,
        spreading: &Spreading,
        bench: &Bench,
    ) -> Result<(Vec<Measurements>, Vec<Measurements>, Vec<(u32, Vec<Measurements>)>), LaunchError>
    {
        let (mut free, mut fewer) = (vec![], vec![]);
        let mut deaths: Vec<_> = self.moments.iter().map(|moment| (*moment, vec![])).collect();
        for _ in 0..bench.rounds(ROUNDS) {
            free.push(self.job(spreading, bench, self.pes, None)?);
            fewer.push(self.job(spreading, bench, self.pes - self.deaths, None)?);
            let usual = free.iter().map(|job| job.seconds).collect::<Sample>().median();
            for (moment, jobs) in &mut deaths {
                let at = usual * f64::from(*moment) / 100.0;
                jobs.push(self.job(spreading, bench, self.pes, Some(at))?);
            }
        }
        Ok((free, fewer, deaths))
    }

    fn job(
        &self,
        spreading: &Spreading,
        bench: &Bench,
        pes: u32,
        death: Option<f64>,
    ) -> Result<Measurements, LaunchError> {
        let mut command: Command;
        let expected = if spreading.sleeps {
            command = bench.launcher.child();
            self.add_flags(&mut command, death);
            command.args(["sleep", "--tasks", &self.tasks.to_string()]);
            i64::from(self.tasks)
        } else {
            command = bench.launcher.sibling("liouville");
            self.add_flags(&mut command, death);
            command.args(["--upto", UPTO, "--tasks", &self.tasks.to_string(), "--supervised"]);
            command.args(["--skeleton", spreading.skeleton, "--json"]);
            RESULT
        };
        let mut launched = bench.launcher.launched(pes, &command);
        let finished = launch::run_quietly(&mut launched)?;
        let found = Measurements { whole: finished.seconds, ..finished.json()? };
        if found.result != expected {
            let reason = format!("{} came out instead of {expected}", found.result);
            return Err(LaunchError::Output { program: spreading.name.to_owned(), reason });
        }
        Ok(found)
    }

    fn add_flags(&self, command: &mut Command, death: Option<f64>) {
        command.args(["--threads", "1"]);
        if let Some(at) = death {
            let moments = vec![format!("{at:.3}"); self.deaths as usize];
            command.args(["--kill-at", &moments.join(",")]);
        }
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

fn series(spreading: &Spreading, deaths: &[(u32, Vec<Measurements>)]) -> Series {
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

fn table(deaths: &[(u32, Vec<Measurements>)], usual: f64) -> String {
    let mut text =
        "  death at   time of the job              against no death   tasks again\n".to_owned();
    for (moment, jobs) in deaths {
        let seconds: Sample = jobs.iter().map(|job| job.whole).collect();
        let again: Sample = jobs.iter().map(|job| job.replicas as f64).collect();
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
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let nap = |_: u64| -> u64 {
            std::thread::sleep(Duration::from_millis(SLEEP_MILLIS));
            1
        };
        let start = Instant::now();
        let slept = push_map(&cx.supervised(), nap, 0..self.tasks).await?;
        let seconds = start.elapsed().as_secs_f64();
        let replicas = cx.statistics().await?.replicas;
        let dead = cx.dead();
        Ok(Measurements {
            result: slept.iter().sum::<u64>() as i64,
            seconds,
            whole: seconds,
            dead,
            replicas,
        })
    }
}
