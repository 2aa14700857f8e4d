//! What the programs of these tests do: they run a job that must end well, and some of them die.

use rustix::process::{Signal, getpid, kill_process};
use std::time::Duration;
use ultramarine::{Context, Options, Result};

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

/// Ends this process as the kernel does when memory is short.
pub(crate) fn die() {
    let kill = kill_process(getpid(), Signal::KILL);
    std::thread::sleep(Duration::from_secs(40));
    panic!("still alive: {kill:?}");
}
