//! The worker threads of a PE.

use super::nesting::mark_base;
use ultramarine_topology::Pe;

/// The stack of each worker: problems may be divided thousands of times, one inside the other.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// The worker threads of a PE; `seat` makes workers of them.
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
        // The same code, with the same frames, for all workers that there will be: see `nesting`.
        .start_handler(move |index| {
            mark_base();
            seat(index);
        })
        .build()
        .map_err(|error| error.to_string())
}
