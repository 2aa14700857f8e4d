//! PEs without a driver: the tests take their turns by hand, and look inside.

mod boards;
mod calling;
mod ending;
mod turns;

use super::counts::BootstrapTraffic;
use super::processor::{Job, Processor};
use crate::executor::api::context::Context;
use crate::executor::task::site::Site;
use crate::settings::Settings;
use crate::transport::{Lane, memory};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use ultramarine_testkit::eventually;
use ultramarine_topology::{LevelKind, Pe, Place, Topology};

/// A PE that nothing drives. It closes when it is dropped.
pub(crate) struct ByHand(pub(crate) Arc<Processor>);

impl Drop for ByHand {
    fn drop(&mut self) {
        self.0.start_ending();
        self.0.close();
    }
}

impl ByHand {
    pub(crate) fn context(&self) -> Context {
        Context::of(&self.0, self.0.own_origin())
    }

    /// Whether no worker is active.
    pub(crate) fn rests(&self) -> bool {
        self.0.crew.active() == 0
    }
}

/// The jobs of PEs of one host, with this many workers each.
fn jobs(pes: u32, threads: usize) -> impl Iterator<Item = Job> {
    let places = vec![Place::from_pairs([(LevelKind::Host, "h")]); pes as usize];
    let topology = Topology::new(&places, &vec![1; places.len()]).expect("it is consistent");
    let topology = Arc::new(topology);
    memory::network(pes).into_iter().zip(0..).map(move |(lane, n)| {
        let (lane, topology) = (Box::new(lane) as Box<dyn Lane>, topology.clone());
        let settings = Settings::for_threads(threads);
        let bootstrap = BootstrapTraffic::default();
        Job { me: Pe::new(n), topology, lane, settings, detector: None, bootstrap, boards: None }
    })
}

fn start(job: Job) -> ByHand {
    ByHand(Processor::start(job, None).expect("there are threads"))
}

/// A PE that is alone.
pub(crate) fn alone(threads: usize, set: impl FnOnce(&mut Settings)) -> ByHand {
    let mut job = jobs(1, threads).next().expect("there is one");
    set(&mut job.settings);
    start(job)
}

fn two(threads: usize) -> [ByHand; 2] {
    let mut jobs = jobs(2, threads).map(start);
    [(); 2].map(|()| jobs.next().expect("there are two"))
}

/// The end of a future, which workers bring about.
fn end_of<T>(future: impl Future<Output = T>) -> T {
    end_with_turns_of(&[], future)
}

/// The end of a future, which workers and turns of these PEs bring about.
fn end_with_turns_of<T>(pes: &[ByHand], future: impl Future<Output = T>) -> T {
    let (mut future, mut ended) = (pin!(future), None);
    eventually("it ends", || {
        pes.iter().for_each(|pe| _ = pe.0.turn());
        ended = now(future.as_mut());
        ended.is_some()
    });
    ended.expect("it has ended")
}

/// Whether it has ended, and how.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(end) => Some(end),
        Poll::Pending => None,
    }
}

/// Long enough for what ought not to happen.
const A_WHILE: Duration = Duration::from_millis(30);
