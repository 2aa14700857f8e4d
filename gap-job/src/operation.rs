//! The operations, each by the skeleton of its kind.

use crate::Answer;
use crate::kernel::Kernel;
use crate::request::{CallOptions, Request, typed};
use std::collections::HashSet;
use ultramarine::prelude::*;
use ultramarine::with_progress;
use ultramarine_gap::Value;

/// Without the option `chunk` a map has this many tasks for each worker: the last one takes some 1%
/// of the time, also where the work grows along the items.
const TASKS_EACH: usize = 100;

/// The same where many rounds of tasks follow on each other, each with a little work.
const TASKS_EACH_ROUND: usize = 8;

/// Nor has a task more items than this. A call of GAP costs some 30 µs with its task; of an empty
/// function that is less than 1 µs an item.
const CHUNK_MAX: usize = 64;

/// The job, as its requests see it.
pub(crate) struct Job {
    cx: Context,
    is_supervised: bool,
    shows_progress: bool,
    /// What each GAP reads before its next kernel.
    definitions: Vec<String>,
}

impl Job {
    pub(crate) fn new(cx: Context, is_supervised: bool, shows_progress: bool) -> Self {
        Job { cx, is_supervised, shows_progress, definitions: Vec::new() }
    }

    /// Carries out a request.
    pub(crate) async fn carry_out(&mut self, request: Value) -> Answer {
        let Request { operation, functions, arguments, mut options } = request.try_into()?;
        let is_supervised = self.is_supervised || options.supervised;
        let cx = if is_supervised { self.cx.supervised() } else { self.cx.clone() };
        let shows_progress = self.shows_progress || options.progress;
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next().unwrap_or(Value::Nothing);
        let given = options.given.take();
        let make = |name, given| Kernel::new(&cx, name, &self.definitions, &functions, given);
        let spread = match operation.as_str() {
            "map2" => Spread::TwoLevel,
            "map2relaxed" => Spread::Relaxed,
            _ => Spread::Within,
        };
        let call = Call { cx: &cx, options, spread, shows_progress };
        match operation.as_str() {
            "begin" | "cancel" => Ok(Value::Nothing),
            "define" => self.define(&cx, typed("the definition", next())?),
            "map" | "map2" | "map2relaxed" => {
                let items = typed("the items", next())?;
                let name = if given.is_some() { "map_with" } else { "map" };
                call.map(make(name, given), items).await
            }
            "reduce" => {
                let items = typed("the items", next())?;
                call.reduce(make("reduce", None), items).await
            }
            "divide" => call.divide(make("divide", None), next()).await,
            "orbit" => {
                let generators = next();
                call.orbit(make("images", Some(generators)), next()).await
            }
            other => Err(format!("the job knows no operation {other}")),
        }
    }
}

impl Job {
    /// Adds a definition, unless GAP says that it is wrong: no further call could be carried out.
    fn define(&mut self, cx: &Context, definition: String) -> Answer {
        self.definitions.push(definition);
        let idle = Kernel::new(cx, "map", &self.definitions, &["IdFunc".to_owned()], None);
        idle.call_here(cx, &[Value::List(Vec::new())])
            .inspect_err(|_| drop(self.definitions.pop()))?;
        Ok(Value::Nothing)
    }
}

/// Which PEs run which tasks of a map.
#[derive(Clone, Copy)]
enum Spread {
    Within,
    TwoLevel,
    Relaxed,
}

/// A call with its options.
struct Call<'a> {
    cx: &'a Context,
    options: CallOptions,
    spread: Spread,
    shows_progress: bool,
}

/// A task: some items.
async fn run_task(cx: Context, (kernel, items): (Kernel, Vec<Value>)) -> Answer {
    kernel.call(&cx, vec![Value::List(items)]).await
}

impl Call<'_> {
    async fn map(self, kernel: Kernel, items: Vec<Value>) -> Answer {
        let size = self.chunk(items.len(), TASKS_EACH);
        let results = self.tasks(kernel, chunked(size, items)).await?;
        Ok(Value::List(flat(results)?))
    }

    /// Combines neighbours until one value is left.
    async fn reduce(self, kernel: Kernel, mut items: Vec<Value>) -> Answer {
        while items.len() > 1 {
            let size = self.chunk(items.len(), TASKS_EACH_ROUND).max(2);
            items = self.tasks(kernel.clone(), chunked(size, items)).await?;
        }
        items.pop().ok_or_else(|| "an empty list has nothing to combine".to_owned())
    }

    /// The orbit, level by level. That the images come in order, makes the order that of `Orbit`.
    async fn orbit(self, kernel: Kernel, start: Value) -> Answer {
        let mut known = HashSet::from([start.clone()]);
        let mut points = vec![start];
        let mut done = 0;
        while done < points.len() {
            let level = points[done..].to_vec();
            done = points.len();
            let size = self.chunk(level.len(), TASKS_EACH_ROUND);
            let images = self.tasks(kernel.clone(), chunked(size, level));
            for image in flat(images.await?)? {
                if known.insert(image.clone()) {
                    points.push(image);
                }
            }
        }
        Ok(if self.options.length { points.len().into() } else { Value::List(points) })
    }

    async fn divide(self, kernel: Kernel, problem: Value) -> Answer {
        let algorithm = DivideAndConquer::with_context(
            |cx: &Context, part: &Part| part.is_trivial(cx),
            |cx, part: Part| part.solve(cx),
            |cx, part| part.divide(cx),
            |cx, part, solutions: Vec<Answer>| part.combine(cx, solutions),
        );
        let part = Part { kernel, problem: Ok(problem), radius: self.options.radius };
        let work = par_divide_and_conquer(self.cx, |part: &Part| part.radius, algorithm, part);
        self.shown(None, work).await.map_err(|error| lost(&error))?
    }

    /// The answers of tasks, each of which has some items.
    async fn tasks(&self, kernel: Kernel, chunks: Vec<Vec<Value>>) -> Answer<Vec<Value>> {
        let total = chunks.len() as u64;
        let tasks = chunks.into_iter().map(|items| (kernel.clone(), items));
        let (map, radius) = (map_async(run_task, tasks), self.options.radius);
        let results = match self.spread {
            Spread::Within => {
                let work = map.within(radius).try_run(self.cx);
                return self.shown(total, work).await.map_err(|error| lost(&error))?;
            }
            Spread::TwoLevel => self.shown(total, map.two_level(radius).run(self.cx)).await,
            Spread::Relaxed => {
                self.shown(total, map.two_level(radius).relaxed().run(self.cx)).await
            }
        };
        results.map_err(|error| lost(&error))?.into_iter().collect()
    }

    async fn shown<T>(&self, total: impl Into<Option<u64>>, work: impl Future<Output = T>) -> T {
        if self.shows_progress { with_progress(self.cx, total, work).await } else { work.await }
    }

    /// The number of items of a task, of this number in all.
    fn chunk(&self, items: usize, tasks_each: usize) -> usize {
        let workers = self.cx.pes() as usize * self.cx.threads();
        self.options.chunk.unwrap_or_else(|| (items / (workers * tasks_each)).clamp(1, CHUNK_MAX))
    }
}

/// A problem of divide and conquer. An error is trivial, and its own solution.
#[derive(serde::Serialize, serde::Deserialize)]
struct Part {
    kernel: Kernel,
    problem: Answer,
    radius: Distance,
}

impl Part {
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

    fn combine(self, cx: &Context, solutions: Vec<Answer>) -> Answer {
        let solutions = solutions.into_iter().collect::<Answer<Vec<_>>>()?;
        self.step(cx, "combine", Some(solutions))
    }
}

/// What GAP's error says of a task that has ended without an answer.
fn lost(error: &TaskError) -> String {
    match error {
        TaskError::Lost { pe, .. } => format!(
            "a task may have been lost with {pe}, which died: with the option `supervised := \
             true` it runs again"
        ),
        error => error.to_string(),
    }
}

/// Tasks of this number of items each.
fn chunked(size: usize, items: Vec<Value>) -> Vec<Vec<Value>> {
    let mut items = items.into_iter();
    let chunk = || Some(items.by_ref().take(size).collect()).filter(|c: &Vec<_>| !c.is_empty());
    std::iter::from_fn(chunk).collect()
}

/// The values of some lists.
fn flat(lists: Vec<Value>) -> Answer<Vec<Value>> {
    let lists = lists.into_iter().map(|list| typed("the values of a task", list));
    Ok(lists.collect::<Answer<Vec<Vec<Value>>>>()?.into_iter().flatten().collect())
}
