//! The state machine of one PE.

use super::message::{Fish, Message, Outcome, Parcel};
use super::settings::FishingSettings;
use super::statistics::Statistics;
use super::victim::{first_victim, next_victim};
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Distance, Pe, Topology};

/// The rest of the PE, as the protocol sees it.
pub trait Host {
    /// A uniformly random number.
    fn random(&mut self) -> u64;
    /// Sends a message; it arrives after all that were sent to the same PE before.
    fn send(&mut self, to: Pe, message: Message);
    /// How many tasks wait in the pool.
    fn queued(&self) -> usize;
    /// Takes from the pool the task for a thief at distance `at_least`
    /// (see [`Pool::select_remote`](super::Pool::select_remote)).
    fn take(&mut self, at_least: Distance) -> Option<Parcel>;
    /// Puts a task that was stolen into the pool.
    fn accept(&mut self, parcel: Parcel);
    /// Runs a task that was placed here, before those in the pool.
    fn place(&mut self, parcel: Parcel);
    /// Ends the future with this number, if it has not ended yet.
    fn fill(&mut self, future: u64, outcome: Outcome);
    /// Some PE cannot go on: the job must end with this reason. Called on the root only.
    fn failed(&mut self, pe: Pe, reason: String);
    /// Starts no more tasks.
    fn shut_down(&mut self);
}

/// How far the job is, as this PE knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Tasks run.
    Running,
    /// The main task has ended; PEs take leave.
    Ending,
    /// All PEs have taken leave: nothing will arrive any more.
    Released,
}

/// Where this PE's search for work stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fishing {
    /// Nothing is under way.
    Resting,
    /// A FISH was cast `at` and is waited for `until`.
    Out { at: Duration, until: Duration },
    /// The last FISH was in vain; the next may go out `until` then.
    BackingOff { until: Duration },
}

/// One PE of the protocol.
#[derive(Clone, Debug)]
pub struct Node {
    me: Pe,
    topology: Arc<Topology>,
    settings: FishingSettings,
    phase: Phase,
    /// Children in the tree of PEs that have not taken leave yet.
    farewells_awaited: usize,
    said_farewell: bool,
    fishing: Fishing,
    /// Whether some worker of this PE had nothing to do, at the last tick.
    starving: bool,
    /// The number of the last FISH cast.
    serial: u64,
    /// Index among the radii of the ball that the next FISH searches first.
    reach: usize,
    /// The longest wait after the next NOWORK.
    delay: Duration,
    statistics: Statistics,
}

impl Node {
    /// A PE that has nothing to do yet.
    pub fn new(me: Pe, topology: Arc<Topology>, settings: FishingSettings) -> Self {
        Node {
            me,
            phase: Phase::Running,
            farewells_awaited: 0,
            said_farewell: false,
            fishing: Fishing::Resting,
            starving: false,
            serial: 0,
            reach: nearest_company(&topology, me),
            delay: settings.min_fish_delay,
            statistics: Statistics::new(topology.radii()),
            topology,
            settings,
        }
    }

    /// How far the job is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What was counted so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Takes in a message.
    pub fn handle(&mut self, now: Duration, from: Pe, message: Message, host: &mut impl Host) {
        match message {
            Message::Fish(fish) => self.handle_fish(fish, host),
            Message::Schedule { serial, tasks } => {
                self.handle_schedule(now, from, serial, tasks, host);
            }
            Message::NoWork { serial } => self.handle_no_work(now, from, serial, host),
            Message::Place(parcel) => {
                self.statistics.placed += 1;
                host.place(parcel);
            }
            Message::Result { future, outcome } => host.fill(future, outcome),
            Message::Failed { reason } if self.phase == Phase::Running => host.failed(from, reason),
            // The job is ending as it is.
            Message::Failed { .. } => {}
            Message::Shutdown => self.end(host),
            Message::Farewell => self.farewells_awaited = self.farewells_awaited.saturating_sub(1),
            Message::Release => self.release(host),
        }
    }

    /// Goes fishing if it is time to. `starving`: some worker of this PE has nothing to do.
    /// Returns when to call again at the latest, whatever else happens until then.
    pub fn tick(
        &mut self,
        now: Duration,
        starving: bool,
        host: &mut impl Host,
    ) -> Option<Duration> {
        if self.phase != Phase::Running {
            return None;
        }
        self.starving = starving;
        match self.fishing {
            Fishing::Out { until, .. } if now >= until => {
                self.statistics.fishes_lost += 1;
                self.fishing = Fishing::Resting;
            }
            Fishing::BackingOff { until } if now >= until => self.fishing = Fishing::Resting,
            _ => {}
        }
        if self.fishing == Fishing::Resting && host.queued() <= self.settings.max_fish {
            self.cast(now, starving, host);
        }
        match self.fishing {
            Fishing::Resting => None,
            Fishing::Out { until, .. } | Fishing::BackingOff { until } => Some(until),
        }
    }

    /// Sends out a FISH.
    fn cast(&mut self, now: Duration, starving: bool, host: &mut impl Host) {
        let Some(radius) = self.topology.radii().get(self.reach).copied() else { return };
        let Some(victim) = first_victim(&self.topology, self.me, radius, &mut || host.random())
        else {
            return;
        };
        self.serial += 1;
        self.fishing = Fishing::Out { at: now, until: now + self.settings.fish_deadline };
        self.statistics.at(self.topology.distance(self.me, victim)).fishes += 1;
        let (thief, serial, hops_left) = (self.me, self.serial, self.settings.max_hops);
        let queued = host.queued() as u64;
        host.send(victim, Message::Fish(Fish { thief, serial, hops_left, starving, queued }));
    }

    /// Gives the thief work, or passes the FISH on, or ends it.
    fn handle_fish(&mut self, fish: Fish, host: &mut impl Host) {
        if self.phase != Phase::Running {
            // The thief is about to hear it, too; and whoever takes leave says nothing after.
            return;
        }
        let thief = fish.thief;
        if self.share(&fish, host) {
            return;
        }
        let next = (fish.hops_left > 0)
            .then(|| next_victim(&self.topology, self.me, thief, &mut || host.random()))
            .flatten();
        if let Some(next) = next {
            self.statistics.at(self.topology.distance(self.me, thief)).forwards += 1;
            host.send(next, Message::Fish(Fish { hops_left: fish.hops_left - 1, ..fish }));
        } else {
            host.send(thief, Message::NoWork { serial: fish.serial });
        }
    }

    /// Gives the thief tasks, if there are any to spare: small ones several at once, but never so
    /// many that the thief would then have more than this PE (or they would come back at once).
    fn share(&mut self, fish: &Fish, host: &mut impl Host) -> bool {
        let queued = host.queued();
        // If some worker here has nothing to do either, it is about to take what is there.
        let last = fish.starving && !self.starving;
        let kept = if last { 0 } else { self.settings.min_sched };
        let more_than_thief = queued.saturating_sub(fish.queued as usize);
        let fair = if fish.starving { more_than_thief.div_ceil(2) } else { more_than_thief / 2 };
        let wanted = fair.min(queued.saturating_sub(kept)).min(self.settings.schedule_tasks_max);
        let distance = self.topology.distance(self.me, fish.thief);
        let (thief, serial) = (fish.thief, fish.serial);
        let (mut tasks, mut bytes, mut given) = (Vec::new(), 0, 0);
        while given < wanted && bytes < self.settings.schedule_bytes_max {
            let Some(parcel) = host.take(distance) else { break };
            given += 1;
            bytes += parcel.bytes();
            if bytes > self.settings.schedule_bytes_max && !tasks.is_empty() {
                // A large one behind small ones goes by itself.
                host.send(thief, Message::Schedule { serial, tasks: std::mem::take(&mut tasks) });
            }
            tasks.push(parcel);
        }
        if !tasks.is_empty() {
            host.send(thief, Message::Schedule { serial, tasks });
        }
        given > 0
    }

    /// Takes in stolen tasks. Also when the FISH had been given up: a task is never dropped.
    fn handle_schedule(
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
        row.bytes += tasks.iter().map(|task| task.body.0.len() as u64).sum::<u64>();
        tasks.into_iter().for_each(|task| host.accept(task));
        if let (true, Fishing::Out { at, .. }) = (serial == self.serial, self.fishing) {
            self.statistics.steal_latency.record(now.saturating_sub(at));
            self.fishing = Fishing::Resting;
            self.reach = nearest_company(&self.topology, self.me);
            self.delay = self.settings.min_fish_delay;
        }
    }

    /// Waits for a random time before the next FISH, which will search a wider ball.
    fn handle_no_work(&mut self, now: Duration, from: Pe, serial: u64, host: &mut impl Host) {
        self.statistics.at(self.topology.distance(self.me, from)).no_works += 1;
        if serial != self.serial || !matches!(self.fishing, Fishing::Out { .. }) {
            return;
        }
        let (least, most) = (self.settings.min_fish_delay, self.settings.max_fish_delay);
        let span = self.delay.saturating_sub(least).as_nanos() as u64;
        let wait = least + Duration::from_nanos(host.random() % (span + 1));
        self.fishing = Fishing::BackingOff { until: now + wait };
        self.delay = (self.delay * 2).min(most.max(least));
        self.reach = if self.reach + 1 < self.topology.radii().len() {
            self.reach + 1
        } else {
            nearest_company(&self.topology, self.me)
        };
    }

    /// The main task has ended. Called on the root by its owner, elsewhere by a message.
    pub fn end(&mut self, host: &mut impl Host) {
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Ending;
        host.shut_down();
        self.farewells_awaited = self.children().len();
        self.children().for_each(|child| host.send(child, Message::Shutdown));
    }

    /// Takes leave, once all below in the tree have. To be called while the job is ending,
    /// whenever everything that this PE sent has arrived: so the root's release means that no
    /// message is on its way anywhere.
    pub fn take_leave(&mut self, host: &mut impl Host) {
        if self.phase != Phase::Ending || self.farewells_awaited > 0 || self.said_farewell {
            return;
        }
        self.said_farewell = true;
        match self.parent() {
            Some(parent) => host.send(parent, Message::Farewell),
            None => self.release(host),
        }
    }

    fn release(&mut self, host: &mut impl Host) {
        self.phase = Phase::Released;
        self.children().for_each(|child| host.send(child, Message::Release));
    }

    /// The PEs are a binary tree, so that the end of a job takes O(log n) steps.
    fn children(&self) -> impl ExactSizeIterator<Item = Pe> + use<> {
        let (me, pes) = (u64::from(self.me.number()), u64::from(self.topology.pes()));
        let (first, end) = ((2 * me + 1).min(pes), (2 * me + 3).min(pes));
        (first as u32..end as u32).map(Pe::new)
    }

    fn parent(&self) -> Option<Pe> {
        self.me.number().checked_sub(1).map(|n| Pe::new(n / 2))
    }
}

/// Index among the radii of the smallest ball around `me` that holds anyone else.
fn nearest_company(topology: &Topology, me: Pe) -> usize {
    let radii = topology.radii();
    (0..radii.len()).find(|i| topology.ball(me, radii[*i]).len() > 1).unwrap_or(radii.len())
}
