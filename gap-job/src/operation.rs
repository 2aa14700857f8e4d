//! The operations, each by the skeleton of its kind.

use crate::Answer;
use crate::divide::{self, Part, Top};
use crate::journal::Kept;
use crate::kernel::{self, Kernel, Made, Terms, lost};
use crate::request::{CallOptions, Request, typed};
use futures_util::StreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::ops::Range;
use std::pin::pin;
use ultramarine::prelude::*;
use ultramarine::skeletons::orbit::reachable_batched;
use ultramarine::skeletons::table::TableError;
use ultramarine::{Stateless, with_progress};
use ultramarine_gap::Value;
use ultramarine_runtime::executor::AbortOnDrop;

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
    journal: Option<Kept>,
}

impl Job {
    pub(crate) fn new(
        cx: Context,
        is_supervised: bool,
        shows_progress: bool,
        journal: Option<Kept>,
    ) -> Self {
        Job { cx, is_supervised, shows_progress, definitions: Vec::new(), journal }
    }

    /// Puts all on the disk that is kept.
    ///
    /// # Errors
    ///
    /// It cannot be written, and must be.
    pub(crate) fn finish(self) -> ultramarine::Result<()> {
        self.journal.map_or(Ok(()), Kept::finish)
    }

    /// Carries out the request of this number.
    pub(crate) async fn carry_out(&mut self, number: u64, request: Value) -> Answer {
        let Request { operation, functions, arguments, mut options } = request.try_into()?;
        let is_supervised = self.is_supervised || options.supervised;
        let cx = if is_supervised { self.cx.supervised() } else { self.cx.clone() };
        let shows_progress = self.shows_progress || options.progress;
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next().unwrap_or(Value::Nothing);
        let given = options.given.take();
        let terms = Terms { request: number, radius: options.radius };
        let definitions = &self.definitions;
        let make = |name, given| Kernel::new(&cx, terms, name, definitions, &functions, given);
        let spread = match operation.as_str() {
            "map2" => Spread::TwoLevel,
            "map2relaxed" => Spread::Relaxed,
            _ => Spread::Within,
        };
        let call = Call { cx: &cx, options, spread, shows_progress, is_supervised };
        let journal = self.journal.as_mut();
        match operation.as_str() {
            "begin" | "cancel" => Ok(Value::Nothing),
            "define" => self.define(&cx, number, typed("the definition", next())?).await,
            "map" | "map2" | "map2relaxed" => {
                let items = typed("the items", next())?;
                let name = if given.is_some() { "map_with" } else { "map" };
                call.map(journal, make(name, given)?, items).await
            }
            "reduce" => {
                let items = typed("the items", next())?;
                call.reduce(journal, make("reduce", None)?, items).await
            }
            "divide" => call.divide(journal, (make("divide", None)?, next())).await,
            "orbit" => {
                let generators = next();
                call.orbit(journal, make("images", Some(generators))?, next()).await
            }
            other => Err(format!("the job knows no operation {other}")),
        }
    }
}

impl Job {
    /// Adds a definition, unless GAP says that it is wrong, or it is cancelled: no further call
    /// could be carried out.
    async fn define(&mut self, cx: &Context, request: u64, definition: String) -> Answer {
        let mut definitions = self.definitions.clone();
        definitions.push(definition);
        let terms = Terms { request, radius: Distance::ZERO };
        let idle = Kernel::new(cx, terms, "map", &definitions, &["IdFunc".to_owned()], None)?;
        in_task(cx, run_task, (idle, 0, Vec::new())).await?;
        self.definitions = definitions;
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
    is_supervised: bool,
}

/// A task: some items, and the number of those before them in their list.
async fn run_task(cx: Context, (kernel, before, items): (Kernel, usize, Vec<Value>)) -> Answer {
    kernel.call(&cx, vec![Value::List(items), before.into()]).await
}

/// The same where no other task hears of an error: the whole request ends.
async fn run_or_end(cx: Context, task: (Kernel, usize, Vec<Value>)) -> Answer {
    let request = task.0.0.terms.request;
    let answer = run_task(cx.clone(), task).await;
    if answer.is_err() && !kernel::is_given_up(&answer) {
        kernel::cancel(&cx, request);
    }
    answer
}

/// Has a task done on this PE. Another request can cancel it, as the main task does not wait for
/// GAP with its thread.
async fn in_task<F, A, R, T>(cx: &Context, task: F, argument: A) -> Answer<R>
where
    F: Fn(Context, A) -> T + Stateless,
    A: Serialize + DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
    T: Future<Output = Answer<R>> + Send + 'static,
{
    let task = AbortOnDrop::new(cx.spawn_at(cx.pe(), task, argument));
    task.await.map_err(|error| lost(&error))?
}

/// The images of points, each under all generators.
async fn images(cx: Context, made: Shared<Made>, points: Vec<Value>) -> Answer<Vec<Vec<Value>>> {
    let mut images = Kernel(made).call(&cx, vec![Value::List(points), 0.into()]).await?;
    to_plain(&mut images);
    typed("the images of points", images)
}

/// A task: a part of a problem, and whether all tasks are supervised.
async fn solve_part(cx: Context, (part, is_supervised): (Part, bool)) -> Answer {
    let cx = if is_supervised { cx.supervised() } else { cx };
    divide::solve(cx, part).await
}

impl Call<'_> {
    async fn map(self, journal: Option<&mut Kept>, kernel: Kernel, items: Vec<Value>) -> Answer {
        let size = self.chunk(items.len(), TASKS_EACH);
        Ok(Value::List(flat(self.tasks(journal, &kernel, items, size).await?)?))
    }

    /// Combines neighbours until one value is left.
    async fn reduce(
        self,
        mut journal: Option<&mut Kept>,
        kernel: Kernel,
        mut items: Vec<Value>,
    ) -> Answer {
        while items.len() > 1 {
            let size = self.chunk(items.len(), TASKS_EACH_ROUND).max(2);
            items = self.tasks(journal.as_deref_mut(), &kernel, items, size).await?;
        }
        items.pop().ok_or_else(|| "an empty list has nothing to combine".to_owned())
    }

    /// The journal has an orbit once it is complete: its levels follow from each other.
    async fn orbit(self, journal: Option<&mut Kept>, kernel: Kernel, start: Value) -> Answer {
        let Some(journal) = journal else { return self.orbit_anew(kernel, start).await };
        let digest = kernel.digest(&(&start, self.options.length))?;
        let call = journal.call(digest);
        if !journal.missing(call, 1, 1).is_empty() {
            let orbit = self.orbit_anew(kernel, start).await?;
            journal.keep(call, 0..1, orbit)?;
        }
        journal.complete(digest).pop().ok_or_else(|| "the journal has lost an orbit".to_owned())
    }

    async fn orbit_anew(&self, kernel: Kernel, mut start: Value) -> Answer {
        to_plain(&mut start);
        if self.options.length && self.options.radius == Distance::ONE {
            self.orbit_length(kernel, start).await
        } else {
            self.orbit_in_order(kernel, start).await
        }
    }

    /// The number of points. These are spread over all PEs.
    async fn orbit_length(&self, kernel: Kernel, start: Value) -> Answer {
        let search = reachable_batched(images, Made::clone(&kernel.0), start);
        // Nothing outlives the death of a PE that is not supervised.
        let search = search.copies(self.is_supervised.into());
        let search = search.batch(self.options.chunk.unwrap_or(CHUNK_MAX));
        match self.shown(None, search.run(self.cx)).await {
            Ok(orbit) => Ok(orbit.count().into()),
            Err(TableError::Lost { .. }) if !self.is_supervised => Err(UNSUPERVISED.to_owned()),
            Err(TableError::Task(error)) => Err(lost(&error)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// All points, level by level. That the images come in order, makes the order that of `Orbit`.
    async fn orbit_in_order(&self, kernel: Kernel, start: Value) -> Answer {
        let mut known = HashSet::from([start.clone()]);
        let mut points = vec![start];
        let mut done = 0;
        while done < points.len() {
            let level = points[done..].to_vec();
            done = points.len();
            let size = self.chunk(level.len(), TASKS_EACH_ROUND);
            let images = self.tasks_anew(&kernel, chunked(size, level)).await?;
            for mut image in flat(flat(images)?)? {
                to_plain(&mut image);
                if known.insert(image.clone()) {
                    points.push(image);
                }
            }
        }
        Ok(if self.options.length { points.len().into() } else { Value::List(points) })
    }

    async fn divide(self, journal: Option<&mut Kept>, whole: Part) -> Answer {
        let Some(journal) = journal else {
            return self.shown(None, in_task(self.cx, divide::solve, whole)).await;
        };
        let kernel = whole.0.clone();
        let top = in_task(self.cx, Top::divide, whole).await?;
        let parts = top.undivided();
        let digest = kernel.digest(&parts)?;
        let part = |number: Range<usize>| {
            ((kernel.clone(), parts[number.start].clone()), self.is_supervised)
        };
        let solved = self.kept(journal, digest, (parts.len(), 1), solve_part, part).await?;
        in_task(self.cx, Top::combine, (kernel.clone(), top, solved)).await
    }

    /// The answers of tasks, each of which has this number of items at most.
    async fn tasks(
        &self,
        journal: Option<&mut Kept>,
        kernel: &Kernel,
        items: Vec<Value>,
        size: usize,
    ) -> Answer<Vec<Value>> {
        let Some(journal) = journal else {
            return self.tasks_anew(kernel, chunked(size, items)).await;
        };
        let digest = kernel.digest(&items)?;
        let some = |which: Range<usize>| (kernel.clone(), which.start, items[which].to_vec());
        self.kept(journal, digest, (items.len(), size), run_task, some).await
    }

    /// The answers of tasks for a number of items, each for `size` of them at most: from the
    /// journal what it has, and the others are kept there.
    async fn kept<A, F, T>(
        &self,
        journal: &mut Kept,
        digest: u128,
        (items, size): (usize, usize),
        task: F,
        argument: impl Fn(Range<usize>) -> A,
    ) -> Answer<Vec<Value>>
    where
        A: Serialize + DeserializeOwned + Send + 'static,
        F: Fn(Context, A) -> T + Stateless,
        T: Future<Output = Answer> + Send + 'static,
    {
        let call = journal.call(digest);
        let missing = journal.missing(call, items, size);
        let tasks: Vec<A> = missing.iter().cloned().map(argument).collect();
        let map = map_async(task, tasks).within(self.options.radius).window(missing.len());
        let work = async {
            let mut answers = pin!(map.stream(self.cx));
            while let Some(answer) = answers.next().await {
                let (number, answer) = answer.map_err(|error| lost(&error))?;
                journal.keep(call, missing[number].clone(), answer?)?;
            }
            Ok::<_, String>(())
        };
        self.shown(missing.len() as u64, work).await?;
        Ok(journal.complete(digest))
    }

    /// The answers of tasks, each of which has some items.
    async fn tasks_anew(&self, kernel: &Kernel, chunks: Vec<Vec<Value>>) -> Answer<Vec<Value>> {
        let total = chunks.len() as u64;
        let mut before = 0;
        let tasks = chunks.into_iter().map(|items| {
            before += items.len();
            (kernel.clone(), before - items.len(), items)
        });
        let radius = self.options.radius;
        if let Spread::Within = self.spread {
            let work = map_async(run_task, tasks).within(radius).try_run(self.cx);
            return self.shown(total, work).await.map_err(|error| lost(&error))?;
        }
        let mut map = map_async(run_or_end, tasks).two_level(radius);
        if let Spread::Relaxed = self.spread {
            map = map.relaxed();
        }
        let mut answers =
            self.shown(total, map.run(self.cx)).await.map_err(|error| lost(&error))?;
        // What was given up, was so because of another's error.
        let of_error = |answer: &Answer| answer.is_err() && !kernel::is_given_up(answer);
        if let Some(first) = answers.iter().position(of_error) {
            answers.swap(0, first);
        }
        answers.into_iter().collect()
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

/// What GAP's error says of points that were lost.
const UNSUPERVISED: &str =
    "a PE died, and with it points: with the option `supervised := true` others have copies";

/// Makes one value of two that are equal in GAP: the empty list and the empty string.
fn to_plain(value: &mut Value) {
    match value {
        Value::String(bytes) if bytes.is_empty() => *value = Value::List(Vec::new()),
        Value::List(values) => values.iter_mut().for_each(to_plain),
        Value::Record(components) => components.values_mut().for_each(to_plain),
        _ => {}
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
