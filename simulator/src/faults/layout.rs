//! A machine of racks and hosts, and what may happen to one of them as a whole.

use crate::dice::Dice;
use crate::fault::InjectedFault;
use ultramarine_topology::{Label, LevelKind, Pe, Place, Topology};

const MILLISECOND: u64 = 1_000_000;

/// The most hosts of a rack, and the most PEs of a host.
const RACK_HOSTS_MAX: u64 = 8;
const HOST_PES_MAX: u32 = 64;

/// Racks of hosts of PEs, of any size. The last host and the last rack may be smaller.
pub(super) struct Layout {
    pes: u32,
    per_host: u32,
    per_rack: u32,
}

/// A host or a rack to which something happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    first: Pe,
    last: Pe,
    /// For how long it is cut off, in nanoseconds; `None`: it dies.
    parted_ns: Option<u64>,
}

impl Layout {
    pub(super) fn random(pes: u32, dice: &mut Dice) -> Layout {
        let per_host = dice.within(1..=u64::from(pes.min(HOST_PES_MAX))) as u32;
        let hosts = dice.within(1..=if pes < HOST_PES_MAX { 4 } else { RACK_HOSTS_MAX }) as u32;
        Layout { pes, per_host, per_rack: per_host * hosts }
    }

    pub(super) fn topology(&self) -> Topology {
        let position = |n: u32| {
            Place::new(vec![
                Label::new(LevelKind::Switch, format!("r{:03}", n / self.per_rack)),
                Label::new(LevelKind::Host, format!("h{:04}", n / self.per_host)),
            ])
        };
        let positions: Vec<_> = (0..self.pes).map(position).collect();
        let topology = Topology::new(&positions, &vec![1; self.pes as usize]);
        topology.expect("places of the same depth")
    }

    /// A rack that is cut off from all others, for a while or for ever. `None`: there is no other.
    pub(super) fn partition(&self, dice: &mut Dice) -> Option<Block> {
        let (first, last) = self.block(dice.next() as u32 % self.pes, self.per_rack);
        let is_part = first > Pe::ROOT || last.number() + 1 < self.pes;
        let longest = 5000 * MILLISECOND;
        let ns = if dice.one_in(2) { u64::MAX } else { dice.skewed(MILLISECOND..=longest) };
        is_part.then_some(Block { first, last, parted_ns: Some(ns) })
    }

    /// The PEs of a host or a rack, of `size` PEs, that has this PE.
    fn block(&self, pe: u32, size: u32) -> (Pe, Pe) {
        let first = pe / size * size;
        (Pe::new(first), Pe::new((first + size).min(self.pes) - 1))
    }
}

impl Block {
    /// The number of PEs that may be lost, in a job of `pes`.
    pub(super) fn pes(&self, pes: u32, outlives_root: bool) -> u64 {
        let inside = self.last.number() - self.first.number() + 1;
        let others = pes - inside;
        u64::from(match self.first == Pe::ROOT {
            _ if outlives_root => inside.max(others),
            true => others,
            false => inside,
        })
    }

    pub(super) fn fault(&self) -> InjectedFault {
        let Block { first, last, .. } = *self;
        match self.parted_ns {
            Some(ns) => InjectedFault::Partition { first, last, ns },
            None => InjectedFault::HostDeaths { first, last },
        }
    }
}

/// What happens to whole hosts and racks, in some jobs. The root is in none that dies, unless it
/// may die.
pub(super) fn blocks(layout: &Layout, root_dies: bool, dice: &mut Dice) -> Vec<Block> {
    let Layout { pes, per_host, per_rack } = *layout;
    let mut blocks = Vec::new();
    for (one_in, size) in [(20, per_host), (40, per_rack)] {
        let (first, last) = layout.block(dice.next() as u32 % pes, size);
        if dice.one_in(one_in) && (first > Pe::ROOT || root_dies) {
            blocks.push(Block { first, last, parted_ns: None });
        }
    }
    if dice.one_in(20) {
        blocks.extend(layout.partition(dice));
    }
    blocks
}
