//! What becomes of tasks that were lost: who runs them again, and when they are given up. The rules,
//! and why, are with [supervision](super::supervision).

use super::fishing::fair;
use super::message::{Fish, Need};
use super::node::{Host, Node};
use super::supervision::Fate;
use crate::error::TaskError;
use ultramarine_topology::{Distance, Pe};

/// What was lost so often goes alone to a PE that has nothing else.
const LOSSES_BEFORE_ALONE: usize = 2;

impl Node {
    /// A task of this PE was lost with that one.
    pub(super) fn lose(&mut self, future: u64, with: Pe, host: &mut impl Host) {
        match self.supervision.lose(future, with, self.settings.max_replicas) {
            Fate::Recovered => self.statistics.replicas += 1,
            Fate::Unsupervised => {
                self.statistics.lost += 1;
                host.fill(future, Err(TaskError::Lost { pe: with }));
            }
            Fate::TooOften(with) => give_up(future, with, host),
        }
    }

    /// Gives the thief tasks of this PE that were lost: one alone if it was lost twice, and then
    /// only to a thief that has nothing else.
    pub(super) fn share_lost(&mut self, fish: &Fish, host: &mut impl Host) -> bool {
        let waiting = self.supervision.waiting();
        if waiting == 0 || fish.thief == Pe::ROOT {
            return false;
        }
        let home = self.me;
        let distance = self.topology.distance(home, fish.thief);
        let alone = fish.need == Need::Idle && fish.queued == 0;
        let given = self.give(fish, usize::from(alone), host, |node, _| {
            node.supervision
                .recover(home, |radius, losses| radius >= distance && losses >= LOSSES_BEFORE_ALONE)
        });
        let wanted = fair(waiting, fish);
        given > 0
            || self.give(fish, wanted, host, |node, _| {
                node.supervision.recover(home, |radius, losses| {
                    radius >= distance && losses < LOSSES_BEFORE_ALONE
                })
            }) > 0
    }

    /// Runs the lost tasks of this PE here, if nobody else is left who could. What was lost twice even
    /// while it ran alone is given up instead: it would take this PE, too, and all other tasks with it.
    /// (Once alone is not enough: of 200 jobs in which processes were killed at random two gave up a
    /// task that was innocent.)
    pub(super) fn recover_alone(&mut self, host: &mut impl Host) {
        let (me, topology, dead) = (self.me, self.topology.clone(), &self.dead);
        let is_left =
            |pe: &u32| ![me, Pe::ROOT].contains(&Pe::new(*pe)) && !dead.contains(&Pe::new(*pe));
        let is_alone =
            |radius: Distance| !topology.ball(me, radius).numbers().any(|pe| is_left(&pe));
        // Mostly somebody is near, and then there is no need to look at each task.
        let is_anywhere_alone = || topology.radii().iter().skip(1).any(|radius| is_alone(*radius));
        if self.supervision.waiting() == 0 || topology.pes() > 1 && !is_anywhere_alone() {
            return;
        }
        let is_tame = |losses| losses <= LOSSES_BEFORE_ALONE + 1;
        while let Some(parcel) =
            self.supervision.recover(me, |radius, losses| is_alone(radius) && is_tame(losses))
        {
            host.accept(parcel);
        }
        // Somebody further away may try it first.
        self.supervision.unbound(|radius, losses| is_alone(radius) && !is_tame(losses));
        while let Some(parcel) = self.supervision.recover(me, |radius, _| is_alone(radius)) {
            let future = parcel.task.future;
            give_up(future, self.supervision.give_up(future), host);
        }
    }
}

fn give_up(future: u64, with: Vec<Pe>, host: &mut impl Host) {
    let task = host.name(future);
    host.fill(future, Err(TaskError::GaveUp { task, with }));
}
