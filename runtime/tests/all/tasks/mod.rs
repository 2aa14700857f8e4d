//! Jobs whose PEs are threads of this process: forks, tasks that wait inside rayon, orphans, large
//! arguments and results, messages, supervision, the end, what does not wait for a free worker, and
//! who is woken.

mod cancelling;
mod ending;
mod forks;
mod joins;
mod messages;
pub(crate) mod orphans;
mod packing;
mod standby;
mod statistics;
mod supervision;
mod values;
mod waking;

use crate::job;
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_runtime::executor::{Context, DetectorSetup, Job, lead, serve};
use ultramarine_runtime::settings::Settings;
use ultramarine_runtime::transport::memory;
use ultramarine_testkit::within;
use ultramarine_topology::Pe;

/// The longest that any wait in a test lasts; reached only when the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The jobs of PEs with this many workers each.
fn jobs(
    pes: u32,
    threads: usize,
    mut detector: impl FnMut(Pe) -> Option<DetectorSetup>,
) -> Vec<Job> {
    let pe = |(lane, n): (memory::MemoryLane, u32)| {
        let me = Pe::new(n);
        let mut settings = Settings::for_threads(threads);
        // A PE that waits for others that do not answer fails the test.
        settings.shutdown_grace = PATIENCE * 4;
        job(me, pes, lane, settings, detector(me))
    };
    memory::network(pes).into_iter().zip(0..).map(pe).collect()
}

/// Runs a root and its main task, which may neither panic nor hang.
fn run_root<F, T>(root: Job, main: F)
where
    F: FnOnce(Context) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let lead = move || {
        let (result, parting) = lead(root, main);
        parting.goodbye();
        result
    };
    within(PATIENCE * 2, lead).expect("the job is well");
}

/// Runs `main` on the root of a job of `pes` PEs with `threads` workers each.
fn among<T>(pes: u32, threads: usize, main: impl FnOnce(Context) -> T + Send + 'static)
where
    T: Future<Output = ()> + Send + 'static,
{
    let mut jobs = jobs(pes, threads, |_| None).into_iter();
    let root = jobs.next().expect("there is one");
    jobs.for_each(|job| drop(thread::spawn(move || drop(serve(job)))));
    run_root(root, main);
}

/// Waits until `condition` holds, and leaves the worker to others meanwhile.
async fn until(cx: &Context, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain");
        cx.sleep(Duration::from_millis(1)).await;
    }
}

/// Runs a main task on a PE that is alone, with this many workers.
fn alone<F, T>(threads: usize, main: F)
where
    F: FnOnce(Context) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    among(1, threads, main);
}
