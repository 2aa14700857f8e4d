//! Groups on simulated PEs: their [protocol](ultramarine_group::protocol), as it stands, over the
//! messages of the simulated engines.

use super::TaskContext;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use ultramarine_group::{ActionOf, GroupId, Life, Notice, Part, Plain, PlainGroups, Site, Turn};
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::wire;
use ultramarine_topology::Pe;

/// What travels.
pub(crate) trait Wire: Serialize + DeserializeOwned {}
impl<T: Serialize + DeserializeOwned> Wire for T {}

/// A part of a group in a simulated job.
pub(crate) trait SimulatedPart:
    Plain<Invitation: Wire, Message: Wire, Error: Wire> + Send
{
    /// What the parts of all PEs share, and does not travel.
    type Shared: Send + Sync;

    /// Adds what is shared to an invitation that has come.
    fn unpack(_invitation: &mut Self::Invitation, _shared: &Self::Shared) {}

    /// Does what a part wants to have done.
    fn carry_out(
        groups: &SimulatedGroups<Self>,
        cx: &mut TaskContext<'_>,
        id: GroupId,
        effects: Self::Effects,
    );
}

/// The groups of all PEs of a job. What happens on a PE uses its own alone.
pub(crate) struct SimulatedGroups<P: SimulatedPart> {
    kept: Vec<Mutex<Kept<P>>>,
    shared: P::Shared,
}

struct Kept<P: SimulatedPart> {
    groups: PlainGroups<P>,
    /// Whether this PE has ever made a part.
    has_begun: bool,
}

/// What PEs tell each other.
#[derive(Serialize, Deserialize)]
enum Told<I, M, E> {
    Invitation(GroupId, I),
    Notice(GroupId, Pe, Notice<E>),
    Message(GroupId, Pe, M),
}

type ToldOf<P> = Told<<P as Part>::Invitation, <P as Part>::Message, <P as Part>::Error>;

/// What is noted when a PE has its part of a group, when that is over, and of each message.
pub(crate) const BEGUN: &str = "begun";
pub(crate) const CLOSED: &str = "closed";
pub(crate) const MESSAGE: &str = "message";

impl<P: SimulatedPart> SimulatedGroups<P> {
    /// Those of a job of this number of PEs.
    pub(crate) fn new(pes: u32, shared: P::Shared) -> Self {
        let kept = |pe| Kept { groups: PlainGroups::new(Pe::new(pe)), has_begun: false };
        SimulatedGroups { kept: (0..pes).map(|pe| Mutex::new(kept(pe))).collect(), shared }
    }

    fn kept(&self, pe: Pe) -> MutexGuard<'_, Kept<P>> {
        self.kept[pe.index()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a PE has ever had a part of a group, and how many groups it knows.
    pub(crate) fn state_of(&self, pe: Pe) -> (bool, usize) {
        let kept = self.kept(pe);
        (kept.has_begun, kept.groups.known().count())
    }

    /// Has something happen to the groups of this PE, and does what they want to have done then.
    pub(crate) fn turn<T>(
        &self,
        cx: &mut TaskContext<'_>,
        act: impl FnOnce(&Turn<'_, P>) -> T,
    ) -> T {
        self.change(cx, |groups| groups.turn(act))
    }

    /// A part does something, if there is one.
    pub(crate) fn act(&self, cx: &mut TaskContext<'_>, id: GroupId, act: impl FnOnce(&mut P)) {
        self.turn(cx, |groups| {
            let Some(cell) = groups.with_table(|table| table.get(id.name)) else { return };
            let wanted = groups.with_life(&cell, |life| life.act(|_, part| act(part)));
            groups.carry_out_some(&cell, wanted);
        });
    }

    /// Sends a message to the part of another PE.
    pub(crate) fn send(cx: &mut TaskContext<'_>, to: Pe, id: GroupId, message: P::Message) {
        let from = cx.pe;
        tell::<P>(cx, Some(to), &Told::Message(id, from, message));
    }

    /// A message has arrived. Returns whether it is one of these.
    pub(crate) fn receive(&self, cx: &mut TaskContext<'_>, body: &Bytes) -> bool {
        cx.note(MESSAGE);
        let Ok(told) = wire::decode::<ToldOf<P>>(&body.few) else { return false };
        self.turn(cx, |groups| match told {
            Told::Invitation(id, mut invitation) => {
                P::unpack(&mut invitation, &self.shared);
                groups.accept(id, invitation);
            }
            Told::Notice(id, from, notice) => groups.hear(id, from, notice),
            Told::Message(id, from, message) => groups.receive(id, from, [message]),
        });
        true
    }

    /// A PE has died.
    pub(crate) fn died(&self, cx: &mut TaskContext<'_>, dead: Pe) {
        let root = cx.root;
        self.change(cx, |groups| groups.note_death(dead, root));
    }

    fn change<T>(
        &self,
        cx: &mut TaskContext<'_>,
        change: impl FnOnce(&mut PlainGroups<P>) -> T,
    ) -> T {
        let mut kept = self.kept(cx.pe);
        let known = kept.groups.known().count();
        let changed = change(&mut kept.groups);
        if kept.groups.known().count() < known {
            cx.note(CLOSED);
        }
        if !kept.has_begun && kept.groups.known().any(Life::has_begun) {
            kept.has_begun = true;
            cx.note(BEGUN);
        }
        let actions = kept.groups.take_actions();
        drop(kept);
        for action in actions {
            match action {
                ActionOf::Own(id, effects) => P::carry_out(self, cx, id, effects),
                ActionOf::Invite(to, id, it) => tell::<P>(cx, to, &Told::Invitation(id, it)),
                ActionOf::Tell(to, id, notice) => {
                    let from = cx.pe;
                    tell::<P>(cx, to, &Told::Notice(id, from, notice));
                }
            }
        }
        changed
    }
}

/// Tells a PE something, or all that live.
fn tell<P: SimulatedPart>(cx: &mut TaskContext<'_>, to: Option<Pe>, told: &ToldOf<P>) {
    let pes = to.map_or(0..cx.topology.pes(), |to| to.number()..to.number() + 1);
    cx.tell(pes, encoded(told));
}

/// What travels, in bytes.
pub(crate) fn encoded(value: &impl Serialize) -> Bytes {
    match wire::encode(value) {
        Ok(bytes) => bytes.into(),
        Err(error) => unreachable!("{error}"),
    }
}
