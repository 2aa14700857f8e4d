//! Jobs on assorted hierarchies, whose PEs are threads.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use ultramarine::{Context, Label, LaneKind, LevelKind, Options, Place, Result};

/// The longest that a job may last; reached only when the test fails.
const PATIENCE: Duration = Duration::from_secs(50);

/// Runs a job with a PE of one worker at each of these places.
pub(crate) fn job<F, T>(places: Vec<Place>, main: F)
where
    F: FnOnce(Context) -> T + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    let (done, is_done) = mpsc::channel();
    let options = Options::default().places(places).threads(1).lane(LaneKind::Memory);
    std::thread::spawn(move || drop(done.send(options.run(main))));
    let result = is_done.recv_timeout(PATIENCE).expect("the job panicked above, or hangs");
    result.expect("the job is well");
}

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
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

/// Places below racks with this many hosts each.
pub(crate) fn racks(hosts: &[u32]) -> Vec<Place> {
    let place = |rack: usize, host: u32| {
        Place::new(vec![
            Label::new(LevelKind::Switch, format!("r{rack}")),
            Label::new(LevelKind::Host, format!("r{rack}h{host}")),
        ])
    };
    let rack = |(rack, hosts): (usize, &u32)| (0..*hosts).map(move |host| place(rack, host));
    hosts.iter().enumerate().flat_map(rack).collect()
}

/// Assorted hierarchies of 1 to 5 PEs.
pub(crate) fn hierarchies() -> impl Iterator<Item = Vec<Place>> {
    let flat = (1..=5).map(|pes| vec![Place::default(); pes]);
    flat.chain([vec![1, 1], vec![2, 1], vec![2, 2], vec![3, 2], vec![1, 1, 3]].map(|r| racks(&r)))
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
