//! The programs, one in each module. They are compiled once, with this library; a file in `bin`
//! calls the `main` of each.

pub mod cholesky;
pub mod fibonacci;
pub mod karatsuba;
pub mod knapsack;
pub mod liouville;
pub mod mandelbrot;
pub mod maxclique;
pub mod merge_sort;
pub mod naps;
pub mod quadrature;
pub mod queens;
pub mod steal_picture;
pub mod stencil;
pub mod sum_euler;
pub mod sweep;
pub mod task_bench;
pub mod uts;
pub mod wavefront;
pub mod wordcount;
