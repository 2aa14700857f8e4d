//! A picture of a graph: which PE has computed which node. When that was, the job's
//! [trace](ultramarine_runtime::trace) tells.
//!
//! | question | file |
//! |---|---|
//! | How does what the PEs have computed come to the program? | `mod` |
//! | What does a picture show of a node? | `nodes` |
//! | Where does a node stand in it? | `layout` |
//! | How is it written? | `dot`, `svg` |

mod dot;
mod layout;
mod nodes;
mod svg;

use super::block::Block;
use super::handles::NodeId;
use super::part::RunPart;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use ultramarine_group::{GroupId, Groups};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::Pe;

/// How many computed nodes a PE tells of at a time.
const AT_A_TIME: usize = 1 << 16;

/// A graph, and which PE has computed which node.
/// [`Dag::run_with_picture`](super::Dag::run_with_picture) gives it.
#[derive(Clone)]
pub struct Picture {
    block: Arc<Block>,
    wanted: Vec<NodeId>,
    /// In the order of the nodes. A node that was computed again, after a death or since
    /// [memory](super::Dag::memory) was short, is there several times.
    computed: Vec<(Computed, Pe)>,
}

/// A node that a PE has computed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Computed {
    /// Which.
    pub(super) index: u32,
    /// How long that took.
    pub(super) took_ns: u64,
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Picture").field("computed", &self.computed).finish_non_exhaustive()
    }
}

impl Picture {
    fn new(block: Arc<Block>, wanted: Vec<NodeId>, mut computed: Vec<(Computed, Pe)>) -> Self {
        computed.sort_unstable_by_key(|(computed, pe)| (computed.index, *pe));
        Picture { block, wanted, computed }
    }

    /// Asks all PEs that live what they have computed. One that dies meanwhile is left out.
    pub(super) async fn gather(
        cx: &Context,
        id: GroupId,
        block: Arc<Block>,
        wanted: Vec<NodeId>,
    ) -> Result<Self, TaskError> {
        // A PE that dies is not replaced by another.
        let cx = &cx.unsupervised();
        let living = (0..cx.pes()).map(Pe::new).filter(|pe| !cx.is_dead(*pe));
        let of_all = try_join_all(living.map(|pe| computed_by(cx, id, pe))).await?;
        Ok(Picture::new(block, wanted, of_all.concat()))
    }
}

/// What a PE has computed so far.
async fn computed_by(cx: &Context, id: GroupId, pe: Pe) -> Result<Vec<(Computed, Pe)>, TaskError> {
    let some = async |cx: Context, (id, from): (GroupId, usize)| {
        let run = Groups::<RunPart>::on(&cx).get(id.name);
        let some = |_, part: &mut RunPart| -> Vec<Computed> {
            part.computed.iter().skip(from).take(AT_A_TIME).copied().collect()
        };
        // It may have no part of the run.
        run.and_then(|run| run.with(some)).unwrap_or_default()
    };
    let mut all = Vec::new();
    loop {
        let some = match cx.ask(pe, some, (id, all.len())).await {
            // It dies.
            Err(TaskError::Lost { .. }) => Vec::new(),
            some => some?,
        };
        let are_last = some.len() < AT_A_TIME;
        all.extend(some.into_iter().map(|computed| (computed, pe)));
        if are_last {
            return Ok(all);
        }
    }
}

#[cfg(test)]
mod tests;
