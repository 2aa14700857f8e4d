//! Jobs on assorted hierarchies, whose PEs are threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ultramarine::{Context, LaneKind, Options, Place, Result};
use ultramarine_testkit::{PATIENCE, bounded, racks};

/// Runs a job with a PE of one worker at each of these places.
pub(crate) fn job<F, T>(places: Vec<Place>, main: F)
where
    F: FnOnce(Context) -> T + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    job_with_workers(1, places, main);
}

/// Runs a job with a PE of this number of workers at each of these places.
pub(crate) fn job_with_workers<F, T>(workers: usize, places: Vec<Place>, main: F)
where
    F: FnOnce(Context) -> T + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    let options = Options::default().places(places).threads(workers).lane(LaneKind::Memory);
    bounded(move || options.run(main)).expect("the job is well");
}

/// Waits until a number is the same for a while.
pub(crate) async fn stands_still(cx: &Context, number: &AtomicU64) {
    let start = Instant::now();
    loop {
        let before = number.load(Relaxed);
        cx.sleep(Duration::from_millis(50)).await;
        if number.load(Relaxed) == before {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "it goes on and on");
    }
}

/// Assorted hierarchies of 1 to 5 PEs.
pub(crate) fn hierarchies() -> impl Iterator<Item = Vec<Place>> {
    let flat = (1..=5).map(|pes| vec![Place::default(); pes]);
    flat.chain(
        [vec![1, 1], vec![2, 1], vec![2, 2], vec![3, 2], vec![1, 1, 3]].map(|r| racks(&r, 1)),
    )
}

/// The PE whose worker this is, by the name of the thread.
pub(crate) fn here() -> u32 {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(30) {
        std::hint::spin_loop();
    }
    let thread = std::thread::current();
    let name = thread.name().and_then(|name| name.strip_prefix("pe")?.split_once('-'));
    name.and_then(|(number, _)| number.parse().ok()).expect("a worker is called pe3-worker0 or so")
}
