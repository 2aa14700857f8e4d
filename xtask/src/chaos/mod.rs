//! `cargo xtask chaos`: real jobs under a launcher, of which processes are killed from outside, at
//! random moments, with a signal that cannot be caught. Each job must end in time, with the right
//! result, and leave nothing behind. The table at the end is that of HdpH-RS §6.5 (table 6.5).
//!
//! A job's root is never killed (the job ends with it), nor is anybody before the job has begun
//! (MPI cannot start without one of its processes). From the log one learns when that is, and which
//! process is which PE: a rank, and not the guard that stands between it and the launcher.

mod draw;
mod job;
mod leftover;
mod proc;
mod table;

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::ValueEnum;

use self::draw::{Kill, Random};
use self::job::{Ended, Job, Verdict};
use self::leftover::Folder;
use self::table::Row;
use crate::mpi::{Family, Mpi};
use crate::process::{self, Failure, Result};
use crate::setup::{self, Wanted};
use crate::step;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many jobs to disturb, in turn over all configurations
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Under whose launcher
    #[arg(long, value_enum, default_value_t = MpiChoice::All)]
    mpi: MpiChoice,
    /// What carries the messages
    #[arg(long, value_enum, default_value_t = LaneChoice::All)]
    lane: LaneChoice,
    /// Which example
    #[arg(long, value_enum, default_value_t = ProgramChoice::All)]
    program: ProgramChoice,
    /// Draw the same victims and moments again [default: another one each time, which is printed]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Processes of each job
    #[arg(long, value_name = "P", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=64))]
    pes: u32,
    /// Cargo's profile; `dev` takes the programs as the tests build them
    #[arg(long, value_enum, default_value_t = Profile::Release)]
    profile: Profile,
    /// Take the programs that are there
    #[arg(long)]
    no_build: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MpiChoice {
    Mpich,
    Openmpi,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LaneChoice {
    Mpi,
    Tcp,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum ProgramChoice {
    SumEuler,
    Liouville,
    Queens,
    Uts,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    Dev,
    Release,
}

/// A computation with a known result, of about a second on one core or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Program {
    name: &'static str,
    flags: &'static str,
    /// Lazy, and eager where there is such a thing.
    skeletons: &'static [&'static str],
    /// Of about so many tasks some may be lost and have to be run again.
    tasks: u64,
    result: i64,
}

const MAPS: &[&str] = &["par-map", "push-map"];
const SUM_EULER: Program = Program {
    name: "sum_euler",
    flags: "--upto 10000 --tasks 300",
    skeletons: MAPS,
    tasks: 300,
    result: 30_397_486,
};
const LIOUVILLE: Program = Program {
    name: "liouville",
    flags: "--upto 100000000 --tasks 200",
    skeletons: MAPS,
    tasks: 200,
    result: -3884,
};
const QUEENS: Program = Program {
    name: "queens",
    flags: "--board 15",
    skeletons: &["par-divide-and-conquer", "push-divide-and-conquer"],
    tasks: 100,
    result: 2_279_184,
};
const UTS: Program = Program {
    name: "uts",
    flags: "-t 1 -a 3 -d 11 -b 4 -r 19",
    skeletons: &["par-enumerate"],
    tasks: 100,
    result: 16_526_523,
};
const PROGRAMS: [Program; 4] = [SUM_EULER, LIOUVILLE, QUEENS, UTS];

/// A job that hangs holds everything up; after so many the rest is not tried.
const HANGS_MAX: usize = 5;

/// One way to run a job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Configuration {
    mpi: Mpi,
    lane: &'static str,
    program: Program,
    skeleton: &'static str,
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Configuration { mpi, lane, program, skeleton } = self;
        let launcher = mpi.family.name();
        write!(f, "{launcher:<8}  {lane:<4}  {:<9}  {skeleton:<23}", program.name)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mpis = chosen_mpis(arguments.mpi)?;
    for mpi in mpis.iter().filter(|_| !arguments.no_build) {
        build(mpi, arguments.profile)?;
    }
    let all = configurations(&mpis, arguments);
    let seed = arguments.seed.unwrap_or_else(draw::any_seed);
    let folder = Folder::make()?;
    println!(
        "{} jobs of {} PEs; seed {seed} (again by --seed {seed})",
        arguments.runs, arguments.pes
    );
    let mut chaos = Chaos { arguments, seed, folder, rows: Vec::new(), hangs: 0 };
    let kept = arguments.runs.min(all.len() as u32) as usize;
    for configuration in all.into_iter().take(kept) {
        chaos.measure(configuration)?;
    }
    for run in 0..arguments.runs {
        if chaos.hangs >= HANGS_MAX {
            println!("{HANGS_MAX} jobs have hung: the others are not tried");
            break;
        }
        chaos.disturb(run)?;
    }
    Ok(chaos.conclude())
}

/// The installations to test.
fn chosen_mpis(choice: MpiChoice) -> Result<Vec<Mpi>> {
    let family = match choice {
        MpiChoice::All => return setup::ensure(Wanted::EveryMpi),
        MpiChoice::Mpich => Family::Mpich,
        MpiChoice::Openmpi => Family::OpenMpi,
    };
    let mut mpis = setup::ensure(Wanted::EveryMpi)?;
    mpis.retain(|mpi| mpi.family == family);
    if mpis.is_empty() {
        let name = family.name();
        return Err(Failure(format!("{name} is not installed, or not the MPI that MPICC names")));
    }
    Ok(mpis)
}

fn build(mpi: &Mpi, profile: Profile) -> Result<()> {
    let mut build = process::cargo();
    match profile {
        // As the steps of `cargo xtask test` do: then there is nothing to do after them.
        Profile::Dev => {
            build.args(["test", "--quiet", "--no-run", "--all-targets"]).args(step::ALL_BUT_PROOFS)
        }
        Profile::Release => {
            build.args(["build", "--quiet", "--release", "--package", "ultramarine-examples"]);
            build.args(PROGRAMS.iter().flat_map(|program| ["--bin", program.name]))
        }
    };
    mpi.apply_to(&mut build);
    process::run(&mut build)
}

fn configurations(mpis: &[Mpi], arguments: &Arguments) -> Vec<Configuration> {
    let lanes: &[&str] = match arguments.lane {
        LaneChoice::Mpi => &["mpi"],
        LaneChoice::Tcp => &["tcp"],
        LaneChoice::All => &["mpi", "tcp"],
    };
    let programs: &[Program] = match arguments.program {
        ProgramChoice::SumEuler => &[SUM_EULER],
        ProgramChoice::Liouville => &[LIOUVILLE],
        ProgramChoice::Queens => &[QUEENS],
        ProgramChoice::Uts => &[UTS],
        ProgramChoice::All => &PROGRAMS,
    };
    let mut all = Vec::new();
    // What differs most changes fastest, so that a few runs see much.
    for nth in 0..2 {
        for program in programs {
            let Some(skeleton) = program.skeletons.get(nth) else { continue };
            for lane in lanes {
                for mpi in mpis {
                    let (mpi, program) = (mpi.clone(), *program);
                    all.push(Configuration { mpi, lane, program, skeleton });
                }
            }
        }
    }
    all
}

struct Chaos<'a> {
    arguments: &'a Arguments,
    seed: u64,
    folder: Folder,
    /// One for each configuration.
    rows: Vec<Row>,
    hangs: usize,
}

impl Chaos<'_> {
    /// Runs a job without failures: what the others are compared with.
    fn measure(&mut self, configuration: Configuration) -> Result<()> {
        let job = self.job(&configuration, format!("free-{}", self.rows.len()), Vec::new(), None);
        let ended = job.run(&self.folder)?;
        if ended.verdict != Verdict::Right || !ended.left.is_empty() {
            ended.print_details();
            let text = format!("{configuration}: fails without failures: {}", ended.summary());
            return Err(Failure(text));
        }
        println!("{configuration}  without failures {:.2} s", ended.took.as_secs_f64());
        self.rows.push(Row::new(configuration, ended.took));
        Ok(())
    }

    /// Runs a job and kills some of its processes.
    fn disturb(&mut self, run: u32) -> Result<()> {
        let index = run as usize % self.rows.len();
        let (configuration, usual) = (&self.rows[index].configuration, self.rows[index].usual);
        let mut random = Random::new(self.seed, run);
        let kills = draw::kills(&mut random, self.arguments.pes, usual);
        let job = self.job(configuration, run.to_string(), kills, Some(usual));
        let ended = job.run(&self.folder)?;
        let is_right = ended.verdict == Verdict::Right;
        let slow = is_right && ended.took > self.expected(configuration, usual, &ended);
        let remark = if slow { ", slow" } else { "" };
        println!("{:>5}  {configuration}  {}{remark}", run + 1, ended.summary());
        ended.print_details();
        self.hangs += usize::from(ended.verdict == Verdict::Hung);
        self.rows[index].add(&ended, slow);
        Ok(())
    }

    /// How long a job may take before it is called slow: the survivors do the lost work again, on
    /// the cores that they can use, and a second comes on top.
    fn expected(&self, configuration: &Configuration, usual: Duration, ended: &Ended) -> Duration {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let used = |pes: u32| (pes as usize).clamp(1, cores) as f64;
        let pes = self.arguments.pes;
        let fewer = used(pes) / used(pes.saturating_sub(ended.killed.len() as u32));
        let again = ended.replicas.unwrap_or(0) as f64 / configuration.program.tasks as f64;
        usual.mul_f64(fewer * (1.0 + again)) + Duration::from_secs(1)
    }

    fn job(
        &self,
        configuration: &Configuration,
        name: String,
        kills: Vec<Kill>,
        usual: Option<Duration>,
    ) -> Job {
        let Configuration { mpi, lane, program, skeleton } = configuration;
        let folder = match self.arguments.profile {
            Profile::Dev => "debug",
            Profile::Release => "release",
        };
        let path: PathBuf = mpi.target_dir().join(folder).join(program.name);
        let pes = self.arguments.pes;
        let mut command = Command::new(&mpi.mpiexec);
        mpi.apply_to(&mut command);
        command.args(["-n", &pes.to_string()]).arg(path);
        command.args(program.flags.split(' '));
        command.args(["--threads", "1", "--lane", lane, "--skeleton", skeleton]);
        command.args(["--supervised", "--json"]);
        Job { command, pes, result: program.result, name, kills, usual }
    }

    fn conclude(self) -> ExitCode {
        println!("\n{}", table::table(&self.rows));
        let failed = self.rows.iter().any(Row::has_failed) || self.hangs >= HANGS_MAX;
        let is_idle = self.arguments.runs > 0 && self.rows.iter().all(|row| row.killed() == 0);
        if is_idle {
            println!("nobody was killed: this has tested nothing");
        }
        println!("{}; seed {}", table::total(&self.rows), self.seed);
        if failed || is_idle { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Arguments {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            arguments: Arguments,
        }
        let words = std::iter::once(&"chaos").chain(words);
        <Program as clap::Parser>::try_parse_from(words).expect("they are right").arguments
    }

    fn mpis() -> [Mpi; 2] {
        Family::ALL.map(|family| Mpi { family, mpicc: "mpicc".into(), mpiexec: "mpiexec".into() })
    }

    #[test]
    fn all_means_every_combination_once() {
        let all = configurations(&mpis(), &arguments(&[]));
        assert_eq!(all.len(), 28);
        let unequal = |i: usize| all[i + 1..].iter().all(|other| *other != all[i]);
        assert!((0..28).all(unequal));
        // The first few differ in launcher and lane.
        assert_ne!(all[0].mpi.family, all[1].mpi.family);
        assert_ne!(all[0].lane, all[2].lane);
    }

    #[test]
    fn choices_narrow_it_down() {
        let words = ["--lane", "tcp", "--program", "sum_euler"];
        let all = configurations(&mpis()[..1], &arguments(&words));
        assert_eq!(all.len(), MAPS.len());
        assert!(all.iter().all(|one| one.lane == "tcp" && one.program == SUM_EULER));
    }
}
