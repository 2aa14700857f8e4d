//! Divide and conquer with a journal: each record is the solution of a part.
//!
//! The caller divides the problems at the top, level by level, at each start. The parts below are
//! the items of the journal. When all have their solutions, the caller combines them, the youngest
//! problem first.

use super::conquer::begin;
use super::division::{placed, stolen};
use super::{Algorithm, AlgorithmContext, Division};
use crate::journal::{Expanded, JournalError, Journalled, expand_top, give_way, identity};
use crate::parts::Parts;
use crate::result_future::ResultFuture;
use std::path::PathBuf;
use ultramarine_journal::Digest;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Context, Placement};
use ultramarine_runtime::wire::encode;
use ultramarine_topology::Distance;

impl<A, W, X> Division<A, W, X>
where
    A: Algorithm<X>,
    W: Fn(&A::Problem) -> Distance + Stateless,
    X: AlgorithmContext,
{
    /// Keeps the solutions of parts in a file, so that the work survives the end of the job: as
    /// [`Map::journal`](crate::map::Map::journal), which says when a result is safe, and what
    /// happens if the disk is full or the file is damaged.
    ///
    /// ```text
    ///             ●              the caller divides the top, level by level, at each start, and
    ///           ╱   ╲            combines it at the end
    ///          ●     ●
    ///         ╱ ╲   ╱ ╲
    ///        ○   ○ ○   ○         each ○ is a record: the solution of this part
    /// ```
    ///
    /// - **What is lost**: the parts that are being solved when the job ends. They are about a
    ///   thousand in all; [`records`](Journalled::records) changes that.
    /// - **Whose journal it is**: it has the name of the program, of the types of the algorithm and
    ///   the solution, the number of parts and a digest of them. A journal of another problem is
    ///   refused with an error that says what differs. The radii may differ, and the number of PEs.
    ///   (Problems that contain handles such as [`Shared`](ultramarine_runtime::executor::Shared)
    ///   are never the same: put the data into the problem, or make it again where it is needed.)
    /// - **What must not differ between runs**: how problems are divided, down to the parts that
    ///   have records.
    pub fn journal(self, path: impl Into<PathBuf>) -> Journalled<Self> {
        Journalled::new(self, Some(path.into()))
    }

    /// The same if there is a path, as a flag of the program may say. Without one there is no
    /// journal, and what is set for it means nothing.
    pub fn optional_journal(self, path: Option<impl Into<PathBuf>>) -> Journalled<Self> {
        Journalled::new(self, path.map(Into::into))
    }
}

impl<A, W, X> Journalled<Division<A, W, X>>
where
    A: Algorithm<X>,
    W: Fn(&A::Problem) -> Distance + Stateless,
    X: AlgorithmContext,
{
    /// Solves the problem, as [`Division::run`].
    ///
    /// # Errors
    ///
    /// The error of the first task that ended without a result, or of the journal. The other tasks
    /// are cancelled.
    pub async fn run(self, cx: &Context) -> Result<A::Solution, JournalError> {
        let Some(file) = self.file else { return Ok(self.skeleton.run(cx).await?) };
        let Division { radius, algorithm, problem, is_pushed } = self.skeleton;
        let (top, parts) = Top::divide(cx, algorithm, problem, self.records).await;
        let mut digest = Digest::default();
        for (_, part) in &parts {
            digest.add(&encode(part)?);
        }
        let identity = identity::<A, A::Solution>(parts.len(), &digest);
        let kept = file.open(cx, identity, |_, _| true).await?;
        cx.note_known(kept.results.len() as u64);

        let solve = |part: A::Problem| -> ResultFuture<A::Solution> {
            let radius_here = radius(&part);
            if is_pushed {
                // Without the limit of tasks on other PEs: the number of parts is limited.
                let place = match cx.random_within(radius_here) {
                    pe if pe == cx.pe() => Distance::ZERO.into(),
                    pe => Placement::On(pe),
                };
                begin(cx, place, placed(radius), algorithm, part)
            } else {
                begin(cx, radius_here.into(), stolen(radius), algorithm, part)
            }
        };
        let (numbers, parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        // The last first: a PE first takes the task that it has spawned last.
        let parts = kept.missing_nodes(parts).into_iter().rev();
        let tasks = parts.map(|(positions, part)| (positions, solve(part)));
        let solutions = kept.complete(tasks, usize::MAX).await?;
        Ok(top.combine(cx, algorithm, numbers.into_iter().zip(solutions.into_values())).await)
    }
}

/// The problems that the caller divides. Each problem has a number, in the order in which the
/// divisions yield them: the whole has 0, and a part has a greater number than the problem that it
/// is a part of.
struct Top<A: Algorithm<X>, X: AlgorithmContext> {
    divided: Vec<Divided<A, X>>,
    /// The number of all problems, the parts that are not divided included.
    count: usize,
}

struct Divided<A: Algorithm<X>, X: AlgorithmContext> {
    number: usize,
    problem: A::Problem,
    /// The numbers of its parts.
    parts: <A::Parts as Parts>::Mapped<usize>,
}

impl<A: Algorithm<X>, X: AlgorithmContext> Top<A, X> {
    /// Divides a problem until there are this number of parts, if it can be divided so far. Returns
    /// the parts with their numbers.
    async fn divide(
        cx: &Context,
        algorithm: A,
        problem: A::Problem,
        records: usize,
    ) -> (Self, Vec<(usize, A::Problem)>) {
        let mut top = Top { divided: Vec::new(), count: 1 };
        let parts = expand_top(cx, (0, problem), records, |(number, problem), below| {
            let view = X::of(cx);
            if algorithm.is_trivial(view, &problem) {
                below.push((number, problem));
                return Expanded::Node;
            }
            let parts = algorithm.divide(view, &problem).map_each(|part| {
                below.push((top.count, part));
                top.count += 1;
                top.count - 1
            });
            top.divided.push(Divided { number, problem, parts });
            Expanded::Children
        });
        let parts = parts.await;
        (top, parts)
    }

    /// Combines the solutions of the parts, which come with the parts' numbers.
    async fn combine(
        self,
        cx: &Context,
        algorithm: A,
        parts: impl Iterator<Item = (usize, A::Solution)>,
    ) -> A::Solution {
        let mut solutions: Vec<Option<A::Solution>> = (0..self.count).map(|_| None).collect();
        parts.for_each(|(number, solution)| solutions[number] = Some(solution));
        let take = |solutions: &mut Vec<Option<A::Solution>>, number: usize| {
            let Some(solution) = solutions[number].take() else {
                unreachable!("each problem has greater numbers in its parts, and is used once")
            };
            solution
        };
        for Divided { number, problem, parts } in self.divided.into_iter().rev() {
            let parts = A::Parts::map(parts, |part| take(&mut solutions, part));
            solutions[number] = Some(algorithm.combine(X::of(cx), problem, parts));
            give_way(cx).await;
        }
        take(&mut solutions, 0)
    }
}
