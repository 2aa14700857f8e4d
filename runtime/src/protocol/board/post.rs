//! What a PE does with its own board.

use super::{BoardState, POSTED_FOR_EACH, Posted};
use crate::protocol::fishing::{Shared, fair};
use crate::protocol::message::{Fish, Message, Need, Parcel};
use crate::protocol::node::{Host, Node};
use crate::protocol::phase::Phase;
use std::time::Duration;
use ultramarine_topology::{Distance, Pe};

impl Node {
    /// Notices which tasks on this PE's board were taken.
    pub(in crate::protocol) fn notice_taken(&mut self, host: &mut impl Host) {
        for slot in 0..self.board.posted.len() {
            if self.board.count == 0 {
                return;
            }
            if self.board.posted[slot].is_some()
                && let Some(taker) = host.boards().and_then(|boards| boards.taker(slot))
            {
                self.note_taken(slot, taker, host);
            }
        }
    }

    /// The second half of handing a task on: tells its home where it is. Only then another can be
    /// posted in its place.
    fn note_taken(&mut self, slot: usize, to: Pe, host: &mut impl Host) {
        let Some(parcel) = self.board.remove(slot) else { return };
        self.board.taken += 1;
        let (home, future, version) = (parcel.task.home, parcel.task.future, parcel.version);
        if home != self.me {
            self.statistics.notifies += 1;
            host.send(home, Message::Notify { future, version, to });
        } else if self.supervision.record_taken(future, version, to) && self.living.is_dead(to) {
            self.lose(future, to, host);
        }
        host.boards().into_iter().for_each(|boards| boards.free(slot));
    }

    /// Takes back the task in this slot, unless another PE has it.
    fn take_back(&mut self, slot: usize, host: &mut impl Host) -> Option<Parcel> {
        match host.boards()?.take_back(slot) {
            Ok(()) => self.board.remove(slot),
            Err(taker) => {
                self.note_taken(slot, taker, host);
                None
            }
        }
    }

    /// Takes back the task for a thief at this distance: of the smallest radius, and of these the
    /// oldest. Returns it, and whether it is a fork.
    pub(in crate::protocol) fn take_back_oldest(
        &mut self,
        at_least: Distance,
        host: &mut impl Host,
    ) -> Option<(Parcel, bool)> {
        loop {
            let reaches = |(_, posted): &(_, &Posted)| posted.parcel.radius >= at_least;
            let tasks = self.board.tasks().filter(reaches);
            let key = |(_, posted): &(_, &Posted)| (posted.parcel.radius, posted.number);
            let (slot, posted) = tasks.min_by_key(key)?;
            let is_fork = posted.is_fork;
            if let Some(parcel) = self.take_back(slot, host) {
                return Some((parcel, is_fork));
            }
        }
    }

    /// Takes a task back for this PE's own workers: of the smallest radius, and of these the
    /// youngest. Returns whether there was one.
    pub(super) fn take_back_youngest(&mut self, host: &mut impl Host) -> bool {
        while let Some((slot, _)) = {
            let key = |(_, posted): &(_, &Posted)| (posted.parcel.radius, u64::MAX - posted.number);
            self.board.tasks().min_by_key(key)
        } {
            if let Some(parcel) = self.take_back(slot, host) {
                (self.board.depth, self.board.taken) = (POSTED_FOR_EACH, 0);
                host.accept(parcel);
                return true;
            }
        }
        false
    }

    /// Takes back those of these tasks of the PE `home` that are on the board: they are about to be
    /// cancelled.
    pub(in crate::protocol) fn take_back_all_of(
        &mut self,
        home: Pe,
        futures: &[u64],
        host: &mut impl Host,
    ) {
        let is_it =
            |parcel: &Parcel| parcel.task.home == home && futures.contains(&parcel.task.future);
        for slot in 0..self.board.posted.len() {
            if self.board.posted[slot].as_ref().is_some_and(|posted| is_it(&posted.parcel))
                && let Some(parcel) = self.take_back(slot, host)
            {
                host.accept(parcel);
            }
        }
    }

    /// Removes all tasks: the job ends, and no PE is told of anything any more.
    pub(in crate::protocol) fn clear_board(&mut self, host: &mut impl Host) {
        let Some(boards) = host.boards() else { return };
        boards.set_need(None);
        for (slot, _) in self.board.tasks() {
            if boards.take_back(slot).is_err() {
                boards.free(slot);
            }
        }
        self.board = BoardState::new();
    }

    /// Posts tasks for the PEs that ask for some.
    pub(in crate::protocol) fn post_for_those_who_ask(&mut self, host: &mut impl Host) {
        let Some(boards) = host.boards() else { return };
        self.board.read_askers(boards);
        let slots = boards.slots();
        if self.board.askers.is_empty() || !host.may_pack() || self.phase() != Phase::Running {
            return;
        }
        let BoardState { count, taken, depth, .. } = &mut self.board;
        if *count == 0 && *taken >= *depth {
            // They took all of them, and before this PE could post more.
            (*depth, *taken) = ((2 * *depth).min(slots), 0);
        }
        let mut askers = std::mem::take(&mut self.board.askers);
        self.board.served.retain(|pe| !self.living.is_dead(*pe));
        let mut asked = 0;
        askers.retain(|thief| {
            let Some((need, queued)) = self.need_of(*thief, host) else { return false };
            if self.board.are_long {
                return false;
            }
            asked += 1;
            let (thief, patience) = (*thief, Duration::ZERO);
            let fish = Fish { thief, serial: 0, hops_left: 0, need, queued, patience };
            self.post_for(&fish, asked, host) == Shared::Nothing
        });
        self.board.askers = askers;
        if !self.board.askers.is_empty() {
            host.want_work();
        }
    }

    /// Lets a thief have tasks from the board, if it has asked by a bit as well, or something was
    /// posted for it before its FISH came.
    pub(in crate::protocol) fn share_by_board(
        &mut self,
        fish: &Fish,
        host: &mut impl Host,
    ) -> Shared {
        let Some(boards) = host.boards() else { return Shared::Nothing };
        self.board.read_askers(boards);
        let distance = self.topology.distance(self.me, fish.thief);
        if self.board.served.remove(&fish.thief)
            && self.posted_for(distance) > 0
            && host.boards().is_some_and(|boards| boards.announce(fish.thief))
        {
            return Shared::Posted;
        }
        if self.board.are_long || !host.may_pack() || !self.board.askers.contains(&fish.thief) {
            return Shared::Nothing;
        }
        let shared = self.post_for(fish, 1, host);
        if shared == Shared::Posted {
            self.board.forget(fish.thief);
            if !self.board.served.remove(&fish.thief) {
                // It cannot know.
                return Shared::Nothing;
            }
        }
        shared
    }

    /// How much a PE needs tasks, and how many it has, unless it is dead or has enough.
    fn need_of(&self, thief: Pe, host: &mut impl Host) -> Option<(Need, u64)> {
        if self.living.is_dead(thief) {
            return None;
        }
        host.boards()?.need_of(thief)
    }

    /// Posts tasks for a thief, the `asked`-th that asks, as far as there are any to spare.
    fn post_for(&mut self, fish: &Fish, asked: usize, host: &mut impl Host) -> Shared {
        let distance = self.topology.distance(self.me, fish.thief);
        let kept = self.kept(fish.need);
        // As many as the FISH would get.
        let most = fair(self.waiting_here(host), fish).min(self.board.depth * asked);
        while self.posted_for(distance) < most && host.queued() > kept {
            let Some(slot) = self.empty_slot(host) else { break };
            let Some(parcel) = host.take(distance) else {
                if host.packs_later(fish) {
                    self.board.are_long = true;
                    return Shared::Some;
                }
                break;
            };
            let is_fork = host.took_fork();
            if parcel.version.replica > 0 {
                // These are given with more care.
                host.accept(parcel);
                break;
            }
            if let Err(parcel) = self.post(slot, parcel, is_fork, host) {
                self.board.are_long = true;
                let mut parcel = Some(parcel);
                self.give(fish, 1, host, |_, _| parcel.take());
                return Shared::Some;
            }
            if is_fork {
                break;
            }
        }
        if self.posted_for(distance) == 0 {
            return Shared::Nothing;
        }
        if host.boards().is_some_and(|boards| boards.announce(fish.thief)) {
            self.board.served.insert(fish.thief);
        }
        Shared::Posted
    }

    /// How much is posted for a PE at this distance. A fork is worth as much as all that would be
    /// posted: those behind it are parts of parts.
    fn posted_for(&self, distance: Distance) -> usize {
        let reaching = self.board.tasks().filter(|(_, posted)| posted.parcel.radius >= distance);
        reaching.map(|(_, posted)| if posted.is_fork { self.board.depth } else { 1 }).sum()
    }

    fn empty_slot(&mut self, host: &mut impl Host) -> Option<usize> {
        if self.board.posted.is_empty() {
            let slots = host.boards()?.slots();
            self.board.posted.resize(slots, None);
        }
        self.board.posted.iter().position(Option::is_none)
    }

    /// Posts a task: the first half of handing it on.
    ///
    /// # Errors
    ///
    /// It does not fit; it is returned as it was.
    fn post(
        &mut self,
        slot: usize,
        mut parcel: Parcel,
        is_fork: bool,
        host: &mut impl Host,
    ) -> Result<(), Parcel> {
        let before = parcel.version;
        parcel.version.age += 1;
        if parcel.task.home == self.me {
            // Before another PE sees the task: its result may come before this PE has noticed.
            self.supervision.record_posted(&parcel);
        }
        let fits = host.boards().is_some_and(|boards| boards.post(slot, &parcel));
        if !fits {
            parcel.version = before;
            return Err(parcel);
        }
        self.board.last += 1;
        self.board.count += 1;
        let number = self.board.last;
        self.board.posted[slot] = Some(Posted { parcel, number, is_fork });
        Ok(())
    }
}
