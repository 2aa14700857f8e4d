//! Who takes part in a search.

use crate::Path;
use crate::common::hierarchies::{here, job, racks};
use serde::{Deserialize, Serialize};
use ultramarine::prelude::*;

#[test]
fn others_take_part_when_it_is_steal_driven() {
    job(racks(&[2, 1]), async |cx| {
        let who = |_: &Path, _: &u64, found: &mut Vec<u32>| {
            let here = here();
            if !found.contains(&here) {
                found.push(here);
            }
        };
        let add = |found: &mut Vec<u32>, other: Vec<u32>| found.extend(other);
        let wide = Wide { width: 20_000 };
        let who_wide =
            move |_: &Wide, n: &u64, found: &mut Vec<u32>| who(&Path { length: 0 }, n, found);
        let mut found = par_enumerate(&cx, Splitting::StealDriven, who_wide, add, wide, 0).await?;
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, [0, 1, 2]);
        let counts = cx.statistics().await?;
        assert!(counts.tasks < 2000, "a task only for whoever takes one: {}", counts.tasks);
        Ok(())
    });
}

/// A root with so many leaves.
#[derive(Clone, Serialize, Deserialize)]
struct Wide {
    width: u64,
}

impl Tree for Wide {
    type Node = u64;

    fn children(&self, node: u64) -> impl Iterator<Item = u64> + Send {
        1..if node == 0 { self.width } else { 0 }
    }
}
