//! The flag `--skeleton` of the examples that divide and conquer.

use clap::ValueEnum;
use ultramarine::Stateless;
use ultramarine::prelude::*;

/// A skeleton that solves a problem by dividing it, or a program without one to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DivideSkeleton {
    /// Parts wait for other PEs to steal them.
    ParDivideAndConquer,
    /// Parts are placed at once on random PEs.
    PushDivideAndConquer,
    /// The threads of the root only, by a skeleton.
    ForkDivideAndConquer,
    /// The threads of the root only, by a recursion with rayon.
    Rayon,
    /// One thread of the root, by a plain recursion.
    Sequential,
}

/// An algorithm for the skeletons, and the same without skeletons to compare with.
#[derive(Debug)]
pub struct Solvers<A: Algorithm, S, P> {
    /// The algorithm.
    pub algorithm: A,
    /// The radius within which PEs may steal a part.
    pub stolen_within: S,
    /// The radius around its parent within which a part is placed.
    pub placed_within: P,
    /// The solution by rayon.
    pub rayon: fn(A::Problem) -> A::Solution,
    /// The sequential solution.
    pub sequential: fn(A::Problem) -> A::Solution,
}

impl DivideSkeleton {
    /// Solves the problem by this skeleton.
    ///
    /// # Errors
    ///
    /// A task ended without a result.
    pub async fn conquer<A: Algorithm>(
        self,
        cx: &Context,
        solvers: Solvers<
            A,
            impl Fn(&A::Problem) -> Distance + Stateless,
            impl Fn(&A::Problem) -> Distance + Stateless,
        >,
        problem: A::Problem,
    ) -> Result<A::Solution, TaskError> {
        let algorithm = solvers.algorithm;
        match self {
            DivideSkeleton::ParDivideAndConquer => {
                par_divide_and_conquer(cx, solvers.stolen_within, algorithm, problem).await
            }
            DivideSkeleton::PushDivideAndConquer => {
                push_divide_and_conquer(cx, solvers.placed_within, algorithm, problem).await
            }
            DivideSkeleton::ForkDivideAndConquer => Ok(fork_divide_and_conquer(algorithm, problem)),
            DivideSkeleton::Rayon => Ok((solvers.rayon)(problem)),
            DivideSkeleton::Sequential => Ok((solvers.sequential)(problem)),
        }
    }
}
