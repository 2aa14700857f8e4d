//! Whole jobs of processes. Each program below is a test that only a launcher runs: the tests
//! start this very file under it.
#![cfg(feature = "mpi")]

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, TaskError};

const PATIENCE: Duration = Duration::from_mins(1);

/// What a program printed and whether it succeeded, after running on so many processes. `None`
/// where no launcher belongs to this build.
fn launched(processes: u32, program: &str, lane: &str) -> Option<Output> {
    let Some(launcher) = std::env::var_os("ULTRAMARINE_TEST_MPIEXEC").filter(|l| !l.is_empty())
    else {
        println!("skipped: ULTRAMARINE_TEST_MPIEXEC names no launcher");
        return None;
    };
    let own = std::env::current_exe().expect("the test has a file");
    let mut command = Command::new(launcher);
    command.args(["-n", &processes.to_string()]).arg(own);
    command.args(["--ignored", "--exact", "--nocapture", "--test-threads=1"]);
    command.arg(format!("programs::{program}"));
    command.env("ULTRAMARINE_THREADS", "1").env("ULTRAMARINE_LANE", lane);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the launcher starts");
    let start = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("{program} on {processes} processes hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(child.wait_with_output().expect("its output can be read"))
}

fn succeeds(processes: u32, program: &str) {
    for lane in ["mpi", "tcp"] {
        let Some(output) = launched(processes, program, lane) else { return };
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && out.contains("all is well"), "{lane}: {out}\n{err}");
    }
}

#[test]
fn every_pe_is_reached_and_answers() {
    succeeds(3, "reach_everyone");
}

#[test]
fn large_arguments_and_results_travel() {
    succeeds(2, "carry_megabytes");
}

#[test]
fn a_panic_reaches_whoever_awaits() {
    succeeds(2, "panic_elsewhere");
}

#[test]
fn a_job_may_end_with_tasks_undone() {
    succeeds(4, "leave_early");
}

#[test]
fn what_main_returns_decides_how_the_job_ends() {
    let Some(output) = launched(2, "fail", "mpi") else { return };
    let out = String::from_utf8_lossy(&output.stdout);
    let all = format!("{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success(), "{all}");
    assert!(all.contains("nothing came of it"), "{all}");
}

/// The programs, as tests that are run under a launcher only.
mod programs {
    use super::*;

    /// Runs a program, which says that all is well if it is.
    fn run<T>(main: impl FnOnce(Context) -> T)
    where
        T: Future<Output = ultramarine::Result<()>> + Send + 'static,
    {
        ultramarine::run(main).expect("the job ends well");
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn reach_everyone() {
        run(async |cx| {
            for number in 0..cx.pes() {
                let pe = Pe::new(number);
                let answer = cx.spawn_at(pe, async |cx: Context, n: u32| (cx.pe(), n + 1), number);
                assert_eq!(answer.await?, (pe, number + 1));
            }
            let missing = Pe::new(cx.pes());
            let error = cx.spawn_at(missing, async |_, ()| (), ()).await.expect_err("no such PE");
            assert_eq!(error, TaskError::NoSuchPe { pe: missing, pes: cx.pes() });
            println!("all is well");
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn carry_megabytes() {
        run(async |cx| {
            let reversed = async |_: Context, mut bytes: Vec<u64>| {
                bytes.reverse();
                bytes
            };
            for length in [0, 1, 1000, 1_000_000] {
                let sent: Vec<u64> = (0..length).collect();
                let received = cx.spawn_at(Pe::new(1), reversed, sent).await?;
                assert!(received.into_iter().eq((0..length).rev()), "{length} numbers");
            }
            println!("all is well");
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn panic_elsewhere() {
        run(async |cx| {
            let task = async |_: Context, n: u32| -> u32 { panic!("no {n} today") };
            let error = cx.spawn_at(Pe::new(1), task, 7).await.expect_err("it panics");
            let message = "no 7 today".to_owned();
            assert_eq!(error, TaskError::Panicked { pe: Pe::new(1), message });
            println!("all is well");
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn leave_early() {
        run(async |cx| {
            let spawn = |n| cx.spawn_fn(Distance::ONE, |n: u64| (0..n).sum::<u64>(), n);
            let futures: Vec<_> = (0..20_000).map(spawn).collect();
            for future in futures.into_iter().take(100) {
                future.await?;
            }
            println!("all is well");
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn fail() {
        run(async |_| Err(Error::other("nothing came of it")));
    }
}
