//! The small jobs that `ultramarine doctor` starts to see how they fare. Each prints what it found
//! as JSON.

use rustix::system::uname;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};
use ultramarine::prelude::*;
use ultramarine::{Error, Result, network};

/// The shortest of this many questions says best what time it is elsewhere.
const QUESTIONS: u32 = 5;

/// The clock of a host, against the root's.
#[derive(Clone, Copy)]
struct Clock {
    ahead_us: i64,
    /// The round trip of the question and its answer.
    took_us: i64,
}

/// Finds out which hosts take part, what time it is there, and whether PEs see each other's memory.
pub(crate) async fn world(cx: Context) -> Result<()> {
    let mut clocks: BTreeMap<String, Clock> = BTreeMap::new();
    for pe in (0..cx.pes()).map(Pe::new) {
        for _ in 0..QUESTIONS {
            let before = now_us();
            let (host, there) = cx.spawn_at(pe, async |_, ()| (host_name(), now_us()), ()).await?;
            let after = now_us();
            let clock =
                Clock { ahead_us: there - i64::midpoint(before, after), took_us: after - before };
            let best = clocks.entry(host).or_insert(clock);
            if clock.took_us < best.took_us {
                *best = clock;
            }
        }
    }
    let hosts = clocks.iter().map(|(name, clock)| {
        json!({ "name": name, "ahead_us": clock.ahead_us, "took_us": clock.took_us })
    });
    let hosts: Vec<_> = hosts.collect();
    // By now each PE has looked for work.
    let boards = cx.statistics().await?.boards;
    let network = network::of_this_job();
    print(&json!({ "pes": cx.pes(), "hosts": hosts, "network": network, "boards": boards }))
}

fn host_name() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_micros() as i64)
}

const ITEMS: u64 = 64;
const NAP: Duration = Duration::from_millis(3);

/// By then those that were to die have been dead for long.
const DEATHS_WITHIN: Duration = Duration::from_secs(20);

/// Sees whether the job goes on, and is right, when a process dies (of `--kill-at`).
pub(crate) async fn deaths(cx: Context) -> Result<()> {
    let start = Instant::now();
    let expected: u64 = (0..ITEMS).map(|n| n * n).sum();
    let mut is_right = true;
    // One more round after a death: the others must still work.
    let mut rounds_left = 2;
    while is_right && rounds_left > 0 && start.elapsed() < DEATHS_WITHIN {
        let square = |n: u64| {
            std::thread::sleep(NAP);
            n * n
        };
        let squares = par_map(&cx.supervised(), square, 0..ITEMS).await?;
        is_right = squares.iter().sum::<u64>() == expected;
        rounds_left -= u32::from(cx.dead() > 0);
    }
    print(&json!({ "dead": cx.dead(), "right": is_right }))
}

fn print(found: &serde_json::Value) -> Result<()> {
    writeln!(std::io::stdout(), "{found}").map_err(Error::Output)
}
