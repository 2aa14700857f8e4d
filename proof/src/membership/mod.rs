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
//!   them. The root may be one of them (`MembershipCase::root_may_crash`).
//! - **Cuts**: [some](MembershipCase::cuts) paths between two PEs break, both ways and for ever.
//! - **Errors**: a PE [suspects](MembershipCase::doubts) another for a while, as under overload, or
//!   [loses](MembershipCase::slandered) it, although it has contact with it.
//! - **Repetition**: a PE may repeat an accusation whenever that would make the root act.
//! - **Pauses**: the root announces deaths that follow another after any time.

mod case;

pub use case::MembershipCase;

use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::protocol::{Membership, MembershipStatus, Notice};
use ultramarine_topology::Pe;

/// The whole job at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// By PE; `None`: the PE has crashed, or left.
    members: Vec<Option<Arc<Membership>>>,
    /// The sender, the receiver and the notice. (Two equal notices on their way count as one: a
    /// notice only states a fact.)
    flying: BTreeSet<(Pe, Pe, Notice)>,
    /// The PE that was told to look at another and has not done so yet, and that other PE.
    looks: BTreeSet<(Pe, Pe)>,
    /// The broken paths, the smaller number first.
    cuts: BTreeSet<(Pe, Pe)>,
    crashed: u32,
    doubts: u32,
    slandered: u32,
    lost: u32,
    /// The number of living PEs that were expelled.
    innocents: u32,
    /// The number of PEs that left because they took the root for lost, and had contact with it.
    misled: u32,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A notice arrives.
    Deliver(Pe, Pe, Notice),
    /// A notice is lost.
    Lose(Pe, Pe, Notice),
    /// A PE hears its neighbour's heartbeat.
    Heartbeat {
        /// The neighbour.
        from: Pe,
        /// The PE that hears it.
        to: Pe,
    },
    /// A PE looks at another.
    See {
        /// The PE that looks.
        by: Pe,
        /// The other PE.
        whom: Pe,
        /// What it sees.
        observation: Observation,
    },
    /// A PE repeats its accusations.
    Repeat(Pe),
    /// The root announces the deaths that it has kept for a while.
    Announce,
    /// A PE that must leave does so.
    Leave(Pe),
    /// A PE crashes.
    Crash(Pe),
    /// A path breaks.
    Cut(Pe, Pe),
}

/// What a PE sees of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// There is contact.
    Reached,
    /// There is no contact at the moment.
    Suspected,
    /// There will be no contact any more.
    Lost,
}

/// The main property: in every state in which nothing can happen but further faults, all living PEs
/// have the same list of the dead, and it has every PE that does not live.
pub const ALL_AGREE_IN_THE_END: &str = "all living PEs agree in the end";

/// Of any two lists of the dead, one is a beginning of the other.
pub const LISTS_BEGIN_ALIKE: &str = "lists begin alike, and never hold the root";

/// Each broken path, and each PE that is wrongly lost, costs at most one living PE.
pub const FEW_INNOCENTS: &str = "a broken path costs one PE at most";

/// A PE that leaves because the root is lost has lost the root itself.
pub const NONE_IS_MISLED: &str = "no PE is misled about the root";

const NOW: Duration = Duration::ZERO;

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
        if before.status() == MembershipStatus::Member
            && member.status() == MembershipStatus::RootLost
        {
            state.misled += u32::from(Self::has_contact(state, at, Pe::ROOT));
        }
        if at == Pe::ROOT {
            let new = state.members[0].as_ref()?.dead()[before.dead().len()..].to_vec();
            let lives = |pe: &&Pe| state.members[pe.index()].is_some();
            state.innocents += new.iter().filter(lives).count() as u32;
        }
        for (to, notice) in sent {
            let arrives = to == at || Self::has_contact(state, at, to);
            if let Notice::Look { pe, .. } = notice {
                // A PE other than the root looks at once, and only a lack of contact matters.
                if arrives && (to == Pe::ROOT || !Self::has_contact(state, to, pe)) {
                    state.looks.insert((to, pe));
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
        are_there && !state.cuts.contains(&(one.min(other), one.max(other)))
    }

    /// The PEs with which a PE exchanges heartbeats: its neighbours among the PEs that it does not
    /// know to be dead.
    fn neighbours(member: &Membership, me: Pe) -> BTreeSet<Pe> {
        let living: Vec<Pe> = member.living().iter().collect();
        let place = living.iter().position(|pe| *pe == me);
        let around = place.map(|place| [place + 1, place + living.len() - 1]);
        let around = around.into_iter().flatten().map(|place| living[place % living.len()]);
        around.filter(|pe| *pe != me).collect()
    }

    /// Whether the root would do anything if this PE repeated its accusations.
    fn would_help_to_repeat(state: &State, me: Pe) -> bool {
        let Some(root) =
            state.members[0].as_ref().filter(|_| Self::has_contact(state, me, Pe::ROOT))
        else {
            return false;
        };
        let mut accusations = Vec::new();
        if let Some(member) = &state.members[me.index()] {
            Membership::clone(member).tick(NOW, &mut |_, notice| accusations.push(notice));
        }
        accusations.into_iter().any(|accusation| {
            let (mut judge, mut acts) = (Membership::clone(root), false);
            judge.handle(NOW, me, accusation, &mut |to, notice| {
                acts |= to != Pe::ROOT && matches!(notice, Notice::Bulletin { .. });
            });
            acts || judge != **root
        })
    }

    /// What can happen at this PE, apart from what arrives.
    fn acts_of(&self, state: &State, me: Pe, acts: &mut Vec<Action>) {
        let Some(member) = &state.members[me.index()] else { return };
        if member.status() != MembershipStatus::Member {
            acts.push(Action::Leave(me));
            return;
        }
        let accuses = me != Pe::ROOT && member.due().is_some();
        if me == Pe::ROOT && member.has_to_announce() {
            acts.push(Action::Announce);
        }
        if accuses && Self::would_help_to_repeat(state, me) {
            acts.push(Action::Repeat(me));
        }
        let neighbours = Self::neighbours(member, me);
        for other in self.all().filter(|pe| *pe != me) {
            let is_looked_at = state.looks.contains(&(me, other));
            let is_watched =
                neighbours.contains(&other) || is_looked_at || other == Pe::ROOT && accuses;
            let mut see = |observation| acts.push(Action::See { by: me, whom: other, observation });
            if Self::has_contact(state, me, other) {
                let mut seeing = Membership::clone(member);
                seeing.reach(other);
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
            if let Some(peer) = state.members[other.index()].as_ref().filter(|_| !self.deaf) {
                acts.extend(Self::heartbeat((other, peer), (me, member)));
                acts.extend(Self::heartbeat((me, member), (other, peer)));
            }
        }
    }

    /// A heartbeat, if its receiver answers it.
    fn heartbeat(from: (Pe, &Membership), to: (Pe, &Membership)) -> Option<Action> {
        let are_members = [from.1, to.1].iter().all(|pe| pe.status() == MembershipStatus::Member);
        let is_behind = from.1.dead().len() < to.1.dead().len();
        (are_members && (is_behind || to.1.is_dead(from.0)))
            .then_some(Action::Heartbeat { from: from.0, to: to.0 })
    }

    /// Whether anything can still change without another fault.
    fn can_go_on(&self, state: &State) -> bool {
        let calm = MembershipCase {
            crashes: 0,
            cuts: 0,
            doubts: 0,
            slandered: 0,
            lost: 0,
            ..self.clone()
        };
        let mut acts = Vec::new();
        calm.actions(state, &mut acts);
        acts.into_iter().any(|act| calm.next_state(state, act).is_some_and(|next| next != *state))
    }

    fn end(state: &mut State, pe: Pe) {
        state.members[pe.index()] = None;
        state.flying.retain(|(_, to, _)| *to != pe);
        state.looks.retain(|(by, _)| *by != pe);
    }

    fn living(state: &State) -> impl Iterator<Item = (Pe, &Membership)> {
        let all = state.members.iter().zip(0..);
        all.filter_map(|(member, pe)| Some((Pe::new(pe), member.as_deref()?)))
    }

    /// Whether all living PEs have the same list of the dead, and it has every PE that does not
    /// live.
    fn is_agreed(&self, state: &State) -> bool {
        let gone: BTreeSet<Pe> =
            self.all().filter(|pe| state.members[pe.index()].is_none()).collect();
        // A PE that loses the root leaves.
        let has_job = !gone.contains(&Pe::ROOT);
        Self::living(state).all(|(_, member)| {
            has_job
                && member.status() == MembershipStatus::Member
                && member.dead().iter().copied().collect::<BTreeSet<_>>() == gone
        })
    }
}

impl Model for MembershipCase {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let member = |me| {
            let mut member = Membership::new(me, self.pes, Duration::ZERO);
            member.mutant = self.mutant;
            Some(Arc::new(member))
        };
        vec![State {
            members: self.all().map(member).collect(),
            flying: BTreeSet::new(),
            looks: BTreeSet::new(),
            cuts: BTreeSet::new(),
            crashed: 0,
            doubts: 0,
            slandered: 0,
            lost: 0,
            innocents: 0,
            misled: 0,
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
            let is_mortal = me != Pe::ROOT || self.root_may_crash;
            if is_mortal && state.members[me.index()].is_some() && state.crashed < self.crashes {
                acts.push(Action::Crash(me));
            }
            if (state.cuts.len() as u32) < self.cuts {
                let others = self.all().filter(|pe| *pe > me);
                let whole = others.filter(|other| Self::has_contact(state, me, *other));
                acts.extend(whole.map(|other| Action::Cut(me, other)));
            }
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
                if Self::has_contact(&state, by, whom) {
                    state.doubts += u32::from(observation == Observation::Suspected);
                    state.slandered += u32::from(observation == Observation::Lost);
                }
                state.looks.remove(&(by, whom));
                Self::step(&mut state, by, |member, out| match observation {
                    Observation::Reached => member.reach(whom),
                    Observation::Suspected => member.suspect(NOW, whom, out),
                    Observation::Lost => member.lose(NOW, whom, out),
                })?;
                if observation == Observation::Suspected && !Self::has_contact(&state, by, whom) {
                    state.looks.insert((by, whom));
                }
            }
            Action::Repeat(pe) => {
                Self::step(&mut state, pe, |member, out| {
                    member.tick(NOW, out);
                })?;
            }
            Action::Announce => {
                Self::step(&mut state, Pe::ROOT, |root, out| root.announce(NOW, out))?;
            }
            Action::Cut(one, other) => {
                state.cuts.insert((one, other));
                state.flying.retain(|(from, to, _)| {
                    (*from, *to) != (one, other) && (*from, *to) != (other, one)
                });
            }
            Action::Leave(pe) => Self::end(&mut state, pe),
            Action::Crash(pe) => {
                state.crashed += 1;
                Self::end(&mut state, pe);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(ALL_AGREE_IN_THE_END, |case: &MembershipCase, state: &State| {
                case.is_agreed(state) || case.can_go_on(state)
            }),
            Property::always(LISTS_BEGIN_ALIKE, |_, state: &State| {
                let mut lists: Vec<_> =
                    MembershipCase::living(state).map(|(_, member)| member.dead()).collect();
                lists.sort_by_key(|list| list.len());
                lists.windows(2).all(|pair| pair[1].starts_with(pair[0]))
                    && lists.last().is_none_or(|longest| !longest.contains(&Pe::ROOT))
            }),
            Property::always(FEW_INNOCENTS, |_, state: &State| {
                state.innocents <= state.cuts.len() as u32 + state.slandered
            }),
            Property::always(NONE_IS_MISLED, |_, state: &State| state.misled <= state.slandered),
        ];
        if self.slandered + self.cuts > 0 {
            properties.push(Property::sometimes("a PE is expelled", |_, state: &State| {
                MembershipCase::living(state)
                    .any(|(_, member)| member.status() == MembershipStatus::Expelled)
            }));
        }
        if self.slandered > 0 || self.root_may_crash {
            properties.push(Property::sometimes("a PE loses the root", |_, state: &State| {
                MembershipCase::living(state)
                    .any(|(_, member)| member.status() == MembershipStatus::RootLost)
            }));
        }
        properties
    }
}
