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
use ultramarine_topology::Pe;

impl Context {
    /// The sum of what all living PEs have counted so far. This costs a task on each of them, which
    /// is not counted.
    ///
    /// # Errors
    ///
    /// The job is ending. (PEs that die meanwhile are left out.)
    pub async fn statistics(&self) -> Result<Statistics, TaskError> {
        self.gather().await
    }

    /// What each living PE does now, in order of their numbers. This costs what
    /// [`statistics`](Self::statistics) costs.
    ///
    /// # Errors
    ///
    /// As for [`statistics`](Self::statistics).
    pub async fn samples(&self) -> Result<Vec<Sample>, TaskError> {
        let mut samples: Vec<Sample> = self.gather().await?;
        samples.sort_by_key(|sample| sample.pe);
        Ok(samples)
    }

    async fn gather<G: Gathered>(&self) -> Result<G, TaskError> {
        // Unsupervised: no other PE may count in place of one that dies.
        gather(self.unsupervised(), 0..self.pes()).await
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

/// What those of these PEs know that live. This PE is the first of them.
fn gather<G: Gathered>(cx: Context, pes: Range<u32>) -> Gathering<G> {
    Box::pin(async move {
        let branches = cx.topology().branches(cx.pe(), pes);
        let mut asked: Vec<_> = branches.filter_map(|branch| Asked::of(&cx, branch)).collect();
        let mut total = G::of(&cx.pe);
        while let Some(Asked { others, answer }) = asked.pop() {
            match answer.await {
                // The dead PE's answer held those of the others, so they are asked again.
                Err(TaskError::Lost { .. }) => asked.extend(Asked::of(&cx, others)),
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
    fn of(cx: &Context, pes: Range<u32>) -> Option<Self> {
        let first = pes.clone().find(|pe| !cx.is_dead(Pe::new(*pe)))?;
        // Before all tasks, since these may be long.
        let count = Async(async |cx: Context, pes| gather::<G>(cx, pes).await);
        let answer = cx.pe.ask(Pe::new(first), function(count), first..pes.end);
        Some(Asked { others: first + 1..pes.end, answer })
    }
}
