//! Nodes, stand-ins for the rest of their PEs, and the messages between them. (It is not the
//! testkit's world: these tests read each message on its way, take some out, and put others in.)

use super::board_memory::{SeatBoards, Sheet, Sheets};
use crate::protocol::message::Bytes;
use crate::protocol::{
    Boards, Fish, FishingSettings, Host, Message, Need, Node, Outcome, Parcel, Phase, Pool,
    ProtocolSettings, Radii, TaskId, Version,
};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_testkit::racks;
use ultramarine_topology::{Ball, Distance, Pe, Topology};

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) from: Pe,
    pub(super) to: Pe,
    pub(super) message: Message,
}

/// Stands for the rest of a PE.
pub(super) struct Seat {
    me: Pe,
    radii: Radii,
    random: u64,
    pool: Pool<VecDeque<Parcel>>,
    sent: Vec<(Pe, Message)>,
    pub(super) placed: Vec<Parcel>,
    pub(super) heard: Vec<Bytes>,
    pub(super) filled: Vec<(u64, Outcome)>,
    pub(super) failures: Vec<(Pe, String)>,
    pub(super) shut_down: u32,
    spawned: u64,
    /// Whether its tasks are forks.
    pub(super) has_forks: bool,
    boards: Option<SeatBoards>,
    /// A task with a longer body is packed later.
    pub(super) packed_at_once: usize,
    to_pack: Option<Parcel>,
    /// What is being packed, and for which FISH.
    pub(super) packing: Vec<(Fish, Parcel)>,
}

impl Seat {
    /// Messages from it are dropped.
    pub(super) fn forget_sent(&mut self) {
        self.sent.clear();
    }

    /// The task that a thief from afar would get, which is left where it is.
    pub(super) fn oldest(&mut self) -> Option<(TaskId, Version)> {
        let oldest = self.pool.select_remote(0)?;
        self.pool.shelf(self.radii.shelf(oldest.radius)).push_front(oldest.clone());
        Some((oldest.task, oldest.version))
    }

    pub(super) fn put(&mut self, parcel: Parcel) {
        let shelf = self.radii.shelf(parcel.radius);
        self.pool.shelf(shelf).push_back(parcel);
    }
}

impl Host for Seat {
    fn random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random ^ (self.random >> 29)) >> 5
    }
    fn send(&mut self, to: Pe, message: Message) {
        assert_ne!(to, self.me, "no message to oneself: {message:?}");
        self.sent.push((to, message));
    }
    fn queued(&self) -> usize {
        self.pool.len()
    }
    fn take(&mut self, at_least: Distance) -> Option<Parcel> {
        let parcel = self.pool.select_remote(self.radii.shelf(at_least))?;
        if parcel.body.len() <= self.packed_at_once {
            return Some(parcel);
        }
        let before = self.to_pack.replace(parcel);
        assert_eq!(before, None, "it is lost");
        None
    }
    fn packs_later(&mut self, fish: &Fish) -> bool {
        let parcel = self.to_pack.take();
        let is_there = parcel.is_some();
        self.packing.extend(parcel.map(|parcel| (*fish, parcel)));
        is_there
    }
    fn has_to_pack(&self) -> bool {
        self.to_pack.is_some()
    }
    fn took_fork(&self) -> bool {
        self.has_forks
    }
    fn boards(&mut self) -> Option<&mut dyn Boards> {
        self.boards.as_mut().map(|boards| boards as &mut dyn Boards)
    }
    fn accept(&mut self, parcel: Parcel) {
        self.put(parcel);
    }
    fn place(&mut self, parcel: Parcel) {
        self.placed.push(parcel);
    }
    fn deliver(&mut self, body: Bytes) {
        self.heard.push(body);
    }
    fn cancel(&mut self, home: Pe, futures: Vec<u64>) {
        let is_it = |TaskId { home: of, future }| of == home && futures.contains(&future);
        for shelf in 0..self.radii.count() {
            self.pool.shelf(shelf).retain(|parcel| !is_it(parcel.task));
        }
    }
    fn fill(&mut self, future: u64, outcome: Outcome) {
        self.filled.push((future, outcome));
    }
    fn name(&self, future: u64) -> String {
        format!("task {future}")
    }
    fn failed(&mut self, pe: Pe, reason: String) {
        self.failures.push((pe, reason));
    }
    fn shut_down(&mut self) {
        self.shut_down += 1;
    }
}

/// A job.
pub(super) struct World {
    pub(super) topology: Arc<Topology>,
    pub(super) nodes: Vec<Node>,
    pub(super) seats: Vec<Seat>,
    /// In the order of sending.
    pub(super) flying: Vec<Letter>,
    pub(super) now: Duration,
    /// The PEs that sent FAREWELL, in the order of sending.
    pub(super) farewells: Vec<Pe>,
    boards: Sheets,
}

/// Settings in round numbers: watermarks of 1.
pub(super) fn settings() -> FishingSettings {
    FishingSettings { max_fish: 1, min_sched: 1, ..FishingSettings::for_threads(1) }
}

/// Two racks of two hosts of two PEs.
pub(in crate::protocol) fn eight() -> Topology {
    Topology::new(&racks(&[2, 2], 2), &[1; 8]).expect("consistent")
}

pub(super) fn need(starving: bool) -> Need {
    if starving { Need::Starving } else { Need::Ahead }
}

/// A FISH of a thief without work, which goes no further and does not wait.
pub(super) fn fish_of(thief: u32) -> Fish {
    let (need, patience) = (Need::Idle, Duration::ZERO);
    Fish { thief: pe(thief), serial: 1, hops_left: 0, need, queued: 0, patience }
}

pub(super) fn pe(number: u32) -> Pe {
    Pe::new(number)
}

/// A task without a body that may run anywhere and was never away from home.
pub(super) fn parcel(home: u32, future: u64, supervised: bool) -> Parcel {
    let task = TaskId { home: pe(home), future };
    let (radius, version, body) = (Distance::ONE, Version::default(), Bytes::default());
    Parcel { task, radius, supervised, version, body }
}

/// PEs of which none is nearer to another than the rest.
pub(super) fn flat(pes: u32) -> World {
    World::new(Topology::flat(pes), &settings(), 1)
}

impl World {
    pub(super) fn new(topology: Topology, settings: &FishingSettings, seed: u64) -> Self {
        let topology = Arc::new(topology);
        let seat = |me: Pe| Seat {
            me,
            radii: Radii::of(&topology),
            random: seed.wrapping_add(u64::from(me.number())).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            pool: Pool::new(topology.radii().iter().map(|_| VecDeque::new())),
            sent: Vec::new(),
            placed: Vec::new(),
            heard: Vec::new(),
            filled: Vec::new(),
            failures: Vec::new(),
            shut_down: 0,
            spawned: 0,
            has_forks: false,
            packed_at_once: usize::MAX,
            to_pack: None,
            packing: Vec::new(),
            boards: None,
        };
        World {
            nodes: (0..topology.pes())
                .map(|n| {
                    let settings = ProtocolSettings::new(settings.clone());
                    Node::new(pe(n), topology.clone(), settings)
                })
                .collect(),
            seats: (0..topology.pes()).map(|n| seat(pe(n))).collect(),
            topology,
            flying: Vec::new(),
            now: Duration::ZERO,
            farewells: Vec::new(),
            boards: Sheets::default(),
        }
    }

    /// Each PE sees the boards of all.
    pub(super) fn share_boards_of_all(&mut self) {
        self.share_boards(|topology, me| topology.ball(me, Distance::ONE));
    }

    /// Each PE sees the boards of its host.
    pub(super) fn share_boards_of_hosts(&mut self) {
        self.share_boards(Topology::host_of);
    }

    fn share_boards(&mut self, host: impl Fn(&Topology, Pe) -> Ball) {
        self.boards.borrow_mut().resize_with(self.seats.len(), Sheet::default);
        for seat in &mut self.seats {
            let host = host(&self.topology, seat.me);
            let boards = || SeatBoards::new(seat.me, host, self.boards.clone());
            seat.boards = (host.len() > 1).then(boards);
        }
    }

    /// How many tasks on this PE's board can be taken.
    pub(super) fn ready(&self, at: u32) -> usize {
        self.boards.borrow().get(at as usize).map_or(0, Sheet::ready)
    }

    /// How many were taken, which it has not noticed.
    pub(super) fn taken(&self, at: u32) -> usize {
        self.boards.borrow().get(at as usize).map_or(0, Sheet::taken)
    }

    /// Sends a message.
    pub(super) fn send(&mut self, from: u32, to: u32, message: Message) {
        self.act(from, |_, seat| seat.send(pe(to), message));
    }

    /// Lets a PE do something, and sends what it says.
    pub(super) fn act<T>(&mut self, at: u32, act: impl FnOnce(&mut Node, &mut Seat) -> T) -> T {
        let done = act(&mut self.nodes[at as usize], &mut self.seats[at as usize]);
        self.post(at);
        done
    }

    /// Puts a new task of this PE into its pool; its body has this many bytes.
    pub(super) fn spawn(&mut self, home: u32, radius: Distance, bytes: usize) -> TaskId {
        let body = Bytes::from(vec![0; bytes]);
        self.put_new(home, Parcel { radius, body, ..parcel(home, 0, false) })
    }

    pub(super) fn spawn_many(&mut self, count: usize, home: u32, radius: Distance, bytes: usize) {
        (0..count).for_each(|_| _ = self.spawn(home, radius, bytes));
    }

    /// Puts a new supervised task of this PE into its pool.
    pub(super) fn spawn_supervised(&mut self, home: u32, radius: Distance) -> TaskId {
        self.put_new(home, Parcel { radius, ..parcel(home, 0, true) })
    }

    fn put_new(&mut self, home: u32, mut parcel: Parcel) -> TaskId {
        let seat = &mut self.seats[home as usize];
        seat.spawned += 1;
        parcel.task.future = seat.spawned;
        let task = parcel.task;
        seat.put(parcel);
        task
    }

    /// Takes from a PE's pool the task that a worker would run next.
    pub(super) fn run_one(&mut self, at: u32) -> Option<Parcel> {
        self.seats[at as usize].pool.select_local()
    }

    pub(super) fn queued(&self, at: u32) -> usize {
        self.seats[at as usize].pool.len()
    }

    /// This PE hears that another has died.
    pub(super) fn mark_dead(&mut self, at: u32, dead: u32) {
        self.mark_all_dead(at, &[dead]);
    }

    /// This PE hears that others have died.
    pub(super) fn mark_all_dead(&mut self, at: u32, dead: &[u32]) {
        let dead: Vec<Pe> = dead.iter().copied().map(pe).collect();
        self.act(at, |node, seat| node.mark_dead(&dead, seat));
    }

    pub(super) fn place(&mut self, home: u32, to: u32, parcel: Parcel) {
        self.act(home, |node, seat| node.place(pe(to), parcel, seat));
    }

    pub(super) fn tick(&mut self, at: u32, starving: bool) -> Option<Duration> {
        let now = self.now;
        self.act(at, |node, seat| node.tick(now, need(starving), seat))
    }

    pub(super) fn handle(&mut self, at: u32, from: u32, message: Message) {
        let now = self.now;
        self.act(at, |node, seat| node.handle(now, pe(from), message, seat));
    }

    pub(super) fn tell(&mut self, at: u32, pes: Range<u32>, body: Bytes) {
        self.act(at, |node, seat| node.tell(pes, body, seat));
    }

    /// The results of these tasks of this PE are not wanted any more.
    pub(super) fn cancel(&mut self, home: u32, futures: Vec<u64>) {
        self.act(home, |node, seat| node.cancel(futures, seat));
    }

    /// The root's main task has ended.
    pub(super) fn end(&mut self) {
        self.act(0, Node::end);
    }

    fn post(&mut self, at: u32) {
        let from = pe(at);
        for (to, message) in self.seats[at as usize].sent.drain(..) {
            let has_left = self.farewells.contains(&from);
            assert!(
                !has_left || message == Message::Release,
                "{from} has taken leave and still sends {message:?} to {to}"
            );
            if message == Message::Farewell {
                self.farewells.push(from);
            }
            if message == Message::Release && from == Pe::ROOT {
                let others = self.flying.iter().filter(|letter| letter.message != Message::Release);
                assert_eq!(others.count(), 0, "nothing is on its way any more: {:?}", self.flying);
            }
            self.flying.push(Letter { from, to, message });
        }
    }

    /// Delivers the only message on its way.
    pub(super) fn deliver_only(&mut self) -> Letter {
        assert_eq!(self.flying.len(), 1, "{:?}", self.flying);
        self.deliver(0)
    }

    /// Delivers the oldest message between the two PEs that this one is between.
    pub(super) fn deliver(&mut self, index: usize) -> Letter {
        let (from, to) = (self.flying[index].from, self.flying[index].to);
        let first = self.flying.iter().position(|l| (l.from, l.to) == (from, to));
        let letter = self.flying.remove(first.expect("at least the one at `index`"));
        self.handle(to.number(), from.number(), letter.message.clone());
        letter
    }

    /// Delivers messages, chosen by `choose`, until none is on its way and each PE that can take
    /// leave has done so.
    pub(super) fn deliver_all(&mut self, mut choose: impl FnMut(usize) -> usize) {
        for _ in 0..100_000 {
            if self.flying.is_empty() {
                (0..self.topology.pes()).for_each(|at| self.take_leave(at));
                if self.flying.is_empty() {
                    return;
                }
            }
            let index = choose(self.flying.len());
            self.deliver(index);
            self.take_leave(choose(self.nodes.len()) as u32);
        }
        panic!("messages without end: {:?}", self.flying);
    }

    /// Has a PE take leave if everything that it sent has arrived, as its owner would.
    pub(super) fn take_leave(&mut self, at: u32) {
        if self.flying.iter().all(|letter| letter.from != pe(at)) {
            self.act(at, Node::take_leave);
        }
    }

    /// Removes the SCHEDULEs on their way, beside which there is nothing. Returns their tasks.
    pub(super) fn take_schedules(&mut self) -> Vec<Vec<Parcel>> {
        let tasks = |letter: Letter| match letter.message {
            Message::Schedule { tasks, .. } => tasks,
            other => panic!("no task in {other:?}"),
        };
        self.flying.drain(..).map(tasks).collect()
    }

    /// Removes and returns the only FISH on its way.
    pub(super) fn catch_fish(&mut self) -> (Pe, Fish) {
        let letter = self.flying.pop().expect("a FISH was sent");
        assert!(self.flying.is_empty(), "{:?}", self.flying);
        match letter.message {
            Message::Fish(fish) => (letter.to, fish),
            other => panic!("not a FISH: {other:?}"),
        }
    }

    pub(super) fn phases(&self) -> Vec<Phase> {
        self.nodes.iter().map(Node::phase).collect()
    }
}

/// A source of numbers that look random.
pub(super) fn chooser(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}
