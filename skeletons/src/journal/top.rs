//! The top of a tree, which the caller expands itself: below it are the items of the journal.

use std::collections::VecDeque;
use ultramarine_runtime::executor::Context;

/// The caller expands at most this number of nodes for each record, so that it does not expand all
/// of a tree that has few branches.
const EXPANSIONS_PER_RECORD: usize = 4;

/// Expands a tree, breadth first, until there are this number of nodes below the top, unless the
/// tree is small or narrow. Returns these nodes in order. `expand` gets a node and adds its
/// children.
///
/// It depends on nothing but its arguments, so that each run of a job has the same nodes.
pub(crate) async fn expand_top<N>(
    cx: &Context,
    root: N,
    records: usize,
    mut expand: impl FnMut(N, &mut VecDeque<N>),
) -> VecDeque<N> {
    let mut below = VecDeque::from([root]);
    for _ in 0..records.saturating_mul(EXPANSIONS_PER_RECORD) {
        if below.len() >= records {
            break;
        }
        let Some(node) = below.pop_front() else { break };
        expand(node, &mut below);
        give_way(cx).await;
    }
    below
}

/// Lets other tasks run first, if some wait.
pub(crate) async fn give_way(cx: &Context) {
    if cx.poll_runtime().is_some_and(|demand| demand.is_turn_wanted) {
        cx.yield_now().await;
    }
}
