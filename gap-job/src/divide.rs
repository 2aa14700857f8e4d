//! Divide and conquer, whose steps GAP computes.

use crate::Answer;
use crate::kernel::{Kernel, lost};
use crate::request::typed;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use ultramarine::prelude::*;
use ultramarine_gap::Value;
use ultramarine_runtime::executor::AbortOnDrop;

/// With a journal the first process divides the problem until there are this number of parts, each
/// of which is a record.
const RECORDS: usize = 1000;

/// It looks at this number of problems at most, as some cannot be divided further.
const LOOKED_AT_MAX: usize = 4 * RECORDS;

/// A function of divide and conquer, and a problem, or a part of one.
pub(crate) type Part = (Kernel, Value);

/// Solves a problem. Each part is a task: the steps of one take some 30 µs each, and a task less.
/// (The skeleton's functions await nothing; where GAP fails, a step waits for another PE.)
pub(crate) fn solve(cx: Context, (kernel, problem): Part) -> BoxFuture<'static, Answer> {
    Box::pin(async move {
        if is_trivial(&cx, &kernel, &problem).await? {
            return step(&cx, &kernel, "solve", &problem, None).await;
        }
        let parts = parts(&cx, &kernel, &problem).await?.into_iter();
        let tasks =
            parts.map(|part| cx.spawn(kernel.0.terms.radius, solve, (kernel.clone(), part)));
        let tasks: Vec<_> = tasks.map(AbortOnDrop::new).collect();
        let mut solutions = Vec::with_capacity(tasks.len());
        for task in tasks {
            solutions.push(task.await.map_err(|error| lost(&error))??);
        }
        step(&cx, &kernel, "combine", &problem, Some(solutions)).await
    })
}

async fn step(
    cx: &Context,
    kernel: &Kernel,
    step: &str,
    problem: &Value,
    solutions: Option<Vec<Value>>,
) -> Answer {
    let arguments = [step.into(), problem.clone()].into_iter();
    let arguments = arguments.chain(solutions.map(Value::List)).collect();
    kernel.clone().call(cx, arguments).await
}

async fn is_trivial(cx: &Context, kernel: &Kernel, problem: &Value) -> Answer<bool> {
    let said = step(cx, kernel, "is trivial", problem, None).await?;
    typed("whether a problem is trivial", said)
}

async fn parts(cx: &Context, kernel: &Kernel, problem: &Value) -> Answer<Vec<Value>> {
    typed("the parts", step(cx, kernel, "divide", problem, None).await?)
}

/// The problems that the first process divides by itself, level by level, and their parts: each
/// comes behind the problem that it is a part of.
#[derive(Serialize, Deserialize)]
pub(crate) struct Top {
    problems: Vec<Value>,
    /// Where the parts of a problem are; `None`: it is to be solved by tasks.
    parts: Vec<Option<Range<usize>>>,
}

impl Top {
    /// A task, so that another request can cancel it.
    pub(crate) async fn divide(cx: Context, (kernel, whole): Part) -> Answer<Self> {
        let (mut problems, mut places, mut undivided) = (vec![whole], Vec::new(), 1);
        while undivided < RECORDS && places.len() < problems.len().min(LOOKED_AT_MAX) {
            let problem = &problems[places.len()];
            if is_trivial(&cx, &kernel, problem).await? {
                places.push(None);
                continue;
            }
            let first = problems.len();
            let more = parts(&cx, &kernel, problem).await?;
            problems.extend(more);
            places.push(Some(first..problems.len()));
            undivided = undivided + problems.len() - first - 1;
        }
        places.resize(problems.len(), None);
        Ok(Top { problems, parts: places })
    }

    /// The problems that are to be solved.
    pub(crate) fn undivided(&self) -> Vec<Value> {
        let all = self.problems.iter().zip(&self.parts);
        all.filter(|(_, parts)| parts.is_none()).map(|(problem, _)| problem.clone()).collect()
    }

    /// The solution of the whole, from those of the problems that were to be solved. A task, too.
    pub(crate) async fn combine(
        cx: Context,
        (kernel, top, mut solved): (Kernel, Top, Vec<Value>),
    ) -> Answer {
        let mut solutions = vec![None; top.problems.len()];
        for (number, problem) in top.problems.iter().enumerate().rev() {
            solutions[number] = match &top.parts[number] {
                None => solved.pop(),
                Some(parts) => {
                    let parts = solutions[parts.clone()].iter_mut();
                    let parts = parts.filter_map(Option::take).collect();
                    Some(step(&cx, &kernel, "combine", problem, Some(parts)).await?)
                }
            };
        }
        solutions.swap_remove(0).ok_or_else(|| "a part has no solution".to_owned())
    }
}
