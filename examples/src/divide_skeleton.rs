//! The flags of the programs that divide and conquer, and the skeleton that they ask for.

use crate::{Job, JournalFlags, Report, name_of};
use clap::ValueEnum;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result, Stateless};

/// The skeleton, and where the results are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct DivideFlags {
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = DivideSkeleton::ParDivideAndConquer)]
    skeleton: DivideSkeleton,
    /// Where the results are kept.
    #[command(flatten)]
    journal: JournalFlags,
}

/// A skeleton that solves a problem by dividing it, or a program without one to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DivideSkeleton {
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

impl DivideFlags {
    /// Solves the problem, with a journal if the flags say so; and reports that.
    ///
    /// # Errors
    ///
    /// A task ended without a result, or the journal cannot be used, or the skeleton has no tasks.
    pub async fn solve<A: Algorithm>(
        &self,
        job: &Job,
        solvers: Solvers<
            A,
            impl Fn(&A::Problem) -> Distance + Stateless,
            impl Fn(&A::Problem) -> Distance + Stateless,
        >,
        problem: A::Problem,
    ) -> Result<(A::Solution, Report)> {
        let Solvers { algorithm, stolen_within, placed_within, rayon, sequential } = solvers;
        let has_tasks = matches!(
            self.skeleton,
            DivideSkeleton::ParDivideAndConquer | DivideSkeleton::PushDivideAndConquer
        );
        if !has_tasks {
            self.journal.refuse_for(&self.skeleton)?;
        }
        let journal = self.journal.file.as_ref();
        let start = Instant::now();
        let work = async {
            Ok::<_, Error>(match self.skeleton {
                DivideSkeleton::ParDivideAndConquer => {
                    let division = divide_and_conquer(stolen_within, algorithm, problem);
                    self.journal.set(division.optional_journal(journal)).run(&job.cx).await?
                }
                DivideSkeleton::PushDivideAndConquer => {
                    let division = divide_and_conquer(placed_within, algorithm, problem).push();
                    self.journal.set(division.optional_journal(journal)).run(&job.cx).await?
                }
                DivideSkeleton::ForkDivideAndConquer => fork_divide_and_conquer(algorithm, problem),
                DivideSkeleton::Rayon => rayon(problem),
                DivideSkeleton::Sequential => sequential(problem),
            })
        };
        let solution = job.progress(None, work).await?;
        let report = job.report(name_of(&self.skeleton), start, &solution).await?;
        Ok((solution, report))
    }
}
