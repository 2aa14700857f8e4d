//! The top of a tree, which the caller expands itself: below it are the items of the journal.

use ultramarine_runtime::executor::Context;

/// The caller expands at most this number of nodes for each record, so that it does not expand all
/// of a tree that has few branches.
const EXPANSIONS_PER_RECORD: usize = 4;

/// Expands a tree, level by level, until there are this number of nodes below the top, unless the
/// tree is small or narrow. Returns these nodes in the order of a depth-first search: for a branch
/// and bound the promising ones come first. `expand` gets a node and adds its children to the list,
/// or, if it has none and is an item itself, the node.
///
/// It depends on nothing but its arguments, so that each run of a job has the same nodes.
pub(crate) async fn expand_top<N>(
    cx: &Context,
    root: N,
    records: usize,
    mut expand: impl FnMut(N, &mut Vec<N>) -> Expanded,
) -> Vec<N> {
    let mut nodes = vec![root];
    let mut left = records.saturating_mul(EXPANSIONS_PER_RECORD);
    let mut is_growing = true;
    while is_growing {
        is_growing = false;
        let mut level = nodes.into_iter();
        nodes = Vec::new();
        while left > 0
            && nodes.len() + level.len() < records
            && let Some(node) = level.next()
        {
            left -= 1;
            is_growing |= matches!(expand(node, &mut nodes), Expanded::Children);
            give_way(cx).await;
        }
        nodes.extend(level);
    }
    nodes
}

/// What has been added to the list of nodes.
pub(crate) enum Expanded {
    /// The children of the node.
    Children,
    /// The node itself.
    Node,
}

/// Lets other tasks run first, if some wait.
pub(crate) async fn give_way(cx: &Context) {
    if cx.poll_runtime().is_some_and(|demand| demand.is_turn_wanted) {
        cx.yield_now().await;
    }
}
