//! What all PEs have counted, gathered along a tree.

use super::body::Async;
use super::context::Context;
use crate::error::TaskError;
use crate::executor::pe::processor::Processor;
use crate::executor::pe::sampling::Sample;
use crate::executor::task::activity::counts_ends;
use crate::executor::task::future::Future;
use crate::executor::task::portable::Portable;
use crate::executor::task::task_code::function;
use crate::protocol::Statistics;
use std::ops::Range;
use std::pin::Pin;
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

impl Context {
    /// The sum of what all living PEs have counted so far. This costs a task on each of them, which
    /// is not counted.
    ///
    /// # Errors
    ///
    /// The job is ending. (PEs that die meanwhile are left out.)
    pub async fn statistics(&self) -> Result<Statistics, TaskError> {
        self.gather(None).await
    }

    /// What each living PE does now that answers within some time, in order of their numbers. This
    /// costs what [`statistics`](Self::statistics) costs. With a PE that does not answer those are
    /// missing that it was to ask.
    ///
    /// # Errors
    ///
    /// As for [`statistics`](Self::statistics).
    pub async fn samples(&self, within: Duration) -> Result<Vec<Sample>, TaskError> {
        let mut samples: Vec<Sample> = self.gather(Some(within)).await?;
        samples.sort_by_key(|sample| sample.pe);
        Ok(samples)
    }

    async fn gather<G: Gathered>(&self, within: Option<Duration>) -> Result<G, TaskError> {
        // Unsupervised: no other PE may count in place of one that dies.
        gather(self.unsupervised(), (0..self.pes(), within)).await
    }

    /// Counts tasks as ended that a skeleton leaves out, since their results are known.
    #[doc(hidden)]
    pub fn note_known(&self, tasks: u64) {
        if counts_ends() {
            self.pe.note_known(tasks);
        }
    }
}

/// What each PE knows of itself, and several together.
trait Gathered: Portable {
    fn of(pe: &Processor) -> Self;
    fn merge(&mut self, others: Self);
}

impl Gathered for Statistics {
    fn of(pe: &Processor) -> Self {
        pe.local_statistics()
    }

    fn merge(&mut self, others: Self) {
        Statistics::merge(self, &others);
    }
}

impl Gathered for Vec<Sample> {
    fn of(pe: &Processor) -> Self {
        vec![pe.sample()]
    }

    fn merge(&mut self, others: Self) {
        self.extend(others);
    }
}

type Gathering<G> = Pin<Box<dyn std::future::Future<Output = Result<G, TaskError>> + Send>>;

/// Which PEs are asked, and how long they have.
type Question = (Range<u32>, Option<Duration>);

/// Of this time the PEs that a PE asks have this share, so that its own answer is in time.
const SHARE_BELOW: f64 = 0.7;

/// What those of these PEs know that live. This PE is the first of them.
fn gather<G: Gathered>(cx: Context, (pes, within): Question) -> Gathering<G> {
    Box::pin(async move {
        let end = within.map(|within| Instant::now() + within);
        let below = within.map(|within| within.mul_f64(SHARE_BELOW));
        let ask = |pes| Asked::of(&cx, pes, below);
        let branches = cx.topology().branches(cx.pe(), pes);
        let mut asked: Vec<_> = branches.filter_map(ask).collect();
        let mut total = G::of(&cx.pe);
        while let Some(Asked { others, answer }) = asked.pop() {
            let answer = match end {
                None => answer.await,
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    let Ok(answer) = cx.timeout(left, answer).await else { continue };
                    answer
                }
            };
            match answer {
                // The dead PE's answer held those of the others, so they are asked again.
                Err(TaskError::Lost { .. }) => asked.extend(ask(others)),
                answer => total.merge(answer??),
            }
        }
        Ok(total)
    })
}

/// A PE that was asked for itself and for several others.
struct Asked<G> {
    /// The PEs it answers for, apart from itself and those that died before.
    others: Range<u32>,
    answer: Future<Result<G, TaskError>>,
}

impl<G: Gathered> Asked<G> {
    /// Asks the first of these PEs that lives, if any does.
    fn of(cx: &Context, pes: Range<u32>, within: Option<Duration>) -> Option<Self> {
        let first = pes.clone().find(|pe| !cx.is_dead(Pe::new(*pe)))?;
        // Before all tasks, since these may be long.
        let count = Async(async |cx: Context, question| gather::<G>(cx, question).await);
        let answer = cx.pe.ask(Pe::new(first), function(count), (first..pes.end, within));
        Some(Asked { others: first + 1..pes.end, answer })
    }
}
