//! What tasks and messages see of their PE, and what they leave to it.

use super::{MAIN, Workers};
use crate::pe::effects::WorkerEffect;
use crate::pe::futures::{FutureSlot, LocalTask};
use crate::workload::{TaskContext, Wishes, Workload};
use ultramarine_runtime::executor::engine::Outgoing;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_topology::Topology;

/// The number of the parent of tasks that no task awaits.
const NO_TASK: u64 = u64::MAX;

impl Workers {
    pub(super) fn context<'a>(&self, topology: &'a Topology) -> TaskContext<'a> {
        TaskContext {
            pe: self.me,
            root: self.root,
            topology,
            values: &[],
            is_work_wanted: self.pool.is_empty(),
            heard: self.heard,
            wishes: Wishes::default(),
        }
    }

    /// Does what a task or a message wishes. The first task that it spawns has this future.
    pub(super) fn grant(&mut self, wishes: Wishes, first: FutureSlot) {
        for ((body, mode), child) in wishes.spawned.into_iter().zip(first.child..) {
            self.spawn(LocalTask { slot: FutureSlot { child, ..first }, body, mode });
        }
        for (pes, body) in wishes.told {
            self.outbox.push(Outgoing::Tell(pes, body));
        }
        self.effects.extend(wishes.noted.into_iter().map(WorkerEffect::Note));
        self.heard = wishes.wakes_main.or(self.heard);
        if wishes.wakes_main.is_some()
            && let Some(main) = self.running.get_mut(&MAIN)
            && std::mem::take(&mut main.is_waiting)
        {
            self.resume(MAIN);
        }
    }

    /// The program does something that is no task.
    pub(super) fn act(&mut self, act: impl FnOnce(&dyn Workload, &mut TaskContext<'_>)) {
        let topology = self.topology.clone();
        let mut cx = self.context(&topology);
        act(&*self.workload, &mut cx);
        self.grant(cx.wishes, FutureSlot { parent: NO_TASK, child: 0 });
    }

    /// A message of the program arrives.
    pub(crate) fn deliver(&mut self, body: &Bytes) {
        let mut is_known = true;
        self.act(|workload, cx| is_known = workload.receive(cx, body));
        if !is_known {
            self.fault("a message arrives damaged".to_owned());
        }
    }

    /// Lets the main task wait for a message. Returns whether none has come.
    pub(super) fn listen(&mut self) -> bool {
        let main = self.running.get_mut(&MAIN).filter(|_| self.heard.is_none());
        main.is_some_and(|main| {
            main.is_waiting = true;
            true
        })
    }
}
