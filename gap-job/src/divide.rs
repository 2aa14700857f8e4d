//! Divide and conquer, whose steps GAP computes.

use crate::Answer;
use crate::kernel::Kernel;
use crate::request::typed;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use ultramarine::prelude::*;
use ultramarine_gap::Value;

/// With a journal the first process divides the problem until there are this number of parts, each
/// of which is a record.
const RECORDS: usize = 1000;

/// It looks at this number of problems at most, as some cannot be divided further.
const LOOKED_AT_MAX: usize = 4 * RECORDS;

/// Solves a problem.
pub(crate) async fn solve(cx: &Context, part: Part) -> Result<Answer, TaskError> {
    let algorithm = DivideAndConquer::with_context(
        |cx: &Context, part: &Part| part.is_trivial(cx),
        |cx, part: Part| part.solve(cx),
        |cx, part| part.divide(cx),
        |cx, part, solutions: Vec<Answer>| part.combine(cx, solutions),
    );
    par_divide_and_conquer(cx, |part: &Part| part.radius, algorithm, part).await
}

/// A problem, or a part of one. An error is trivial, and its own solution.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    kernel: Kernel,
    problem: Answer,
    radius: Distance,
}

impl Part {
    pub(crate) fn whole(kernel: Kernel, problem: Value, radius: Distance) -> Self {
        Part { kernel, problem: Ok(problem), radius }
    }

    fn step(&self, cx: &Context, step: &str, solutions: Option<Vec<Value>>) -> Answer {
        let arguments = [step.into(), self.problem.clone()?].into_iter();
        let arguments: Vec<_> = arguments.chain(solutions.map(Value::List)).collect();
        self.kernel.call_here(cx, &arguments)
    }

    /// An error is found again by who solves it.
    fn is_trivial(&self, cx: &Context) -> bool {
        self.step(cx, "is trivial", None) != Ok(Value::Bool(false))
    }

    fn solve(self, cx: &Context) -> Answer {
        self.step(cx, "is trivial", None)?;
        self.step(cx, "solve", None)
    }

    fn divide(&self, cx: &Context) -> Vec<Part> {
        let part = |problem| Part { kernel: self.kernel.clone(), problem, radius: self.radius };
        match self.step(cx, "divide", None).and_then(|parts| typed("the parts", parts)) {
            Ok(parts) => Vec::<Value>::into_iter(parts).map(Ok).map(part).collect(),
            Err(error) => vec![part(Err(error))],
        }
    }

    fn combine(&self, cx: &Context, solutions: Vec<Answer>) -> Answer {
        let solutions = solutions.into_iter().collect::<Answer<Vec<_>>>()?;
        self.step(cx, "combine", Some(solutions))
    }
}

/// The problems that the first process divides by itself, level by level, and their parts: each
/// comes behind the problem that it is a part of.
pub(crate) struct Top {
    problems: Vec<Part>,
    /// Where the parts of a problem are; `None`: it is to be solved by tasks.
    parts: Vec<Option<Range<usize>>>,
}

impl Top {
    pub(crate) async fn divide(cx: &Context, whole: Part) -> Self {
        let (mut problems, mut parts, mut undivided) = (vec![whole], Vec::new(), 1);
        while undivided < RECORDS && parts.len() < problems.len().min(LOOKED_AT_MAX) {
            cx.yield_now().await;
            let problem = &problems[parts.len()];
            if problem.is_trivial(cx) {
                parts.push(None);
                continue;
            }
            let first = problems.len();
            problems.extend(problem.divide(cx));
            parts.push(Some(first..problems.len()));
            undivided += problems.len() - first - 1;
        }
        parts.resize(problems.len(), None);
        Top { problems, parts }
    }

    /// The problems that are to be solved.
    pub(crate) fn undivided(&self) -> Vec<Part> {
        let all = self.problems.iter().zip(&self.parts);
        all.filter(|(_, parts)| parts.is_none()).map(|(problem, _)| problem.clone()).collect()
    }

    /// The solution of the whole, from those of the problems that were to be solved.
    pub(crate) async fn combine(self, cx: &Context, mut solved: Vec<Value>) -> Answer {
        let mut solutions: Vec<Option<Answer>> = vec![None; self.problems.len()];
        for (number, problem) in self.problems.iter().enumerate().rev() {
            cx.yield_now().await;
            let solution = match &self.parts[number] {
                None => solved.pop().map(Ok),
                Some(parts) => {
                    let parts = solutions[parts.clone()].iter_mut();
                    Some(problem.combine(cx, parts.filter_map(Option::take).collect()))
                }
            };
            solutions[number] = solution;
        }
        solutions.swap_remove(0).unwrap_or_else(|| Err("a part has no solution".to_owned()))
    }
}

/// The problems, as they are known to a journal.
pub(crate) fn problems(parts: &[Part]) -> Vec<Answer> {
    parts.iter().map(|part| part.problem.clone()).collect()
}
