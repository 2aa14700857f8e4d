//! A PE whose process can have no more threads for a while. The limit is the process's, so this
//! test has a file to itself.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use ultramarine_runtime::executor::{BootstrapTraffic, Context, Job, lead};
use ultramarine_runtime::settings::Settings;
use ultramarine_runtime::transport::memory;
use ultramarine_testkit::{bounded, eventually};
use ultramarine_topology::{Distance, Pe, Topology};

/// Less than the stack of a thread.
const ROOM_BYTES: u64 = 8 << 20;

static IS_FULL: AtomicBool = AtomicBool::new(false);
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// The bytes of memory that the process has mapped.
fn mapped() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").expect("this is Linux");
    let pages = pages.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("it is a number") * rustix::param::page_size() as u64
}

fn job() -> Job {
    Job {
        me: Pe::ROOT,
        topology: Arc::new(Topology::flat(1)),
        lane: Box::new(memory::network(1).pop().expect("there is one")),
        settings: Settings::for_threads(1),
        detector: None,
        bootstrap: BootstrapTraffic::default(),
    }
}

/// The main task waits while the only worker is inside another.
async fn main_task(cx: Context) {
    let block = |()| eventually("the main task goes on", || GOES_ON.load(SeqCst));
    let blocked = cx.spawn_fn(Distance::ZERO, block, ());
    let before = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(mapped() + ROOM_BYTES), ..before })
        .expect("it may be lowered");
    IS_FULL.store(true, SeqCst);
    cx.sleep(Duration::from_millis(1)).await;
    GOES_ON.store(true, SeqCst);
    blocked.await.expect("it does not fail");
}

#[test]
fn the_main_task_goes_on_once_there_can_be_a_thread_for_it() {
    let before = getrlimit(Resource::As);
    let raise = thread::spawn(move || {
        eventually("there is no room", || IS_FULL.load(SeqCst));
        thread::sleep(Duration::from_millis(100));
        let went_on = GOES_ON.load(SeqCst);
        setrlimit(Resource::As, before).expect("it was like that");
        went_on
    });
    bounded(|| lead(job(), main_task).0).expect("the job is well");
    assert!(!raise.join().expect("it does not panic"), "nothing stood in for the worker");
}
