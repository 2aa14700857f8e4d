//! Whole jobs through the library, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it those tests say so and pass).
//!
//! Two groups are separate programs: `leftovers.rs` counts the threads and
//! files of its process, and `loads.rs` has thousands of threads.

mod blocked;
mod broken_lanes;
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod compile_fail;
mod deaths;
mod descriptors;
mod drops;
mod endings;
mod groups;
mod interrupts;
mod journals;
mod latency;
mod memo;
mod oddities;
mod orbit;
mod output;
mod progress;
mod shared_memory;
mod strangers;
mod successions;
mod supersteps;
mod table;
mod table_deaths;
mod threads;
mod under_mpi;
mod values;
