//! States and steps.

use super::case::{Case, Task};
use super::host::{Actor, Desk, Output, Waiting};
use super::properties;
use stateright::{Model, Property};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::protocol::{
    Fish, Message, Need, Node, Outcome, Parcel, Radii, TaskId, Version,
};
use ultramarine_topology::{Distance, Pe, Topology};

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// By PE; `None`: it is gone.
    pub(super) actors: Vec<Option<Arc<Actor>>>,
    /// What is on its way, by sender and receiver, in the order of sending.
    wires: Vec<VecDeque<Message>>,
    /// A set of PEs: those that have died, or are held for dead and will leave.
    doomed: u32,
    /// By PE: the set of those of whose death it has heard.
    heard: Vec<u32>,
    /// A set of PEs: those whose last FISH has been answered, after their death.
    spent: u32,
    hops: u32,
    /// How each task has ended.
    pub(super) ends: Vec<Option<Outcome>>,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The next message between two PEs arrives.
    Deliver {
        /// Its sender.
        from: u32,
        /// Its receiver.
        to: u32,
    },
    /// A message between two PEs arrives before those that were sent earlier, which have a value.
    Overtake {
        /// Its sender.
        from: u32,
        /// Its receiver.
        to: u32,
        /// How many it overtakes.
        number: usize,
    },
    /// A FISH arrives.
    Fish {
        /// Whose it is.
        thief: u32,
        /// Who is asked.
        victim: u32,
    },
    /// A PE runs the next task of its pool.
    Run(u32),
    /// A PE goes on with its losses.
    WorkOff(u32),
    /// A PE hears that another is dead.
    Hear {
        /// Who hears it.
        at: u32,
        /// Of whom.
        dead: u32,
    },
    /// A PE dies, or is taken for dead.
    Doom(u32),
    /// A PE that was taken for dead leaves.
    Leave(u32),
}

impl Case {
    /// Lets a PE do something. Returns `None` if it is gone.
    fn turn<R>(
        &self,
        state: &mut State,
        at: u32,
        act: impl FnOnce(&mut Node, &mut Desk<'_>) -> R,
    ) -> Option<(R, Output)> {
        let radii = Radii::of(&Topology::flat(self.pes));
        let actor = Arc::make_mut(state.actors[at as usize].as_mut()?);
        let mut output = Output::default();
        let mut desk = Desk { radii: &radii, shelves: &mut actor.shelves, output: &mut output };
        let result = act(&mut actor.node, &mut desk);
        actor.node.tick(Duration::ZERO, Need::Idle, &mut desk);
        Some((result, output))
    }

    /// What a PE said goes on its way.
    fn post(&self, state: &mut State, from: u32, output: Output) {
        for (to, message) in output.sent {
            let to = to.number();
            // Nobody would read it.
            if state.actors[to as usize].is_some() && !has(state.heard[to as usize], from) {
                state.wires[self.wire(from, to)].push_back(message);
            }
        }
        for (future, outcome) in output.filled {
            state.ends[future as usize - 1].get_or_insert(outcome);
        }
    }

    fn wire(&self, from: u32, to: u32) -> usize {
        (from * self.pes + to) as usize
    }

    /// Lets a PE do something, and sends what it says.
    fn step(
        &self,
        state: &mut State,
        at: u32,
        act: impl FnOnce(&mut Node, &mut Desk<'_>),
    ) -> Option<()> {
        let ((), output) = self.turn(state, at, act)?;
        self.post(state, at, output);
        Some(())
    }

    /// The message of this number in the order of sending arrives.
    fn deliver(&self, state: &mut State, from: u32, to: u32, number: usize) -> Option<()> {
        let message = state.wires[self.wire(from, to)].remove(number)?;
        self.step(state, to, |node, desk| {
            node.handle(Duration::ZERO, Pe::new(from), message, desk);
        })
    }

    /// `None` if the thief gets nothing.
    fn fish(&self, state: &mut State, thief: u32, victim: u32) -> Option<()> {
        let fish =
            Fish { thief: Pe::new(thief), serial: 0, hops_left: 0, need: Need::Idle, queued: 0 };
        let ((), output) = self.turn(state, victim, |node, desk| {
            node.handle(Duration::ZERO, fish.thief, Message::Fish(fish), desk);
        })?;
        if output.sent.is_empty() {
            return None;
        }
        self.post(state, victim, output);
        if has(state.doomed, thief) {
            state.spent |= set(thief);
        }
        if victim != self.home {
            state.hops += 1;
        }
        Some(())
    }

    fn run(&self, state: &mut State, at: u32) -> Option<()> {
        let (ran, mut output) = self.turn(state, at, |_, desk| desk.next())?;
        let Waiting { parcel, is_local } = ran?;
        let (future, outcome) = (parcel.task.future, Ok(value()));
        if is_local {
            output.filled.push((future, outcome));
        } else {
            output.sent.push((parcel.task.home, Message::Result { future, outcome }));
        }
        self.post(state, at, output);
        Some(())
    }

    fn hear(&self, state: &mut State, at: u32, dead: u32) -> Option<()> {
        state.heard[at as usize] |= set(dead);
        state.wires[self.wire(dead, at)].clear();
        self.step(state, at, |node, desk| node.mark_dead(Pe::new(dead), desk))
    }

    fn leave(&self, state: &mut State, pe: u32) {
        state.actors[pe as usize] = None;
        state.heard[pe as usize] = 0;
        for from in 0..self.pes {
            state.wires[self.wire(from, pe)].clear();
        }
    }

    /// Whether anything but a further death can happen.
    pub(super) fn can_go_on(&self, state: &State) -> bool {
        let mut acts = Vec::new();
        self.actions(state, &mut acts);
        let mut acts = acts.into_iter().filter(|act| !matches!(act, Act::Doom(_)));
        acts.any(|act| self.next_state(state, act).is_some())
    }
}

impl State {
    /// Whether all futures have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ends.iter().all(Option::is_some)
    }

    /// The tasks in a PE's pool.
    pub(super) fn pool(&self, pe: u32) -> impl Iterator<Item = &Waiting> {
        let actor = self.actors.get(pe as usize).into_iter().flatten();
        actor.flat_map(|actor| &actor.shelves).flatten()
    }

    /// Whether this PE has heard of the deaths of these.
    pub(super) fn has_heard_of(&self, mut dead: impl Iterator<Item = u32>, pe: u32) -> bool {
        dead.all(|dead| has(self.heard[pe as usize], dead))
    }
}

impl Model for Case {
    type State = State;
    type Action = Act;

    fn init_states(&self) -> Vec<State> {
        let pes = self.pes as usize;
        let topology = Arc::new(Topology::flat(self.pes));
        let actor = |pe| {
            let node = Node::new(Pe::new(pe), topology.clone(), self.settings());
            let shelves = vec![VecDeque::new(); topology.radii().len()];
            Some(Arc::new(Actor { node, shelves }))
        };
        let mut state = State {
            actors: (0..self.pes).map(actor).collect(),
            wires: vec![VecDeque::new(); pes * pes],
            doomed: 0,
            heard: vec![0; pes],
            spent: 0,
            hops: 0,
            ends: vec![None; self.tasks.len()],
        };
        for (task, future) in self.tasks.iter().zip(1..) {
            let parcel = Parcel {
                task: TaskId { home: Pe::new(self.home), future },
                radius: Distance::ONE,
                supervised: *task != Task::Unsupervised,
                version: Version::default(),
                body: Bytes::default(),
            };
            self.step(&mut state, self.home, |node, desk| match task {
                Task::Placed(pe) => node.place(Pe::new(*pe), parcel, desk),
                _ => desk.put(parcel, true),
            });
        }
        for pe in 0..self.pes {
            self.step(&mut state, pe, |_, _| {});
        }
        vec![state]
    }

    fn actions(&self, state: &State, acts: &mut Vec<Act>) {
        if state.has_ended() {
            return;
        }
        let all = || 0..self.pes;
        if self.losses_per_turn < self.tasks.len() {
            acts.push(Act::WorkOff(self.home));
        }
        let here = |pe: &u32| state.actors[*pe as usize].is_some();
        for (wire, index) in state.wires.iter().zip(0..) {
            if !wire.is_empty() {
                let (from, to) = (index / self.pes, index % self.pes);
                acts.push(Act::Deliver { from, to });
                if self.are_values_large {
                    acts.extend(overtaking(wire).map(|number| Act::Overtake { from, to, number }));
                }
            }
        }
        for at in all().filter(here) {
            if state.pool(at).next().is_some() {
                acts.push(Act::Run(at));
            }
            let unheard = |dead: &u32| *dead != at && !has(state.heard[at as usize], *dead);
            let dead = all().filter(|pe| has(state.doomed, *pe)).filter(unheard);
            acts.extend(dead.map(|dead| Act::Hear { at, dead }));
            let has_work =
                at == self.home || state.hops < self.hops && state.pool(at).next().is_some();
            let thieves = all().filter(unheard).filter(|thief| !has(state.spent, *thief));
            acts.extend(thieves.filter(|_| has_work).map(|thief| Act::Fish { thief, victim: at }));
            if has(state.doomed, at) {
                acts.push(Act::Leave(at));
            } else if self.mortals().any(|pe| pe == at) && state.doomed.count_ones() < self.deaths {
                acts.push(Act::Doom(at));
            }
        }
    }

    fn next_state(&self, last: &State, act: Act) -> Option<State> {
        let mut state = last.clone();
        match act {
            Act::Deliver { from, to } => self.deliver(&mut state, from, to, 0)?,
            Act::Overtake { from, to, number } => self.deliver(&mut state, from, to, number)?,
            Act::Fish { thief, victim } => self.fish(&mut state, thief, victim)?,
            Act::Run(pe) => self.run(&mut state, pe)?,
            Act::WorkOff(pe) => {
                self.step(&mut state, pe, |_, _| {})?;
                if state == *last {
                    return None;
                }
            }
            Act::Hear { at, dead } => self.hear(&mut state, at, dead)?,
            Act::Doom(pe) => {
                state.doomed |= set(pe);
                if !self.accused_live_on {
                    self.leave(&mut state, pe);
                }
            }
            Act::Leave(pe) => self.leave(&mut state, pe),
        }
        if state.has_ended() {
            // What else there is does not matter any more: so there are fewer states.
            let State { heard, ends, .. } = state;
            let (actors, wires) = (Vec::new(), Vec::new());
            return Some(State { actors, wires, doomed: 0, heard, spent: 0, hops: 0, ends });
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self)
    }
}

/// Which messages may arrive before the first if those with a value take longer.
fn overtaking(wire: &VecDeque<Message>) -> impl Iterator<Item = usize> {
    let values = wire.iter().take_while(|message| message.may_be_overtaken()).count();
    1..=values.min(wire.len().saturating_sub(1))
}

/// What every task comes to.
pub(super) fn value() -> Bytes {
    Bytes::from(vec![42])
}

fn set(pe: u32) -> u32 {
    1 << pe
}

fn has(pes: u32, pe: u32) -> bool {
    pes & set(pe) != 0
}
