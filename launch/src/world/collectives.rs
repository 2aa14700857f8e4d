//! What all processes tell the first, and the first tells all: counted, and without being in each
//! other's way.
//!
//! MPI waits with all its might: of 64 processes on two cores those that wait for the others keep
//! these from getting there. So the collective operations of the start are non-blocking ones, and a
//! process that waits sleeps now and then. (Measured with 64 processes on two cores: what follows
//! MPI's own start took 4.4 s with blocking operations, and takes 0.5 s.)

use crate::error::StartError;
use mpi::datatype::PartitionMut;
use mpi::request::{Request, Scope, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Root};
use serde::{Serialize, de::DeserializeOwned};
use std::cell::Cell;
use std::thread;
use std::time::Duration;
use ultramarine_runtime::executor::BootstrapTraffic;
use ultramarine_runtime::transport::LaneError;
use ultramarine_runtime::transport::mpi::CommDup;
use ultramarine_runtime::wire;

/// The first looks are without a pause: where each process has a core, they are enough.
const LOOKS_AT_ONCE: u32 = 200;

/// The first pause between two looks, and the longest: each is twice the last.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// All processes. They send to rank 0 and hear from it in turn, always all together: each sends its
/// own part, and hears only what rank 0 makes of all parts, a few bytes for each process.
pub(super) struct Collectives<'a> {
    world: &'a SimpleCommunicator,
    traffic: Cell<BootstrapTraffic>,
}

impl<'a> Collectives<'a> {
    pub(super) fn of(world: &'a SimpleCommunicator) -> Self {
        Collectives { world, traffic: Cell::default() }
    }

    /// The launcher's number of this process.
    pub(super) fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    /// How many processes there are.
    pub(super) fn size(&self) -> usize {
        self.world.size() as usize
    }

    /// The bytes exchanged so far, without what MPI adds to carry them.
    pub(super) fn traffic(&self) -> BootstrapTraffic {
        self.traffic.get()
    }

    /// On rank 0: the number of each process, by rank. On the others nothing.
    pub(super) fn gather_numbers(&self, own: u64) -> Vec<u64> {
        let first = self.world.process_at_rank(0);
        if self.rank() > 0 {
            scope(|scope| wait(first.immediate_gather_into(scope, &own)));
            self.count(size_of_val(&own), 0);
            return Vec::new();
        }
        let mut all = vec![0; self.size()];
        scope(|scope| wait(first.immediate_gather_into_root(scope, &own, &mut all[..])));
        self.count(size_of_val(&own), size_of_val(&all[..]));
        all
    }

    /// On rank 0: the bytes of each process, by rank. On the others nothing.
    pub(super) fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let first = self.world.process_at_rank(0);
        let lengths = self.gather_numbers(own.len() as u64);
        if self.rank() > 0 {
            scope(|scope| wait(first.immediate_gather_varcount_into(scope, own)));
            self.count(own.len(), 0);
            return Vec::new();
        }
        let lengths: Vec<_> = lengths.iter().map(|n| *n as i32).collect();
        let starts = lengths.iter().scan(0, |end, n| {
            let start = *end;
            *end += n;
            Some(start)
        });
        let starts: Vec<i32> = starts.collect();
        let mut all = vec![0u8; lengths.iter().sum::<i32>() as usize];
        let mut parts = PartitionMut::new(&mut all[..], &lengths[..], &starts[..]);
        scope(|scope| {
            wait(first.immediate_gather_varcount_into_root(scope, own, &mut parts));
        });
        self.count(own.len(), all.len());
        let part = |(start, length): (&i32, &i32)| {
            all[*start as usize..(start + length) as usize].to_vec()
        };
        starts.iter().zip(&lengths).map(part).collect()
    }

    /// The bytes of rank 0, on all. What the others pass is ignored.
    pub(super) fn broadcast(&self, own: Vec<u8>) -> Vec<u8> {
        let first = self.world.process_at_rank(0);
        let mut length = own.len() as u64;
        scope(|scope| wait(first.immediate_broadcast_into(scope, &mut length)));
        let mut bytes = own;
        bytes.resize(length as usize, 0);
        // Open MPI 4.1 broadcasts no empty message: it calls the argument invalid.
        if length > 0 {
            scope(|scope| wait(first.immediate_broadcast_into(scope, &mut bytes[..])));
        }
        let (sent, received) = if self.rank() == 0 { (bytes.len(), 0) } else { (0, bytes.len()) };
        self.count(sent, received);
        bytes
    }

    /// A communicator of our own, of all processes.
    pub(super) fn communicator(&self) -> Result<SimpleCommunicator, LaneError> {
        let mut copying = CommDup::begin(self.world)?;
        let mut comm = None;
        until(|| {
            comm = copying.poll().transpose();
            comm.is_some()
        });
        let endless = || LaneError::Mpi { call: "MPI_Comm_idup", message: "no end".into() };
        comm.unwrap_or_else(|| Err(endless()))
    }

    fn count(&self, sent: usize, received: usize) {
        let so_far = self.traffic.get();
        self.traffic.set(BootstrapTraffic {
            sent_bytes: so_far.sent_bytes + sent as u64,
            received_bytes: so_far.received_bytes + received as u64,
        });
    }
}

/// What rank 0 makes of what all processes have, by rank: on all. If one of them has an error
/// instead, or rank 0 makes one of it, that is the result; rank 0 has it, and says it.
pub(super) fn decide<T, R>(
    all: &Collectives<'_>,
    own: &Result<T, StartError>,
    make: impl FnOnce(Vec<T>) -> Result<R, StartError>,
) -> Result<R, StartError>
where
    T: Serialize + DeserializeOwned,
    R: Serialize + DeserializeOwned,
{
    let codec = |error: wire::WireError| StartError::Mpi(error.to_string());
    let said = (own.as_ref().map_err(StartError::to_string), host_name());
    let told = all.gather(&wire::encode(&said).map_err(codec)?);
    if all.rank() > 0 {
        let made = all.broadcast(Vec::new());
        let made = (!made.is_empty()).then(|| wire::decode(&made).map_err(codec)).transpose()?;
        return made.ok_or(StartError::SaidElsewhere);
    }
    let read = |(rank, bytes): (usize, Vec<u8>)| {
        let (value, host): (Result<T, String>, String) = wire::decode(&bytes).map_err(codec)?;
        value.map_err(|reason| StartError::Rank { rank, host, reason })
    };
    let values: Result<Vec<T>, _> = told.into_iter().enumerate().map(read).collect();
    let made = values.and_then(make);
    let encoded = made.and_then(|made| Ok((wire::encode(&made).map_err(codec)?, made)));
    // An empty message says that there is none.
    let (bytes, made) = encoded.map_or_else(|error| (Vec::new(), Err(error)), |(b, m)| (b, Ok(m)));
    all.broadcast(bytes);
    made
}

fn host_name() -> String {
    mpi::environment::processor_name().unwrap_or_else(|_| "an unnamed host".to_owned())
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
