//! The steps of the search.

use super::case::{SupervisionCase, Task};
use super::host::{PeState, PooledTask, StepHost, StepOutput};
use super::properties;
use super::state::{State, value};
use crate::frame::{has, set};
use stateright::{Model, Property};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::protocol::{Fish, Message, Need, Node, Parcel, Radii, TaskId, Version};
use ultramarine_topology::{Distance, Pe, Topology};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The next message between two PEs arrives.
    Deliver {
        /// Its sender.
        from: u32,
        /// Its receiver.
        to: u32,
    },
    /// A message between two PEs arrives before earlier messages, which have a value.
    Overtake {
        /// Its sender.
        from: u32,
        /// Its receiver.
        to: u32,
        /// The number of messages that it overtakes.
        number: usize,
    },
    /// A FISH arrives.
    Fish {
        /// The PE that wants work.
        thief: u32,
        /// The PE that is asked.
        victim: u32,
    },
    /// A PE runs the next task of its pool.
    Run(u32),
    /// A PE handles more of its losses.
    WorkOff(u32),
    /// A PE hears that another is dead.
    Hear {
        /// The PE that hears of it.
        at: u32,
        /// The dead PE.
        dead: u32,
    },
    /// A PE dies, or is taken for dead.
    Doom(u32),
    /// A PE that was taken for dead leaves.
    Leave(u32),
}

impl SupervisionCase {
    /// Runs `act` on a PE. Returns `None` if the PE is gone.
    fn turn<R>(
        &self,
        state: &mut State,
        at: u32,
        act: impl FnOnce(&mut Node, &mut StepHost<'_>) -> R,
    ) -> Option<(R, StepOutput)> {
        let radii = Radii::of(&Topology::flat(self.pes));
        let actor = Arc::make_mut(state.actors[at as usize].as_mut()?);
        let mut output = StepOutput::default();
        let mut host = StepHost { radii: &radii, shelves: &mut actor.shelves, output: &mut output };
        let result = act(&mut actor.node, &mut host);
        // Its workers are busy, so that it keeps no task from a thief.
        actor.node.tick(Duration::ZERO, Need::Ahead, &mut host);
        Some((result, output))
    }

    /// Sends the messages of a step, and ends its futures.
    fn post(&self, state: &mut State, from: u32, output: StepOutput) {
        for (to, message) in output.sent {
            let to = to.number();
            // Otherwise no PE would read it.
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

    /// Runs `act` on a PE, and carries out its effects.
    fn step(
        &self,
        state: &mut State,
        at: u32,
        act: impl FnOnce(&mut Node, &mut StepHost<'_>),
    ) -> Option<()> {
        let ((), output) = self.turn(state, at, act)?;
        self.post(state, at, output);
        Some(())
    }

    /// Delivers the message with this index in the order of sending.
    fn deliver(&self, state: &mut State, from: u32, to: u32, number: usize) -> Option<()> {
        let message = state.wires[self.wire(from, to)].remove(number)?;
        self.step(state, to, |node, host| {
            node.handle(Duration::ZERO, Pe::new(from), message, host);
        })
    }

    /// Delivers a FISH. `None` if the thief gets nothing.
    fn fish(&self, state: &mut State, thief: u32, victim: u32) -> Option<()> {
        let fish = Fish {
            thief: Pe::new(thief),
            serial: 0,
            hops_left: 0,
            need: Need::Idle,
            queued: 0,
            patience: Duration::ZERO,
        };
        let ((), output) = self.turn(state, victim, |node, host| {
            node.handle(Duration::ZERO, fish.thief, Message::Fish(fish), host);
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
        let (ran, mut output) = self.turn(state, at, |_, host| host.next())?;
        let PooledTask { parcel, is_local } = ran?;
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
        self.step(state, at, |node, host| node.mark_dead(&[Pe::new(dead)], host))
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
        let mut acts = acts.into_iter().filter(|act| !matches!(act, Action::Doom(_)));
        acts.any(|act| self.next_state(state, act).is_some())
    }
}

impl Model for SupervisionCase {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let pes = self.pes as usize;
        let topology = Arc::new(Topology::flat(self.pes));
        let actor = |pe| {
            let node = Node::new(Pe::new(pe), topology.clone(), self.settings());
            let shelves = vec![VecDeque::new(); topology.radii().len()];
            Some(Arc::new(PeState { node, shelves }))
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
            self.step(&mut state, self.home, |node, host| match task {
                Task::Placed(pe) => node.place(Pe::new(*pe), parcel, host),
                _ => host.put(parcel, true),
            });
        }
        for pe in 0..self.pes {
            self.step(&mut state, pe, |_, _| {});
        }
        vec![state]
    }

    fn actions(&self, state: &State, acts: &mut Vec<Action>) {
        if state.has_ended() {
            return;
        }
        let all = || 0..self.pes;
        if self.losses_per_turn < self.tasks.len() {
            acts.push(Action::WorkOff(self.home));
        }
        let here = |pe: &u32| state.actors[*pe as usize].is_some();
        for (wire, index) in state.wires.iter().zip(0..) {
            if !wire.is_empty() {
                let (from, to) = (index / self.pes, index % self.pes);
                acts.push(Action::Deliver { from, to });
                if self.are_values_large {
                    acts.extend(overtaking(wire).map(|number| Action::Overtake {
                        from,
                        to,
                        number,
                    }));
                }
            }
        }
        for at in all().filter(here) {
            if state.pool(at).next().is_some() {
                acts.push(Action::Run(at));
            }
            let unheard = |dead: &u32| *dead != at && !has(state.heard[at as usize], *dead);
            let dead = all().filter(|pe| has(state.doomed, *pe)).filter(unheard);
            acts.extend(dead.map(|dead| Action::Hear { at, dead }));
            let has_work =
                at == self.home || state.hops < self.hops && state.pool(at).next().is_some();
            let thieves = all().filter(unheard).filter(|thief| !has(state.spent, *thief));
            acts.extend(
                thieves.filter(|_| has_work).map(|thief| Action::Fish { thief, victim: at }),
            );
            if has(state.doomed, at) {
                acts.push(Action::Leave(at));
            } else if self.mortals().any(|pe| pe == at) && state.doomed.count_ones() < self.deaths {
                acts.push(Action::Doom(at));
            }
        }
    }

    fn next_state(&self, last: &State, act: Action) -> Option<State> {
        let mut state = last.clone();
        match act {
            Action::Deliver { from, to } => self.deliver(&mut state, from, to, 0)?,
            Action::Overtake { from, to, number } => self.deliver(&mut state, from, to, number)?,
            Action::Fish { thief, victim } => self.fish(&mut state, thief, victim)?,
            Action::Run(pe) => self.run(&mut state, pe)?,
            Action::WorkOff(pe) => {
                self.step(&mut state, pe, |_, _| {})?;
                if state == *last {
                    return None;
                }
            }
            Action::Hear { at, dead } => self.hear(&mut state, at, dead)?,
            Action::Doom(pe) => {
                state.doomed |= set(pe);
                if !self.accused_live_on {
                    self.leave(&mut state, pe);
                }
            }
            Action::Leave(pe) => self.leave(&mut state, pe),
        }
        if state.has_ended() {
            // The rest does not matter any more; without it there are fewer states.
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

/// The messages that may arrive before the first one, if messages with a value take longer.
fn overtaking(wire: &VecDeque<Message>) -> impl Iterator<Item = usize> {
    let values = wire.iter().take_while(|message| message.may_be_overtaken()).count();
    1..=values.min(wire.len().saturating_sub(1))
}
