//! The four skeletons that apply a function to many items, by their names in the library.

use super::Base;
use crate::dice::Dice;
use crate::workload::Workload;
use crate::workload::map::{ItemCosts, MapWorkload, Spread, SpreadCosts};
use std::sync::Arc;

/// A skeleton.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Skeleton {
    /// All PEs steal from the root
    #[value(name = "par_map")]
    Stolen,
    /// The tasks are placed on all PEs in turn
    #[value(name = "par_map_placed")]
    Placed,
    /// Shares are placed on coordinators; only PEs near one steal from it
    #[value(name = "par_map_2level")]
    TwoLevel,
    /// The same, but all PEs may steal
    #[value(name = "par_map_2level_relaxed")]
    Relaxed,
}

impl Skeleton {
    /// All of them.
    pub const ALL: [Skeleton; 4] =
        [Skeleton::Stolen, Skeleton::Placed, Skeleton::TwoLevel, Skeleton::Relaxed];

    /// Those at two levels.
    pub const TWO_LEVEL: [Skeleton; 2] = [Skeleton::TwoLevel, Skeleton::Relaxed];

    /// What it is called in the library.
    pub fn name(self) -> &'static str {
        match self {
            Skeleton::Stolen => "par_map",
            Skeleton::Placed => "par_map_placed",
            Skeleton::TwoLevel => "par_map_2level",
            Skeleton::Relaxed => "par_map_2level_relaxed",
        }
    }

    /// A map over this number of items, for a job on this machine.
    pub fn over(
        self,
        items: u64,
        costs: impl ItemCosts + 'static,
        is_supervised: bool,
        base: &Base,
    ) -> Arc<dyn Workload> {
        let spread = match self {
            Skeleton::Stolen => Spread::Stolen,
            Skeleton::Placed => Spread::InTurn,
            Skeleton::TwoLevel => Spread::TwoLevel,
            Skeleton::Relaxed => Spread::TwoLevelRelaxed,
        };
        let mut dice = Dice::new(base.seed);
        let mut random = || dice.next();
        let around = (&**base.machine.topology(), &mut random);
        let costs = Arc::new(costs);
        let spread_costs = SpreadCosts::default();
        let is_supervised = base.supervises(is_supervised);
        let map = MapWorkload::new(items, costs, spread, spread_costs, is_supervised, around);
        Arc::new(Arc::new(map))
    }
}
