//! What all processes tell all: counted, and without being in each other's way.
//!
//! MPI waits with all its might: of 64 processes on two cores those that wait for the others keep
//! these from getting there. So the collective operations of the start are non-blocking ones, and
//! whoever waits sleeps now and then. (Measured with 64 processes on two cores: what follows MPI's own
//! start took 4.4 s with blocking operations, and takes 0.5 s.)

use mpi::datatype::PartitionMut;
use mpi::request::{Request, Scope, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};
use std::cell::Cell;
use std::thread;
use std::time::Duration;
use ultramarine_runtime::executor::Exchanged;
use ultramarine_runtime::transport::LaneError;
use ultramarine_runtime::transport::mpi::Copying;

/// The first looks are without a pause: where each process has a core, they are enough.
const LOOKS_AT_ONCE: u32 = 200;

/// Pauses between two looks are at first so long, and double.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// All processes, who tell each other something in turn, always all together.
pub(super) struct Gathering<'a> {
    world: &'a SimpleCommunicator,
    exchanged: Cell<Exchanged>,
}

impl<'a> Gathering<'a> {
    pub(super) fn of(world: &'a SimpleCommunicator) -> Self {
        Gathering { world, exchanged: Cell::default() }
    }

    /// The launcher's number of this process.
    pub(super) fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    /// How many processes there are.
    pub(super) fn size(&self) -> usize {
        self.world.size() as usize
    }

    /// What has been said so far. How MPI carries it, and what that adds, is not known.
    pub(super) fn exchanged(&self) -> Exchanged {
        self.exchanged.get()
    }

    /// The number of each process, by rank.
    pub(super) fn numbers(&self, own: u64) -> Vec<u64> {
        let mut all = vec![0; self.size()];
        scope(|scope| wait(self.world.immediate_all_gather_into(scope, &own, &mut all[..])));
        self.count(size_of_val(&own), size_of_val(&all[..]));
        all
    }

    /// The bytes of each process, by rank.
    pub(super) fn bytes(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let lengths: Vec<_> = self.numbers(own.len() as u64).iter().map(|n| *n as i32).collect();
        let starts = lengths.iter().scan(0, |end, n| {
            let start = *end;
            *end += n;
            Some(start)
        });
        let starts: Vec<i32> = starts.collect();
        let mut all = vec![0u8; lengths.iter().sum::<i32>() as usize];
        let mut parts = PartitionMut::new(&mut all[..], &lengths[..], &starts[..]);
        scope(|scope| wait(self.world.immediate_all_gather_varcount_into(scope, own, &mut parts)));
        self.count(own.len(), all.len());
        let part = |(start, length): (&i32, &i32)| {
            all[*start as usize..(start + length) as usize].to_vec()
        };
        starts.iter().zip(&lengths).map(part).collect()
    }

    /// A communicator of our own, of all processes.
    pub(super) fn communicator(&self) -> Result<SimpleCommunicator, LaneError> {
        let mut copying = Copying::begin(self.world)?;
        let mut comm = None;
        until(|| {
            comm = copying.look().transpose();
            comm.is_some()
        });
        let endless = || LaneError::Mpi { call: "MPI_Comm_idup", message: "no end".into() };
        comm.unwrap_or_else(|| Err(endless()))
    }

    fn count(&self, sent: usize, received: usize) {
        let so_far = self.exchanged.get();
        self.exchanged.set(Exchanged {
            sent_bytes: so_far.sent_bytes + sent as u64,
            received_bytes: so_far.received_bytes + received as u64,
        });
    }
}

/// Waits for the end of an operation.
fn wait<'a, D: ?Sized, S: Scope<'a>>(request: Request<'a, D, S>) {
    let mut pending = Some(request);
    until(|| {
        pending = pending.take().and_then(|request| request.test().err());
        pending.is_none()
    });
}

/// Looks again and again, with pauses.
fn until(mut is_so: impl FnMut() -> bool) {
    let (mut looks, mut pause) = (0, PAUSE_MIN);
    while !is_so() {
        looks += 1;
        if looks > LOOKS_AT_ONCE {
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}
