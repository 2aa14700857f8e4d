//! Runs single tests: first without mutants, to know how long each takes and which places it
//! reaches; then with one, until a test fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::catalogue::Area;
use super::compile::{Builder, TestProgram};
use super::tree::{MUTANT, REACHED};
use crate::chaos::interrupt;
use crate::process::{self, Failure, Result};

/// A test that takes longer than this, undisturbed, is not quick, and catches no mutants.
pub(crate) const QUICK: Duration = Duration::from_secs(5);

/// How long the tests of each other crate take at most for a mutant, undisturbed. Nearly all of
/// them reach what every job does.
const USER_TIME: Duration = Duration::from_secs(45);

/// A mutant has made a test hang if that takes longer than this and its usual time times the
/// factor. Both are large, since the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_FACTOR: u32 = 4;

/// The address space of a test, in KiB: a mutant that never stops collecting must not take the
/// memory of the machine.
const MEMORY_KIB: u64 = 8 << 20;

const TICK: Duration = Duration::from_millis(2);

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    Late,
}

/// A quick test.
#[derive(Debug, Clone)]
struct Test {
    program: TestProgram,
    name: String,
    took: Duration,
}

impl Test {
    /// The command that runs it, which takes its temporary files from this folder.
    fn command(&self, builder: &Builder<'_>, folder: &Path) -> Command {
        let mut command = Command::new("sh");
        let line = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
        command.args(["-c", &line]).arg(&self.program.file).args([&self.name, "--exact"]);
        builder.apply_to(&mut command);
        process::scrub(&mut command);
        command.env_remove(MUTANT).env_remove(REACHED);
        // Each time the same random cases, and no file with those that have failed.
        command.env("PROPTEST_RNG_SEED", "1");
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        command.env("CARGO_MANIFEST_DIR", &self.program.folder).env("TMPDIR", folder);
        command.current_dir(&self.program.folder);
        command
    }
}

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The name of the test that failed or hung.
    Caught(String),
    /// The number of tests that reach the place, and passed.
    Survived(usize),
}

/// The quick tests, the fastest first, and what each reaches.
pub(crate) struct Exam<'a> {
    builder: &'a Builder<'a>,
    /// For temporary files.
    folder: PathBuf,
    tests: Vec<Test>,
    /// For each place the indices of the tests that reach it.
    reaching: BTreeMap<u32, Vec<usize>>,
}

impl<'a> Exam<'a> {
    /// Runs every test of these programs by itself.
    ///
    /// # Errors
    /// A program cannot list its tests, or the user has asked for an end.
    pub(crate) fn prepare(
        builder: &'a Builder<'a>,
        programs: &[TestProgram],
        folder: PathBuf,
    ) -> Result<Self> {
        // What an earlier run has left that was interrupted.
        let _ = fs::remove_dir_all(&folder);
        let mut tests = Vec::new();
        for program in programs {
            tests.extend(list(program, builder)?);
        }
        let mut exam = Exam { builder, folder, tests: Vec::new(), reaching: BTreeMap::new() };
        let tried = on_all_cores(&tests, |index, test| exam.measure(index, test))?;
        let (mut quick, mut late, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (test, (end, took, reached)) in tests.into_iter().zip(tried) {
            match end {
                End::Passed => quick.push((Test { took, ..test }, reached)),
                End::Failed => failed.push(test.name),
                End::Late => late.push(test.name),
            }
        }
        quick.sort_by_key(|(test, _)| test.took);
        for (index, (test, reached)) in quick.into_iter().enumerate() {
            exam.tests.push(test);
            for number in reached {
                exam.reaching.entry(number).or_default().push(index);
            }
        }
        let (count, seconds) = (exam.tests.len(), QUICK.as_secs());
        println!("{count} tests take at most {seconds} s; {} take longer", late.len());
        if !failed.is_empty() {
            println!("fail without mutants, and do not count: {}", failed.join(", "));
        }
        if exam.tests.is_empty() {
            return Err(Failure("no quick test passes without mutants".to_owned()));
        }
        Ok(exam)
    }

    fn measure(&self, index: usize, test: &Test) -> Result<(End, Duration, BTreeSet<u32>)> {
        let noted = self.folder.join(format!("reached-{index}"));
        let _ = fs::remove_file(&noted);
        let start = Instant::now();
        let end = self.run(test, (REACHED, noted.as_os_str()), QUICK)?;
        let took = start.elapsed();
        let text = fs::read_to_string(&noted).unwrap_or_default();
        Ok((end, took, text.lines().filter_map(|line| line.parse().ok()).collect()))
    }

    /// Runs the tests that reach each of these places, with its mutant; says what became of each.
    ///
    /// # Errors
    /// A test cannot be started, or the user has asked for an end.
    pub(crate) fn examine(
        &self,
        mutants: &[(u32, Area)],
        told: &(dyn Fn(u32, &Fate) + Sync),
    ) -> Result<Vec<Fate>> {
        on_all_cores(mutants, |_, (number, area)| {
            let fate = self.fate(*number, *area)?;
            told(*number, &fate);
            Ok(fate)
        })
    }

    /// The quick tests that reach this place in this area: those of its crate, then some of the
    /// crates that use it.
    fn tests_of(&self, number: u32, area: Area) -> Vec<&Test> {
        let all = || self.reaching.get(&number).into_iter().flatten().map(|i| &self.tests[*i]);
        let is_in = |test: &&Test, package| test.program.folder.ends_with(package);
        let of_user = |user: &&'static str| {
            let (user, mut left) = (*user, USER_TIME);
            all().filter(move |test| is_in(test, user)).take_while(move |test| {
                let fits = test.took <= left;
                left = left.saturating_sub(test.took);
                fits
            })
        };
        let of_users = area.users.iter().flat_map(of_user);
        all().filter(|test| is_in(test, area.package)).chain(of_users).collect()
    }

    /// Whether any quick test does.
    pub(crate) fn is_reached(&self, number: u32, area: Area) -> bool {
        !self.tests_of(number, area).is_empty()
    }

    fn fate(&self, number: u32, area: Area) -> Result<Fate> {
        let reaching = self.tests_of(number, area);
        for test in &reaching {
            let patience = PATIENCE + test.took * PATIENCE_FACTOR;
            let run = |name: &str| self.run(test, (name, number.to_string().as_ref()), patience);
            // A test that fails now and then without the mutant says nothing of it.
            if run(MUTANT)? != End::Passed && run("XTASK_NO_MUTANT")? == End::Passed {
                return Ok(Fate::Caught(test.name.clone()));
            }
        }
        Ok(Fate::Survived(reaching.len()))
    }

    /// Runs the test with this variable; nothing of it is left afterwards.
    fn run(
        &self,
        test: &Test,
        (name, value): (&str, &std::ffi::OsStr),
        patience: Duration,
    ) -> Result<End> {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let folder = self.folder.join(RUNS.fetch_add(1, Ordering::Relaxed).to_string());
        let made = fs::create_dir_all(&folder);
        made.map_err(|error| Failure(format!("{}: {error}", folder.display())))?;
        let mut command = test.command(self.builder, &folder);
        command.env(name, value);
        let end = end_of(&mut command, patience);
        let _ = fs::remove_dir_all(&folder);
        end
    }
}

/// Runs the command in a process group of its own, which is killed at the end.
fn end_of(command: &mut Command, patience: Duration) -> Result<End> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| process::cannot_start(command, &error))?;
    let mut status = None;
    while status.is_none() && start.elapsed() < patience && !interrupt::is_asked() {
        thread::sleep(TICK);
        status = child.try_wait().unwrap_or_default();
    }
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // None of it may live any more.
        let _ = kill_process_group(group, Signal::KILL);
    }
    if interrupt::is_asked() {
        return Err(Failure("interrupted".to_owned()));
    }
    let Some(status) = status else {
        let _ = child.wait();
        return Ok(End::Late);
    };
    Ok(if status.success() { End::Passed } else { End::Failed })
}

/// The tests of a program but those that run only if asked for.
fn list(program: &TestProgram, builder: &Builder<'_>) -> Result<Vec<Test>> {
    let names = |more: &[&str]| {
        let mut command = Command::new(&program.file);
        command.args(["--list", "--format", "terse"]).args(more);
        builder.apply_to(&mut command);
        command.env_remove(MUTANT).env_remove(REACHED).current_dir(&program.folder);
        let text = process::output_of(&mut command)
            .ok_or_else(|| Failure(format!("{} lists no tests", program.file.display())))?;
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok::<_, Failure>(names.map(str::to_owned).collect::<Vec<_>>())
    };
    let ignored = names(&["--ignored"])?;
    let mut all = names(&[])?;
    all.retain(|name| !ignored.contains(name));
    let test = |name| Test { program: program.clone(), name, took: Duration::ZERO };
    Ok(all.into_iter().map(test).collect())
}

/// Does it with each item, one at a time on each core.
fn on_all_cores<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(usize, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = work(index, item);
            if result.is_err() {
                next.store(items.len(), Ordering::Relaxed);
            }
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, result));
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(worker))));
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(script: &str, patience_ms: u64) -> End {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        end_of(&mut command, Duration::from_millis(patience_ms)).expect("sh is everywhere")
    }

    #[test]
    fn a_test_passes_fails_or_is_late() {
        assert_eq!(end("true", 60_000), End::Passed);
        assert_eq!(end("exit 3", 60_000), End::Failed);
        assert_eq!(end("kill -6 $$", 60_000), End::Failed);
        assert_eq!(end("sleep 1000 & sleep 1000", 50), End::Late);
    }

    #[test]
    fn results_keep_the_order_of_their_items_and_an_error_ends_all() {
        let items: Vec<u32> = (0..100).collect();
        let doubled = on_all_cores(&items, |_, item| Ok(2 * item)).expect("none fails");
        assert_eq!(doubled, items.iter().map(|item| 2 * item).collect::<Vec<_>>());
        let failing = |_, item: &u32| if *item == 5 { Err(Failure("5".into())) } else { Ok(()) };
        assert_eq!(on_all_cores(&items, failing), Err(Failure("5".into())));
    }
}
