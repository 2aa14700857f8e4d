//! The steps of the search.

use super::case::TablesCase;
use super::mutant::TablesMutant;
use super::properties;
use super::state::{Action, Fault, Member, Op, SHARE, State, Toy};
use crate::frame::{Digested, has, set};
use stateright::{Model, Property};
use std::collections::{BTreeSet, VecDeque};
use std::mem::take;
use std::sync::Arc;
use ultramarine_skeletons::table::machine::{Effect, Machine, MessageOf, Told, Work};
use ultramarine_topology::{Pe, Topology};

impl TablesCase {
    fn wire(&self, from: u32, to: u32) -> usize {
        (from * self.pes + to) as usize
    }

    /// Whether this PE may die now.
    fn may_die(&self, state: &State, pe: u32) -> bool {
        state.dead.count_ones() < self.deaths.min(self.pes - 1) && !has(state.dead, pe)
    }

    /// Has a PE do something, and carries out what comes of it.
    fn act(&self, state: &mut State, at: u32, act: impl FnOnce(&mut State, &mut Member)) {
        let Some(mut member) = state.members[at as usize].take() else { return };
        Arc::make_mut(&mut member).change(|member| {
            act(state, member);
            self.carry_out(state, at, member);
        });
        state.members[at as usize] = Some(member);
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
        match effect {
            Effect::Send(to, told) if told.0 == SHARE => {
                self.sends(member, to, &told);
                self.post(state, at, to.number(), told);
            }
            Effect::Do(SHARE, Work::Copy(to)) => {
                if !self.skips_copy(member, state.heard[at as usize], to) {
                    member.work.push_back(Work::Copy(to));
                }
            }
            Effect::Do(SHARE, work) => member.work.push_back(work),
            Effect::Answered(SHARE, number, answer) => {
                // It has asked for it, and had no answer: the machine forgets what is answered.
                let Some((op, certain)) = member.open.remove(&number) else { return };
                state.is_succeeded |= member.machine.owner(SHARE) != Pe::ROOT;
                hear_answer(state, op, certain, answer);
            }
            Effect::Lost(SHARE) => {
                state.is_lost = true;
                if state.dead.count_ones() as usize <= self.copies {
                    state.fault.get_or_insert(Fault::LosesTooSoon);
                }
            }
            // It is of another share.
            Effect::Send(..) | Effect::Do(..) | Effect::Answered(..) | Effect::Lost(_) => {}
        }
    }

    fn post(&self, state: &mut State, from: u32, to: u32, told: Told<Toy>) {
        if !has(state.dead, to) {
            state.wires[self.wire(from, to)].push_back(told);
        }
    }

    fn ask(&self, state: &mut State, at: u32) {
        self.act(state, at, |state, member| {
            let Some(op) = member.to_ask.pop_front() else { return };
            let number = member.machine.ask(SHARE, op);
            member.open.insert(number, (op, state.certain.len()));
        });
    }

    fn deliver(&self, state: &mut State, from: u32, to: u32) {
        let told = state.wires[self.wire(from, to)].pop_front();
        self.act(state, to, |_, member| {
            let told = told.filter(|told| !self.forgets(member, Pe::new(to), told));
            if let Some(told) = told {
                let (from, told) = self.hears(member, Pe::new(from), told);
                member.machine.receive(from, told);
            }
        });
    }

    /// A PE does the next thing with its entries.
    fn work(&self, state: &mut State, at: u32) {
        self.act(state, at, |state, member| match member.work.pop_front() {
            Some(Work::Apply(request, op)) => {
                let is_changed = op.apply(&mut member.entries);
                let answer = member.entries.clone();
                if matches!(op, Op::Read(_)) && self.lacks(TablesMutant::AnswersReadersAtOnce) {
                    let answer = MessageOf::Answer { number: request.number, answer };
                    let (to, told) = (request.by.number(), (SHARE, answer));
                    if to == at {
                        member.machine.receive(request.by, told);
                    } else {
                        self.post(state, at, to, told);
                    }
                    return;
                }
                // Without copies no change is told.
                let change = (is_changed && self.copies > 0).then_some(op);
                member.machine.applied(SHARE, request, change, answer);
            }
            Some(Work::Follow(op)) => _ = op.apply(&mut member.entries),
            Some(Work::Fill { entries, is_first, is_last }) => {
                if is_first {
                    member.aside.clear();
                }
                member.aside.extend(entries);
                if self.lacks(TablesMutant::TakesPieces) {
                    member.entries = member.aside.clone();
                }
                if is_last {
                    member.entries = take(&mut member.aside);
                }
            }
            Some(Work::Copy(to)) => {
                let (one, other) = member.entries.split_at(member.entries.len() / 2);
                let mut pieces = vec![one.to_vec(), other.to_vec()];
                pieces.retain(|piece| !piece.is_empty());
                pieces.resize(pieces.len().max(1), Vec::new());
                member.machine.copied(SHARE, to, pieces);
            }
            None => {}
        });
    }

    fn die(&self, state: &mut State, pe: u32) {
        state.dead |= set(pe);
        state.members[pe as usize] = None;
        state.heard[pe as usize] = 0;
        for from in 0..self.pes {
            state.wires[self.wire(from, pe)].clear();
        }
    }

    fn hear(&self, state: &mut State, at: u32, dead: u32) {
        state.heard[at as usize] |= set(dead);
        let has_begun = state.members[at as usize].as_ref().is_some_and(|it| it.has_begun);
        // What comes before a PE takes part waits.
        if has_begun {
            state.wires[self.wire(dead, at)].clear();
            self.act(state, at, |_, member| member.machine.died(Pe::new(dead)));
        }
    }

    fn begin(&self, state: &mut State, at: u32) {
        let heard = state.heard[at as usize];
        self.act(state, at, |_, member| {
            member.has_begun = true;
            let dead = (0..self.pes).filter(|pe| has(heard, *pe));
            dead.for_each(|dead| member.machine.died(Pe::new(dead)));
            member.machine.begin();
        });
    }

    /// Whether anything but a further death can happen.
    pub(super) fn can_go_on(&self, state: &State) -> bool {
        let mut acts = Vec::new();
        self.actions(state, &mut acts);
        acts.iter().any(|act| !matches!(act, Action::Die(_)))
    }

    /// Whether the search ends here.
    pub(super) fn is_over(state: &State) -> bool {
        state.fault.is_some() || state.is_lost
    }
}

/// Something is answered that was asked when this many entries were certain.
fn hear_answer(state: &mut State, op: Op, certain: usize, answer: Vec<Op>) {
    if is_doubled(&answer) {
        state.fault.get_or_insert(Fault::DoneTwice);
    }
    let is_before = state.certain.starts_with(&answer);
    let fits = is_before || answer.starts_with(&state.certain);
    if !fits || answer.len() < certain || !op.is_done(&answer) {
        state.fault.get_or_insert(Fault::Forgets);
    }
    if !is_before {
        state.certain = answer;
    }
}

/// Whether something was done twice.
pub(super) fn is_doubled(entries: &[Op]) -> bool {
    (1..entries.len()).any(|at| entries[..at].contains(&entries[at]))
}

impl Model for TablesCase {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let pes = self.pes as usize;
        let topology = Arc::new(Topology::flat(self.pes));
        let member = |pe| {
            let asks = self.asks.iter().filter(|(by, _)| *by == pe).map(|(_, op)| *op);
            let (me, none) = (Pe::new(pe), BTreeSet::new());
            let machine = Machine::new(me, topology.clone(), self.copies, none);
            Some(Arc::new(Digested::new(Member::new(machine, asks.collect()))))
        };
        let mut state = State {
            members: (0..self.pes).map(member).collect(),
            wires: vec![VecDeque::new(); pes * pes],
            dead: 0,
            heard: vec![0; pes],
            certain: Vec::new(),
            is_succeeded: false,
            is_lost: false,
            fault: None,
        };
        let begins = if self.are_invited { 1 } else { self.pes };
        (0..begins).for_each(|pe| self.begin(&mut state, pe));
        vec![state]
    }

    fn actions(&self, state: &State, acts: &mut Vec<Action>) {
        if Self::is_over(state) {
            return;
        }
        for at in 0..self.pes {
            let Some(member) = &state.members[at as usize] else { continue };
            if member.has_begun {
                let is_coming = |from: &u32| !state.wires[self.wire(*from, at)].is_empty();
                let coming = (0..self.pes).filter(is_coming);
                acts.extend(coming.map(|from| Action::Deliver { from, to: at }));
                acts.extend((!member.work.is_empty()).then_some(Action::Work(at)));
                acts.extend((!member.to_ask.is_empty()).then_some(Action::Ask(at)));
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
    }

    fn next_state(&self, last: &State, act: Action) -> Option<State> {
        let mut state = last.clone();
        match act {
            Action::Begin(pe) => self.begin(&mut state, pe),
            Action::Ask(pe) => self.ask(&mut state, pe),
            Action::Deliver { from, to } => self.deliver(&mut state, from, to),
            Action::Work(at) => self.work(&mut state, at),
            Action::Die(pe) => self.die(&mut state, pe),
            Action::Hear { at, dead } => self.hear(&mut state, at, dead),
        }
        if Self::is_over(&state) {
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
