//! The statistics of all PEs, added up along a tree.

use super::body::Async;
use super::context::Context;
use crate::error::TaskError;
use crate::executor::task::activity::counts_ends;
use crate::executor::task::future::Future;
use crate::executor::task::task_code::function;
use crate::protocol::Statistics;
use std::ops::Range;
use std::pin::Pin;
use ultramarine_topology::Pe;

type Counting = Pin<Box<dyn std::future::Future<Output = Result<Statistics, TaskError>> + Send>>;

impl Context {
    /// The sum of what all living PEs have counted so far. This costs a task on each of them, which
    /// is not counted.
    ///
    /// # Errors
    ///
    /// The job is ending. (PEs that die meanwhile are left out.)
    pub async fn statistics(&self) -> Result<Statistics, TaskError> {
        // Unsupervised: no other PE may count in place of one that dies.
        gather_statistics(self.unsupervised(), 0..self.pes()).await
    }

    /// Counts tasks as ended that a skeleton leaves out, since their results are known.
    #[doc(hidden)]
    pub fn note_known(&self, tasks: u64) {
        if counts_ends() {
            self.pe.note_known(tasks);
        }
    }
}

/// The sum over those of these PEs that live. This PE is the first of them.
fn gather_statistics(cx: Context, pes: Range<u32>) -> Counting {
    Box::pin(async move {
        let branches = cx.topology().branches(cx.pe(), pes);
        let mut asked: Vec<_> = branches.filter_map(|branch| Asked::of(&cx, branch)).collect();
        let mut total = cx.pe.local_statistics();
        while let Some(Asked { others, answer }) = asked.pop() {
            match answer.await {
                // The dead PE's answer held those of the others, so they are asked again.
                Err(TaskError::Lost { .. }) => asked.extend(Asked::of(&cx, others)),
                answer => total.merge(&answer??),
            }
        }
        Ok(total)
    })
}

/// A PE that was asked to count for itself and for several others.
struct Asked {
    /// The PEs it counts for, apart from itself and those that died before.
    others: Range<u32>,
    answer: Future<Result<Statistics, TaskError>>,
}

impl Asked {
    /// Asks the first of these PEs that lives, if any does.
    fn of(cx: &Context, pes: Range<u32>) -> Option<Asked> {
        let first = pes.clone().find(|pe| !cx.is_dead(Pe::new(*pe)))?;
        // Before all tasks, since these may be long.
        let count = Async(async |cx: Context, pes| gather_statistics(cx, pes).await);
        let answer = cx.pe.ask(Pe::new(first), function(count), first..pes.end);
        Some(Asked { others: first + 1..pes.end, answer })
    }
}
