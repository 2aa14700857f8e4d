//! How the clocks of PEs differ, for the trace.
//!
//! Each PE asks the first ones of the branches below it for their time, some times in a row. The
//! answer is right within half the time that it took, and most answers that took long have waited
//! somewhere: so the quickest counts. (Cristian 1989.)

use super::body::Async;
use super::context::Context;
use crate::error::TaskError;
use crate::executor::task::task_code::function;
use crate::trace::{self, Compared};
use std::ops::Range;
use std::pin::Pin;
use ultramarine_topology::Pe;

/// For how long a PE is asked in a row, in nanoseconds.
const ASKED_NS: u64 = 20_000_000;

/// How often, at least and at most.
const ROUNDS: std::ops::Range<usize> = 3..200;

/// An answer that is as right as this is good enough, in nanoseconds: the way to another host takes
/// so long.
const GOOD_NS: u64 = 5_000;

type Comparing = Pin<Box<dyn std::future::Future<Output = Result<(), TaskError>> + Send>>;

impl Context {
    /// Has each PE note in its trace how the clocks of the PEs below it differ from its own, which
    /// takes some messages to and from each.
    ///
    /// # Errors
    ///
    /// The job is ending. (PEs that die meanwhile are left out.)
    #[doc(hidden)]
    pub async fn compare_clocks(&self) -> Result<(), TaskError> {
        compare(self.unsupervised(), 0..self.pes()).await
    }
}

fn compare(cx: Context, pes: Range<u32>) -> Comparing {
    Box::pin(async move {
        let mut below = Vec::new();
        for branch in cx.topology().branches(cx.pe(), pes) {
            let is_alive = |pe: &u32| !cx.is_dead(Pe::new(*pe));
            let Some(first) = branch.clone().find(is_alive) else { continue };
            if let Some(compared) = compare_with(&cx, Pe::new(first)).await? {
                trace::note_clock(cx.pe(), compared);
            }
            let go_on = Async(async |cx: Context, pes| compare(cx, pes).await);
            below.push(cx.pe.ask(Pe::new(first), function(go_on), first..branch.end));
        }
        for compared in below {
            unless_lost(compared.await.and_then(|result| result))?;
        }
        Ok(())
    })
}

/// What a PE's clock says, and within what time; `None` if it has none, or has died.
async fn compare_with(cx: &Context, pe: Pe) -> Result<Option<Compared>, TaskError> {
    let mut best: Option<Compared> = None;
    let begun = trace::now().unwrap_or_default();
    for round in 0..ROUNDS.end {
        let has_taken = trace::now().unwrap_or_default().saturating_sub(begun);
        let is_good = best.is_some_and(|best| best.error <= GOOD_NS);
        if round >= ROUNDS.start && (is_good || has_taken > ASKED_NS) {
            break;
        }
        let Some(sent) = trace::now() else { return Ok(None) };
        let read = Async(async |_: Context, ()| trace::now());
        let answer = unless_lost(cx.pe.ask(pe, function(read), ()).await)?;
        let (Some(Some(theirs)), Some(came)) = (answer, trace::now()) else { return Ok(None) };
        let error = came.saturating_sub(sent).div_ceil(2);
        if best.is_none_or(|best| error < best.error) {
            best = Some(Compared { pe, theirs, ours: sent + error, error });
        }
    }
    Ok(best)
}

fn unless_lost<T>(result: Result<T, TaskError>) -> Result<Option<T>, TaskError> {
    match result {
        Err(TaskError::Lost { .. }) => Ok(None),
        result => result.map(Some),
    }
}
