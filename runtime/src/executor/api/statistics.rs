//! What all PEs have counted, added up along a tree.

use super::body::Async;
use super::context::Context;
use crate::error::TaskError;
use crate::executor::task::future::Future;
use crate::protocol::Statistics;
use std::ops::Range;
use std::pin::Pin;
use ultramarine_topology::Pe;

type Counting = Pin<Box<dyn std::future::Future<Output = Result<Statistics, TaskError>> + Send>>;

impl Context {
    /// What all living PEs together have counted so far. Costs a task on each of them, which is not
    /// counted itself.
    pub async fn statistics(&self) -> Result<Statistics, TaskError> {
        // A PE that dies is not counted by another.
        gather_statistics(self.unsupervised(), 0..self.pes()).await
    }
}

/// What those of these PEs have counted that live. This one is among them.
fn gather_statistics(cx: Context, pes: Range<u32>) -> Counting {
    Box::pin(async move {
        let branches = cx.topology().branches(cx.pe(), pes);
        let mut asked: Vec<_> = branches.filter_map(|branch| Asked::of(&cx, branch)).collect();
        let mut total = cx.pe.local_statistics();
        while let Some(Asked { others, answer }) = asked.pop() {
            match answer.await {
                // With it went what it had heard from the others.
                Err(TaskError::Lost { .. }) => asked.extend(Asked::of(&cx, others)),
                answer => total.merge(&answer??),
            }
        }
        Ok(total)
    })
}

/// A PE that counts for several.
struct Asked {
    /// For whom, apart from itself and those that died before.
    others: Range<u32>,
    answer: Future<Result<Statistics, TaskError>>,
}

impl Asked {
    /// The first of these PEs that lives, if any does.
    fn of(cx: &Context, pes: Range<u32>) -> Option<Asked> {
        let first = pes.clone().find(|pe| !cx.is_dead(Pe::new(*pe)))?;
        // Before all tasks, which may be long.
        let count = Async(async |cx: Context, pes| gather_statistics(cx, pes).await);
        let answer = cx.pe.ask(Pe::new(first), count, first..pes.end);
        Some(Asked { others: first + 1..pes.end, answer })
    }
}
