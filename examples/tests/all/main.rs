//! The examples as their users see them: results, reports, error texts, exit codes; alone and under
//! the launcher that `MPIEXEC_FOR_TESTS` names (without it those tests say so and pass).
//!
//! One program for all, so that one is linked. No test needs a process of its own: each starts
//! those that it looks at.

mod arena;
mod cholesky;
mod common;
mod conjugate_gradient;
mod faults;
mod fibonacci;
mod flags;
mod graph;
#[cfg(feature = "mpi")]
mod guest;
mod journal;
mod k_medoids;
mod karatsuba;
mod knapsack;
mod liouville;
mod mandelbrot;
mod maxclique;
mod merge_sort;
mod output;
mod pagerank;
mod pi;
mod progress;
mod quadrature;
mod queens;
mod recording;
mod states;
mod status;
mod steal_picture;
mod stencil;
mod sum_euler;
mod sweep;
mod task_bench;
mod trace;
mod uts;
mod wavefront;
mod wordcount;
