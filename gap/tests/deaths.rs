//! GAPs that are missing, that die, or that do not answer.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_gap::{Death, Function, GapError, Pool, Settings, Value};

const FOREVER: &str = "function() while true do od; end";
const HANGS: &str = "exec sleep 100";
const NUMBER: &str = "{} -> GAPInfo.KernelInfo.KERNEL_VERSION";

fn with_tries(tries: u32) -> Pool {
    Pool::new(Settings::default().tries(tries))
}

#[track_caller]
fn died(result: Result<Value, GapError>) -> (u32, Death, String) {
    match result {
        Err(GapError::Died { tries, how, printed }) => (tries, how, printed),
        other => panic!("{other:?}"),
    }
}

/// The number of the process that a pool would ask next.
fn process_of(pool: &Pool) -> i32 {
    let stat = "{} -> ReadLine(InputTextFile(\"/proc/self/stat\"))";
    let stat: String = pool.call_source(stat, &[]).unwrap().try_into().unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

fn signal(process: i32, name: &str) {
    let kill = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(kill.unwrap().success());
}

/// Whether it runs; one that waits to be reaped does not.
fn is_running(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[track_caller]
fn is_soon_gone(process: i32) {
    let start = Instant::now();
    while is_running(process) {
        assert!(start.elapsed() < Duration::from_secs(30), "{process} still runs");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A program that does as a shell script says.
fn script(lines: &str) -> (tempfile::TempDir, Settings) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gap");
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    (folder, Settings::default().program(path))
}

#[track_caller]
fn does_not_start(lines: &str, expected: &str) {
    let (_folder, settings) = script(lines);
    let limit = if lines == HANGS { Duration::from_secs(1) } else { Duration::from_mins(1) };
    let error = Pool::new(settings.start_limit(limit)).available().unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_missing_gap_is_explained() {
    for program in ["/no/such/gap", "no-such-gap"] {
        let error = Pool::new(Settings::default().program(program)).available().unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("there is no program `{program}`. To install")),
            "{text}"
        );
        assert!(text.contains("apt-get install --no-install-recommends gap-core"), "{text}");
    }
}

#[test]
fn a_program_that_is_no_gap_does_not_start() {
    does_not_start(r"printf '0 4 5\n+ \0425''4.9.3' >&4", "is GAP 4.9.3, but 4.12 or later is");
    does_not_start("echo no licence; exit 7", "it ended with code 7. It printed last:\nno licence");
    does_not_start("echo hello >&4; sleep 100", "its reply makes no sense (`hello` is unknown)");
    does_not_start(HANGS, "it took longer than 1s, and was killed");
    does_not_start(r"printf '1 3 0\n+ 4' >&4", "its number is 1 instead of 0");
    does_not_start("exec 4>&-; sleep 100", "it has closed its pipe");
}

#[test]
fn a_gap_that_starts_with_an_error_does_not_serve() {
    let lines = "mkdir -p $0.home/.gap && echo 'x := NoSuch;' > $0.home/.gap/gaprc\n\
                 HOME=$0.home exec gap \"$@\"";
    does_not_start(lines, "it ended with code 1. It printed last:\nError, Variable: 'NoSuch' must");
}

#[test]
fn a_call_that_was_killed_is_tried_again() {
    let pool = with_tries(2);
    let marker = tempfile::NamedTempFile::new().unwrap();
    let dies_once = "function(file) if IsReadableFile(file) then RemoveFile(file); \
                     Print(\"the first\\n\"); QuitGap(3); fi; return 5; end";
    let path = marker.path().to_str().unwrap();
    assert_eq!(pool.call_source(dies_once, &[path.into()]), Ok(Value::from(5)));

    let dies = "function() Print(\"the last\\n\"); QuitGap(3); end";
    let (tries, how, printed) = died(pool.call_source(dies, &[]));
    assert_eq!((tries, how, printed.as_str()), (2, Death::Exited { code: 3 }, "the last"));
    assert!(pool.call_source(NUMBER, &[]).is_ok());
}

#[test]
fn killed_amid_a_call_and_while_idle() {
    let pool = with_tries(1);
    let idle = process_of(&pool);
    signal(idle, "KILL");
    is_soon_gone(idle);
    let busy = process_of(&pool);
    assert_ne!(busy, idle);
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        signal(busy, "KILL");
    });
    let (tries, how, _) = died(pool.call_source(FOREVER, &[]));
    assert_eq!((tries, how), (1, Death::Killed { signal: 9 }));
    killer.join().unwrap();
}

#[test]
fn a_call_that_takes_too_long_is_killed() {
    let limit = Duration::from_secs(3);
    let pool = Pool::new(Settings::default().limit(limit));
    let process = process_of(&pool);
    let (tries, how, _) = died(pool.call_source(FOREVER, &[]));
    // Another would take as long.
    assert_eq!((tries, how), (1, Death::TooSlow { limit }));
    assert!(!is_running(process));

    // One that is stopped does not even take the request.
    let process = process_of(&pool);
    signal(process, "STOP");
    let long = || Value::from("long".repeat(1_000_000));
    assert_eq!(died(pool.call("Length", &[long()])).1, Death::TooSlow { limit });
    assert!(!is_running(process));
    assert_eq!(pool.call("Length", &[long()]), Ok(Value::from(4_000_000)));
}

#[test]
fn a_call_that_is_given_up_is_killed() {
    let pool = with_tries(1);
    let process = process_of(&pool);
    let is_given_up = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            is_given_up.store(true, Ordering::Relaxed);
        });
        let is_given_up = || is_given_up.load(Ordering::Relaxed);
        let result = pool.call_unless(is_given_up, Function::Source(FOREVER), &[]);
        assert_eq!(result, Err(GapError::GivenUp));
    });
    assert!(!is_running(process));
}

#[test]
fn a_start_that_is_given_up_makes_room_for_another() {
    let (folder, settings) = script(&format!("echo >> $0.starts; {HANGS}"));
    let pool = Pool::new(settings.processes(1));
    let starts = folder.path().join("gap.starts");
    let starts = || fs::read_to_string(&starts).unwrap_or_default().len();
    for number in 1..=2 {
        let since = Instant::now();
        let is_given_up = || starts() == number || since.elapsed() > Duration::from_secs(30);
        let result = pool.call_unless(is_given_up, Function::Source(FOREVER), &[]);
        assert_eq!((result, starts()), (Err(GapError::GivenUp), number));
    }
}

#[test]
fn a_call_that_waits_for_a_gap_may_use_the_pool_to_decide_whether_to_give_up() {
    let pool = Pool::new(Settings::default().processes(1));
    let is_waiting = AtomicBool::new(false);
    let waits = || {
        pool.end_idle();
        is_waiting.store(true, Ordering::Relaxed);
        true
    };
    let is_over = || is_waiting.load(Ordering::Relaxed);
    process_of(&pool);
    thread::scope(|scope| {
        let busy = scope.spawn(|| pool.call_unless(is_over, Function::Source(FOREVER), &[]));
        thread::sleep(Duration::from_millis(200));
        assert_eq!(
            pool.call_unless(waits, Function::Global("IdFunc"), &[]),
            Err(GapError::GivenUp)
        );
        assert_eq!(busy.join().unwrap(), Err(GapError::GivenUp));
    });
    assert!(pool.call_source(NUMBER, &[]).is_ok());
}

#[test]
fn a_call_that_needs_too_much_memory_is_killed() {
    let pool = Pool::new(Settings::default().memory(256 << 20));
    let grows = "function() local l; l := [ 1 ]; while true do Append(l, l); od; end";
    let (tries, how, _) = died(pool.call_source(grows, &[]));
    // One that was new would not have more the next time.
    assert_eq!((tries, how), (1, Death::OutOfMemory));
    assert!(pool.call_source(NUMBER, &[]).is_ok());
    assert_eq!(died(pool.call_source(grows, &[])).0, 2);
    let grows = "function() local l; l := []; while true do Add(l, [ 1, 2 ]); od; end";
    assert_eq!(died(pool.call_source(grows, &[])).1, Death::OutOfMemory);
    assert!(pool.call_source(NUMBER, &[]).is_ok());
}

#[test]
fn a_reply_that_makes_no_sense_is_no_result() {
    let pool = with_tries(1);
    let forges = "function(reply) local s; s := OutputTextFile(\"/dev/fd/4\", true); \
                  WriteAll(s, reply); CloseStream(s); return 1; end";
    for (reply, reason) in
        [("7 3 0\n+ 2", "its number is 7 instead of 2"), ("2 1 0\n+", "it is cut off")]
    {
        let (_, how, _) = died(pool.call_source(forges, &[reply.into()]));
        assert_eq!(how, Death::BadReply { reason: reason.to_owned() });
    }
}

#[test]
fn too_long_a_reply_is_tried_nowhere_else() {
    let short = Pool::new(Settings::default().tries(3).reply_bytes_max(100_000));
    let result = short.call_source("{} -> [ 1 .. 1000000 ]", &[]);
    assert!(!result.as_ref().is_err_and(GapError::is_of_this_place));
    let (tries, how, _) = died(result);
    assert_eq!((tries, how), (1, Death::TooLong { bytes_max: 100_000 }));
}

#[test]
fn a_process_that_gap_has_started_does_not_hide_its_death() {
    let pool = with_tries(1);
    let leaves = "function() Exec(\"sleep 100 &\"); QuitGap(4); end";
    let start = Instant::now();
    assert_eq!(died(pool.call_source(leaves, &[])).1, Death::Exited { code: 4 });
    assert!(start.elapsed() < Duration::from_secs(50));
}

#[test]
fn a_pool_leaves_no_process_behind() {
    let pool = with_tries(1);
    let process = process_of(&pool);
    pool.end_idle();
    assert!(!is_running(process));
    let process = process_of(&pool);
    drop(pool);
    assert!(!is_running(process));
}

#[test]
fn a_gap_outlives_the_thread_that_first_called() {
    let pool = with_tries(1);
    let process = thread::scope(|scope| scope.spawn(|| process_of(&pool)).join().unwrap());
    thread::sleep(Duration::from_millis(100));
    assert_eq!(process_of(&pool), process);
}

/// What the next test kills.
#[test]
#[ignore = "it computes for ever"]
fn for_ever() {
    let (idle, busy) = (with_tries(1), with_tries(1));
    eprintln!("processes {} {}", process_of(&idle), process_of(&busy));
    let _ = busy.call_source(FOREVER, &[]);
}

#[test]
fn no_gap_outlives_a_program_that_is_killed() {
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "for_ever", "--ignored", "--nocapture"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(program.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(lines).map_while(Result::ok);
    let numbers = lines.find_map(|line| Some(line.strip_prefix("processes ")?.to_owned()));
    let numbers = numbers.expect("two processes");
    thread::sleep(Duration::from_millis(100));
    program.kill().unwrap();
    program.wait().unwrap();
    numbers.split(' ').for_each(|process| is_soon_gone(process.parse().unwrap()));
}
