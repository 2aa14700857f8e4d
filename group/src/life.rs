//! The life of one PE's part of a group, from the first message for it until the group is closed.
//!
//! ```text
//!              invited, and made             failed, or closed
//!   early ───────────────────────> open ───────────────────────> over
//!     ↑  messages wait               │ ↑                           │
//!     │                              └─┘ opened again: renewed     │
//!     └────────────────── opened again after a failure ────────────┘
//! ```

use crate::name::{GroupId, Opening};
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// What a group is on one PE: a state machine. It is told of events, and says what is to be done.
pub trait Part: Sized {
    /// What another PE needs to make its part.
    type Invitation: Clone;
    /// What parts send each other.
    type Message: Send;
    /// What a part wants to have done.
    type Effects;
    /// Why a group has failed.
    type Error: Clone;

    /// The part knows of all deaths so far. Now the messages come, those that were early first.
    fn begin(&mut self) {}

    /// A message of the part of another PE, or of this one. `is_current`: it was sent in the
    /// opening that this part knows as the last.
    fn receive(&mut self, from: Pe, message: Self::Message, is_current: bool);

    /// A PE has died. The messages that it sent to this one have all come before; those to all may
    /// still come, from a PE that passes them on. A part may be told twice.
    fn died(&mut self, dead: Pe);

    /// The group was opened again, by the next root or by another program on its PE. What this part
    /// has asked other parts for may be lost, and is to be asked for again.
    fn renew(&mut self, opening: Opening);

    /// What is to be done now.
    fn take_effects(&mut self) -> Self::Effects;
}

/// The life of a part of type `P`: see the [module](self).
pub type Life<P> = LifeOf<P, <P as Part>::Invitation, <P as Part>::Message, <P as Part>::Error>;

/// See [`Life`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LifeOf<P, I, M, E> {
    stage: Stage<P, I, M>,
    /// Why an opening has failed, and those before.
    failure: Option<(Opening, E)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage<P, I, M> {
    /// This PE has not made its part yet. What has arrived for it waits.
    Early(Vec<(GroupId, Pe, M)>),
    Open(Box<Open<P, I>>),
    /// The group has failed, or is closed.
    Over,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Open<P, I> {
    id: GroupId,
    invitation: I,
    part: P,
}

/// What is left of a group that is over.
pub struct Remains<P: Part> {
    /// The part, if there was one.
    pub part: Option<P>,
    /// What had arrived for a part that was never made.
    _early: Vec<(GroupId, Pe, P::Message)>,
}

/// What a part wants to have done, in which group.
pub type Wanted<P> = Option<(GroupId, <P as Part>::Effects)>;

impl<P: Part> Open<P, P::Invitation> {
    fn wanted(&mut self) -> (GroupId, P::Effects) {
        (self.id, self.part.take_effects())
    }

    fn receive(&mut self, id: GroupId, from: Pe, message: P::Message) {
        self.part.receive(from, message, id.opening >= self.id.opening);
    }
}

impl<P, I, M, E> Default for LifeOf<P, I, M, E> {
    fn default() -> Self {
        LifeOf { stage: Stage::Early(Vec::new()), failure: None }
    }
}

impl<P: Part> Life<P> {
    /// Whether this PE needs no invitation any more.
    pub fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::Early(_))
    }

    /// This PE has made its part. Returns the part if it has one already, perhaps for an earlier
    /// opening, which is [renewed](Self::renew), or if the group is over; and what is to be done.
    pub fn open(
        &mut self,
        id: GroupId,
        invitation: P::Invitation,
        mut part: P,
        dead: impl IntoIterator<Item = Pe>,
    ) -> (Option<P>, Wanted<P>) {
        let Stage::Early(early) = &mut self.stage else { return (Some(part), self.renew(id)) };
        let early = std::mem::take(early);
        dead.into_iter().for_each(|dead| part.died(dead));
        part.begin();
        let mut open = Open { id, invitation, part };
        early.into_iter().for_each(|(id, from, message)| open.receive(id, from, message));
        let wanted = Some(open.wanted());
        self.stage = Stage::Open(Box::new(open));
        (None, wanted)
    }

    /// Something was told in this opening of the group. If the part knows only an earlier one, it
    /// is renewed; and what has failed may begin again.
    pub fn renew(&mut self, id: GroupId) -> Wanted<P> {
        match &mut self.stage {
            Stage::Open(open) if open.id.opening < id.opening => {
                open.id = id;
                open.part.renew(id.opening);
                Some(open.wanted())
            }
            Stage::Over if self.failure.as_ref().is_some_and(|(last, _)| *last < id.opening) => {
                self.stage = Stage::Early(Vec::new());
                None
            }
            _ => None,
        }
    }

    /// Messages of another part have arrived, which were sent in this opening. None is taken if the
    /// group is over: the caller drops them, after a lock if there is one.
    pub fn receive(
        &mut self,
        id: GroupId,
        from: Pe,
        messages: &mut impl Iterator<Item = P::Message>,
    ) -> Wanted<P> {
        match &mut self.stage {
            Stage::Early(early) => {
                early.extend(messages.map(|message| (id, from, message)));
                None
            }
            Stage::Open(open) => {
                messages.for_each(|message| open.receive(id, from, message));
                Some(open.wanted())
            }
            Stage::Over => None,
        }
    }

    /// Has the part do something, if there is one. Returns what it wants to have done then.
    pub fn act(&mut self, act: impl FnOnce(GroupId, &mut P)) -> Wanted<P> {
        let Stage::Open(open) = &mut self.stage else { return None };
        act(open.id, &mut open.part);
        Some(open.wanted())
    }

    /// Calls `f` with the part, if there is one, and its opening. The part wants nothing then.
    pub fn with<T>(&mut self, f: impl FnOnce(GroupId, &mut P) -> T) -> Option<T> {
        match &mut self.stage {
            Stage::Open(open) => Some(f(open.id, &mut open.part)),
            _ => None,
        }
    }

    /// There is no more to be had of this opening. Returns the part, which is over.
    pub fn fail(&mut self, id: GroupId, error: P::Error) -> Option<P> {
        // What is late was told of an opening before, and may go well in this one.
        let is_current = matches!(&self.stage, Stage::Open(open) if open.id.opening == id.opening);
        if !is_current {
            return None;
        }
        self.failure = Some((id.opening, error));
        self.close().part
    }

    /// The group is closed. Returns what is left of it, to be dropped after a lock.
    pub fn close(&mut self) -> Remains<P> {
        let (part, early) = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Open(open) => (Some(open.part), Vec::new()),
            Stage::Early(early) => (None, early),
            Stage::Over => (None, Vec::new()),
        };
        Remains { part, _early: early }
    }

    /// Why there is no more to be had of this opening, if so.
    pub fn failure_of(&self, id: GroupId) -> Option<&P::Error> {
        self.failure.as_ref().filter(|(last, _)| *last >= id.opening).map(|(_, error)| error)
    }

    /// What invites another PE, if this one has a part, and to which opening.
    pub fn invitation(&self) -> Option<(GroupId, P::Invitation)> {
        match &self.stage {
            Stage::Open(open) => Some((open.id, open.invitation.clone())),
            _ => None,
        }
    }

    /// The PEs from which something has come, if this one has not been invited.
    pub fn early_senders(&self) -> BTreeSet<Pe> {
        match &self.stage {
            Stage::Early(early) => early.iter().map(|(_, from, _)| *from).collect(),
            _ => BTreeSet::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;
    use std::sync::Arc;

    struct Idle;

    impl Part for Idle {
        type Invitation = ();
        type Message = Arc<()>;
        type Effects = ();
        type Error = ();

        fn receive(&mut self, _: Pe, _: Arc<()>, _: bool) {}
        fn died(&mut self, _: Pe) {}
        fn renew(&mut self, _: Opening) {}
        fn take_effects(&mut self) {}
    }

    /// They may be the user's, whose code must not run under a lock.
    #[test]
    fn messages_of_what_is_over_are_left_to_the_caller() {
        let opening = Opening { attempt: 1, by: Pe::ROOT, number: 1, first: 0 };
        let id = GroupId { name: Name { digest: 7, owner: None }, opening };
        let message = Arc::new(());
        let mut life = Life::<Idle>::default();
        life.receive(id, Pe::ROOT, &mut [message.clone()].into_iter());
        let remains = life.close();
        assert_eq!(Arc::strong_count(&message), 2, "it is in what is left");
        drop(remains);
        let mut late = [message.clone()].into_iter();
        life.receive(id, Pe::ROOT, &mut late);
        assert_eq!(late.len(), 1, "it is not taken");
    }
}
