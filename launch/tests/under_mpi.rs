//! Whole jobs of processes. Each program below is a test that only a launcher runs: the tests
//! start this very file under it.
#![cfg(feature = "mpi")]

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, TaskError};

const PATIENCE: Duration = Duration::from_mins(1);

/// What a program printed and whether it succeeded, after running on so many processes. `None`
/// where no launcher belongs to this build.
fn launched(processes: u32, program: &str, lane: &str) -> Option<Output> {
    let Some(launcher) = std::env::var_os("MPIEXEC_FOR_TESTS").filter(|l| !l.is_empty()) else {
        println!("skipped: MPIEXEC_FOR_TESTS names no launcher");
        return None;
    };
    let own = std::env::current_exe().expect("the test has a file");
    let mut command = Command::new(launcher);
    command.args(["-n", &processes.to_string()]).arg(own);
    command.args(["--ignored", "--exact", "--nocapture", "--test-threads=1"]);
    command.arg(format!("programs::{program}"));
    scrub(&mut command);
    command.env("ULTRAMARINE_THREADS", "1").env("ULTRAMARINE_LANE", lane);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the launcher starts");
    let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{program} on {processes} processes hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let [stdout, stderr] = [out, err].map(|reader| reader.join().expect("it reads to the end"));
    Some(Output { status, stdout, stderr })
}

/// Takes out what other launchers and a user's settings would say to the processes.
fn scrub(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let foreign = ["ULTRAMARINE_", "PMI_", "SLURM_", "OMPI_COMM_WORLD_"];
        if foreign.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
}

/// Reads a pipe to its end, so that it never fills up and holds its writer.
fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("it is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
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

#[test]
fn a_program_that_prints_much_does_not_stand_still() {
    let Some(output) = launched(2, "print_much", "mpi") else { return };
    assert!(output.status.success() && output.stdout.len() > 1 << 20);
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
    fn print_much() {
        run(async |_| {
            (0..20_000).for_each(|n| println!("{n:060}"));
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn fail() {
        run(async |_| Err(Error::other("nothing came of it")));
    }
}
