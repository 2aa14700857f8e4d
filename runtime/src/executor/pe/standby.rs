//! What must not wait for a free worker: the root's main task, and messages.
//!
//! Workers do these first, between two tasks. If all workers are inside long tasks, the *standby*
//! thread does them. It is started when it is first needed, and sleeps otherwise.

use super::processor::{Processor, Task};
use crate::code::Name;
use crate::executor::schedule::queues::Ready;
use crate::executor::schedule::standby::{Called, urgently};
use crate::executor::schedule::threads::STACK_BYTES;
use crate::executor::task::activity::current_function;
use crate::executor::task::caught::discard_with;
use crate::executor::task::start::{Effort, Packed, Start};
use crate::forked::end_if_forked;
use crate::lock::Lock;
use crate::trace;
use async_task::Runnable;
use std::sync::Arc;

/// A task that must not wait for a worker.
pub(crate) struct Urgent(pub(crate) Task);

impl Start<Processor> for Urgent {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        pe.counts.leave_out_start();
        urgently(|| discard_with(|| self.0.clone().start(pe)));
    }

    fn pack(self: Arc<Self>, _: &Processor, _: Effort) -> Option<Packed<Task>> {
        unreachable!("it was placed here, and stands on no shelf")
    }

    fn call_off(&self) {
        self.0.call_off();
    }

    fn function(&self) -> Option<Name> {
        self.0.function()
    }
}

/// An urgent task that has waited for something and can go on.
struct UrgentResume(Lock<Option<Runnable>>);

impl Start<Processor> for UrgentResume {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        pe.counts.leave_out_start();
        let runnable = self.0.lock().take();
        urgently(|| runnable.into_iter().for_each(run));
    }

    fn pack(self: Arc<Self>, _: &Processor, _: Effort) -> Option<Packed<Task>> {
        unreachable!("it was placed here, and stands on no shelf")
    }
}

impl Processor {
    /// Runs a future as the main task.
    pub(crate) fn run_main<T>(self: &Arc<Self>, future: T)
    where
        T: std::future::Future<Output = ()> + Send + 'static,
    {
        let pe = self.clone();
        let schedule = move |runnable| pe.resume_main(runnable);
        let (runnable, task) = async_task::spawn(future, schedule);
        task.detach();
        self.resume_main(runnable);
    }

    fn resume_main(self: &Arc<Self>, runnable: Runnable) {
        let Some(is_news) = self.crew.standby.offer_main(runnable) else { return };
        if is_news {
            self.queues.push_ready(Ready::Main);
        }
        if !self.is_ending() && !self.wake_worker() && !self.queues.is_worker() {
            self.call_standby();
        }
    }

    /// Resumes an urgent task.
    pub(crate) fn resume_first(self: &Arc<Self>, runnable: Runnable) {
        if self.is_closed() {
            return;
        }
        self.queues.place_first(Arc::new(UrgentResume(Lock::new(Some(runnable)))));
        if !self.is_ending() && !self.wake_worker() {
            // The driver calls the standby if no worker comes.
            self.nudge();
        }
    }

    /// Runs the main task on a worker that has found its announcement in a queue, unless another
    /// thread has taken it.
    pub(crate) fn run_announced_main(&self) {
        self.crew.standby.take_announced_main().into_iter().for_each(run);
    }

    /// Called now and then by the driver: calls the standby if something urgent has waited for too
    /// long.
    pub(crate) fn call_standby_if_late(self: &Arc<Self>) {
        if self.crew.standby.has_waited_too_long(self.queues.has_urgent()) {
            self.call_standby();
        }
    }

    /// Calls the standby, unless a worker has nothing else to do.
    fn call_standby(self: &Arc<Self>) {
        // A worker that is stuck in MPI stays counted as idle.
        let gate = &self.turns.mpi_gate;
        if self.crew.has_idle(gate.lost_workers() - gate.lost_busy_workers()) {
            return;
        }
        let called = self.crew.standby.call();
        if called != Called::Awake {
            // The driver looks now and then whether a task blocks the standby.
            self.nudge();
        }
        if called != Called::NoThread {
            return;
        }
        let pe = self.clone();
        let stand_by = move || {
            trace::join(pe.me(), "standby");
            pe.crew.standby.stand_by(|| pe.stand_in());
        };
        let name = format!("pe{}-standby", self.me().number());
        let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(stand_by);
        if let Err(error) = thread {
            self.crew.standby.note_no_thread();
            tracing::warn!(pe = self.me().number(), "nothing stands in for the workers: {error}");
        }
    }

    /// Does everything that is urgent.
    fn stand_in(self: &Arc<Self>) {
        while !self.is_ending() {
            let begun = trace::begin_run();
            if let Some(main) = self.crew.standby.take_main() {
                run(main);
            } else if let Some(task) = self.queues.next_urgent() {
                discard_with(|| task.start(self));
            } else {
                trace::call_off(begun);
                break;
            }
            end_if_forked();
            if let Some(begun) = begun {
                trace::note_run(current_function(), begun);
            }
            self.crew.standby.note_between_tasks();
        }
    }
}

fn run(runnable: Runnable) {
    // The task's own panics are caught. This is for what is dropped after that.
    discard_with(|| {
        runnable.run();
    });
}
