//! Searches every state of membership, the agreement on which PEs are dead: no two living PEs
//! disagree for ever.
//!
//! All PEs are [`Membership`]s of the runtime. Around them:
//!
//! - **Notices** arrive after any time, in any order. [Some](MembershipCase::lost) are lost.
//! - **Watching**: the PEs that a PE does not know to be dead form a ring, in which it hears its
//!   neighbours' heartbeats (the detector's rings, on one host). It sees whether it has contact
//!   with its neighbours, and with the PEs that the protocol tells it to look at. Sooner or later
//!   it suspects and loses a PE with which it has no contact.
//! - **Crashes**: [some](MembershipCase::crashes) PEs vanish, and their unsent notices with
//!   them. The root may be one of them (`MembershipCase::root`). A witness tells others that the
//!   process is gone, or [none does](MembershipCase::hosts_crash).
//! - **Cuts**: [some](MembershipCase::cuts) paths between two PEs break, or all between some PEs
//!   and the [others](MembershipCase::partitions); silently, or so that calls are
//!   [refused](Cut::Answers), or [one way](Cut::AnswersOneWay). All of them may
//!   [heal](MembershipCase::heals).
//! - **Ends**: the main task ends on a judge ([some](MembershipCase::ends) at a time), which asks
//!   the others to agree.
//! - **Errors**: a PE [suspects](MembershipCase::doubts) another for a while, as under overload, or
//!   [loses](MembershipCase::slandered) it, although it has contact with it.
//! - **Repetition**: a PE may repeat an accusation whenever that would make the root act.
//! - **Pauses**: the judge announces deaths that follow another after any time.

mod case;
mod properties;
mod state;

pub use case::{Cut, MembershipCase, RootCrash};
pub use properties::{
    ALL_AGREE_IN_THE_END, FEW_INNOCENTS, LISTS_BEGIN_ALIKE, NONE_IS_MISLED, ONE_RESULT_COUNTS,
    ONE_SIDE_GOES_ON, OTHERS_GO_ON, RESULTS_COME, ROUNDS_END,
};
pub use state::{Action, Observation, State};

use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::protocol::{Loss, Membership, MembershipStatus, Notice};
use ultramarine_topology::Pe;

const NOW: Duration = Duration::ZERO;

/// More notices than follow from one, unless they follow from each other for ever.
const NOTICES_MAX: u32 = 10_000;

/// What a PE does. (A step can contain another, so its type must not grow with it.)
type Act = Box<dyn FnOnce(&mut Membership, &mut dyn FnMut(Pe, Notice))>;

impl MembershipCase {
    fn all(&self) -> impl Iterator<Item = Pe> + use<> {
        (0..self.pes).map(Pe::new)
    }

    fn step(
        state: &mut State,
        at: Pe,
        act: impl FnOnce(&mut Membership, &mut dyn FnMut(Pe, Notice)),
    ) -> Option<()> {
        let before = state.members[at.index()].clone()?;
        let member = Arc::make_mut(state.members[at.index()].as_mut()?);
        let mut sent = Vec::new();
        act(member, &mut |to, notice| sent.push((to, notice)));
        let (is_judge, status) = (member.is_judge(), member.status());
        let has_result = Self::has_ended(member) && member.is_end_agreed();
        if before.status() == MembershipStatus::Member && status == MembershipStatus::RootLost {
            // The judge before the one that it would have been itself, or that has crashed.
            let judge = if is_judge { Pe::ROOT } else { before.judge() };
            let takes_it_for_dead = before.is_dead(judge);
            let is_whole = !state.ever_cut.contains(&(at.min(judge), at.max(judge)));
            let could_reach = is_whole && Self::has_contact(state, at, judge);
            state.misled += u32::from(!takes_it_for_dead && could_reach);
        }
        if has_result {
            state.results.insert(at);
        }
        let has_left = before.status() == MembershipStatus::Member && status != before.status();
        let has_job = is_judge || before.judge() != Pe::ROOT || state.members[0].is_some();
        state.left += u32::from(has_left && has_job);
        for (to, notice) in sent {
            let is_there = state.members[to.index()].is_some();
            let arrives = to == at || is_there && !state.cuts.contains(&(at, to));
            if let Notice::Look { pe, .. } = notice {
                let Some(looker) = state.members[to.index()].as_ref().filter(|_| arrives) else {
                    continue;
                };
                // A PE other than the judge looks at once. Contact matters if it is with the judge.
                if looker.is_judge() || !Self::has_contact(state, to, pe) {
                    state.looks.insert((to, pe));
                } else if to == at && pe == looker.judge() {
                    let reach: Act = Box::new(move |member, out| member.reach(pe, out));
                    Self::step(state, to, reach)?;
                }
            } else if arrives {
                state.flying.insert((at, to, notice));
            }
        }
        Some(())
    }

    /// Whether both PEs are there and the path between them is whole.
    fn has_contact(state: &State, one: Pe, other: Pe) -> bool {
        let are_there = [one, other].iter().all(|pe| state.members[pe.index()].is_some());
        are_there && !Self::is_cut(state, one, other)
    }

    /// Whether the path between two PEs is broken: TCP needs both ways.
    fn is_cut(state: &State, one: Pe, other: Pe) -> bool {
        [(one, other), (other, one)].iter().any(|path| state.cuts.contains(path))
    }

    /// The PEs with which a PE exchanges heartbeats: its neighbours among the PEs that it does not
    /// know to be dead.
    fn neighbours(member: &Membership, me: Pe) -> BTreeSet<Pe> {
        let living: Vec<Pe> = member.watched().iter().collect();
        let place = living.iter().position(|pe| *pe == me);
        let around = place.map(|place| [place + 1, place + living.len() - 1]);
        let around = around.into_iter().flatten().map(|place| living[place % living.len()]);
        around.filter(|pe| *pe != me).collect()
    }

    /// Whether the main task has ended on this PE.
    pub(super) fn has_ended(member: &Membership) -> bool {
        member.is_judge() && member.heading().ends
    }

    /// Whether anything would come of it if a PE did this now: whether a PE would change, or look
    /// at another, once all that follows has arrived.
    fn would_help(
        state: &State,
        at: Pe,
        act: impl FnOnce(&mut Membership, &mut dyn FnMut(Pe, Notice)),
    ) -> bool {
        let mut then = State { flying: BTreeSet::new(), ..state.clone() };
        if Self::step(&mut then, at, act).is_none() {
            return false;
        }
        let has_changed = |then: &State| then.members != state.members || then.looks != state.looks;
        for _ in 0..NOTICES_MAX {
            if has_changed(&then) {
                return true;
            }
            let Some((from, to, notice)) = then.flying.pop_first() else { return false };
            Self::step(&mut then, to, |member, out| member.handle(NOW, from, notice, out));
        }
        unreachable!("notices follow from each other for ever")
    }

    /// A PE sees for itself how it stands with another.
    fn see(&self, state: &mut State, by: Pe, whom: Pe, observation: Observation) -> Option<()> {
        if Self::has_contact(state, by, whom) {
            state.doubts += u32::from(observation == Observation::Suspected);
            state.slandered += u32::from(observation == Observation::Lost);
        }
        state.looks.remove(&(by, whom));
        let is_gone = state.members[whom.index()].is_none();
        let is_told = !self.hosts_crash && !state.leavers.contains(&whom);
        let is_witness = is_gone && is_told && !Self::is_cut(state, by, whom);
        let loss = match self.cut {
            _ if is_witness => Loss::Witnessed,
            Cut::Silent => Loss::Silent,
            Cut::Answers | Cut::AnswersOneWay => Loss::Refused,
        };
        Self::step(state, by, |member, out| match observation {
            Observation::Reached => member.reach(whom, out),
            Observation::Suspected => member.suspect(NOW, whom, out),
            Observation::Lost => member.lose(NOW, whom, loss, out),
        })?;
        if observation == Observation::Suspected && !Self::has_contact(state, by, whom) {
            state.looks.insert((by, whom));
        }
        Some(())
    }

    /// Breaks all paths between two sides. The bits of one of them are set.
    fn part(&self, state: &mut State, side: u32) {
        state.partitions += 1;
        let is_in = |pe: &Pe| side >> pe.number() & 1 == 1;
        for one in self.all().filter(is_in) {
            for other in self.all().filter(|pe| !is_in(pe)) {
                Self::cut(state, one, other);
                Self::cut(state, other, one);
            }
        }
    }

    /// What can happen at this PE, apart from what arrives.
    fn acts_of(&self, state: &State, me: Pe, acts: &mut Vec<Action>) {
        let Some(member) = &state.members[me.index()] else { return };
        if member.status() != MembershipStatus::Member {
            acts.push(Action::Leave(me));
            return;
        }
        let judge = member.judge();
        let accuses = !member.is_judge() && member.due().is_some();
        if member.is_judge() && member.has_to_announce() {
            acts.push(Action::Announce(me));
        }
        let ended = Self::living(state).filter(|(_, member)| Self::has_ended(member)).count();
        let may_end = member.is_judge() && member.heading().in_office && !Self::has_ended(member);
        if may_end && (ended as u32) < self.ends {
            acts.push(Action::AskEnd(me));
        }
        let repeats = |member: &mut Membership, out: &mut dyn FnMut(Pe, Notice)| {
            member.tick(NOW, out);
        };
        let has_time = !self.patient || state.flying.is_empty();
        if has_time && member.due().is_some() && Self::would_help(state, me, repeats) {
            acts.push(Action::Repeat(me));
        }
        let neighbours = Self::neighbours(member, me);
        for other in self.all().filter(|pe| *pe != me) {
            let is_looked_at = state.looks.contains(&(me, other));
            let is_watched =
                neighbours.contains(&other) || is_looked_at || other == judge && accuses;
            let mut see = |observation| acts.push(Action::See { by: me, whom: other, observation });
            if Self::has_contact(state, me, other) {
                let mut seeing = Membership::clone(member);
                seeing.reach(other, &mut |_, _| {});
                if is_looked_at || seeing != **member {
                    see(Observation::Reached);
                }
                if state.doubts < self.doubts {
                    see(Observation::Suspected);
                }
                if state.slandered < self.slandered {
                    see(Observation::Lost);
                }
            } else if is_watched && !member.is_dead(other) {
                // Suspecting it first would lead to the same state.
                if self.doubts > 0 {
                    see(Observation::Suspected);
                }
                see(Observation::Lost);
            }
        }
        for other in neighbours.into_iter().filter(|other| Self::has_contact(state, me, *other)) {
            // The two share a connection, so each hears the other.
            if !self.deaf && has_time {
                acts.extend(Self::heartbeat(state, other, me));
                acts.extend(Self::heartbeat(state, me, other));
            }
        }
    }

    /// A heartbeat, if anything comes of it.
    fn heartbeat(state: &State, from: Pe, to: Pe) -> Option<Action> {
        let [sender, receiver] = [from, to].map(|pe| state.members[pe.index()].as_deref());
        let (sender, receiver) = (sender?, receiver?);
        let are_members =
            [sender, receiver].map(Membership::status) == [MembershipStatus::Member; 2];
        let is_same = sender.heartbeat() == receiver.heartbeat() && !receiver.is_dead(from);
        let hears = |member: &mut Membership, out: &mut dyn FnMut(Pe, Notice)| {
            member.handle(NOW, from, sender.heartbeat(), out);
        };
        (are_members && !is_same && Self::would_help(state, to, hears))
            .then_some(Action::Heartbeat { from, to })
    }

    /// Whether anything can still change without another fault.
    pub(super) fn can_go_on(&self, state: &State) -> bool {
        let calm = MembershipCase {
            crashes: 0,
            cuts: 0,
            partitions: 0,
            heals: 0,
            doubts: 0,
            slandered: 0,
            lost: 0,
            ends: 0,
            ..self.clone()
        };
        let mut acts = Vec::new();
        calm.actions(state, &mut acts);
        acts.into_iter().any(|act| calm.next_state(state, act).is_some_and(|next| next != *state))
    }

    /// The path from one PE to another breaks.
    fn cut(state: &mut State, from: Pe, to: Pe) {
        state.cuts.insert((from, to));
        state.ever_cut.insert((from.min(to), from.max(to)));
        state.flying.retain(|(sender, receiver, _)| (*sender, *receiver) != (from, to));
    }

    fn end(state: &mut State, pe: Pe) {
        state.members[pe.index()] = None;
        state.flying.retain(|(_, to, _)| *to != pe);
        state.looks.retain(|(by, _)| *by != pe);
    }

    pub(super) fn living(state: &State) -> impl Iterator<Item = (Pe, &Membership)> {
        let all = state.members.iter().zip(0..);
        all.filter_map(|(member, pe)| Some((Pe::new(pe), member.as_deref()?)))
    }
}

impl Model for MembershipCase {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let member = |me| {
            let mut member = Membership::new(me, self.pes, Duration::ZERO);
            if self.has_succession() {
                member = member.with_succession();
            }
            member.mutant = self.mutant;
            Some(Arc::new(member))
        };
        vec![State {
            members: self.all().map(member).collect(),
            leavers: BTreeSet::new(),
            flying: BTreeSet::new(),
            looks: BTreeSet::new(),
            cuts: BTreeSet::new(),
            ever_cut: BTreeSet::new(),
            partitions: 0,
            healed: 0,
            crashed: 0,
            doubts: 0,
            slandered: 0,
            lost: 0,
            left: 0,
            misled: 0,
            results: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &State, acts: &mut Vec<Action>) {
        for (from, to, notice) in &state.flying {
            acts.push(Action::Deliver(*from, *to, notice.clone()));
            if state.lost < self.lost {
                acts.push(Action::Lose(*from, *to, notice.clone()));
            }
        }
        for me in self.all() {
            self.acts_of(state, me, acts);
            let is_mortal = me != Pe::ROOT || self.root != RootCrash::Never;
            if is_mortal && state.members[me.index()].is_some() && state.crashed < self.crashes {
                acts.push(Action::Crash(me));
            }
            if (state.ever_cut.len() as u32) < self.cuts {
                let others =
                    self.all().filter(|pe| *pe > me || self.cut == Cut::AnswersOneWay && *pe != me);
                let whole = others.filter(|other| Self::has_contact(state, me, *other));
                acts.extend(whole.map(|other| Action::Cut(me, other)));
            }
        }
        if state.healed < self.heals && !state.cuts.is_empty() {
            acts.push(Action::Heal);
        }
        if state.partitions < self.partitions {
            // The side without the last PE.
            acts.extend((1..1 << (self.pes - 1)).map(Action::Partition));
        }
    }

    fn next_state(&self, last: &State, act: Action) -> Option<State> {
        let mut state = last.clone();
        match act {
            Action::Deliver(from, to, notice) => {
                state.flying.remove(&(from, to, notice.clone()));
                Self::step(&mut state, to, |member, out| {
                    member.handle(NOW, from, notice, out);
                })?;
            }
            Action::Lose(from, to, notice) => {
                state.flying.remove(&(from, to, notice));
                state.lost += 1;
            }
            Action::Heartbeat { from, to } => {
                let notice = state.members[from.index()].as_ref()?.heartbeat();
                Self::step(&mut state, to, |member, out| {
                    member.handle(NOW, from, notice, out);
                })?;
            }
            Action::See { by, whom, observation } => {
                self.see(&mut state, by, whom, observation)?;
            }
            Action::Repeat(pe) => {
                Self::step(&mut state, pe, |member, out| {
                    member.tick(NOW, out);
                })?;
            }
            Action::Announce(judge) => {
                Self::step(&mut state, judge, |judge, out| judge.announce(NOW, out))?;
            }
            Action::AskEnd(judge) => {
                Self::step(&mut state, judge, |judge, out| judge.ask_end(NOW, out))?;
            }
            Action::Cut(one, other) => {
                Self::cut(&mut state, one, other);
                if self.cut != Cut::AnswersOneWay {
                    Self::cut(&mut state, other, one);
                }
            }
            Action::Heal => {
                state.cuts.clear();
                state.healed += 1;
            }
            Action::Partition(side) => self.part(&mut state, side),
            Action::Leave(pe) => {
                state.leavers.insert(pe);
                Self::end(&mut state, pe);
            }
            Action::Crash(pe) => {
                state.crashed += 1;
                state.results.remove(&pe);
                Self::end(&mut state, pe);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self)
    }
}
