//! The ways to divide and conquer that an example can be told to take.

use clap::ValueEnum;
use ultramarine::Stateless;
use ultramarine::prelude::*;

/// How a problem is divided, and by whom its parts are solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Division {
    /// Parts wait for a PE that steals them.
    ParDivideAndConquer,
    /// Parts are placed at once, on PEs that are drawn at random.
    PushDivideAndConquer,
    /// By the skeleton for the threads of one PE, on the root alone.
    ForkDivideAndConquer,
    /// By a plain recursion with rayon, on the root alone.
    Rayon,
    /// By a plain recursion, on the root alone.
    Sequential,
}

/// What all the ways need: an algorithm, how far its parts go, and what to compare it with.
#[derive(Debug)]
pub struct Ways<A: Algorithm, S, P> {
    /// What a skeleton is told.
    pub algorithm: A,
    /// How far away a part may be stolen from.
    pub stolen_within: S,
    /// How far from its parent a part is placed.
    pub placed_within: P,
    /// The same with rayon, and without a skeleton.
    pub rayon: fn(A::Problem) -> A::Solution,
    /// The same without parallelism.
    pub sequential: fn(A::Problem) -> A::Solution,
}

impl Division {
    /// Solves the problem in this way.
    ///
    /// # Errors
    ///
    /// A task ended without a result.
    pub async fn conquer<A: Algorithm>(
        self,
        cx: &Context,
        ways: Ways<
            A,
            impl Fn(&A::Problem) -> Distance + Stateless,
            impl Fn(&A::Problem) -> Distance + Stateless,
        >,
        problem: A::Problem,
    ) -> Result<A::Solution, TaskError> {
        let algorithm = ways.algorithm;
        match self {
            Division::ParDivideAndConquer => {
                par_divide_and_conquer(cx, ways.stolen_within, algorithm, problem).await
            }
            Division::PushDivideAndConquer => {
                push_divide_and_conquer(cx, ways.placed_within, algorithm, problem).await
            }
            Division::ForkDivideAndConquer => Ok(fork_divide_and_conquer(algorithm, problem)),
            Division::Rayon => Ok((ways.rayon)(problem)),
            Division::Sequential => Ok((ways.sequential)(problem)),
        }
    }
}
