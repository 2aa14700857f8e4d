//! What the programs of these tests do: they run a job that must end well, and some of them die.

use rustix::process::{Signal, getpid, kill_process};
use std::process::Command;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Options, Result};
use ultramarine_testkit::PATIENCE;

/// Runs a job. Its main task says at its end that all is well.
pub(crate) fn run<T>(main: impl FnOnce(Context) -> T)
where
    T: Future<Output = Result<()>> + Send + 'static,
{
    run_with(Options::default(), main);
}

/// The same, with these options.
pub(crate) fn run_with<T>(options: Options, main: impl FnOnce(Context) -> T)
where
    T: Future<Output = Result<()>> + Send + 'static,
{
    options.run(|cx| and_say_so(main(cx))).expect("the job ends well");
}

/// The same for a job that outlives its root.
pub(crate) fn run_restartable<T>(main: impl Fn(Context) -> T + Send + Sync + 'static)
where
    T: Future<Output = Result<()>> + Send + 'static,
{
    ultramarine::run_restartable(move |cx| and_say_so(main(cx))).expect("the job ends well");
}

async fn and_say_so(main: impl Future<Output = Result<()>>) -> Result<()> {
    main.await?;
    println!("all is well");
    Ok(())
}

/// Kills the process of a PE.
pub(crate) async fn kill(cx: &Context, pe: Pe) {
    let killed = cx.unsupervised().spawn_at(pe, async |_, ()| die(), ());
    assert_eq!(killed.await, Err(TaskError::Lost { pe }));
}

/// Stops this process, all of its threads, for this many milliseconds.
pub(crate) fn stop(millis: u32) {
    let own = std::process::id();
    let seconds = f64::from(millis) / 1000.0;
    let script = format!("kill -STOP {own}; sleep {seconds}; kill -CONT {own}");
    Command::new("sh").args(["-c", &script]).status().expect("there is a shell");
}

/// Squares this many numbers, each in a task of this many microseconds.
pub(crate) async fn square(cx: &Context, count: u64, micros: u64) -> Result<(), TaskError> {
    let square = |(n, micros): (u64, u64)| {
        std::thread::sleep(Duration::from_micros(micros));
        n * n
    };
    let squares = par_map(cx, square, (0..count).map(|n| (n, micros))).await?;
    assert!(squares.into_iter().eq((0..count).map(|n| n * n)));
    Ok(())
}

/// Waits until `condition` holds, and leaves the worker to others meanwhile.
pub(crate) async fn until(cx: &Context, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain");
        cx.sleep(Duration::from_millis(1)).await;
    }
}

/// Ends this process as the kernel does when memory is short.
pub(crate) fn die() {
    let kill = kill_process(getpid(), Signal::KILL);
    std::thread::sleep(Duration::from_secs(40));
    panic!("still alive: {kill:?}");
}
