//! Fishing: how a PE asks for work, and what it gives to others (SymGridPar2 §4.2).
//!
//! A FISH that finds nothing waits at the last PE that it asked, for as long as the thief would
//! pause before the next one. If that PE gets more work than it needs, the thief gets some at once.
//! So hungry PEs are known where work may come, as with the lifelines of Saraswat et al. (2011),
//! but the graph is drawn anew with each FISH. (Without and with it, else the same code: `cargo
//! xtask simulate weak --cores 2048 --workers 1 --tasks-per-core 20`, relaxed, 82.8 and 85.1 %;
//! `queens --cores 512` 98.7 and 99.1; a sixth fewer FISHes. The model of when threads look for
//! messages has become stricter since, which lowers both.) For the protocol a FISH that waits is
//! one that arrives later.

use super::fish_state::{FishState, WaitingFish, nearest_company};
use super::message::{Fish, Message, Need, Parcel};
use super::node::{Host, Node};
use super::phase::Phase;
use super::recovery::is_idle;
use super::victim::{first_victim, next_victim};
use std::time::Duration;
use ultramarine_topology::{Distance, Pe};

/// The most FISHes that wait at a PE.
const WAITING_MAX: usize = 64;

/// What a FISH gets from one PE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// Tasks.
    Some,
    /// No message, but tasks on this PE's board.
    Posted,
    /// None now.
    Nothing,
    /// The next task there may not go to this thief.
    Unsuitable,
}

impl Node {
    /// Handles losses, and goes fishing if it is time to. The owner calls this once in each turn;
    /// `need` says how much this PE needs work. Returns when to call again at the latest.
    pub fn tick(&mut self, now: Duration, need: Need, host: &mut impl Host) -> Option<Duration> {
        if self.phase() != Phase::Running {
            return None;
        }
        self.fishing.note_need(need, &self.settings.fishing);
        let has_more_losses = self.work_off_losses(host);
        let suspects_due = self.place_suspect(now, host);
        match self.fishing.fish {
            FishState::Out { until, .. } if now >= until => {
                self.statistics.fishes_lost += 1;
                self.fishing.give_up_fish(&self.settings.fishing);
                self.search_on();
            }
            FishState::BackingOff { until } if now >= until => {
                self.fishing.fish = FishState::Resting;
            }
            _ => {}
        }
        self.notice_taken(host);
        let has_stolen = self.look_at_boards(need, host);
        if self.fishing.fish == FishState::Resting
            && !has_stolen
            && self.waiting_here(host) <= self.settings.fishing.max_fish
        {
            self.cast(now, host);
        }
        let fishing_due = match self.fishing.fish {
            _ if has_more_losses => Some(now),
            FishState::Resting => None,
            FishState::Out { until, .. } | FishState::BackingOff { until } => Some(until),
        };
        let waiting_due = self.serve_waiting(now, host);
        self.post_for_those_who_ask(host);
        [fishing_due, suspects_due, waiting_due].into_iter().flatten().min()
    }

    /// The number of tasks that wait in the pool and on the board.
    pub(super) fn waiting_here(&self, host: &impl Host) -> usize {
        host.queued() + self.board.len()
    }

    /// Casts a FISH. A PE of this host may be quicker to post something than to answer.
    fn cast(&mut self, now: Duration, host: &mut impl Host) {
        let Some(victim) = self.find_victim(host) else { return };
        if let Some(boards) = host.boards().filter(|boards| boards.host().contains(victim)) {
            boards.ask(victim);
        }
        self.board.take_has_taken();
        self.fishing.serial += 1;
        self.fishing.need_sent = self.fishing.need;
        let least = self.settings.fishing.min_fish_delay;
        let span = self.fishing.delay.saturating_sub(least).as_nanos() as u64;
        let pause = least + Duration::from_nanos(host.random() % (span + 1));
        let (until, again) = (now + self.fishing.deadline, now + pause);
        self.fishing.fish = FishState::Out { at: now, until, again };
        self.statistics.at(self.topology.distance(self.me, victim)).fishes += 1;
        let (thief, serial, hops_left) =
            (self.me, self.fishing.serial, self.settings.fishing.max_hops);
        let (need, queued) = (self.fishing.need, host.queued() as u64);
        let patience = pause.min(self.longest_patience());
        host.send(victim, Message::Fish(Fish { thief, serial, hops_left, need, queued, patience }));
    }

    /// The PE that gave tasks last; else a random PE in the ball to search next, or in a wider one
    /// if all others in it are dead.
    ///
    /// (With random victims only, two in three FISHes of a map over 512 PEs searched where there
    /// was nothing: tasks that may not leave a rack reached 90 % of its workers after 4 s instead
    /// of 0.2 s, and four times as many FISHes were cast.)
    fn find_victim(&mut self, host: &mut impl Host) -> Option<Pe> {
        if let Some(giver) = self.fishing.giver.filter(|giver| !self.living.is_dead(*giver)) {
            return Some(giver);
        }
        for _ in 0..self.topology.radii().len() {
            let radius = *self.topology.radii().get(self.fishing.search_radius)?;
            let mut random = || host.random();
            let victim = first_victim(&self.topology, &self.living, self.me, radius, &mut random);
            if victim.is_some() {
                return victim;
            }
            self.reach_further();
        }
        None
    }

    /// Gives the thief work, or passes the FISH on, or ends it.
    pub(super) fn handle_fish(&mut self, now: Duration, fish: Fish, host: &mut impl Host) {
        if self.phase() != Phase::Running {
            // The thief is about to hear that the job ends. A PE sends nothing after FAREWELL.
            return;
        }
        let thief = fish.thief;
        if self.living.is_dead(thief) || self.share_lost(&fish, true, host) {
            return;
        }
        let shared = self.share(&fish, true, host);
        if shared == Shared::Some {
            return;
        }
        let next = (fish.hops_left > 0 && shared != Shared::Posted)
            .then(|| {
                next_victim(&self.topology, &self.living, self.me, thief, &mut || host.random())
            })
            .flatten();
        if let Some(next) = next {
            self.statistics.at(self.topology.distance(self.me, thief)).forwards += 1;
            host.send(next, Message::Fish(Fish { hops_left: fish.hops_left - 1, ..fish }));
        } else if shared != Shared::Posted
            && fish.patience > Duration::ZERO
            && self.waiting.len() < WAITING_MAX
        {
            let patience = fish.patience.min(self.longest_patience());
            self.waiting.push(WaitingFish { fish, until: now.saturating_add(patience) });
        } else {
            host.send(thief, Message::NoWork { serial: fish.serial });
        }
    }

    /// The longest time that a FISH waits: its answer must come in time.
    fn longest_patience(&self) -> Duration {
        self.settings.fishing.fish_deadline / 2
    }

    /// Gives work to the FISHes that wait here, and ends those that have waited for long enough.
    /// Returns when the next one has. They get no task that was lost twice: their thieves may have
    /// something else to do by now.
    fn serve_waiting(&mut self, now: Duration, host: &mut impl Host) -> Option<Duration> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|WaitingFish { fish, until }| {
            if self.living.is_dead(fish.thief) || self.share_lost(fish, false, host) {
                return false;
            }
            let is_some = self.waiting_here(host) > 0;
            let shared = if is_some { self.share(fish, false, host) } else { Shared::Nothing };
            let is_kept = shared == Shared::Nothing && now < *until;
            if !is_kept && shared != Shared::Some {
                host.send(fish.thief, Message::NoWork { serial: fish.serial });
            }
            is_kept
        });
        self.waiting = waiting;
        if !self.waiting.is_empty() {
            host.want_work();
        }
        self.waiting.iter().map(|waiting| waiting.until).min()
    }

    /// Gives the thief tasks, if there are any to spare. Several at once, but the
    /// thief must not have more than this PE then, or they would come back at once. Of a problem
    /// that is being divided, only the largest part.
    fn share(&mut self, fish: &Fish, has_just_arrived: bool, host: &mut impl Host) -> Shared {
        self.notice_taken(host);
        let shared = self.share_by_board(fish, host);
        if shared != Shared::Nothing {
            return shared;
        }
        let queued = self.waiting_here(host);
        let wanted = fair(queued, fish).min(queued.saturating_sub(self.kept(fish.need)));
        let distance = self.topology.distance(self.me, fish.thief);
        let (mut is_enough, mut is_unsuitable) = (false, false);
        let root = self.root;
        let given = self.give(fish, wanted, host, |node, host| {
            let (parcel, is_fork) = if is_enough { None } else { node.take_for(distance, host) }?;
            // If more were given away, the rest here would soon be done, and this PE would fish
            // them back: for Fibonacci numbers on two PEs that took a tenth of the time.
            is_enough = is_fork;
            // A task that was lost once goes neither to the root nor to its supervisor, and one
            // that was lost twice only to a thief that has nothing else to do.
            let spared = [root, parcel.task.home].contains(&fish.thief);
            let is_unsafe = match parcel.version.replica {
                0 => false,
                1 => spared,
                _ => spared || !is_idle(fish, has_just_arrived),
            };
            if is_unsafe {
                host.accept(parcel);
                is_unsuitable = true;
                return None;
            }
            let fits = host.boards().is_none_or(|boards| boards.fits(&parcel));
            node.board.note_length(!fits);
            Some(parcel)
        });
        match given {
            _ if host.packs_later(fish) => {
                self.board.note_length(host.boards().is_some());
                Shared::Some
            }
            0 if is_unsuitable => Shared::Unsuitable,
            0 => Shared::Nothing,
            _ => Shared::Some,
        }
    }

    /// How many tasks this PE keeps from a thief that needs some so much.
    pub(super) fn kept(&self, need: Need) -> usize {
        let min_sched = self.settings.fishing.min_sched;
        match self.fishing.need {
            Need::Ahead if need >= Need::Starving => 0,
            Need::Ahead => min_sched,
            // A worker here that has nothing to do is about to take what is there. (Or two PEs
            // without work steal the same task from each other, for ever if `min_sched` is 0.)
            Need::Starving | Need::Idle => min_sched.max(1),
        }
    }

    /// Takes the task for a thief at this distance, from the pool or else from the board. Returns
    /// it, and whether it is a fork.
    fn take_for(&mut self, distance: Distance, host: &mut impl Host) -> Option<(Parcel, bool)> {
        match host.take(distance) {
            Some(parcel) => Some((parcel, host.took_fork())),
            // The thief gets that one.
            None if host.has_to_pack() => None,
            None => self.take_back_oldest(distance, host),
        }
    }

    /// Gives the thief a task whose encoding took a while (see [`Host::packs_later`]).
    pub fn hand_over(&mut self, fish: &Fish, parcel: Parcel, host: &mut impl Host) {
        if self.living.is_dead(fish.thief) {
            return host.accept(parcel);
        }
        let mut parcel = Some(parcel);
        self.give(fish, 1, host, |_, _| parcel.take());
    }

    /// Sends the thief at most `wanted` of the tasks that `next` yields. Returns their number.
    pub(super) fn give<H: Host>(
        &mut self,
        fish: &Fish,
        wanted: usize,
        host: &mut H,
        mut next: impl FnMut(&mut Self, &mut H) -> Option<Parcel>,
    ) -> usize {
        let (thief, serial) = (fish.thief, fish.serial);
        let bytes_max = self.settings.fishing.schedule_bytes_max;
        let wanted = wanted.min(self.settings.fishing.schedule_tasks_max);
        let (mut tasks, mut bytes, mut given) = (Vec::new(), 0, 0);
        while given < wanted && bytes < bytes_max {
            let Some(mut parcel) = next(self, host) else { break };
            self.hand_on(&mut parcel, thief, host);
            given += 1;
            bytes += parcel.bytes();
            if bytes > bytes_max && !tasks.is_empty() {
                // A large task behind small ones gets a SCHEDULE for itself.
                host.send(thief, Message::Schedule { serial, tasks: std::mem::take(&mut tasks) });
            }
            tasks.push(parcel);
        }
        if !tasks.is_empty() {
            host.send(thief, Message::Schedule { serial, tasks });
        }
        if given > 0 {
            self.board.forget(thief);
        }
        given
    }

    /// Tells a task's home that the task is about to leave this PE.
    fn hand_on(&mut self, parcel: &mut Parcel, to: Pe, host: &mut impl Host) {
        let home = parcel.task.home;
        if home == self.me {
            self.supervision.record_departure(parcel, self.me, to);
            return;
        }
        parcel.version.age += 1;
        self.statistics.notifies += 1;
        let (future, version) = (parcel.task.future, parcel.version);
        host.send(home, Message::Notify { future, version, to });
    }

    /// Takes stolen tasks, also if their FISH was given up before: a task is never dropped.
    pub(super) fn handle_schedule(
        &mut self,
        now: Duration,
        from: Pe,
        serial: u64,
        tasks: Vec<Parcel>,
        host: &mut impl Host,
    ) {
        let row = self.statistics.at(self.topology.distance(self.me, from));
        row.schedules += 1;
        row.steals += tasks.len() as u64;
        row.bytes += tasks.iter().map(|task| task.body.len() as u64).sum::<u64>();
        tasks.into_iter().for_each(|task| self.take_in(from, task, host));
        // Also if it answers an earlier FISH.
        self.note_giver(from);
        if let (true, FishState::Out { at, .. }) =
            (serial == self.fishing.serial, self.fishing.fish)
        {
            self.statistics.steal_latency.record(now.saturating_sub(at));
            self.fishing.fish = FishState::Resting;
            self.fishing.note_answer(&self.settings.fishing);
        }
    }

    /// Puts a stolen task into the pool, unless its home is dead or has replaced it.
    pub(super) fn take_in(&mut self, from: Pe, mut parcel: Parcel, host: &mut impl Host) {
        let home = parcel.task.home;
        if home == self.me {
            if !self.supervision.record_return(&mut parcel) {
                return;
            }
        } else if self.living.is_dead(home) {
            self.statistics.orphans += 1;
            return;
        } else if from != home && self.phase() == Phase::Running {
            parcel.version.age += 1;
            self.statistics.acks += 1;
            let (future, version) = (parcel.task.future, parcel.version);
            host.send(home, Message::Ack { future, version });
        }
        host.accept(parcel);
    }

    /// Notes how much this PE needs work, before it handles messages that depend on that.
    pub fn note_need(&mut self, need: Need) {
        self.fishing.note_need(need, &self.settings.fishing);
    }

    /// A PE has died that may have had this PE's FISH: the FISH counts as lost.
    pub(super) fn release_fish(&mut self) {
        self.fishing.deadline = self.settings.fishing.fish_deadline;
        if let FishState::Out { .. } = self.fishing.fish {
            self.statistics.fishes_lost += 1;
            self.fishing.fish = FishState::Resting;
        }
    }

    /// The last FISH found nothing: lets the next search a wider ball; the nearest one, if the last
    /// asked the PE that had given tasks before.
    fn search_on(&mut self) {
        if self.fishing.giver.take().is_none() {
            self.reach_further();
        }
    }

    /// Lets the next FISH search a wider ball, or after the widest the smallest again.
    fn reach_further(&mut self) {
        self.fishing.search_radius = if self.fishing.search_radius + 1 < self.topology.radii().len()
        {
            self.fishing.search_radius + 1
        } else {
            nearest_company(&self.topology, self.me)
        };
    }

    /// Pauses until the next FISH may be cast, which searches a wider ball.
    pub(super) fn handle_no_work(&mut self, from: Pe, serial: u64) {
        self.statistics.at(self.topology.distance(self.me, from)).no_works += 1;
        let FishState::Out { again, .. } = self.fishing.fish else { return };
        if serial != self.fishing.serial {
            return;
        }
        self.fishing.note_answer(&self.settings.fishing);
        if self.board.take_has_taken() {
            // The answer to a FISH beside which something was posted.
            self.fishing.fish = FishState::Resting;
            return;
        }
        self.fishing.fish = FishState::BackingOff { until: again };
        let most = self.settings.fishing.max_fish_delay.max(self.settings.fishing.min_fish_delay);
        self.fishing.delay = (self.fishing.delay * 2).min(most);
        self.search_on();
    }
}

/// The number of `queued` tasks that the thief may get, so that it does not have more than its
/// victim then.
pub(super) fn fair(queued: usize, fish: &Fish) -> usize {
    let more_than_thief = queued.saturating_sub(fish.queued as usize);
    if fish.need >= Need::Starving { more_than_thief.div_ceil(2) } else { more_than_thief / 2 }
}
