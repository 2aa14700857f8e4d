//! The agreement on who is dead, searched exhaustively: no two living PEs disagree for ever.
//!
//! All PEs are [`Membership`]s of the runtime. Around them:
//!
//! - **Notices** arrive after any time, in any order. [Some](Case::lost) are lost.
//! - **Watching**: the PEs that somebody does not know to be dead form a ring, in which it hears its
//!   neighbours' heartbeats, and suspects them sooner or later when they are gone (the detector's
//!   rings, on one host). Besides, [some](Case::slandered) PEs are suspected without a reason.
//! - **Time** passes for whoever waits for an answer that nothing on its way can bring; so patience is
//!   lost only when messages are lost, or with the root.
//! - **Crashes**: [some](Case::crashes) PEs are gone from one moment to the next, with what they were
//!   about to say; also the root (`Case::root_may_crash`).

use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::protocol::{Membership, Notice, Standing};
use ultramarine_topology::Pe;

/// What is searched.
#[derive(Clone, Debug)]
pub struct Case {
    /// How many PEs there are, the root included.
    pub pes: u32,
    /// How many crash at most.
    pub crashes: u32,
    /// Whether the root may be one of them.
    pub root_may_crash: bool,
    /// How many times at most somebody is suspected though it lives.
    pub slandered: u32,
    /// How many notices are lost at most.
    pub lost: u32,
    /// Whether nobody listens to heartbeats, to see that the search notices.
    pub deaf: bool,
}

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// By PE; `None`: it has crashed, or left.
    members: Vec<Option<Arc<Membership>>>,
    /// By PE: how far its time has come, in quarters of the patience.
    clocks: Vec<u32>,
    /// From, to, what. (Twice the same at a time is once: they only say what is so.)
    flying: BTreeSet<(Pe, Pe, Notice)>,
    crashed: u32,
    slandered: u32,
    lost: u32,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A notice arrives.
    Deliver(Pe, Pe, Notice),
    /// A notice is lost.
    Lose(Pe, Pe, Notice),
    /// A PE hears the heartbeat of its neighbour.
    Heartbeat {
        /// Whose it is.
        from: Pe,
        /// Who hears it.
        to: Pe,
    },
    /// A PE suspects another.
    Suspect {
        /// Who does.
        by: Pe,
        /// Whom.
        whom: Pe,
    },
    /// A PE waits for an answer, and time passes.
    Wait(Pe),
    /// A PE that has to leave does.
    Leave(Pe),
    /// A PE crashes.
    Crash(Pe),
}

const PATIENCE: Duration = Duration::from_secs(4);

/// The one that stands for all: wherever nothing can happen any more unless something else goes
/// wrong, all that live know the same dead, and these are all that do not live.
pub const NOBODY_DISAGREES_FOR_EVER: &str = "nobody disagrees for ever";

impl Case {
    /// So many PEs, and so much that goes wrong.
    pub fn new(pes: u32, crashes: u32, slandered: u32, lost: u32) -> Case {
        Case { pes, crashes, slandered, lost, root_may_crash: false, deaf: false }
    }

    /// What takes seconds.
    pub fn quick() -> Vec<(&'static str, Case)> {
        vec![
            ("two of five crash", Case::new(5, 2, 0, 0)),
            ("two of five crash, perhaps the root", Case::new(5, 2, 0, 0).root_may_crash()),
            ("one of everything", Case::new(4, 1, 1, 1)),
            ("two are slandered", Case::new(4, 0, 2, 0)),
            ("two crash, one is slandered", Case::new(4, 2, 1, 0).root_may_crash()),
        ]
    }

    /// What takes minutes.
    pub fn large() -> Vec<(&'static str, Case)> {
        vec![
            ("three of six crash", Case::new(6, 3, 0, 0)),
            ("two of four crash, one of everything else", Case::new(4, 2, 1, 1).root_may_crash()),
            ("one of five crashes, one is slandered", Case::new(5, 1, 1, 0).root_may_crash()),
            ("two are slandered, and two notices lost", Case::new(4, 0, 2, 2)),
        ]
    }

    fn root_may_crash(self) -> Case {
        Case { root_may_crash: true, ..self }
    }

    fn all(&self) -> impl Iterator<Item = Pe> + use<> {
        (0..self.pes).map(Pe::new)
    }

    fn step(
        state: &mut State,
        at: Pe,
        act: impl FnOnce(&mut Membership, &mut dyn FnMut(Pe, Notice)),
    ) -> Option<()> {
        let member = Arc::make_mut(state.members[at.index()].as_mut()?);
        let mut sent = Vec::new();
        act(member, &mut |to, notice| sent.push((at, to, notice)));
        // Nobody would read it.
        let flying = sent.into_iter().filter(|(_, to, _)| state.members[to.index()].is_some());
        state.flying.extend(flying.collect::<Vec<_>>());
        Some(())
    }

    /// Those with whom a PE exchanges heartbeats: before and behind it among those that it does not
    /// know to be dead.
    fn neighbours(member: &Membership, me: Pe) -> BTreeSet<Pe> {
        let living: Vec<Pe> = member.living().iter().collect();
        let place = living.iter().position(|pe| *pe == me);
        let around = place.map(|place| [place + 1, place + living.len() - 1]);
        let around = around.into_iter().flatten().map(|place| living[place % living.len()]);
        around.filter(|pe| *pe != me).collect()
    }

    /// Whether nothing on its way can answer what this PE waits for.
    fn waits_in_vain(state: &State, me: Pe) -> bool {
        let to_or_from =
            |(from, to, _): &(Pe, Pe, Notice)| (*from, *to) == (me, Pe::ROOT) || *to == me;
        !state.flying.iter().any(to_or_from)
    }

    /// What can happen at this PE, apart from what arrives.
    fn acts_of(&self, state: &State, me: Pe, acts: &mut Vec<Act>) {
        let Some(member) = &state.members[me.index()] else { return };
        if member.standing() != Standing::Member {
            acts.push(Act::Leave(me));
            return;
        }
        let mut answer_due = member.as_ref().clone();
        if answer_due.tick(Duration::ZERO, &mut |_, _| {}).is_some()
            && Self::waits_in_vain(state, me)
        {
            acts.push(Act::Wait(me));
        }
        for other in Self::neighbours(member, me) {
            match &state.members[other.index()] {
                Some(_) if self.deaf => {}
                // The two share a connection, whichever of them made it.
                Some(peer) => {
                    acts.extend(Self::heartbeat((other, peer), (me, member)));
                    acts.extend(Self::heartbeat((me, member), (other, peer)));
                }
                None => acts.push(Act::Suspect { by: me, whom: other }),
            }
        }
        if state.slandered < self.slandered {
            let lives = |whom: &Pe| *whom != me && state.members[whom.index()].is_some();
            acts.extend(self.all().filter(lives).map(|whom| Act::Suspect { by: me, whom }));
        }
    }

    /// A heartbeat, if it makes the one that hears it say anything.
    fn heartbeat(from: (Pe, &Membership), to: (Pe, &Membership)) -> Option<Act> {
        let are_members = [from.1, to.1].iter().all(|pe| pe.standing() == Standing::Member);
        let is_behind = from.1.dead().len() < to.1.dead().len();
        (are_members && (is_behind || to.1.is_dead(from.0)))
            .then_some(Act::Heartbeat { from: from.0, to: to.0 })
    }

    /// Whether anything changes yet, even if nothing more goes wrong.
    fn can_go_on(&self, state: &State) -> bool {
        let calm = Case { crashes: 0, slandered: 0, lost: 0, ..self.clone() };
        let mut acts = Vec::new();
        calm.actions(state, &mut acts);
        acts.into_iter().any(|act| calm.next_state(state, act).is_some_and(|next| next != *state))
    }

    fn end(state: &mut State, pe: Pe) {
        state.members[pe.index()] = None;
        state.flying.retain(|(_, to, _)| *to != pe);
    }

    fn living(state: &State) -> impl Iterator<Item = (Pe, &Membership)> {
        let all = state.members.iter().zip(0..);
        all.filter_map(|(member, pe)| Some((Pe::new(pe), member.as_deref()?)))
    }

    /// Whether all that live know of the same dead, and these are all that do not live.
    fn is_agreed(&self, state: &State) -> bool {
        let gone: BTreeSet<Pe> =
            self.all().filter(|pe| state.members[pe.index()].is_none()).collect();
        // Who loses the root leaves.
        let has_job = !gone.contains(&Pe::ROOT);
        Self::living(state).all(|(_, member)| {
            has_job
                && member.standing() == Standing::Member
                && member.dead().iter().copied().collect::<BTreeSet<_>>() == gone
        })
    }
}

impl Model for Case {
    type State = State;
    type Action = Act;

    fn init_states(&self) -> Vec<State> {
        let member = |me| Some(Arc::new(Membership::new(me, self.pes, PATIENCE)));
        vec![State {
            members: self.all().map(member).collect(),
            clocks: vec![0; self.pes as usize],
            flying: BTreeSet::new(),
            crashed: 0,
            slandered: 0,
            lost: 0,
        }]
    }

    fn actions(&self, state: &State, acts: &mut Vec<Act>) {
        for (from, to, notice) in &state.flying {
            acts.push(Act::Deliver(*from, *to, notice.clone()));
            if state.lost < self.lost {
                acts.push(Act::Lose(*from, *to, notice.clone()));
            }
        }
        for me in self.all() {
            self.acts_of(state, me, acts);
            let is_mortal = me != Pe::ROOT || self.root_may_crash;
            if is_mortal && state.members[me.index()].is_some() && state.crashed < self.crashes {
                acts.push(Act::Crash(me));
            }
        }
    }

    fn next_state(&self, last: &State, act: Act) -> Option<State> {
        let mut state = last.clone();
        match act {
            Act::Deliver(from, to, notice) => {
                state.flying.remove(&(from, to, notice.clone()));
                Self::step(&mut state, to, |member, out| member.handle(from, notice, out))?;
            }
            Act::Lose(from, to, notice) => {
                state.flying.remove(&(from, to, notice));
                state.lost += 1;
            }
            Act::Heartbeat { from, to } => {
                let notice = state.members[from.index()].as_ref()?.heartbeat();
                Self::step(&mut state, to, |member, out| member.handle(from, notice, out))?;
            }
            Act::Suspect { by, whom } => {
                if state.members[whom.index()].is_some() {
                    state.slandered += 1;
                }
                let now = PATIENCE / 4 * state.clocks[by.index()];
                Self::step(&mut state, by, |member, out| member.suspect(now, whom, out))?;
            }
            Act::Wait(pe) => {
                state.clocks[pe.index()] += 1;
                let now = PATIENCE / 4 * state.clocks[pe.index()];
                Self::step(&mut state, pe, |member, out| {
                    member.tick(now, out);
                })?;
            }
            Act::Leave(pe) => Self::end(&mut state, pe),
            Act::Crash(pe) => {
                state.crashed += 1;
                Self::end(&mut state, pe);
            }
        }
        // Who waits for nothing has no use for the time.
        for (member, clock) in state.members.iter().zip(&mut state.clocks) {
            let waits = member.iter().any(|member| {
                Membership::clone(member).tick(Duration::ZERO, &mut |_, _| {}).is_some()
            });
            if !waits {
                *clock = 0;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(NOBODY_DISAGREES_FOR_EVER, |case: &Case, state: &State| {
                case.is_agreed(state) || case.can_go_on(state)
            }),
            Property::always("lists begin alike, and never hold the root", |_, state: &State| {
                let mut lists: Vec<_> =
                    Case::living(state).map(|(_, member)| member.dead()).collect();
                lists.sort_by_key(|list| list.len());
                lists.windows(2).all(|pair| pair[1].starts_with(pair[0]))
                    && lists.last().is_none_or(|longest| !longest.contains(&Pe::ROOT))
            }),
            Property::always("nobody leaves without a reason", |case: &Case, state: &State| {
                let is_calm = state.crashed + state.slandered + state.lost == 0;
                !is_calm || Case::living(state).count() == case.pes as usize
            }),
        ];
        if self.slandered > 0 {
            properties.push(Property::sometimes("somebody is expelled", |_, state: &State| {
                Case::living(state).any(|(_, member)| member.standing() == Standing::Expelled)
            }));
        }
        if self.slandered > 0 || self.root_may_crash {
            properties.push(Property::sometimes("somebody loses the root", |_, state: &State| {
                Case::living(state)
                    .any(|(_, member)| matches!(member.standing(), Standing::RootLost(_)))
            }));
        }
        properties
    }
}
