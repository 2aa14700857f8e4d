//! What all processes tell all, counted.

use mpi::datatype::PartitionMut;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Equivalence};
use std::cell::Cell;
use ultramarine_runtime::executor::Exchanged;

/// All processes, who tell each other something in turn, always all together.
pub(super) struct Gathering<'a> {
    pub(super) world: &'a SimpleCommunicator,
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

    /// A number of each process, by rank.
    pub(super) fn numbers<N: Equivalence + Clone + Default>(&self, own: &N) -> Vec<N> {
        let mut all = vec![N::default(); self.size()];
        self.world.all_gather_into(own, &mut all[..]);
        self.count(size_of::<N>(), size_of_val(&all[..]));
        all
    }

    /// Some bytes of each process, by rank.
    pub(super) fn bytes(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let lengths = self.numbers(&(own.len() as i32));
        let starts = lengths.iter().scan(0, |end, n| {
            let start = *end;
            *end += n;
            Some(start)
        });
        let starts: Vec<i32> = starts.collect();
        let mut all = vec![0u8; lengths.iter().sum::<i32>() as usize];
        let mut parts = PartitionMut::new(&mut all[..], &lengths[..], &starts[..]);
        self.world.all_gather_varcount_into(own, &mut parts);
        self.count(own.len(), all.len());
        let part = |(start, length): (&i32, &i32)| {
            all[*start as usize..(start + length) as usize].to_vec()
        };
        starts.iter().zip(&lengths).map(part).collect()
    }

    fn count(&self, sent: usize, received: usize) {
        let so_far = self.exchanged.get();
        self.exchanged.set(Exchanged {
            sent_bytes: so_far.sent_bytes + sent as u64,
            received_bytes: so_far.received_bytes + received as u64,
        });
    }
}
