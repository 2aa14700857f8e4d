//! `--arena FILE` as its user sees it: results, deaths, starts again, and what is refused.

use crate::common::{FIBONACCI, Program, QUEENS, SUM_EULER, UTS};
use serde_json::Value;
use std::fs::{self, File, Permissions, metadata};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use ultramarine::taskset::{Arena, Call, Error, Options};
use ultramarine::{Pe, Topology};
use ultramarine_examples::{nearest_first, require_one_host};
use ultramarine_testkit::{behind, eventually, kill, marked, racks, run};

/// Programs, their flags, and those of another computation.
const PROGRAMS: [(Program, &str, &str); 4] = [
    (SUM_EULER, "--upto 900 --tasks 30", "--upto 900 --tasks 31"),
    (QUEENS, "--board 9", "--board 8"),
    (FIBONACCI, "--n 20 --threshold 10", "--n 20 --threshold 11"),
    (UTS, "-t1 -a3 -d8 -b4 -r19", "-t1 -a3 -d8 -b4 -r18"),
];

/// A sum that takes some seconds, its result, and how many units it has.
const LONG: &str = "--upto 12000 --tasks 400";
const LONG_SUM: u64 = 43_772_258;
const LONG_UNITS: u64 = 401;

/// Work that takes some seconds, and its result.
const LONG_WORK: [(Program, &str, u64); 3] = [
    (SUM_EULER, LONG, LONG_SUM),
    (QUEENS, "--board 15", 2_279_184),
    (UTS, "-t1 -a3 -d10 -b4 -r19", 4_130_071),
];

/// A folder in memory, where there is one: what the user is told.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

fn in_arena(program: Program, flags: &str, file: &Path) -> Command {
    let mut command = program.command(&format!("{flags} --pes 2 --threads 2 --json --arena"));
    command.arg(file);
    command
}

/// A process that is killed at the end, also if the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn number(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn a_finished_arena_gives_the_result_at_once() {
    let folder = folder();
    for (program, flags, _) in PROGRAMS {
        let name = program.name();
        let file = folder.path().join(name);
        let expected = program.report(flags);
        let first = run(&mut in_arena(program, flags, &file)).report();
        assert_eq!(first["result"], expected["result"], "{name}");
        assert_eq!(first["leaves"], expected["leaves"], "{name}");
        assert_eq!(number(&first, "kept"), 0, "{name}");
        let units = number(&first, "computed");
        assert!(units > 10, "{first}");
        // What is left behind.
        let about = metadata(&file).expect("the arena stays");
        assert_eq!(about.permissions().mode() & 0o777, 0o600, "{name}");
        let again = run(&mut in_arena(program, flags, &file)).report();
        assert_eq!(again["result"], expected["result"], "{name}");
        assert_eq!(again["leaves"], expected["leaves"], "{name}");
        assert_eq!((number(&again, "kept"), number(&again, "computed")), (units, 0), "{name}");
        assert_eq!(again["tasks"], 0, "{name}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).expect("it is there").collect();
    assert_eq!(left.len(), PROGRAMS.len(), "nothing else is left: {left:?}");
}

#[test]
fn other_parameters_are_another_set() {
    let folder = folder();
    for (program, flags, other) in PROGRAMS {
        let name = program.name();
        let file = folder.path().join(name);
        let expected = [flags, other].map(|flags| program.result(flags));
        for (flags, expected) in [flags, other, flags].into_iter().zip(expected.iter().cycle()) {
            let report = run(&mut in_arena(program, flags, &file)).report();
            assert_eq!(report["result"], *expected, "{name} {flags}");
        }
    }
}

/// The arena of a program, which no job has.
fn opened(file: &Path) -> Arena {
    let Err(Error::OtherBuild { found, .. }) = Arena::open(file, &Options::new(1, 0)) else {
        panic!("the arena is of a build of the program");
    };
    // Processes that were killed give up their locks in a moment.
    let mut opened = None;
    eventually("no job has it", || {
        opened = Arena::open(file, &Options::new(1, found)).ok();
        opened.is_some()
    });
    opened.expect("it is open")
}

/// How many units of all sets are done in an arena that no job has; 0 if there is none yet.
fn units_done(file: &Path) -> u64 {
    let mut begin = [0; 8];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut begin));
    if read.is_err() || begin != *b"UMarena\n" {
        return 0;
    }
    let arena = opened(file);
    let worker = arena.join().expect("there is room");
    let names = worker.set_names();
    let done = |name: &String| worker.set(name).expect("it is there").results().count() as u64;
    names.iter().map(done).sum()
}

/// Starts the job again and again, and kills all its processes each time, later and later, until
/// it was killed amid the work this many times. Returns how many units are done then.
fn kill_amid_the_work(start: impl Fn() -> Command, file: &Path, kills: u32) -> u64 {
    const VARIABLE: &str = "ARENA_TEST";
    let mark = file.to_str().expect("the folder has such a name");
    let (mut done, mut killed, mut has_ended) = (0, 0, false);
    for round in 1..=60 {
        let mut command = start();
        command.env(VARIABLE, mark).stdout(Stdio::null()).stderr(Stdio::null());
        let mut job = command.spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(60 * round));
        eventually("all are dead", || {
            marked(VARIABLE, mark).into_iter().for_each(kill);
            let ended = job.try_wait().expect("it is a child");
            has_ended = ended.is_some_and(|status| status.success());
            ended.is_some() && marked(VARIABLE, mark).is_empty()
        });
        let now = units_done(file);
        assert!(now >= done, "nothing is lost: {now} after {done}");
        killed += u32::from(now > done && !has_ended);
        done = now;
        if killed == kills || has_ended {
            break;
        }
    }
    assert!(killed > 0, "it was never killed amid the work: {done} units are done");
    done
}

/// The same. Then the job ends by itself, and computes what is left. Returns its report.
fn all_are_killed(start: impl Fn() -> Command, file: &Path) -> Value {
    let done = kill_amid_the_work(&start, file, 3);
    let report = run(&mut start()).report();
    assert_eq!(number(&report, "kept"), done);
    assert_eq!(number(&report, "computed") + done, units_done(file));
    report
}

#[test]
fn a_program_that_is_killed_goes_on_where_it_was() {
    let folder = folder();
    for (program, flags, result) in LONG_WORK {
        let file = folder.path().join(program.name());
        let report = all_are_killed(|| in_arena(program, flags, &file), &file);
        assert_eq!(report["result"], result);
    }
}

/// A worker dies in a unit, again and again, while another lives: the unit is given up. A job with
/// other parameters comes to its result all the same, and one with these says which unit it was.
#[test]
fn a_unit_in_which_workers_die_fails_no_other_job() {
    let folder = folder();
    let file = folder.path().join("deadly");
    kill_amid_the_work(|| in_arena(SUM_EULER, LONG, &file), &file, 1);
    let arena = opened(&file);
    let name = arena.join().expect("there is room").set_names().remove(0);
    let mut unit = 0;
    for _ in 0..11 {
        let worker = arena.join().expect("there is room");
        let mut panicking = |call: &Call<'_>| -> [u8; 0] {
            unit = call.number();
            panic!("on purpose")
        };
        let set = worker.set(&name).expect("it is there");
        let run = AssertUnwindSafe(|| set.run(&mut panicking));
        assert!(catch_unwind(run).is_err());
    }
    drop(arena);
    let (_, flags, other) = PROGRAMS[0];
    for flags in [flags, other] {
        let report = run(&mut in_arena(SUM_EULER, flags, &file)).report();
        assert_eq!(report["result"], SUM_EULER.result(flags));
    }
    let given_up = run(&mut in_arena(SUM_EULER, LONG, &file));
    given_up.fails_with(&format!("more than 10 workers have died in the unit {unit}, and it was"));
}

/// What was left of a set is done, too, when the arena has another.
#[test]
fn a_set_that_was_left_does_not_mix_with_another() {
    let folder = folder();
    let file = folder.path().join("left");
    let done = kill_amid_the_work(|| in_arena(SUM_EULER, LONG, &file), &file, 1);
    let other = "--upto 900 --tasks 30";
    let expected = SUM_EULER.report(other);
    let report = run(&mut in_arena(SUM_EULER, other, &file)).report();
    assert_eq!(report["result"], expected["result"]);
    let report = run(&mut in_arena(SUM_EULER, LONG, &file)).report();
    assert_eq!(report["result"], LONG_SUM);
    assert_eq!((number(&report, "kept"), number(&report, "computed")), (LONG_UNITS, 0), "{done}");
}

#[test]
fn a_second_job_is_refused() {
    let folder = folder();
    let file = folder.path().join("busy");
    let flags = "--upto 1000000 --tasks 10";
    let mut first = in_arena(SUM_EULER, flags, &file);
    let first = Killed(first.stdout(Stdio::null()).spawn().expect("it starts"));
    eventually("the arena is in use", || metadata(&file).is_ok_and(|it| it.len() > 8));
    let second = run(&mut in_arena(SUM_EULER, flags, &file));
    drop(first);
    second.fails_with("is in use by another job: wait for its end, or name another file");
}

#[test]
fn an_arena_of_another_build_is_refused() {
    let folder = folder();
    let (file, other) = (folder.path().join("arena"), folder.path().join("sum_euler"));
    // By another process: what this one has open while it starts a third cannot be run.
    let copy = "cp \"$1\" \"$2\" && printf x >> \"$2\"";
    let mut copied = Command::new("sh");
    copied.args(["-c", copy, "sh"]).arg(SUM_EULER.0).arg(&other);
    assert!(run(&mut copied).is_success);
    let flags = "--upto 100 --tasks 10";
    assert!(run(&mut in_arena(SUM_EULER, flags, &file)).is_success);
    let mut by_other = ultramarine_testkit::alone(&other, flags);
    by_other.arg("--arena").arg(&file);
    run(&mut by_other).fails_with("finish it with the program that made it, or remove it");
    // It was left as it was.
    assert_eq!(run(&mut in_arena(SUM_EULER, flags, &file)).report()["computed"], 0);
}

#[test]
fn files_and_flags_that_cannot_be_are_refused() {
    let folder = folder();
    let file = folder.path().join("text");
    fs::write(&file, "no arena at all, and longer than a header is\n".repeat(9)).expect("ours");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("the file is ours");
    let ended = run(&mut in_arena(QUEENS, "--board 6", &file));
    ended.fails_with("and is used only by its owner");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("the file is ours");
    let ended = run(&mut in_arena(QUEENS, "--board 6", &file));
    ended.fails_with("is no arena, and was left as it is: name another file");
    run(&mut in_arena(QUEENS, "--board 6", Path::new("/nowhere/arena"))).fails_with("No such file");
    for more in ["--skeleton sequential", "--journal x", "--progress"] {
        for (program, ..) in PROGRAMS {
            let ended = run(&mut in_arena(program, more, &file));
            ended.fails_with("cannot be used with");
        }
    }
    for more in ["--record x", "--efficiency", "--partial", "--phi gap"] {
        run(&mut in_arena(SUM_EULER, more, &file)).fails_with("cannot be used with");
    }
}

/// As in a container, where there are 64 MiB.
#[test]
fn where_memory_is_full_the_error_says_so() {
    let folder = folder();
    let line =
        format!("mount -t tmpfs -o size=4m tmpfs {} && exec \"$@\"", folder.path().display());
    let small = ["unshare", "--mount", "sh", "-c", &line, "sh"];
    if !run(&mut behind(small, &Command::new("true"))).is_success {
        println!("skipped: nothing can be mounted here");
        return;
    }
    let flags = "--board 11 --threshold 10";
    let ended = run(&mut behind(small, &in_arena(QUEENS, flags, &folder.path().join("full"))));
    ended.fails_with("more bytes of the arena `");
    ended.fails_with("make its file system larger (`docker run --shm-size`), or name a file");
}

#[test]
fn workers_of_the_same_pe_come_before_those_of_near_ones() {
    // PEs 0 and 1 share a host, and 2 and 3 another.
    let topology = Topology::new(&racks(&[2], 2), &[1; 4]).expect("it can be");
    let pes = [3, 0, 1, u32::MAX, 2, 0, 9].map(u32::to_le_bytes).concat();
    let order = |worker, pe| nearest_first(&pes, worker, Pe::new(pe), &topology);
    assert_eq!(order(1, 0), [5, 2, 4, 0]);
    assert_eq!(order(5, 0), [1, 2, 0, 4]);
    assert_eq!(order(4, 2), [0, 5, 1, 2]);
}

/// One machine cannot be two hosts to a launcher.
#[test]
fn several_hosts_are_refused() {
    let topology = |hosts: &[u32]| {
        let places = racks(hosts, 2);
        Topology::new(&places, &vec![1; places.len()]).expect("it can be")
    };
    assert!(require_one_host(&topology(&[1])).is_ok());
    let refused = require_one_host(&topology(&[2, 1])).expect_err("there are three hosts");
    assert!(refused.to_string().starts_with("--arena: the PEs are on 3 hosts"), "{refused}");
}

#[cfg(feature = "mpi")]
mod mpi {
    use super::*;
    use crate::common::{launched, launcher};

    #[test]
    fn others_take_over_the_work_of_those_that_are_killed() {
        let folder = folder();
        let moments = ["0.2,0.4", "0.1,0.3", "0.1"];
        for ((program, flags, result), moments) in LONG_WORK.into_iter().zip(moments) {
            let file = folder.path().join(program.name());
            let flags = format!("{flags} --arena {}", file.display());
            program.survives(moments, &flags, |report| assert_eq!(report["result"], result));
            // All that the dead had finished is there.
            let Some(mut again) = program.launched(2, &format!("{flags} --json")) else { return };
            let report = run(&mut again).report();
            assert_eq!((&report["result"], number(&report, "computed")), (&result.into(), 0));
        }
    }

    /// Rank 1 has no room for the arena. Rank 0 does all.
    #[test]
    fn a_worker_that_leaves_says_why() {
        let folder = folder();
        let [file, script] = ["arena", "script"].map(|name| folder.path().join(name));
        let line = "[ ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} = 1 ] && ulimit -v 12000000";
        let text = format!("#!/bin/sh\n{line}\nexec {} \"$@\"\n", SUM_EULER.0);
        fs::write(&script, text).expect("the folder is ours");
        fs::set_permissions(&script, Permissions::from_mode(0o700)).expect("the file is ours");
        let (_, flags, _) = PROGRAMS[0];
        let expected = SUM_EULER.result(flags);
        let flags = format!("{flags} --json --arena {}", file.display());
        let Some(mut command) = launched(&script, 2, &flags) else { return };
        let ended = run(&mut command);
        assert_eq!(ended.report()["result"], expected);
        assert!(ended.err.contains("--arena: a worker has left: "), "{}", ended.err);
        assert!(ended.err.contains("cannot be mapped"), "{}", ended.err);
    }

    #[test]
    fn another_root_goes_on_in_the_same_arena() {
        let folder = folder();
        let (file, log) = (folder.path().join("restartable"), folder.path().join("log"));
        let flags = format!("{LONG} --restartable --json --arena {}", file.display());
        let Some(mut command) = SUM_EULER.launched(4, &flags) else { return };
        command.env("ULTRAMARINE_LOG", "info").env("NO_COLOR", "1").stdout(Stdio::piped());
        command.stderr(File::create(&log).expect("the folder is ours"));
        let job = command.spawn().expect("it starts");
        let told = || fs::read_to_string(&log).expect("it is there");
        let mut root = None;
        eventually("the root has the arena", || {
            let told = told();
            let at_root = told.split_once("PE 0 of 4 is process ");
            root = at_root.and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
            root.is_some() && metadata(&file).is_ok_and(|it| it.len() > 8)
        });
        kill(root.expect("it is known"));
        let output = job.wait_with_output().expect("it is a child");
        let told = told();
        assert!(told.contains("the job goes on without it"), "{told}");
        let report: Value = serde_json::from_slice(&output.stdout).expect(&told);
        assert_eq!((&report["result"], &report["dead"]), (&LONG_SUM.into(), &1.into()), "{told}");
    }

    #[test]
    fn a_job_that_is_killed_whole_goes_on_where_it_was() {
        let folder = folder();
        let file = folder.path().join("killed");
        let flags = format!("{LONG} --json --arena {}", file.display());
        if launcher().is_none() {
            return;
        }
        let start = || SUM_EULER.launched(3, &flags).expect("there is a launcher");
        let report = all_are_killed(start, &file);
        assert_eq!((&report["result"], &report["pes"]), (&LONG_SUM.into(), &3.into()));
    }
}
