//! The steps of the search.

use super::case::SuperstepsCase;
use super::program::{Toy, Word, first};
use super::properties;
use super::state::{Action, Event, Fault, Member, State, Task, What};
use crate::frame::{Digested, has, set};
use stateright::{Model, Property};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use ultramarine_skeletons::bsp::machine::{Effect, JobOf, Letter, Machine, Work};
use ultramarine_topology::{Pe, Topology};

/// The most checkpoints of which a PE keeps copies.
const CHECKPOINTS_MAX: usize = 2;

impl SuperstepsCase {
    fn wire(&self, from: u32, to: u32) -> usize {
        (from * self.pes + to) as usize
    }

    /// Whether this PE may die now.
    fn may_die(&self, state: &State, pe: u32) -> bool {
        let is_mortal = self.root_dies || pe != Pe::ROOT.number();
        let may_any = state.dead.count_ones() < self.deaths.min(self.pes - 1);
        is_mortal && may_any && !has(state.dead, pe)
    }

    /// Has a PE do something, and carries out what comes of it.
    fn act(
        &self,
        state: &mut State,
        at: u32,
        act: impl FnOnce(&mut State, &mut Member),
    ) -> Option<()> {
        let mut member = state.members[at as usize].take()?;
        Arc::make_mut(&mut member).change(|member| {
            // So that the search shows how it has come to that.
            let is_done = catch_unwind(AssertUnwindSafe(|| {
                act(state, member);
                self.carry_out(state, at, member);
            }));
            if is_done.is_err() {
                state.fault = Some(Fault::Panics);
            }
        });
        let machine = &member.machine;
        state.whole = state.whole.max(machine.progress.all_kept.map(|key| key.superstep));
        if machine.checkpoints.0.len() > CHECKPOINTS_MAX {
            state.fault.get_or_insert(Fault::KeepsTooMuch);
        }
        state.members[at as usize] = Some(member);
        Some(())
    }

    fn carry_out(&self, state: &mut State, at: u32, member: &mut Member) {
        loop {
            drop(member.machine.take_waste());
            let effects = member.machine.take_effects();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out_one(state, at, member, effect));
        }
    }

    fn carry_out_one(&self, state: &mut State, at: u32, member: &mut Member, effect: Effect<Toy>) {
        let dead = state.heard[at as usize];
        match effect {
            Effect::Send(to, told) => {
                if let Some(told) = self.sends(state, (at, member), (to, told)) {
                    self.post(state, at, to.number(), Event::Told(told));
                }
            }
            Effect::Run(work, jobs) => {
                member.ticket = work.ticket;
                self.begins(member, work);
                let what = if work.is_saved { What::Save } else { What::Step };
                member.tasks.extend(jobs.into_iter().map(|job| Task {
                    work,
                    dead,
                    what: what(job),
                }));
            }
            Effect::Restore(work, ranks) => {
                member.ticket = work.ticket;
                let what = |(rank, saved)| Task { work, dead, what: What::Restore(rank, saved) };
                member.tasks.extend(ranks.into_iter().map(what));
                if dead != 0 {
                    state.resumed = Some(work.superstep);
                    // One death; of two the second may be that of the partner.
                    if state.dead.is_power_of_two() && Some(work.superstep) < state.whole {
                        state.fault.get_or_insert(Fault::LosesCheckpoint);
                    }
                }
            }
            Effect::Fail(trouble) => state.end = Some(Err(trouble)),
            Effect::End(outputs) if at == state.home => state.end = Some(Ok(outputs)),
            Effect::Weighed(shares) => state.has_moved |= shares.is_some_and(|[was, _]| was > 0),
            Effect::End(_) | Effect::Lost(_) => {}
            Effect::Look(..)
            | Effect::Load(..)
            | Effect::Store(..)
            | Effect::Prune(..)
            | Effect::Discard(_) => {
                unreachable!("there is no directory")
            }
        }
    }

    fn post(&self, state: &mut State, from: u32, to: u32, event: Event) {
        if !has(state.dead, to) {
            state.wires[self.wire(from, to)].push_back(event);
        }
    }

    fn deliver(&self, state: &mut State, from: u32, to: u32) -> Option<()> {
        let event = state.wires[self.wire(from, to)].pop_front()?;
        self.act(state, to, |_, member| match event {
            Event::Told(told) => {
                let told = self.hears(member, told);
                member.machine.receive(Pe::new(from), told);
            }
            Event::Home => member.machine.move_home(Pe::new(from)),
        })
    }

    /// A worker has done something.
    fn work(&self, state: &mut State, at: u32, number: usize) -> Option<()> {
        self.act(state, at, |state, member| {
            let Task { work, dead, what } = member.tasks.remove(number);
            let counted = self.counts(member, work);
            let machine = &mut member.machine;
            match what {
                What::Save(job) => {
                    let (rank, saved) = (job.rank, job.clone());
                    let back = (!job.is_stepping).then_some(job.state);
                    if job.is_stepping {
                        member.tasks.insert(number, Task { work, dead, what: What::Step(job) });
                    }
                    machine.saved(counted, rank, saved, back);
                }
                What::Step(job) => {
                    check(state, work, dead, &job.letters);
                    machine.set_weighing_due(self.program.is_uneven);
                    machine.stepped(counted, job.rank, self.program.step(work, dead, job));
                }
                What::Restore(rank, None) => {
                    machine.restored(counted, rank, first(rank), Vec::new(), Vec::new());
                }
                What::Restore(rank, Some(JobOf::<Toy> { state, mut letters, results, .. })) => {
                    letters.iter_mut().for_each(|letter| letter.content.dead = dead);
                    machine.restored(counted, rank, state, letters, results);
                }
            }
        })
    }

    fn die(&self, state: &mut State, pe: u32) {
        state.dead |= set(pe);
        state.members[pe as usize] = None;
        state.heard[pe as usize] = 0;
        for from in 0..self.pes {
            state.wires[self.wire(from, pe)].clear();
        }
        if state.home == pe {
            state.home = state.dead.trailing_ones();
            state.is_vacant = true;
            state.end = None;
        }
    }

    fn hear(&self, state: &mut State, at: u32, dead: u32) -> Option<()> {
        state.heard[at as usize] |= set(dead);
        // What comes before a PE takes part waits.
        if state.members[at as usize].as_ref()?.has_begun {
            state.wires[self.wire(dead, at)].clear();
        }
        self.act(state, at, |_, member| member.machine.died(Pe::new(dead)))
    }

    fn begin(&self, state: &mut State, at: u32) -> Option<()> {
        self.act(state, at, |_, member| {
            member.has_begun = true;
            member.machine.begin();
        })
    }

    /// The program begins anew.
    fn come_home(&self, state: &mut State) -> Option<()> {
        let home = state.home;
        state.is_vacant = false;
        if !state.members[home as usize].as_ref()?.has_begun {
            self.begin(state, home)?;
        }
        for to in (0..self.pes).filter(|to| *to != home) {
            self.post(state, home, to, Event::Home);
        }
        self.act(state, home, |_, member| member.machine.move_home(Pe::new(home)))
    }

    /// Whether anything but a further death can happen.
    pub(super) fn can_go_on(&self, state: &State) -> bool {
        let mut acts = Vec::new();
        self.actions(state, &mut acts);
        acts.iter().any(|act| !matches!(act, Action::Die(_)))
    }

    /// Whether all is over.
    pub(super) fn is_over(&self, state: &State) -> bool {
        // The home may die before its program has told what it knows.
        state.fault.is_some() || state.end.is_some() && !self.may_die(state, state.home)
    }
}

/// What a rank has heard when it takes its step.
fn check(state: &mut State, work: Work, dead: u32, letters: &[Letter<Word>]) {
    for Letter { content, .. } in letters {
        if content.superstep + 1 != work.superstep {
            state.fault.get_or_insert(Fault::WrongSuperstep);
        }
        if content.dead != dead {
            state.fault.get_or_insert(Fault::FormerView);
        }
    }
}

impl Model for SuperstepsCase {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let (pes, ranks) = (self.pes as usize, self.program.ranks);
        let topology = Arc::new(Topology::flat(self.pes));
        let member = |pe| {
            let (topology, me) = (topology.clone(), Pe::new(pe));
            let machine = Machine::new(me, ranks, topology, self.saving, Pe::ROOT);
            Some(Arc::new(Digested::new(Member::new(machine))))
        };
        let mut state = State {
            members: (0..self.pes).map(member).collect(),
            wires: vec![VecDeque::new(); pes * pes],
            dead: 0,
            heard: vec![0; pes],
            home: 0,
            is_vacant: false,
            whole: None,
            resumed: None,
            has_moved: false,
            end: None,
            fault: None,
        };
        let invited = if self.are_invited { 0..1 } else { 0..self.pes };
        invited.for_each(|pe| _ = self.begin(&mut state, pe));
        vec![state]
    }

    fn actions(&self, state: &State, acts: &mut Vec<Action>) {
        if self.is_over(state) {
            return;
        }
        for at in 0..self.pes {
            let Some(member) = &state.members[at as usize] else { continue };
            if member.has_begun {
                let is_coming = |from: &u32| !state.wires[self.wire(*from, at)].is_empty();
                let coming = (0..self.pes).filter(is_coming);
                acts.extend(coming.map(|from| Action::Deliver { from, to: at }));
                acts.extend((0..member.tasks.len()).map(|task| Action::Work { at, task }));
            } else {
                acts.push(Action::Begin(at));
            }
            let unheard = state.dead & !state.heard[at as usize];
            let dead = (0..self.pes).filter(|dead| has(unheard, *dead));
            acts.extend(dead.map(|dead| Action::Hear { at, dead }));
            if self.may_die(state, at) {
                acts.push(Action::Die(at));
            }
        }
        if state.is_vacant && state.heard[state.home as usize] == state.dead {
            acts.push(Action::Return);
        }
    }

    fn next_state(&self, last: &State, act: Action) -> Option<State> {
        let mut state = last.clone();
        match act {
            Action::Begin(pe) => self.begin(&mut state, pe)?,
            Action::Deliver { from, to } => self.deliver(&mut state, from, to)?,
            Action::Work { at, task } => self.work(&mut state, at, task)?,
            Action::Die(pe) => self.die(&mut state, pe),
            Action::Hear { at, dead } => self.hear(&mut state, at, dead)?,
            Action::Return => self.come_home(&mut state)?,
        }
        if self.is_over(&state) {
            // The rest does not matter any more; without it there are fewer states.
            let (members, wires, heard) = (Vec::new(), Vec::new(), Vec::new());
            return Some(State { members, wires, heard, ..state });
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self)
    }
}
