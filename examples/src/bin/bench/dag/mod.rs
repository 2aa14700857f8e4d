//! Graphs of computations: how small nodes may be, what deaths cost, and which assignment of nodes
//! to PEs is best. The graphs are those of the examples `task_bench` (Slaughter et al., *Task
//! Bench*, SC20) and `cholesky`.

pub(crate) mod assignments;
pub(crate) mod deaths;
pub(crate) mod metg;

/// The patterns of Task Bench. The second has no edges between nodes.
const PATTERNS: [&str; 5] = ["stencil_1d", "trivial", "fft", "tree", "random-nearest"];
