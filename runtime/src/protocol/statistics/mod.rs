//! Counters, kept by distance, because locality is a matter of distance.

mod histogram;
mod page;

pub use histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use ultramarine_topology::Distance;

/// The counters of one PE, or after [`merge`](Statistics::merge) of several PEs, since the start of
/// the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Tasks that this PE has started, wherever they came from.
    pub tasks: u64,
    /// How many tasks have ended that each PE had spawned, by its number: each once, wherever it
    /// ran and however often, or not at all, if a journal has its result. Cancelled ones may be
    /// left out. A PE counts from the first time that it is asked for its statistics, and what a PE
    /// has counted goes with it when it dies.
    pub ended: BTreeMap<u32, u64>,
    /// Tasks that other PEs have placed here.
    pub placed: u64,
    /// FISHes that were not answered before their deadline, or that a dead PE may have had.
    pub fishes_lost: u64,
    /// NOTIFYs sent: this PE handed on tasks of other PEs.
    pub notifies: u64,
    /// ACKs sent: this PE got tasks from PEs that are not their homes.
    pub acks: u64,
    /// New copies of this PE's supervised tasks, made because earlier copies were lost.
    pub replicas: u64,
    /// Unsupervised tasks of this PE that ended with an error because they may have been lost.
    pub lost: u64,
    /// Tasks that this PE dropped because their home had died.
    pub orphans: u64,
    /// Boards of other PEs that this PE has open, so that either takes tasks of the other without a
    /// message. It opens one when it first needs it.
    pub boards: u64,
    /// Fishing and stealing by distance, the smallest distance first.
    pub by_distance: Vec<Traffic>,
    /// The time from casting a FISH to receiving its SCHEDULE, or from the first look for a
    /// task to having taken one from a board.
    pub steal_latency: Histogram,
    /// The cost of finding the other PEs and staying connected with them: the sum over all PEs.
    pub upkeep: Upkeep,
    /// The same: of each figure the greatest that any one PE has.
    pub upkeep_most: Upkeep,
}

/// The cost of finding the other PEs and staying connected with them, for a PE that is a process.
/// All zeros where PEs are threads of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upkeep {
    /// Bytes sent at start-up, to rank 0, or by rank 0 to all. What the MPI library adds to them is
    /// not known.
    pub bootstrap_sent_bytes: u64,
    /// Bytes received at start-up: a few for each PE, and on rank 0 also what all others sent.
    pub bootstrap_received_bytes: u64,
    /// TCP connections that this PE has made, to watch others or to send frames. One counts when
    /// its handshake is done.
    pub connections_opened: u64,
    /// TCP connections that other PEs have made to this one. One counts when its handshake is done.
    pub connections_accepted: u64,
}

impl Upkeep {
    /// Both, combined figure by figure.
    fn zip(self, other: Upkeep, combine: impl Fn(u64, u64) -> u64) -> Upkeep {
        let both = |figure: fn(Upkeep) -> u64| combine(figure(self), figure(other));
        Upkeep {
            bootstrap_sent_bytes: both(|upkeep| upkeep.bootstrap_sent_bytes),
            bootstrap_received_bytes: both(|upkeep| upkeep.bootstrap_received_bytes),
            connections_opened: both(|upkeep| upkeep.connections_opened),
            connections_accepted: both(|upkeep| upkeep.connections_accepted),
        }
    }
}

/// Fishing and stealing between this PE and the PEs at one distance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// The distance between the two PEs concerned.
    pub distance: Distance,
    /// FISHes cast by this PE to a first victim at this distance.
    pub fishes: u64,
    /// FISHes passed on by this PE for thieves at this distance.
    pub forwards: u64,
    /// SCHEDULEs received from victims at this distance.
    pub schedules: u64,
    /// Tasks received in them, or taken from boards.
    pub steals: u64,
    /// Of these, tasks taken from boards, without a message.
    pub from_boards: u64,
    /// Bytes of closures and arguments of these tasks.
    pub bytes: u64,
    /// NOWORKs received from PEs at this distance.
    pub no_works: u64,
}

impl Statistics {
    /// Zeros, with a row for each of these distances.
    pub fn new(distances: &[Distance]) -> Self {
        let row = |&distance| Traffic {
            distance,
            fishes: 0,
            forwards: 0,
            schedules: 0,
            steals: 0,
            from_boards: 0,
            bytes: 0,
            no_works: 0,
        };
        Statistics { by_distance: distances.iter().map(row).collect(), ..Self::default() }
    }

    /// The row of a distance. A distance that the job's hierarchy lacks counts in the last row.
    pub(super) fn at(&mut self, distance: Distance) -> &mut Traffic {
        let last = self.by_distance.len() - 1;
        let row = self.by_distance.partition_point(|t| t.distance < distance).min(last);
        &mut self.by_distance[row]
    }

    /// Adds another PE's figures to these.
    pub fn merge(&mut self, other: &Statistics) {
        self.tasks += other.tasks;
        for (pe, ended) in &other.ended {
            *self.ended.entry(*pe).or_default() += ended;
        }
        self.placed += other.placed;
        self.fishes_lost += other.fishes_lost;
        self.notifies += other.notifies;
        self.acks += other.acks;
        self.replicas += other.replicas;
        self.lost += other.lost;
        self.orphans += other.orphans;
        self.boards += other.boards;
        self.steal_latency.merge(&other.steal_latency);
        self.upkeep = self.upkeep.zip(other.upkeep, |a, b| a + b);
        self.upkeep_most = self.upkeep_most.zip(other.upkeep_most, u64::max);
        for theirs in &other.by_distance {
            match self.by_distance.iter_mut().find(|ours| ours.distance == theirs.distance) {
                None => self.by_distance.push(theirs.clone()),
                Some(ours) => {
                    ours.fishes += theirs.fishes;
                    ours.forwards += theirs.forwards;
                    ours.schedules += theirs.schedules;
                    ours.steals += theirs.steals;
                    ours.from_boards += theirs.from_boards;
                    ours.bytes += theirs.bytes;
                    ours.no_works += theirs.no_works;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_the_upkeep_and_keeps_the_most() {
        let pe = |opened, accepted| {
            let upkeep = Upkeep {
                connections_opened: opened,
                connections_accepted: accepted,
                ..Upkeep::default()
            };
            Statistics { upkeep, upkeep_most: upkeep, ..Statistics::default() }
        };
        let mut total = Statistics::default();
        [pe(1, 2), pe(3, 0), pe(0, 1)].iter().for_each(|pe| total.merge(pe));
        assert_eq!((total.upkeep.connections_opened, total.upkeep.connections_accepted), (4, 3));
        let most = total.upkeep_most;
        assert_eq!((most.connections_opened, most.connections_accepted), (3, 2));
    }

    #[test]
    fn merging_adds_rows_by_distance() {
        let (half, one) = (Distance::ONE.half(), Distance::ONE);
        let mut a = Statistics::new(&[half, one]);
        let mut b = Statistics::new(&[one]);
        a.at(one).steals += 2;
        b.at(one).steals += 3;
        a.merge(&b);
        assert_eq!(a.at(one).steals, 5);
        assert_eq!(a.at(half).steals, 0);
    }

    /// With the figures 1, 2, 3 and so on, each times `factor`.
    pub(super) fn all_different(factor: u64) -> Statistics {
        let figures: Vec<u64> = (1..=24).map(|n| n * factor).collect();
        let upkeep = |at: usize| Upkeep {
            bootstrap_sent_bytes: figures[at],
            bootstrap_received_bytes: figures[at + 1],
            connections_opened: figures[at + 2],
            connections_accepted: figures[at + 3],
        };
        let mut all = Statistics::new(&[Distance::ONE]);
        let row = all.at(Distance::ONE);
        (row.fishes, row.forwards, row.schedules) = (figures[0], figures[1], figures[2]);
        (row.steals, row.bytes, row.no_works) = (figures[3], figures[4], figures[5]);
        (all.tasks, all.placed, all.fishes_lost) = (figures[6], figures[7], figures[8]);
        (all.notifies, all.acks, all.replicas) = (figures[9], figures[10], figures[11]);
        (all.lost, all.orphans) = (figures[12], figures[13]);
        (all.upkeep, all.upkeep_most) = (upkeep(14), upkeep(18));
        (all.boards, all.at(Distance::ONE).from_boards) = (figures[22], figures[23]);
        all
    }

    #[test]
    fn merging_adds_every_figure_but_the_greatest() {
        let mut total = all_different(1);
        total.merge(&all_different(2));
        let expected = Statistics { upkeep_most: all_different(2).upkeep_most, ..all_different(3) };
        assert_eq!(total, expected);
        let mut other = Statistics::default();
        other.merge(&all_different(1));
        assert_eq!(other, all_different(1), "a row that was missing");
    }

    #[test]
    fn distances_count_in_their_row_and_longer_ones_in_the_last() {
        let distances = [2, 1, 0].map(Distance::from_exponent);
        let mut statistics = Statistics::new(&distances);
        for exponent in 0..4 {
            statistics.at(Distance::from_exponent(exponent)).fishes += 1;
        }
        let rows: Vec<u64> = statistics.by_distance.iter().map(|row| row.fishes).collect();
        assert_eq!(rows, [2, 1, 1], "one that is shorter than all counts in the first");
        let mut statistics = Statistics::new(&distances[..2]);
        statistics.at(Distance::ONE).fishes += 1;
        assert_eq!(statistics.by_distance[1].fishes, 1);
    }
}
