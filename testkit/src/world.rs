//! A job in one thread: PEs as state machines, and what is on its way between them.
//!
//! What one PE sends to another arrives in order, and all else in any order: the caller of
//! [`World::step`] chooses what comes next. A PE that dies may not have sent the last of what it
//! has said. Each other PE hears of the death after what has come from the dead PE.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use ultramarine_topology::Pe;

/// A PE's state machine.
pub trait Actor {
    /// What PEs send each other, and themselves.
    type Message: Clone;

    /// A message has arrived.
    fn receive(&mut self, from: Pe, message: Self::Message, out: &mut Outgoing<Self::Message>);

    /// A PE has died. The root is this one now.
    fn died(&mut self, dead: Pe, root: Pe, out: &mut Outgoing<Self::Message>);
}

/// What a PE sends.
#[derive(Debug)]
pub struct Outgoing<M>(Vec<(To, M)>);

#[derive(Debug)]
enum To {
    One(Pe),
    All,
    Later,
}

impl<M> Outgoing<M> {
    /// Sends a message to a PE, which may be the sender.
    pub fn send(&mut self, to: Pe, message: M) {
        self.0.push((To::One(to), message));
    }

    /// Sends a message to all PEs, down a tree: a PE that dies before it has passed the message on
    /// takes it from those below. A PE that has heard of a death sends past the dead one.
    pub fn send_all(&mut self, message: M) {
        self.0.push((To::All, message));
    }

    /// Sends a message to oneself which comes at any time: something that is being computed.
    pub fn later(&mut self, message: M) {
        self.0.push((To::Later, message));
    }
}

/// A PE that dies: its number, the number of steps before that, and one from which follows how much
/// of what it has sent to each other PE arrives.
pub type Death = (u32, usize, usize);

/// No world takes as many steps, unless it goes on for ever.
const STEPS_MAX: usize = 20_000;

/// In which order things come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Wire {
    From(Pe),
    Own(u64),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Event<M> {
    Message(M),
    /// From this PE, to be passed on to these.
    Relayed(Pe, M, Vec<Pe>),
    Death(Pe),
}

/// All PEs of a job, and what is on its way.
pub type World<A> = WorldOf<A, <A as Actor>::Message>;

/// See [`World`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WorldOf<A, M> {
    /// By PE; `None`: it is dead.
    actors: Vec<Option<A>>,
    coming: BTreeMap<(Pe, Wire), VecDeque<Event<M>>>,
    stopped: BTreeSet<Pe>,
    /// The deaths of which PEs have heard: who, of whom.
    heard: BTreeSet<(Pe, Pe)>,
    root: Pe,
    /// How often something was sent for later.
    count: u64,
}

impl<A: Actor> WorldOf<A, A::Message> {
    /// A job of these PEs, of which the first is the root.
    pub fn new(actors: impl IntoIterator<Item = A>) -> Self {
        WorldOf {
            actors: actors.into_iter().map(Some).collect(),
            coming: BTreeMap::new(),
            stopped: BTreeSet::new(),
            heard: BTreeSet::new(),
            root: Pe::ROOT,
            count: 0,
        }
    }

    /// The PEs that live.
    pub fn living(&self) -> impl Iterator<Item = Pe> + '_ {
        let lives =
            |(number, actor): (usize, &Option<A>)| actor.is_some().then(|| Pe::new(number as u32));
        self.actors.iter().enumerate().filter_map(lives)
    }

    /// The root.
    pub fn root(&self) -> Pe {
        self.root
    }

    /// A PE's state machine, if it lives.
    pub fn actor(&self, pe: Pe) -> Option<&A> {
        self.actors.get(pe.index())?.as_ref()
    }

    /// Has a PE do something, if it lives.
    pub fn act<T>(
        &mut self,
        pe: Pe,
        act: impl FnOnce(&mut A, &mut Outgoing<A::Message>) -> T,
    ) -> Option<T> {
        let mut out = Outgoing(Vec::new());
        let done = act(self.actors.get_mut(pe.index())?.as_mut()?, &mut out);
        for (to, message) in out.0 {
            match to {
                To::One(to) => self.post(to, Wire::From(pe), Event::Message(message)),
                To::All => {
                    let others = (0..self.actors.len() as u32).map(Pe::new);
                    self.relay(pe, pe, &message, others.filter(|one| *one != pe).collect());
                    self.post(pe, Wire::From(pe), Event::Message(message));
                }
                To::Later => {
                    self.count += 1;
                    self.post(pe, Wire::Own(self.count), Event::Message(message));
                }
            }
        }
        Some(done)
    }

    /// A PE dies. Of what it has sent to each other PE and is still on its way a part is lost, the
    /// last, as `choose` says: it is given how many may arrive at most, and returns how many do.
    pub fn kill(&mut self, pe: Pe, mut choose: impl FnMut(usize) -> usize) {
        if self.actors.get_mut(pe.index()).and_then(Option::take).is_none() {
            return;
        }
        self.coming.retain(|(to, _), _| *to != pe);
        if pe == self.root {
            let next = self.living().next();
            self.root = next.unwrap_or(pe);
        }
        for other in self.living().collect::<Vec<_>>() {
            let sent = self.coming.entry((other, Wire::From(pe))).or_default();
            sent.truncate(choose(sent.len()));
            sent.push_back(Event::Death(pe));
        }
    }

    /// A PE stands still until it [goes on](Self::resume).
    pub fn stop(&mut self, pe: Pe) {
        self.stopped.insert(pe);
    }

    /// A PE that was stopped goes on.
    pub fn resume(&mut self, pe: Pe) {
        self.stopped.remove(&pe);
    }

    /// The number of things of which any may come next.
    pub fn choices(&self) -> usize {
        self.next().count()
    }

    fn next(&self) -> impl Iterator<Item = (Pe, Wire)> + '_ {
        let is_next = |(to, _): &&(Pe, Wire)| !self.stopped.contains(to);
        self.coming.keys().filter(is_next).copied()
    }

    /// Lets one thing come, the one of this number, counted round. Returns whether there was any.
    pub fn step(&mut self, choice: usize) -> bool {
        let choices = self.choices();
        if choices == 0 {
            return false;
        }
        let key @ (to, wire) = self.next().nth(choice % choices).expect("it is one of them");
        let events = self.coming.get_mut(&key).expect("the key is there");
        let event = events.pop_front().expect("no queue is empty");
        if events.is_empty() {
            self.coming.remove(&key);
        }
        let from = if let Wire::From(from) = wire { from } else { to };
        self.arrive(to, from, event);
        true
    }

    /// Lets all come, in an order that follows from the choices, which are taken again and again.
    /// These PEs die meanwhile, if they live and are not the last.
    ///
    /// # Panics
    ///
    /// It does not end, or there are no choices.
    pub fn run(&mut self, choices: &[usize], deaths: &[Death]) {
        self.run_with(choices, deaths, |_| ());
    }

    /// The same; `next` is called before each step.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn run_with(
        &mut self,
        choices: &[usize],
        deaths: &[Death],
        mut next: impl FnMut(&mut Self),
    ) {
        let mut choices = choices.iter().cycle();
        let last = deaths.iter().map(|(_, when, _)| *when).max().unwrap_or(0);
        for at in 0..STEPS_MAX {
            for (pe, _, keeps) in deaths.iter().filter(|(_, when, _)| *when == at) {
                if self.living().count() > 1 {
                    self.kill(Pe::new(*pe), |sent| keeps % (sent + 1));
                }
            }
            next(self);
            if !self.step(*choices.next().expect("there are choices")) && at >= last {
                return;
            }
        }
        panic!("it does not end in {STEPS_MAX} steps");
    }

    fn arrive(&mut self, to: Pe, from: Pe, event: Event<A::Message>) {
        match event {
            Event::Message(message) => {
                self.act(to, |actor, out| actor.receive(from, message, out));
            }
            Event::Relayed(origin, message, below) => {
                self.relay(to, origin, &message, below);
                self.act(to, |actor, out| actor.receive(origin, message, out));
            }
            Event::Death(dead) => {
                let root = self.root;
                self.heard.insert((to, dead));
                self.act(to, |actor, out| actor.died(dead, root, out));
            }
        }
    }

    /// Has a PE pass a message on.
    fn relay(&mut self, by: Pe, origin: Pe, message: &A::Message, mut below: Vec<Pe>) {
        let right = below.split_off(below.len() / 2);
        for mut half in [below, right] {
            half.retain(|pe| !self.heard.contains(&(by, *pe)));
            if !half.is_empty() {
                let next = half.remove(0);
                let relayed = Event::Relayed(origin, message.clone(), half);
                self.post(next, Wire::From(by), relayed);
            }
        }
    }

    fn post(&mut self, to: Pe, wire: Wire, event: Event<A::Message>) {
        if self.actor(to).is_some() {
            self.coming.entry((to, wire)).or_default().push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes what comes, and passes each number on until it is 0.
    #[derive(Default)]
    struct Notes(Vec<(Pe, u32)>, Vec<Pe>);

    impl Actor for Notes {
        type Message = u32;

        fn receive(&mut self, from: Pe, message: u32, out: &mut Outgoing<u32>) {
            self.0.push((from, message));
            if message > 0 {
                out.send(from, message - 1);
            }
        }

        fn died(&mut self, dead: Pe, _: Pe, _: &mut Outgoing<u32>) {
            self.1.push(dead);
        }
    }

    fn three() -> World<Notes> {
        World::new((0..3).map(|_| Notes::default()))
    }

    #[test]
    fn what_one_sends_to_another_comes_in_order_and_to_a_dead_one_not_at_all() {
        let [zero, one, two] = [0, 1, 2].map(Pe::new);
        let mut world = three();
        world.act(one, |_, out| {
            [3, 0].into_iter().for_each(|n| out.send(zero, n));
            out.send(two, 0);
            out.later(0);
        });
        world.kill(two, |sent| sent);
        world.run(&[5, 1, 4], &[]);
        let notes = |pe| &world.actor(pe).expect("it lives").0;
        assert_eq!(*notes(zero), [(one, 3), (one, 0), (one, 1)]);
        assert_eq!(notes(one).len(), 3, "two answers, and its own");
        assert_eq!(world.living().collect::<Vec<_>>(), [zero, one]);
    }

    #[test]
    fn a_death_is_heard_after_what_the_dead_one_sent_and_the_next_pe_is_the_root() {
        let mut world = three();
        world.act(Pe::ROOT, |_, out| (1..4).for_each(|_| out.send(Pe::new(1), 0)));
        world.kill(Pe::ROOT, |sent| sent.min(2));
        assert_eq!(world.root(), Pe::new(1));
        world.run(&[0], &[]);
        let one = world.actor(Pe::new(1)).expect("it lives");
        assert_eq!((one.0.len(), &one.1), (2, &vec![Pe::ROOT]), "one was lost");
    }

    #[test]
    fn a_message_to_all_is_lost_below_a_pe_that_dies_and_a_stopped_pe_waits() {
        let heard = |world: &World<Notes>, pe| world.actor(Pe::new(pe)).map(|notes| notes.0.len());
        let mut world = World::new((0..7).map(|_| Notes::default()));
        // To PEs 1 and 4, which pass it on.
        world.act(Pe::ROOT, |_, out| out.send_all(0));
        world.kill(Pe::new(1), |sent| sent);
        world.stop(Pe::new(4));
        world.run(&[0], &[]);
        assert_eq!([2, 3, 4, 5].map(|pe| heard(&world, pe)), [Some(0); 4]);
        world.resume(Pe::new(4));
        world.run(&[0], &[]);
        assert_eq!([2, 3, 4, 5].map(|pe| heard(&world, pe)), [Some(0), Some(0), Some(1), Some(1)]);
    }
}
