//! Ctrl-C, to jobs that listen for it and to others.
#![cfg(feature = "mpi")]

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::File;
use std::os::unix::process::{ExitStatusExt as _, parent_id};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use ultramarine::prelude::*;
use ultramarine::{EndRequest, Options, shutdown_requested};
use ultramarine_testkit::{itself, launcher, scrub};

/// The longest that anything here may take; reached only when a test fails.
const PATIENCE: Duration = Duration::from_secs(40);

/// The variable that names a folder which a job shares with its test.
const FOLDER: &str = "INTERRUPTS_FOLDER";

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("the test names a folder").into()
}

/// Says something to the test.
fn say(what: &str, text: &str) {
    let unfinished = folder().join(format!("{what}.unfinished"));
    std::fs::write(&unfinished, text).expect("there is room");
    std::fs::rename(unfinished, folder().join(what)).expect("there is room");
}

async fn nap(cx: Context, (): ()) {
    cx.sleep(Duration::from_millis(1)).await;
}

fn work() {
    let result = Options::default().run(async |cx| {
        cx.spawn_at(Pe::new(cx.pes() - 1), nap, ()).await?;
        say("begun", &parent_id().to_string());
        cx.sleep(2 * PATIENCE).await;
        Ok(())
    });
    // The others of the job.
    result.expect("they hear of no error");
}

fn outlive_the_root() {
    let result = Options::default().run_restartable(async |cx| {
        for pe in 1..cx.pes() {
            if !cx.is_dead(Pe::new(pe)) {
                cx.spawn_at(Pe::new(pe), nap, ()).await?;
            }
        }
        if cx.attempt() == 1 {
            say("begun", &parent_id().to_string());
            cx.sleep(2 * PATIENCE).await;
        }
        cx.agree_to_end().await;
        println!("all is well");
        Ok(())
    });
    result.unwrap_or_else(|error| println!("{error}"));
}

fn listen() {
    let result = Options::default().run(async |cx| {
        let mut asked = std::pin::pin!(shutdown_requested());
        // From the first poll on it listens.
        assert_eq!(futures_util::future::poll_immediate(asked.as_mut()).await, None);
        // Each process passes over an interrupt once it takes part.
        for pe in 1..cx.pes() {
            cx.spawn_at(Pe::new(pe), nap, ()).await?;
        }
        say("begun", &parent_id().to_string());
        let request = asked.await;
        say("heard", &format!("{request:?}"));
        while !folder().join("go").exists() {
            cx.sleep(Duration::from_millis(5)).await;
        }
        println!("all is well");
        Ok(())
    });
    // At the second interrupt of the root's guard alone, the others lose their root.
    result.unwrap_or_else(|error| println!("{error}"));
}

/// A job that runs.
struct Running {
    folder: TempDir,
    child: Child,
}

impl Running {
    /// Starts three processes of the program of the test that calls this, under the launcher that
    /// belongs to this build; `None` where there is none.
    fn launched(program: fn()) -> Option<Self> {
        let words = itself(program);
        let mut command = launcher()?;
        command.args(["-n", "3"]).args(words);
        Some(Self::start(command))
    }

    /// Starts one process of it.
    fn alone(program: fn()) -> Self {
        let words = itself(program);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Self::start(command)
    }

    fn start(mut command: Command) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        scrub(&mut command);
        command.env("ULTRAMARINE_THREADS", "1").env(FOLDER, folder.path());
        // A file never fills up, and none of those who write to it is waited for.
        let output = File::create(folder.path().join("output")).expect("there is room");
        let errors = output.try_clone().expect("there is room");
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = command.spawn().expect("it starts");
        Running { folder, child }
    }

    /// Waits until a process of the job says something, and returns it.
    fn says(&mut self, what: &str) -> String {
        let (file, start) = (self.folder.path().join(what), Instant::now());
        loop {
            if let Ok(text) = std::fs::read_to_string(&file) {
                return text;
            }
            let status = self.child.try_wait().expect("it is our child");
            assert!(status.is_none(), "it has ended, and not said `{what}`: {}", self.output());
            assert!(start.elapsed() < PATIENCE, "it does not say `{what}`: {}", self.output());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the job has begun, and returns its root's guard.
    fn guard(&mut self) -> Pid {
        Pid::from_raw(self.says("begun").parse().expect("a number")).expect("there is one")
    }

    /// What was printed so far.
    fn output(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join("output")).expect("it is there");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Interrupts the process that this test has started.
    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it runs");
    }

    /// Lets the job end.
    fn go_on(&self) {
        std::fs::write(self.folder.path().join("go"), "").expect("the folder is there");
    }

    /// How it ended, and what was printed.
    fn end(mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return (status, self.output());
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {}", self.output());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// It ends well.
    fn ends_well(self) {
        let (status, output) = self.end();
        assert!(status.success() && output.contains("all is well"), "{status}: {output}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether MPICH's launcher was interrupted; others do not hand the signal on.
fn is_of_hydra(output: &str) -> bool {
    output.contains("[mpiexec@")
}

#[test]
fn an_interrupt_ends_a_job_that_does_not_listen() {
    let Some(mut job) = Running::launched(work) else { return };
    job.says("begun");
    job.interrupt();
    let (status, output) = job.end();
    assert!(!output.contains("BAD TERMINATION") && !output.contains("ultramarine: "), "{output}");
    if is_of_hydra(&output) {
        // Hydra calls one in ten such jobs a success, whatever its processes end with.
        assert!(matches!(status.code(), Some(130 | 0)), "{status}: {output}");
        // The user who has interrupted it knows that the first process has gone.
        assert!(!output.contains("is lost"), "{output}");
    } else {
        assert!(!status.success(), "{output}");
    }
}

#[test]
fn a_program_that_listens_is_told_of_an_interrupt() {
    let Some(mut job) = Running::launched(listen) else { return };
    job.says("begun");
    job.interrupt();
    let heard = job.says("heard");
    job.go_on();
    let (status, output) = job.end();
    if is_of_hydra(&output) {
        assert_eq!(heard, format!("{:?}", EndRequest::Interrupt), "{output}");
        assert!(status.success() && output.contains("all is well"), "{status}: {output}");
    }
}

/// The launcher may send the signal to the process as well as to its guard, which hands it on.
#[test]
fn an_interrupt_of_guard_and_process_is_one() {
    let Some(mut job) = Running::launched(listen) else { return };
    let guard = job.guard();
    let group = rustix::process::getpgid(Some(guard)).expect("it runs");
    kill_process_group(group, Signal::INT).expect("it runs");
    assert_eq!(job.says("heard"), format!("{:?}", EndRequest::Interrupt));
    job.go_on();
    job.ends_well();
}

#[test]
fn the_second_interrupt_ends_the_job() {
    let Some(mut job) = Running::launched(listen) else { return };
    let guard = job.guard();
    kill_process(guard, Signal::INT).expect("it runs");
    job.says("heard");
    kill_process(guard, Signal::INT).expect("it runs");
    let (status, output) = job.end();
    assert_eq!(status.code(), Some(130), "{output}");
    assert!(!output.contains("all is well"), "{output}");
}

/// It is no end of the job, if that outlives its first process, and only that hears of it.
#[test]
fn an_interrupt_of_the_first_guard_alone_is_a_death() {
    let Some(mut job) = Running::launched(outlive_the_root) else { return };
    kill_process(job.guard(), Signal::INT).expect("it runs");
    job.ends_well();
}

#[test]
fn an_interrupt_ends_a_job_that_outlives_its_root() {
    let Some(mut job) = Running::launched(outlive_the_root) else { return };
    job.says("begun");
    job.interrupt();
    let (status, output) = job.end();
    assert!(!output.contains("all is well"), "{status}: {output}");
    assert!(!status.success() || is_of_hydra(&output), "{status}: {output}");
}

#[test]
fn an_interrupt_ends_a_single_process_that_does_not_listen() {
    let mut job = Running::alone(work);
    job.says("begun");
    job.interrupt();
    assert_eq!(job.end().0.signal(), Some(Signal::INT.as_raw()));
}

#[test]
fn a_single_process_that_listens_is_interrupted_as_a_job_is() {
    let mut job = Running::alone(listen);
    job.says("begun");
    job.interrupt();
    assert_eq!(job.says("heard"), format!("{:?}", EndRequest::Interrupt));
    job.interrupt();
    assert_eq!(job.end().0.signal(), Some(Signal::INT.as_raw()));

    let mut job = Running::alone(listen);
    job.says("begun");
    kill_process(Pid::from_child(&job.child), Signal::TERM).expect("it runs");
    assert_eq!(job.says("heard"), format!("{:?}", EndRequest::Terminate));
    // The first interrupt is no second one.
    job.interrupt();
    job.go_on();
    job.ends_well();
}
