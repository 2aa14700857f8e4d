//! A job goes on although calls into its lane's library never return, as MPI's do after the death
//! of a process. The lane here is a memory lane behind a pump that can hang for ever.

use crate::{Silent, job};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_runtime::detector::FailureEvent;
use ultramarine_runtime::executor::{
    Context, DetectorSetup, EventHandler, Fork, Job, JobError, Leave, lead, serve,
};
use ultramarine_runtime::handshake::JobKey;
use ultramarine_runtime::settings::Settings;
use ultramarine_runtime::transport::tcp::TcpEndpoint;
use ultramarine_runtime::transport::{Lane, LaneError, Pump, Sleeper, memory};
use ultramarine_testkit::{PATIENCE, eventually};
use ultramarine_topology::{Distance, Pe};

/// PEs 0 and 1 are real; PE 2 exists only by name.
const PES: u32 = 3;

type Queue = Arc<Mutex<Vec<(Pe, Vec<u8>)>>>;

/// The faults of a job.
#[derive(Clone, Default)]
struct Sea {
    /// Whether calls hang from now on.
    is_stormy: Arc<AtomicBool>,
    /// Whether calls of the root's workers hang.
    are_workers_caught: Arc<AtomicBool>,
    /// Whether the root's next call after a turn in which results may have come hangs.
    is_sender_caught: Arc<AtomicBool>,
    /// Whether frames sent from now on are lost.
    is_swallowing: Arc<AtomicBool>,
    /// The number of frames lost.
    swallowed: Arc<AtomicUsize>,
    /// The number of threads that hang.
    stuck: Arc<AtomicUsize>,
    reports: Arc<Mutex<Vec<EventHandler>>>,
}

impl Sea {
    fn say(&self, event: &FailureEvent) {
        self.reports.lock().unwrap().iter().for_each(|report| report(event.clone()));
    }
}

/// A lane that calls a library which may hang.
struct Fragile {
    inner: Option<memory::MemoryLane>,
    outgoing: Queue,
    incoming: Queue,
    sea: Sea,
    sleeper: Arc<dyn Sleeper>,
}

struct Library {
    inner: memory::MemoryLane,
    outgoing: Queue,
    incoming: Queue,
    sea: Sea,
}

impl Lane for Fragile {
    fn name(&self) -> &'static str {
        "fragile"
    }
    fn frame_bytes_max(&self) -> usize {
        4000
    }
    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError> {
        self.outgoing.lock().unwrap().push((to, std::mem::take(frame)));
        Ok(true)
    }
    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        let frames = std::mem::take(&mut *self.incoming.lock().unwrap());
        frames.iter().for_each(|(from, frame)| deliver(*from, frame));
        Ok(frames.len())
    }
    fn is_flushed(&mut self) -> bool {
        self.outgoing.lock().unwrap().is_empty()
    }
    fn take_pump(&mut self) -> Option<Box<dyn Pump>> {
        let (outgoing, incoming) = (self.outgoing.clone(), self.incoming.clone());
        let (inner, sea) = (self.inner.take()?, self.sea.clone());
        Some(Box::new(Library { inner, outgoing, incoming, sea }))
    }
    fn sleeper(&self) -> Arc<dyn Sleeper> {
        self.sleeper.clone()
    }
}

impl Pump for Library {
    fn pump(&mut self) -> bool {
        let thread = thread::current();
        let is_worker = thread.name().is_some_and(|name| name.starts_with("pe0-worker"));
        let is_root = thread.name().is_some_and(|name| name.starts_with("pe0-"));
        let sea = &self.sea;
        while sea.is_stormy.load(Ordering::SeqCst)
            || is_worker && sea.are_workers_caught.load(Ordering::SeqCst)
            || is_root
                && !self.outgoing.lock().unwrap().is_empty()
                && sea.is_sender_caught.load(Ordering::SeqCst)
        {
            self.sea.stuck.fetch_add(1, Ordering::SeqCst);
            thread::sleep(Duration::MAX);
        }
        let outgoing = std::mem::take(&mut *self.outgoing.lock().unwrap());
        for (to, frame) in &outgoing {
            if self.sea.is_swallowing.load(Ordering::SeqCst) {
                self.sea.swallowed.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            // MPI reports no error for a PE that is gone.
            assert!(self.inner.send(*to, &mut frame.clone()).unwrap_or(true), "the inbox has room");
        }
        let mut incoming = self.incoming.lock().unwrap();
        let polled = self.inner.poll(&mut |from, frame| incoming.push((from, frame.to_vec())));
        polled.unwrap() > 0 || !outgoing.is_empty()
    }
}

/// The jobs of the real PEs.
fn jobs(sea: &Sea, threads: usize) -> Vec<Job> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let endpoints: Vec<_> = (0..PES).map(|_| TcpEndpoint::bind(here, None).unwrap()).collect();
    let addresses: Vec<_> = endpoints.iter().map(TcpEndpoint::address).collect();
    let key = JobKey::random().unwrap();
    let lanes = memory::network(PES).into_iter().zip(endpoints).zip(0..2);
    let pe = |((inner, endpoint), n): ((memory::MemoryLane, TcpEndpoint), u32)| {
        let me = Pe::new(n);
        let fallback = endpoint.into_lane(me, addresses.clone(), key, usize::MAX).unwrap();
        let sleeper = inner.sleeper();
        let (outgoing, incoming) = (Queue::default(), Queue::default());
        let inner = Some(inner);
        let lane = Fragile { inner, outgoing, incoming, sea: sea.clone(), sleeper };
        let reports = sea.reports.clone();
        let detector = DetectorSetup {
            fallback: Some(Box::new(fallback)),
            start: Box::new(move |report| {
                reports.lock().unwrap().push(report);
                Ok(Box::new(Silent))
            }),
        };
        let mut settings = Settings::for_threads(threads);
        // A PE that waits for others that do not answer fails.
        settings.shutdown_grace = PATIENCE * 4;
        job(me, PES, lane, settings, Some(detector))
    };
    lanes.map(pe).collect()
}

/// Runs a job whose main task adds up numbers in tasks, and calls `weather` when a few are done.
/// With `lasting` the main task does not end by itself.
fn sum(
    sea: &Sea,
    threads: usize,
    lasting: bool,
    weather: fn(&Sea),
) -> (Result<u64, JobError>, Leave, Leave) {
    let mut jobs = jobs(sea, threads).into_iter();
    let (root, other) = (jobs.next().unwrap(), jobs.next().unwrap());
    let (done, is_done) = mpsc::channel();
    let (serving, sea) = (done.clone(), sea.clone());
    thread::spawn(move || drop(serving.send((1, Ok(0), serve(other).1.leave))));
    thread::spawn(move || {
        let main = async move |cx: Context| {
            let supervised = cx.supervised();
            let task = |n: u64| {
                thread::sleep(Duration::from_millis(3));
                n
            };
            let futures: Vec<_> =
                (0..400).map(|n| supervised.spawn_fn(Distance::ONE, task, n)).collect();
            let mut sum = 0;
            // The youngest are run first.
            for (n, future) in futures.into_iter().rev().enumerate() {
                sum += future.await.expect("it is supervised");
                if n == 20 {
                    let sea = sea.clone();
                    thread::spawn(move || weather(&sea));
                }
            }
            if lasting {
                cx.sleep(PATIENCE * 2).await;
            }
            sum
        };
        let (result, parting) = lead(root, main);
        drop(done.send((0, result, parting.leave)));
    });
    let wait = || is_done.recv_timeout(PATIENCE).expect("it panicked above, or hangs");
    let mut ended = [wait(), wait()];
    ended.sort_by_key(|(pe, ..)| *pe);
    let [(_, result, root), (_, _, other)] = ended;
    (result, root, other)
}

#[test]
fn a_job_goes_on_when_calls_hang_after_a_death() {
    for threads in [1, 2] {
        let sea = Sea::default();
        let (result, root, other) = sum(&sea, threads, false, |sea| {
            sea.is_stormy.store(true, Ordering::SeqCst);
            // A worker, or the driver.
            let are_stuck = || sea.stuck.load(Ordering::SeqCst) >= 2;
            eventually("both PEs have a thread stuck", are_stuck);
            sea.say(&FailureEvent::Dead(vec![Pe::new(2)]));
        });
        assert_eq!(result.expect("the job is well"), 399 * 400 / 2);
        assert_eq!((root, other), (Leave::AfterFailures, Leave::AfterFailures));
        assert_eq!(sea.stuck.load(Ordering::SeqCst), 2, "no thread calls the library any more");
    }
}

/// The results that a turn brings are not lost with the thread that sends what the turn has made.
#[test]
fn a_thread_that_hangs_keeps_no_results() {
    for _ in 0..5 {
        let sea = Sea::default();
        let (result, ..) = sum(&sea, 1, false, |sea| {
            sea.is_sender_caught.store(true, Ordering::SeqCst);
            eventually("a thread is stuck", || sea.stuck.load(Ordering::SeqCst) >= 1);
            sea.say(&FailureEvent::Dead(vec![Pe::new(2)]));
        });
        assert_eq!(result.expect("the job is well"), 399 * 400 / 2);
    }
}

/// A task that never goes on must not be waited for: the PE leaves, as if it had died.
#[test]
fn a_pe_that_loses_a_task_leaves() {
    let sea = Sea::default();
    let mut jobs = jobs(&sea, 1).into_iter();
    let (root, other) = (jobs.next().unwrap(), jobs.next().unwrap());
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || drop(serve(other)));
    thread::spawn(move || {
        let main = async move |cx: Context| {
            let send = async |cx: Context, ()| {
                while !cx.is_cancelled() {
                    cx.tell(Pe::new(1), async |_: Context, ()| (), ()).expect("it may be sent");
                    cx.send_now();
                    // The lane has room for some hundreds, and the other PE may be slow.
                    thread::sleep(Duration::from_micros(100));
                }
            };
            let sends = cx.spawn(Distance::ZERO, send, ());
            cx.sleep(Duration::from_millis(10)).await;
            sea.are_workers_caught.store(true, Ordering::SeqCst);
            while sea.stuck.load(Ordering::SeqCst) == 0 {
                cx.sleep(Duration::from_millis(1)).await;
            }
            sea.say(&FailureEvent::Dead(vec![Pe::new(2)]));
            sends.await
        };
        drop(done.send(lead(root, main).0));
    });
    let result = is_done.recv_timeout(PATIENCE).expect("it panicked above, or hangs");
    assert!(matches!(result, Err(JobError::Stuck { me: Pe::ROOT })), "{result:?}");
}

#[test]
fn what_substitutes_fork_and_leave_is_run() {
    let sea = Sea::default();
    let mut jobs = jobs(&sea, 2).into_iter();
    let (root, other) = (jobs.next().unwrap(), jobs.next().unwrap());
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || drop(serve(other)));
    thread::spawn(move || {
        let main = async move |cx: Context| {
            sea.are_workers_caught.store(true, Ordering::SeqCst);
            while sea.stuck.load(Ordering::SeqCst) == 0 {
                cx.sleep(Duration::from_millis(1)).await;
            }
            sea.say(&FailureEvent::Dead(vec![Pe::new(2)]));
            let divide = async |cx: Context, ()| {
                let task = async |_: Context, n: u64| n;
                let forks: Vec<_> = (0..9).map(|n| cx.fork(Distance::ONE, task, n)).collect();
                let left: Vec<_> = forks.into_iter().map(Fork::leave).collect();
                let mut sum = 0;
                for future in left {
                    sum += future.await.expect("it is here");
                }
                let thread = thread::current();
                (sum, thread.name().is_some_and(|name| name.starts_with("pe0-substitute")))
            };
            while cx.spawn(Distance::ZERO, divide, ()).await.expect("it is here") != (36, true) {
                cx.sleep(Duration::from_millis(1)).await;
            }
        };
        drop(done.send(lead(root, main).0));
    });
    let result = is_done.recv_timeout(PATIENCE).expect("it panicked above, or hangs");
    result.expect("the job is well");
}

#[test]
fn nothing_is_lost_when_the_lane_is_left() {
    let sea = Sea::default();
    let (result, ..) = sum(&sea, 1, false, |sea| {
        sea.is_swallowing.store(true, Ordering::SeqCst);
        eventually("frames are lost", || sea.swallowed.load(Ordering::SeqCst) >= 3);
        sea.say(&FailureEvent::Dead(vec![Pe::new(2)]));
        // A call from now on hangs.
        thread::sleep(Duration::from_millis(20));
        sea.is_stormy.store(true, Ordering::SeqCst);
    });
    assert_eq!(result.expect("the job is well"), 399 * 400 / 2);
    assert_eq!(sea.stuck.load(Ordering::SeqCst), 0, "no thread calls the library any more");
    assert!(sea.swallowed.load(Ordering::SeqCst) >= 3);
}

#[test]
fn a_pe_that_is_held_for_dead_leaves_at_once() {
    let sea = Sea::default();
    let start = Instant::now();
    let (result, root, _) = sum(&sea, 1, true, |sea| sea.say(&FailureEvent::Expelled));
    assert!(matches!(result, Err(JobError::Expelled { me: Pe::ROOT })), "{result:?}");
    assert_eq!(root, Leave::AfterFailures);
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn a_pe_that_loses_the_root_leaves_and_says_why() {
    let sea = Sea::default();
    let event = |sea: &Sea| sea.say(&FailureEvent::RootLost { reason: "it is gone".to_owned() });
    let (result, ..) = sum(&sea, 1, true, event);
    let error = result.expect_err("the root is lost").to_string();
    assert!(error.ends_with("has lost its root (it is gone)"), "{error}");
}
