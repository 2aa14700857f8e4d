//! `cargo xtask chaos`: real jobs under a launcher, disturbed from outside at random moments:
//! processes are killed or stopped, the network between hosts is spoilt, and so on. The
//! [classes](class) say how, and what must hold then. Each job must end in time and leave nothing
//! behind.
//!
//! | file | what |
//! |---|---|
//! | `class` | the classes of faults, and the plan of a job of each |
//! | `configuration` | the ways to run a job: launcher, lane, program, skeleton |
//! | `input` | what programs read, and what must come out |
//! | `draw` | random numbers, and the PEs that they choose to kill |
//! | `deed`, `scene` | one fault of a job, and the processes that it can hit |
//! | `hosts`, `burners` | four hosts whose network can be spoilt; busy processes |
//! | `job`, `log`, `ended` | one job: run, listened to, judged |
//! | `proc`, `leftover` | what the system knows of its processes, and what it left |
//! | `tally` | the tables at the end: that of HdpH-RS §6.5 (table 6.5), and one of classes |
//! | `interrupt` | Ctrl-C |
//!
//! A PE is not killed before the job has begun, except in the class `start-up`. The log says when
//! that is, and which process is which PE: a rank, and not the guard between it and the launcher.
//! It also says which PEs are lost without a reason (`PE 3 has died`, `PE 3 leaves: …`), and the
//! program's report how many have died.

mod arguments;
mod burners;
mod class;
mod configuration;
mod deed;
pub(crate) mod draw;
mod ended;
mod hosts;
mod input;
pub(crate) mod interrupt;
mod job;
mod leftover;
mod log;
mod proc;
mod scene;
mod tally;

use std::ffi::OsStr;
use std::process::{Command, ExitCode};
use std::time::Duration;

use fastrand::Rng;
use tempfile::TempDir;

pub(crate) use self::arguments::Arguments;
use self::arguments::{Profile, RUNS_MAX, Share, shares, takes};
use self::class::{Class, Hosting, JobFacts, Plan};
use self::configuration::{Configuration, PROGRAMS};
use self::ended::{Ended, Judgement};
use self::hosts::Hosts;
use self::job::Job;
use self::tally::Tables;
use crate::mpi::Mpi;
use crate::process::{self, Failure, Result};
use crate::setup::{self, Wanted};
use crate::step;

/// A job that hangs holds everything up. After this number of them the rest of the class is not
/// tried.
const HANGS_MAX: usize = 5;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mpis = chosen_mpis(&arguments.mpi)?;
    for mpi in mpis.iter().filter(|_| !arguments.no_build) {
        build(mpi, arguments.profile)?;
    }
    let seed = arguments.seed.unwrap_or_else(draw::any_seed);
    println!("seed {seed} (again by --seed {seed})");
    interrupt::catch()?;
    let mut chaos = Chaos {
        arguments,
        seed,
        configurations: configuration::all(&mpis, &arguments.lane, &arguments.program),
        folder: leftover::folder()?,
        inputs: leftover::folder()?,
        hosts: None,
        bases: Vec::new(),
        bad: Vec::new(),
        tables: Tables::default(),
        failures: Vec::new(),
    };
    for share in shares(&arguments.classes) {
        chaos.try_class(share)?;
    }
    Ok(chaos.conclude())
}

/// The installations to test.
fn chosen_mpis(choice: &str) -> Result<Vec<Mpi>> {
    let mut mpis = setup::ensure(Wanted::EveryMpi)?;
    mpis.retain(|mpi| takes(choice, mpi.family.word()));
    if mpis.is_empty() {
        return Err(Failure(format!("{choice} is not installed, or not the MPI that MPICC names")));
    }
    Ok(mpis)
}

fn build(mpi: &Mpi, profile: Profile) -> Result<()> {
    let mut build = process::cargo();
    match profile {
        // As the steps of `cargo xtask test` do: then there is nothing to do after them.
        Profile::Dev => build.args(["test", "--quiet", "--no-run"]).args(step::built(mpi.family)),
        Profile::Release => {
            build.args(["build", "--quiet", "--release", "--package", "ultramarine-examples"]);
            build.args(PROGRAMS.iter().flat_map(|program| ["--bin", program.name]))
        }
    };
    mpi.apply_to(&mut build);
    process::run(&mut build)
}

struct Chaos<'a> {
    arguments: &'a Arguments,
    seed: u64,
    configurations: Vec<Configuration>,
    /// For the temporary files of jobs.
    folder: TempDir,
    /// For what programs read.
    inputs: TempDir,
    /// Or why there are none; nothing while no job needed them.
    hosts: Option<std::result::Result<Hosts, String>>,
    /// Jobs that were left alone.
    bases: Vec<Base>,
    /// Those of them that have failed.
    bad: Vec<(Configuration, Hosting)>,
    tables: Tables,
    /// What is wrong with each job that has failed.
    failures: Vec<String>,
}

/// What a job takes that is left alone.
#[derive(Clone)]
struct Base {
    configuration: Configuration,
    hosting: Hosting,
    start: Duration,
    usual: Duration,
}

impl Chaos<'_> {
    /// Disturbs jobs in this way.
    fn try_class(&mut self, Share { class, runs }: Share) -> Result<()> {
        let fits = |one: &&Configuration| {
            (one.lane == "tcp" || !class.needs_tcp()) && class.fits(&one.program)
        };
        let fitting: Vec<_> = self.configurations.iter().filter(fits).cloned().collect();
        if fitting.is_empty() {
            println!("{}: skipped: it is for the tcp lane, or for other programs", class.name());
            return Ok(());
        }
        // A short draw begins elsewhere with each seed, and sees another computation in each job.
        let step = [5, 3, 1].into_iter().find(|step| fitting.len() % step > 0).unwrap_or(1);
        let numbered = class as u32 * RUNS_MAX;
        let first = draw::random(self.seed, numbered + RUNS_MAX - 1).usize(..fitting.len());
        let mut hangs = 0;
        for run in 0..runs.unwrap_or(self.arguments.runs) {
            let mut random = draw::random(self.seed, numbered + run);
            let index = (first + run as usize * step) % fitting.len();
            let hosting = class.hosting(fitting[index].mpi.family, &mut random);
            if let Err(reason) = self.prepare(class, hosting)? {
                println!("{}: skipped: {reason}", class.name());
                break;
            }
            let Some(base) = self.measure(&fitting[index], hosting)? else { continue };
            let ended = self.disturb(class, run, &base, &mut random)?;
            hangs += usize::from(ended.judgement == Judgement::Hung);
            if hangs >= HANGS_MAX {
                println!("{HANGS_MAX} jobs have hung: the others of this class are not tried");
                break;
            }
        }
        Ok(())
    }

    /// Sees to it that jobs can run there; or says why they cannot.
    fn prepare(
        &mut self,
        class: Class,
        hosting: Hosting,
    ) -> Result<std::result::Result<(), String>> {
        if hosting == Hosting::Hosts && self.hosts.is_none() {
            self.hosts = Some(Hosts::up()?);
        }
        if class == Class::Memory
            && !process::succeeds(Command::new("unshare").args(["--mount", "true"]))
        {
            return Ok(Err("this user may mount nothing".to_owned()));
        }
        Ok(match &self.hosts {
            Some(Err(reason)) if hosting == Hosting::Hosts => Err(reason.clone()),
            _ => Ok(()),
        })
    }

    /// Runs a job that is left alone, what the others are compared with: in short, on one lane
    /// only. Nothing if it fails, and it is not tried again.
    fn measure(&mut self, configuration: &Configuration, hosting: Hosting) -> Result<Option<Base>> {
        let may_be_like = self.arguments.brief;
        let is_same = |one: &Configuration| {
            one == configuration || may_be_like && one.takes_as_long_as(configuration)
        };
        let is_it = |base: &&Base| base.hosting == hosting && is_same(&base.configuration);
        if let Some(base) = self.bases.iter().find(is_it) {
            return Ok(Some(Base { configuration: configuration.clone(), ..base.clone() }));
        }
        if self.bad.contains(&(configuration.clone(), hosting)) {
            return Ok(None);
        }
        let plan = Plan::undisturbed(self.pes(hosting));
        let name = format!("free-{}", self.bases.len() + self.bad.len());
        let ended =
            self.job((configuration, hosting), name, plan, None)?.run(self.folder.path())?;
        if ended.judgement != Judgement::Right || ended.has_failed() {
            ended.print_details();
            let failure = format!("{configuration}: fails without failures: {}", ended.summary());
            println!("{failure}");
            self.failures.push(failure);
            self.bad.push((configuration.clone(), hosting));
            return Ok(None);
        }
        let (start, usual) = (ended.started.unwrap_or_default(), ended.took);
        println!("{configuration}  without failures {:.2} s", usual.as_secs_f64());
        let base = Base { configuration: configuration.clone(), hosting, start, usual };
        self.bases.push(base.clone());
        Ok(Some(base))
    }

    /// Runs a job and disturbs it as drawn.
    fn disturb(&mut self, class: Class, run: u32, base: &Base, random: &mut Rng) -> Result<Ended> {
        let Base { ref configuration, hosting, start, usual } = *base;
        let (pes, is_brief) = (self.pes(hosting), self.arguments.brief);
        let plan = class.plan(random, JobFacts { pes, usual, start, is_brief });
        let (pes, delay) = (plan.pes, plan.delay);
        let name = format!("{}-{run}", class.name());
        let ended =
            self.job((configuration, hosting), name, plan, Some(usual))?.run(self.folder.path())?;
        let is_right = ended.judgement == Judgement::Right;
        let slow_after = ended.slow_after(usual, pes, configuration.program.tasks) + delay;
        let slow = is_right && ended.took > slow_after;
        let hosts = if hosting == Hosting::Hosts { ", on hosts" } else { "" };
        let slow_text = if slow { ", slow" } else { "" };
        let (class_name, summary) = (class.name(), ended.summary());
        let number = run + 1;
        println!("{class_name:<11} {number:>5}  {configuration}  {summary}{hosts}{slow_text}");
        if ended.has_failed() {
            self.failures.push(format!("{class_name} {number}, {configuration}: {summary}{hosts}"));
        }
        ended.print_details();
        self.tables.add((class, configuration), usual, &ended, slow);
        Ok(ended)
    }

    /// How many PEs a job has there, where the class does not say.
    fn pes(&self, hosting: Hosting) -> u32 {
        match hosting {
            Hosting::Here => self.arguments.pes,
            Hosting::Hosts => hosts::COUNT,
        }
    }

    fn job(
        &self,
        (configuration, hosting): (&Configuration, Hosting),
        name: String,
        plan: Plan,
        usual: Option<Duration>,
    ) -> Result<Job<'_>> {
        let folder = match self.arguments.profile {
            Profile::Dev => "debug",
            Profile::Release => "release",
        };
        let mpi = &configuration.mpi;
        let hosts = self.hosts.as_ref().and_then(|hosts| hosts.as_ref().ok());
        let hosts = hosts.filter(|_| hosting == Hosting::Hosts);
        let here = || {
            let mut command = match &plan.around {
                None => Command::new(&mpi.mpiexec),
                Some((_, line)) => {
                    let line = format!("{line} && exec \"$0\" \"$@\"");
                    let mut command = Command::new("unshare");
                    command.args(["--mount", "sh", "-c", &line, &mpi.mpiexec]);
                    command
                }
            };
            command.args(["-n", &plan.pes.to_string()]);
            command
        };
        let mut command = hosts.map_or_else(here, |hosts| hosts.mpiexec(mpi));
        mpi.apply_to(&mut command);
        if let Some((_, line)) = &plan.before {
            command.args(["sh", "-c", &format!("{line}; exec \"$0\" \"$@\"")]);
        }
        let (program, input) = (configuration.file(folder), configuration.program.input);
        let input = input.arguments(self.inputs.path());
        let input = input.map_err(|error| Failure(format!("cannot write an input: {error}")))?;
        command
            .arg(&program)
            .args(input)
            .args(configuration.arguments())
            .args(plan.flags.split_whitespace());
        let has_arena = configuration.program.has_arena();
        let kept = (plan.has_journal || has_arena).then(|| self.inputs.path().join(&name));
        let flag = OsStr::new(if has_arena { "--arena" } else { "--journal" });
        command.args(kept.iter().flat_map(|file| [flag, file.as_os_str()]));
        let answer = configuration.program.answer;
        Ok(Job { command, program, plan, answer, name, usual, hosts, kept })
    }

    fn conclude(self) -> ExitCode {
        println!("\n{}", self.tables.shown());
        let is_idle = self.tables.is_idle();
        if is_idle {
            println!("nothing was done to any job: this has tested nothing");
        }
        self.failures.iter().for_each(|failure| println!("failed: {failure}"));
        println!("{}; seed {}", self.tables.total(), self.seed);
        if !self.failures.is_empty() || is_idle { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
