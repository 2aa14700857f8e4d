//! What is left of a PE that has left the job.

use super::processor::Processor;
use crate::error::TaskError;
use crate::executor::engine::site::Outgoing;
use crate::executor::engine::turn::Engine;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl Processor {
    /// Ends the tasks that were left for a turn, of which there is none any more.
    pub(crate) fn end_outbox(&self) {
        while let Some(outgoing) = self.outbox.pop() {
            match outgoing {
                Outgoing::Task(_, task) | Outgoing::Ask(_, task) | Outgoing::Stolen(_, task) => {
                    task.future.fill(Err(TaskError::ShuttingDown));
                }
                Outgoing::Message(..) | Outgoing::Cancel(_) | Outgoing::Tell(..) => {}
            }
        }
    }

    /// Ends or drops everything that waits, and then the workers.
    pub(crate) fn close(&self) {
        self.mpi_gate.seal();
        let engine = self.engine().take();
        if let Some(link) = engine.as_ref().map(Engine::link_counters) {
            tracing::debug!(pe = self.me().number(), ?link, "the port is closed");
            if link.corrupt > 0 {
                tracing::warn!(pe = self.me().number(), "{} damaged frames came", link.corrupt);
            }
        }
        self.end_outbox();
        let futures = engine.into_iter().flat_map(Engine::into_futures);
        futures.for_each(|future| future.fill(Err(TaskError::ShuttingDown)));
        self.guests.clear();
        self.queues.clear();
        self.standby.close();
        self.timers.clear();
        self.queues.clear();
        self.store.forget(|_| true);
        self.values.clear();
        self.is_closed.store(true, Ordering::SeqCst);
        // A thread that leaves more from now on ends it itself.
        self.end_outbox();
        let workers = self.rayon.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(workers);
        drop(self.takes_part.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
