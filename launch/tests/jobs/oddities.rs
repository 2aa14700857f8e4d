//! Programs that do what no one expects of a task: they keep standard output to themselves, fork,
//! become other programs, or start some and forget them.
#![cfg(feature = "mpi")]

use crate::common::job::run;
use crate::common::launcher::launched_with;
use crate::common::mischief::fork;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use ultramarine::Options;
use ultramarine::prelude::*;
use ultramarine_testkit::{Ended, alone, eventually, itself, marked};

/// The variable by which a test knows all that its job starts.
const MARK: &str = "ODDITIES_MARK";

/// How a program ends under the launcher, and the mark of what it has started. `None` where there
/// is no launcher.
fn launched_with_mark(program: impl FnOnce()) -> Option<(Ended, String)> {
    static MARKS: AtomicU32 = AtomicU32::new(0);
    let mark = format!("{}-{}", std::process::id(), MARKS.fetch_add(1, Relaxed));
    Some((launched_with(3, "tcp", &[(MARK, mark.clone().into())], &itself(program))?, mark))
}

/// The same where all that was started ends.
fn launched(program: impl FnOnce()) -> Option<Ended> {
    let (ended, mark) = launched_with_mark(program)?;
    eventually("all that was started has ended", || marked(MARK, &mark).is_empty());
    Some(ended)
}

/// As daemons do: a launcher waits while its sockets are open.
fn leave_one_in_the_background() {
    let close = "for f in /proc/self/fd/*; do f=${f##*/}; \
                     ((f < 3)) || eval \"exec $f>&-\"; done";
    let script = format!("({close}; sleep 1000; :) >/dev/null 2>&1 </dev/null &");
    Command::new("bash").args(["-c", &script]).status().expect("it is there");
}

fn leave_a_sleep_behind() {
    Command::new("sh").args(["-c", "sleep 1000 &"]).status().expect("it is there");
}
#[test]
fn who_keeps_standard_output_does_not_keep_the_job() {
    let program = || {
        let job = Options::default().run(async |cx| {
            println!("all is well");
            let keep = async |_: Context, ()| {
                let (kept, is_kept) = std::sync::mpsc::channel();
                std::thread::spawn(move || {
                    let mut stdout = std::io::stdout().lock();
                    let _ = stdout.flush();
                    kept.send(()).expect("the task waits");
                    std::thread::sleep(Duration::from_hours(1));
                    drop(stdout);
                });
                is_kept.recv().expect("it does not panic");
            };
            for pe in (0..cx.pes()).map(Pe::new) {
                // Two PEs may be of one process.
                if pe == Pe::ROOT || std::env::var_os("ULTRAMARINE_PES").is_none() {
                    cx.spawn_at(pe, keep, ()).await?;
                }
            }
            Ok(())
        });
        job.expect("the job ends well");
        // What runs this program would say at their end how they have ended.
        std::process::exit(0);
    };
    let words = itself(program);
    let mut command = alone(&words[0], "");
    command.args(&words[1..]).env("ULTRAMARINE_PES", "2");
    let alone = ultramarine_testkit::run(&mut command);
    for ended in launched(program).into_iter().chain([alone]) {
        ended.is_well();
        assert!(ended.err.contains("holds standard output"), "{}", ended.err);
    }
}

#[test]
fn a_forked_child_is_no_second_pe() {
    let program = || {
        run(async |cx| {
            let come_back = async |_: Context, ()| fork(|| {});
            let panic = async |_: Context, ()| fork(|| panic!("the child does"));
            let wait = async |cx: Context, ()| {
                let ended = fork(|| {});
                if ended == -1 {
                    cx.sleep(Duration::from_hours(1)).await;
                }
                ended
            };
            for pe in (0..cx.pes()).map(Pe::new) {
                assert_eq!(cx.spawn_at(pe, come_back, ()).await?, 1);
                assert_eq!(cx.spawn_at(pe, panic, ()).await?, 1);
                assert_eq!(cx.spawn_at(pe, wait, ()).await?, 1);
            }
            Ok(())
        });
    };
    let Some(ended) = launched(program) else { return };
    ended.is_well();
    let said = "the child has come back from the task: it ends here";
    assert_eq!(ended.err.matches(said).count(), 3 * 3, "{}", ended.err);
}

#[test]
fn a_process_that_becomes_another_program_is_killed() {
    let program = || {
        run(async |cx| {
            let exec = async |_: Context, ()| {
                let mut sleep = Command::new("sleep");
                let error = std::os::unix::process::CommandExt::exec(sleep.arg("1000"));
                error.to_string()
            };
            let lost = cx.spawn_at(Pe::new(1), exec, ()).await;
            assert!(matches!(lost, Err(TaskError::Lost { .. })), "{lost:?}");
            Ok(())
        });
    };
    let Some(ended) = launched(program) else { return };
    ended.is_well();
    assert!(ended.err.contains("rank 1 has become another program (exec)"), "{}", ended.err);
}

#[test]
fn what_a_process_has_started_ends_with_it() {
    let program = || {
        run(async |cx| {
            let start = async |_: Context, ()| {
                // One of its own, and one whose parent ends at once.
                let mut own = Command::new("sleep").arg("1000").spawn().expect("it is there");
                let script = "sh -c 'setsid sleep 1000 & exec sleep 1000' &";
                Command::new("sh").args(["-c", script]).status().expect("it is there");
                std::thread::sleep(Duration::from_millis(300));
                ultramarine_testkit::kill(std::process::id() as i32);
                own.wait().expect("it is killed itself before");
            };
            let lost = cx.spawn_at(Pe::new(1), start, ());
            assert_eq!(lost.await, Err(TaskError::Lost { pe: Pe::new(1) }));
            // They end with their process, and not with the job.
            let mark = std::env::var(MARK).expect("the test says which");
            let is_sleep = |process: &i32| {
                let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
                name.is_ok_and(|name| name.trim() == "sleep")
            };
            eventually("they end", || !marked(MARK, &mark).iter().any(is_sleep));
            Ok(())
        });
    };
    let Some(ended) = launched(program) else { return };
    ended.is_well();
    assert!(ended.err.contains("processes that still ran: they are killed"), "{}", ended.err);
}

#[test]
fn a_process_may_become_another_program_once_the_job_is_over() {
    let program = || {
        run(async |_| Ok(()));
        // The guard looks twice a second.
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1.2; echo another program goes on"]);
        panic!("{}", std::os::unix::process::CommandExt::exec(&mut shell));
    };
    let Some(ended) = launched(program) else { return };
    ended.is_well();
    assert_eq!(ended.out.matches("another program goes on").count(), 3, "{}", ended.out);
}

/// They have the launcher's own output, and would keep it waiting.
#[test]
#[expect(clippy::zombie_processes, reason = "it outlives this process")]
fn what_tasks_have_started_ends_with_the_job() {
    let program = || {
        static SHELL: Mutex<Option<Child>> = Mutex::new(None);
        run(async |cx| {
            let leave = async |_: Context, ()| {
                leave_a_sleep_behind();
                let mut shell = Command::new("sh");
                shell.args(["-c", "read line; sleep 1000 & echo it runs; wait"]);
                let shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
                *SHELL.lock().expect("no panic") = Some(shell.expect("it is there"));
            };
            for pe in (0..cx.pes()).map(Pe::new) {
                cx.spawn_at(pe, leave, ()).await?;
            }
            Ok(())
        });
        // The shell goes on when the job is over.
        let shell = SHELL.lock().expect("no panic").take().expect("a task has started it");
        shell.stdin.expect("it is a pipe").write_all(b"go on\n").expect("it waits for that");
        let said = &mut [0; "it runs".len()];
        shell.stdout.expect("it is a pipe").read_exact(said).expect("it says so");
    };
    let Some(ended) = launched(program) else { return };
    ended.is_well();
    assert!(ended.err.contains("processes that still ran: they are killed"), "{}", ended.err);
}

#[test]
fn what_is_started_before_the_job_or_after_it_stays() {
    let program = || {
        leave_one_in_the_background();
        run(async |cx| {
            let leave_another = async |_: Context, ()| leave_a_sleep_behind();
            cx.spawn_at(Pe::new(1), leave_another, ()).await?;
            Ok(())
        });
        leave_one_in_the_background();
    };
    let Some((ended, mark)) = launched_with_mark(program) else { return };
    ended.is_well();
    // From each process three times a shell that has forked last, and what it waits for. (It has
    // started anew behind its guard, and has come twice to what is before the job.)
    let left = || marked(MARK, &mark);
    eventually("what was started is there", || left().len() == 3 * 3 * 2);
    left().into_iter().for_each(ultramarine_testkit::kill);
}
