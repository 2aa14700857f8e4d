//! The pool's shelves as lock-free deques, and the ready queue.
//!
//! Each worker has a deque for each radius. It alone pushes to the deque and takes the youngest
//! task; all other threads take the oldest (Chase and Lev's deque). Threads that are not workers of
//! the PE push to one common queue for each radius. Which shelf is looked at first is decided by
//! the protocol's [`Pool`], here as everywhere.
//!
//! Before all shelves come tasks that were placed on this PE, and the ready queue: tasks that
//! waited for something and can go on.

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

pub(crate) use super::shelves::CommonShelf;

use super::shelves::{WorkerShelf, take};
use super::wanted::Wanted;
use crate::code::Name;
use crate::executor::task::activity::Activity;
use crate::lock::Lock;
use crate::protocol::{Pool, Radii};
use async_task::Runnable;
use crossbeam_deque::{Injector, Stealer, Worker as Deque};
use crossbeam_queue::SegQueue;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A task that waits in the queues of a PE.
pub(crate) trait Queued: Send + Sized + 'static {
    /// The name of its function, if that is known before the start.
    fn function(&self) -> Option<Name>;

    /// Ends a task that will not be run.
    fn call_off(self);

    /// Gives access to the calling thread's seat. (A thread has one seat. The static stands where
    /// the type of the tasks is known.)
    fn with_seat<R>(act: impl FnOnce(&RefCell<Option<Seat<Self>>>) -> R) -> R;
}

/// Something for a worker to do.
pub(crate) enum Work<T> {
    /// A task that no thread has started.
    Start(T),
    /// A task that waited for something and can go on.
    Resume(Ready),
}

/// A task that can go on.
pub(crate) enum Ready {
    Task(Runnable),
    /// The main task, unless another thread runs it meanwhile.
    Main,
}

/// All queues of a PE.
pub(crate) struct Queues<T> {
    pub(crate) radii: Radii,
    /// Tasks from threads that are not workers, by radius.
    arrived: Box<[Arc<Injector<T>>]>,
    /// What comes before all tasks: messages to be read.
    urgent: SegQueue<T>,
    /// Tasks that were placed on this PE.
    placed: SegQueue<T>,
    /// Tasks that can go on, from threads that are not workers.
    ready: SegQueue<Ready>,
    /// Whether a thief asks for work.
    pub(crate) wanted: Wanted,
    workers: Box<[WorkerStealers<T>]>,
    /// The number of tasks that were started by threads without deques.
    started_without_deques: Activity,
    /// What the workers without deques do.
    substitutes: Lock<Vec<Arc<Activity>>>,
}

/// The ends of a worker's deques that other threads use.
struct WorkerStealers<T> {
    ready: Stealer<Ready>,
    shelves: Box<[Stealer<T>]>,
    activity: Arc<Activity>,
}

/// A worker looks at this number of other workers to see whether there is something to steal.
const GLANCES: usize = 4;

/// A worker resumes this number of tasks without starting one; then it looks at the shelves first.
const RESUMED_MAX: u32 = 256;

/// A worker's own ends of its deques.
pub(crate) struct Deques<T> {
    index: usize,
    activity: Arc<Activity>,
    ready: Deque<Ready>,
    /// How often it has asked for work.
    asked: u8,
    /// How many tasks have gone on since it last started one.
    resumed: u32,
    /// The next of the other workers to look at.
    glance: usize,
    own: Pool<WorkerShelf<T>>,
    /// The common shelves: those of all workers, and the common queues.
    common: Pool<CommonShelf<T>>,
}

/// Adds one to a counter that only this thread writes.
fn count(number: &AtomicU64) {
    number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// A worker's *seat*: the queues it serves, and how it takes tasks from them.
pub(crate) struct Seat<T> {
    queues: Arc<Queues<T>>,
    kind: WorkerKind<T>,
}

/// How a worker takes tasks.
enum WorkerKind<T> {
    /// From its own deques first, then from the common shelves.
    Regular(Deques<T>),
    /// It replaces a stuck worker and has no deques: only from the common shelves.
    Substitute(Pool<CommonShelf<T>>),
}

impl<T: Queued> Queues<T> {
    /// The queues of a PE with this number of workers, and the workers' ends of them.
    pub(crate) fn new(radii: Radii, threads: usize) -> (Arc<Self>, Vec<Deques<T>>) {
        let shelves = || (0..radii.count()).map(|_| Deque::new_lifo()).collect::<Vec<_>>();
        let own: Vec<Vec<Deque<T>>> = (0..threads).map(|_| shelves()).collect();
        let ready: Vec<Deque<Ready>> = (0..threads).map(|_| Deque::new_fifo()).collect();
        let ends = |(shelves, ready): (&Vec<Deque<T>>, &Deque<Ready>)| WorkerStealers {
            ready: ready.stealer(),
            shelves: shelves.iter().map(Deque::stealer).collect(),
            activity: Arc::default(),
        };
        let queues = Arc::new(Queues {
            arrived: (0..radii.count()).map(|_| Arc::default()).collect(),
            urgent: SegQueue::new(),
            placed: SegQueue::new(),
            ready: SegQueue::new(),
            wanted: Wanted::default(),
            workers: own.iter().zip(&ready).map(ends).collect(),
            radii,
            started_without_deques: Activity::default(),
            substitutes: Lock::default(),
        });
        let deques =
            own.into_iter().zip(ready).enumerate().map(|(index, (shelves, ready))| Deques {
                index,
                activity: queues.workers[index].activity.clone(),
                ready,
                asked: 0,
                resumed: 0,
                glance: 0,
                own: Pool::new(shelves.into_iter().map(WorkerShelf)),
                common: queues.common(index + 1),
            });
        let deques = deques.collect();
        (queues, deques)
    }

    /// The common shelves as one pool. Tasks of worker `next` are taken first.
    pub(crate) fn common(&self, next: usize) -> Pool<CommonShelf<T>> {
        Pool::new((0..self.radii.count()).map(|shelf| CommonShelf {
            arrived: self.arrived[shelf].clone(),
            workers: self.workers.iter().map(|worker| worker.shelves[shelf].clone()).collect(),
            next,
        }))
    }

    /// Makes the calling thread a worker.
    pub(crate) fn seat(self: &Arc<Self>, deques: Deques<T>) {
        deques.activity.bind_to_this_thread();
        self.take_seat(WorkerKind::Regular(deques));
    }

    /// Makes the calling thread a worker without deques, in place of a stuck one.
    pub(crate) fn seat_substitute(self: &Arc<Self>) {
        let activity = Arc::<Activity>::default();
        activity.bind_to_this_thread();
        self.substitutes.lock().push(activity);
        self.take_seat(WorkerKind::Substitute(self.common(0)));
    }

    fn take_seat(self: &Arc<Self>, kind: WorkerKind<T>) {
        T::with_seat(|seat| seat.replace(Some(Seat { queues: self.clone(), kind })));
    }

    /// Runs `act` on a worker of this PE. `None` on any other thread.
    fn with_kind<R>(&self, act: impl FnOnce(&mut WorkerKind<T>) -> R) -> Option<R> {
        T::with_seat(|seat| {
            let mut seat = seat.borrow_mut();
            let seat = seat.as_mut().filter(|seat| std::ptr::eq(&raw const *seat.queues, self))?;
            Some(act(&mut seat.kind))
        })
    }

    /// Runs `act` on the calling worker's deques. `None` on a thread that has none here.
    fn with_deques<R>(&self, act: impl FnOnce(&mut Deques<T>) -> R) -> Option<R> {
        self.with_kind(|kind| match kind {
            WorkerKind::Regular(deques) => Some(act(deques)),
            WorkerKind::Substitute(_) => None,
        })?
    }

    /// Whether the calling thread is a worker of this PE.
    pub(crate) fn is_worker(&self) -> bool {
        self.with_kind(|_| ()).is_some()
    }

    /// Puts a fork on a shelf if it can be pulled back from there. Returns whether it did. A thread
    /// without deques cannot pull anything back: forks would pile up in the common queue. It puts
    /// one there only while no other task waits there, so that thieves find something.
    pub(crate) fn push_fork(&self, shelf: usize, task: T) -> bool {
        let mut task = Some(task);
        self.with_deques(|own| own.own.shelf(shelf).0.push(task.take().expect("taken only here")));
        match task {
            None => true,
            Some(task) if self.arrived[shelf].is_empty() => {
                self.arrived[shelf].push(task);
                true
            }
            Some(_) => false,
        }
    }

    /// Puts a task on a shelf of the pool. Returns whether the calling thread is a worker with
    /// shelves.
    pub(crate) fn push(&self, shelf: usize, task: T) -> bool {
        let mut task = Some(task);
        self.with_deques(|own| own.own.shelf(shelf).0.push(task.take().expect("taken only here")));
        match task {
            None => true,
            Some(task) => {
                self.arrived[shelf].push(task);
                false
            }
        }
    }

    /// Takes a task off its shelf again if it is the calling worker's youngest there. Else it
    /// stays, and the thread that takes it finds that it has been started.
    pub(crate) fn pull_back(&self, shelf: usize, is_it: impl FnOnce(&T) -> bool) {
        self.with_deques(|own| {
            let shelf = &own.own.shelf(shelf).0;
            if let Some(youngest) = shelf.pop() {
                if is_it(&youngest) {
                    count(&own.activity.started);
                } else {
                    shelf.push(youngest);
                }
            }
        });
    }

    /// Puts a task before all shelves.
    pub(crate) fn place(&self, task: T) {
        self.placed.push(task);
    }

    /// Puts something before the tasks that were placed.
    pub(crate) fn place_first(&self, task: T) {
        self.urgent.push(task);
    }

    /// Puts a task that can go on before all shelves.
    pub(crate) fn push_ready(&self, task: Ready) {
        let mut task = Some(task);
        self.with_deques(|own| own.ready.push(task.take().expect("taken only here")));
        task.into_iter().for_each(|task| self.ready.push(task));
    }

    /// The next work of the calling worker. `None` on any other thread.
    pub(crate) fn next(&self) -> Option<Work<T>> {
        self.with_kind(|kind| match kind {
            WorkerKind::Regular(own) => self.next_of(own),
            WorkerKind::Substitute(common) => {
                let work = (self.next_placed())
                    .or_else(|| self.next_ready(None))
                    .or_else(|| common.select_local().map(Work::Start))
                    .or_else(|| self.steal_ready())?;
                if matches!(work, Work::Start(_)) {
                    self.started_without_deques.started.fetch_add(1, Ordering::Relaxed);
                }
                Some(work)
            }
        })?
    }

    /// A task that can go on, for a worker that must start none. `None` on any other thread.
    pub(crate) fn next_to_resume(&self) -> Option<Work<T>> {
        self.with_kind(|kind| match kind {
            WorkerKind::Regular(own) => self.next_ready(Some(own)).or_else(|| self.steal_ready()),
            WorkerKind::Substitute(_) => self.next_ready(None).or_else(|| self.steal_ready()),
        })?
    }

    /// What comes before all tasks, for a thread that is no worker.
    pub(crate) fn next_urgent(&self) -> Option<T> {
        let task = self.urgent.pop()?;
        self.started_without_deques.started.fetch_add(1, Ordering::Relaxed);
        Some(task)
    }

    fn next_placed(&self) -> Option<Work<T>> {
        // These queues are mostly empty. Looking first needs no fence, as trying does.
        let take = |queue: &SegQueue<T>| if queue.is_empty() { None } else { queue.pop() };
        take(&self.urgent).or_else(|| take(&self.placed)).map(Work::Start)
    }

    fn next_ready(&self, own: Option<&Deques<T>>) -> Option<Work<T>> {
        // First what other threads have put there. Otherwise a task that yields would always come
        // before it.
        (if self.ready.is_empty() { None } else { self.ready.pop() })
            .or_else(|| own?.ready.pop())
            .map(Work::Resume)
    }

    fn steal_ready(&self) -> Option<Work<T>> {
        let steal = |worker: &WorkerStealers<T>| take(|| worker.ready.steal());
        self.workers.iter().find_map(steal).map(Work::Resume)
    }

    /// The next work of a worker with deques.
    fn next_of(&self, own: &mut Deques<T>) -> Option<Work<T>> {
        // Now and then the ready queue comes first: tasks that keep placing others would hold it up
        // for ever. So do shelves where tasks only go on: one may yield until another has run.
        own.asked = own.asked.wrapping_add(1);
        let favoured = if own.asked == 0 {
            self.next_ready(Some(own))
        } else if own.resumed >= RESUMED_MAX {
            let task = own.own.select_local().or_else(|| own.common.select_local());
            task.map(Work::Start)
        } else {
            None
        };
        let work = favoured
            .or_else(|| self.next_placed())
            .or_else(|| self.next_ready(Some(own)))
            .or_else(|| own.own.select_local().map(Work::Start))
            .or_else(|| own.common.select_local().map(Work::Start))
            .or_else(|| self.steal_ready())?;
        let activity = &own.activity;
        match &work {
            Work::Start(task) => {
                own.resumed = 0;
                activity.function.set(task.function());
                count(&activity.started);
            }
            Work::Resume(_) => {
                own.resumed = own.resumed.saturating_add(1);
                activity.function.set(None);
                count(&activity.resumed);
            }
        }
        Some(work)
    }

    /// Whether there is nothing to do. The answer may be outdated at once.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_ready() && self.has_none_to_steal()
    }

    /// Whether something waits that comes before all tasks.
    pub(crate) fn has_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Whether something waits that comes before all shelves.
    pub(crate) fn has_ready(&self) -> bool {
        !self.urgent.is_empty() || !self.placed.is_empty() || self.can_resume()
    }

    /// Whether a task can go on.
    pub(crate) fn can_resume(&self) -> bool {
        !self.ready.is_empty() || self.workers.iter().any(|worker| !worker.ready.is_empty())
    }

    /// Whether no task waits that a worker could steal.
    pub(crate) fn has_none_to_steal(&self) -> bool {
        self.arrived.iter().all(|queue| queue.is_empty())
            && self.workers.iter().all(|worker| worker.shelves.iter().all(Stealer::is_empty))
    }

    /// The same as the calling worker sees it: of the others it looks at a few in turn. (To look at
    /// all of 64 workers took 1.7 µs.)
    pub(crate) fn sees_none_to_steal(&self) -> bool {
        let has_none = |worker: usize| self.workers[worker].shelves.iter().all(Stealer::is_empty);
        let seen = self.with_deques(|own| {
            let others = self.workers.len() - 1;
            let looks = GLANCES.min(others);
            let begin = own.glance;
            own.glance = (begin + looks).checked_rem(others).unwrap_or(0);
            let other = |n| (own.index + 1 + (begin + n) % others) % self.workers.len();
            has_none(own.index)
                && self.arrived.iter().all(|queue| queue.is_empty())
                && (0..looks).map(other).all(has_none)
        });
        seen.unwrap_or_else(|| self.has_none_to_steal())
    }

    /// How many tasks wait on the calling worker's own shelves; `usize::MAX` if it has none.
    pub(crate) fn own_len(&self) -> usize {
        self.with_deques(|own| own.own.len()).unwrap_or(usize::MAX)
    }

    /// The number of tasks that have been started.
    pub(crate) fn started(&self) -> u64 {
        let all = self.activities().chain([&self.started_without_deques]);
        all.map(|activity| activity.started.load(Ordering::Relaxed)).sum()
    }

    /// The number of this PE's own tasks that have ended here, since that is counted.
    pub(crate) fn ended(&self) -> u64 {
        let of = |activity: &Activity| activity.ended.load(Ordering::Relaxed);
        let substitutes: u64 = self.substitutes.lock().iter().map(|activity| of(activity)).sum();
        self.activities().map(of).sum::<u64>() + substitutes
    }

    /// What each worker with deques does.
    pub(crate) fn activities(&self) -> impl Iterator<Item = &Activity> + Clone {
        self.workers.iter().map(|worker| &*worker.activity)
    }

    /// Ends or drops everything in the queues. Any thread may call this.
    pub(crate) fn clear(&self) {
        while let Some(task) = self.urgent.pop().or_else(|| self.placed.pop()) {
            task.call_off();
        }
        while let Some(task) = self.ready.pop() {
            drop(task);
        }
        self.arrived.iter().for_each(|q| {
            while let Some(task) = take(|| q.steal()) {
                task.call_off();
            }
        });
        for worker in &self.workers {
            while let Some(task) = take(|| worker.ready.steal()) {
                drop(task);
            }
            for shelf in &worker.shelves {
                while let Some(task) = take(|| shelf.steal()) {
                    task.call_off();
                }
            }
        }
    }
}
