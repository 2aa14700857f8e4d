//! Lost tasks: which PE runs them again, and when they are given up. The rules and their reasons
//! are in [`supervision`](super::supervision).

use super::fishing::fair;
use super::message::{Fish, Message, Need};
use super::node::{Host, Node};
use super::supervision::{LossOutcome, Suspicion};
use super::victim::first_victim;
use crate::error::TaskError;
use std::time::Duration;
use ultramarine_topology::{Distance, Pe};

/// How long a task that was lost twice waits at most for a PE that has nothing else to do.
const SUSPECTS_WAIT: Duration = Duration::from_secs(2);

/// How many PEs are drawn for it then, to find one without another such task.
const TRIES: usize = 4;

impl Node {
    /// Loses the tasks of this PE that may have been lost with these PEs, as many as this turn may.
    pub(super) fn lose_all(&mut self, with: &[Pe], host: &mut impl Host) {
        self.losses.dead.extend(with);
        self.lose_more(host);
    }

    /// Loses the tasks that are still to be lost, as many as this turn may. Returns whether some
    /// are left.
    fn lose_more(&mut self, host: &mut impl Host) -> bool {
        while let Some(with) = self.losses.dead.front().copied() {
            let Some(future) = self.supervision.first_with(with) else {
                self.losses.dead.pop_front();
                continue;
            };
            if self.losses.left == 0 {
                return true;
            }
            self.losses.left -= 1;
            self.lose(future, with, host);
        }
        false
    }

    /// Handles losses, as many as a turn may. Returns whether some are left for the next turn.
    pub(super) fn work_off_losses(&mut self, host: &mut impl Host) -> bool {
        let is_more_lost = self.lose_more(host);
        self.losses.left = self.settings.losses_per_turn;
        is_more_lost | self.recover_alone(host)
    }

    /// Loses one task of this PE: it waits for a thief as a new replica, or ends with an error.
    pub(super) fn lose(&mut self, future: u64, with: Pe, host: &mut impl Host) {
        match self.supervision.lose(future, with, self.settings.max_replicas) {
            LossOutcome::Recovered => self.statistics.replicas += 1,
            LossOutcome::Unsupervised => {
                self.statistics.lost += 1;
                host.fill(future, Err(TaskError::Lost { pe: with }));
            }
            LossOutcome::TooOften(with) => give_up(future, with, host),
        }
    }

    /// Gives the thief lost tasks of this PE. A task that was lost twice goes alone, and only to a
    /// thief that has nothing else to do, as a FISH that has just arrived says.
    pub(super) fn share_lost(
        &mut self,
        fish: &Fish,
        has_just_arrived: bool,
        host: &mut impl Host,
    ) -> bool {
        let waiting = self.supervision.waiting();
        if waiting == 0 || fish.thief == self.root {
            return false;
        }
        let radii = self.topology.distance(self.me, fish.thief)..=Distance::ONE;
        let alone = is_idle(fish, has_just_arrived) && !self.supervision.has_suspect(fish.thief);
        let given = self.give(fish, usize::from(alone), host, |node, _| {
            let mut recover = |suspicion| node.supervision.recover(suspicion, radii.clone());
            recover(Suspicion::Medium).or_else(|| recover(Suspicion::High))
        });
        if given > 0 {
            self.losses.suspects_since = None;
        }
        let wanted = fair(waiting, fish);
        given > 0
            || self.give(fish, wanted, host, |node, _| {
                node.supervision.recover(Suspicion::Low, radii.clone())
            }) > 0
    }

    /// Places one of the tasks that were lost twice on a random PE within its radius, but not the
    /// root, if they have waited too long for a PE that has nothing else to do: in a busy job there
    /// may be none. Returns when the next is placed.
    pub(super) fn place_suspect(
        &mut self,
        now: Duration,
        host: &mut impl Host,
    ) -> Option<Duration> {
        let all = Distance::ZERO..=Distance::ONE;
        let suspicions = [Suspicion::Medium, Suspicion::High];
        let first = |suspicion| self.supervision.first_lost(suspicion, all.clone());
        let is_any_lost = self.supervision.waiting() > 0;
        let found = if is_any_lost { suspicions.into_iter().find_map(first) } else { None };
        let Some((radius, _)) = found else {
            self.losses.suspects_since = None;
            return None;
        };
        let since = self.losses.suspects_since.get_or_insert(now);
        if now >= *since + SUSPECTS_WAIT {
            *since = now;
            let mut random = || host.random();
            let mut victim =
                || first_victim(&self.topology, &self.living, self.me, radius, &mut random);
            let to = (0..TRIES).map_while(|_| victim()).filter(|pe| *pe != self.root);
            let to = to.reduce(|a, b| if self.supervision.has_suspect(a) { b } else { a });
            if let Some(to) = to {
                let radii = self.topology.distance(self.me, to)..=Distance::ONE;
                let mut recover = |suspicion| self.supervision.recover(suspicion, radii.clone());
                if let Some(mut parcel) = suspicions.into_iter().find_map(&mut recover) {
                    self.supervision.record_departure(&mut parcel, self.me, to);
                    host.send(to, Message::Place(parcel));
                }
            }
        }
        self.losses.suspects_since.map(|since| since + SUSPECTS_WAIT)
    }

    /// Runs the lost tasks of this PE here, if no other PE is left that could, as many as a turn
    /// may. A task that was lost twice even while it ran alone is given up instead: it would kill
    /// this PE too, and all other tasks with it. Returns whether some are left.
    fn recover_alone(&mut self, host: &mut impl Host) -> bool {
        if self.supervision.waiting() == 0 {
            return false;
        }
        let radii = Distance::ZERO..=self.alone_within();
        for _ in 0..self.settings.losses_per_turn {
            let mut recover = |suspicion| self.supervision.recover(suspicion, radii.clone());
            if let Some(parcel) = recover(Suspicion::Low).or_else(|| recover(Suspicion::Medium)) {
                host.accept(parcel);
            } else if let Some((_, future)) =
                self.supervision.first_lost(Suspicion::High, radii.clone())
            {
                if *radii.end() == Distance::ONE {
                    give_up(future, self.supervision.give_up(future), host);
                } else {
                    // A PE further away may try it first.
                    self.supervision.unbind(future);
                }
            } else {
                return false;
            }
        }
        true
    }

    /// The largest radius within which no other PE but the root is left.
    fn alone_within(&self) -> Distance {
        let has_company = |radius: &&Distance| {
            let ball = self.topology.ball(self.me, **radius);
            let has_root =
                self.me != self.root && ball.contains(self.root) && !self.living.is_dead(self.root);
            self.living.count_in(ball.numbers()) > 1 + u32::from(has_root)
        };
        let nearest = self.topology.radii().iter().find(has_company);
        // There is no other radius between a power of two and its half.
        nearest.map_or(Distance::ONE, |radius| radius.half())
    }
}

/// Whether the thief has nothing else to do.
pub(super) fn is_idle(fish: &Fish, has_just_arrived: bool) -> bool {
    has_just_arrived && fish.need == Need::Idle && fish.queued == 0
}

fn give_up(future: u64, with: Vec<Pe>, host: &mut impl Host) {
    let task = host.name(future);
    host.fill(future, Err(TaskError::GaveUp { task, with }));
}
