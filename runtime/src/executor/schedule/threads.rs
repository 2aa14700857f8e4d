//! The worker threads of a PE.

use super::nesting::mark_base;
use crate::trace;
use ultramarine_topology::Pe;

/// The stack of each worker, in bytes: divided problems may nest thousands deep.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// Starts the worker threads of a PE. `seat` makes each of them a worker.
pub(crate) fn workers(
    me: Pe,
    threads: usize,
    role: &'static str,
    seat: Box<dyn Fn(usize) + Send + Sync>,
) -> Result<rayon::ThreadPool, String> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(STACK_BYTES)
        .thread_name(move |index| format!("pe{}-{role}{index}", me.number()))
        // All workers, also later ones, start through the same frames: see `nesting`.
        .start_handler(move |index| {
            mark_base();
            trace::join(me, &format!("{role} {index}"));
            seat(index);
        })
        .build()
        .map_err(|error| error.to_string())
}
