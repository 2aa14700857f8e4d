//! The flag `--skeleton` of the examples that divide and conquer.

use crate::JournalFlags;
use clap::ValueEnum;
use ultramarine::prelude::*;
use ultramarine::{Result, Stateless};

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
    /// Solves the problem by this skeleton, with a journal if the flags say so.
    ///
    /// # Errors
    ///
    /// A task ended without a result, or the journal cannot be used, or the skeleton has no tasks.
    pub async fn conquer<A: Algorithm>(
        self,
        cx: &Context,
        journal: &JournalFlags,
        solvers: Solvers<
            A,
            impl Fn(&A::Problem) -> Distance + Stateless,
            impl Fn(&A::Problem) -> Distance + Stateless,
        >,
        problem: A::Problem,
    ) -> Result<A::Solution> {
        let algorithm = solvers.algorithm;
        let solve = match self {
            DivideSkeleton::ParDivideAndConquer => {
                let division = divide_and_conquer(solvers.stolen_within, algorithm, problem);
                return journal.solve(cx, division).await;
            }
            DivideSkeleton::PushDivideAndConquer => {
                let division = divide_and_conquer(solvers.placed_within, algorithm, problem);
                return journal.solve(cx, division.push()).await;
            }
            DivideSkeleton::ForkDivideAndConquer => {
                journal.refuse_for(&self)?;
                return Ok(fork_divide_and_conquer(algorithm, problem));
            }
            DivideSkeleton::Rayon => solvers.rayon,
            DivideSkeleton::Sequential => solvers.sequential,
        };
        journal.refuse_for(&self)?;
        Ok(solve(problem))
    }
}
