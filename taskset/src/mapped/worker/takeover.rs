//! What becomes of what a dead worker had.
//!
//! One worker takes it over: the one whose compare-and-swap puts its number into the dead one's
//! life. If that one dies, the worker that takes it over takes over this, too, and does all of it
//! again. Each step has the same effect the second time. The queue stays where it is: others steal
//! from it, and the next worker with the slot goes on with it. So this takes no longer for a
//! million tasks than for one.
//!
//! A worker that was given up since it was silent may be in the middle of such a step, and go on
//! with it. So what it was about to take over is SILENT as well when another has done it.

use std::sync::{Mutex, PoisonError};

use super::Worker;
use super::life::{Life, Phase};
use super::watch::{Dead, Own, Watch};
use crate::mapped::arena::{Slot, Space};
use crate::mapped::blocks;
use crate::mapped::set::SetRef;
use crate::mapped::task::TaskRef;
use crate::state::{Runner, State, Status};
use crate::sync::Ordering::{AcqRel, Acquire, Release};
use std::sync::TryLockError;

impl Worker<'_> {
    /// Looks for workers that have died, and takes over what they had; `true` if there were any.
    pub(crate) fn look_for_dead(&self) -> bool {
        // One worker of a process looks at a time.
        let mut watch = match self.watch.try_lock() {
            Ok(watch) => watch,
            Err(TryLockError::Poisoned(watch)) => watch.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let dead = watch.look(self.space);
        drop(watch);
        let me = Phase::Taken(self.runner.worker.into());
        let mut taken = dead
            .into_iter()
            .filter(|dead| dead.worker != self.number())
            .filter(|dead| dead.life.become_in(&self.space.slot(dead.worker).life, me))
            .peekable();
        let are_any = taken.peek().is_some();
        taken.for_each(|dead| self.take_over(dead.worker, dead.life, !dead.is_left));
        are_any
    }

    /// Takes over a worker whose life was this; `is_sure` unless some other may still do so. The
    /// end of a worker is known on its own host alone: one that is only silent may still write.
    fn take_over(&self, dead: usize, life: Life, is_sure: bool) {
        let slot = self.space.slot(dead);
        let me = Phase::Taken(self.runner.worker.into());
        let life = Life { phase: me, ..life };
        let is_sure = is_sure && slot.home.load(Acquire) == Own::get().home;
        // What the dead one was about to take over comes with it.
        let by_dead = Phase::Taken(dead as u32);
        for other in self.space.workers() {
            let word = &self.space.slot(other).life;
            let life = Life::load(word);
            if life.phase == by_dead && life.become_in(word, me) {
                self.take_over(other, life, is_sure);
            }
        }
        self.set_idle(dead, false);
        let runner = Runner { worker: dead as u16, incarnation: life.incarnation };
        // A task for which there is no room now is found by a sweep.
        recover(self.space, runner, is_sure, |task| {
            let _ = self.enqueue(task);
        });
        if is_sure {
            set_free(slot, life);
        } else {
            life.become_in(&slot.life, Phase::Silent);
        }
    }
}

/// Makes the slot one that a new worker can have.
pub(super) fn set_free(slot: &Slot, life: Life) {
    slot.home.store(0, Release);
    slot.born.store(0, Release);
    life.become_in(&slot.life, Phase::Free);
}

/// Takes over the workers of an arena that no other process has. Their tasks go back to their own
/// queues.
pub(crate) fn take_over_all(space: &Space) {
    for word in &space.header().idle {
        word.store(0, Release);
    }
    for worker in space.workers() {
        let slot = space.slot(worker);
        let life = Life::load(&slot.life);
        if life.phase == Phase::Free {
            continue;
        }
        put_back(space, worker, life);
    }
}

/// Frees slots of dead workers for one that finds none free: all others may be busy.
///
/// This one has no number to take them over with, so that none takes that over if it dies amid it.
/// Then a slot is lost until the arena is opened alone; and no more, since a sweep finds its tasks.
pub(super) fn make_room(space: &Space, watch: &Mutex<Watch>) {
    let dead = watch.lock().unwrap_or_else(PoisonError::into_inner).look(space);
    for Dead { worker, life, is_left } in dead {
        let slot = space.slot(worker);
        let taken = Phase::Taken(worker as u32);
        let mut others = space.workers().map(|other| Life::load(&space.slot(other).life).phase);
        let is_sure = !is_left && slot.home.load(Acquire) == Own::get().home;
        if !is_sure || others.any(|phase| phase == taken) {
            continue;
        }
        let [meeting, meetings] = [&slot.meeting, &slot.meetings].map(|word| word.load(Acquire));
        // No other has had the slot since: this is where the dead one is.
        if Life::load(&slot.life) == life {
            leave(space, worker, meeting, meetings);
        }
        if life.become_in(&slot.life, taken) {
            put_back(space, worker, Life { phase: taken, ..life });
        }
    }
}

/// Puts what a worker had in its hands back into its queue, and frees the slot.
fn put_back(space: &Space, worker: usize, life: Life) {
    let slot = space.slot(worker);
    let runner = Runner { worker: worker as u16, incarnation: life.incarnation };
    slot.queue.adopt();
    recover(space, runner, true, |task| {
        // A task that finds no room is found by a sweep.
        let _ = slot.queue.push(space, task);
    });
    set_free(slot, life);
}

/// Removes a worker from the barrier where it was for the last time, and as whom.
fn leave(space: &Space, worker: usize, meeting: u64, meetings: u64) {
    if let Ok(set) = SetRef::open(space, meeting) {
        set.set.barrier.remove(worker, meetings as u32);
    }
}

/// Takes over what a dead worker had in its hands; calls `enqueue` with the tasks that are ready.
pub(super) fn recover(space: &Space, dead: Runner, is_sure: bool, mut enqueue: impl FnMut(u64)) {
    let slot = space.slot(dead.worker.into());
    let running = slot.running.load(Acquire);
    if let Ok(task) = TaskRef::open(space, running) {
        // Ready: it had left a queue, and was not claimed.
        if State::release(&task.task.state, dead) || task.state().status == Status::Ready {
            enqueue(running);
        }
    }
    slot.running.store(0, Release);
    let given = slot.inbox.given.swap(0, AcqRel);
    if given != 0 {
        enqueue(given);
    }
    let [meeting, meetings] = [&slot.meeting, &slot.meetings].map(|word| word.load(Acquire));
    leave(space, dead.worker.into(), meeting, meetings);
    slot.meeting.store(0, Release);
    if is_sure {
        blocks::recover(space, dead.worker);
    }
}
