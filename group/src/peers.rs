//! Groups for programs: [`group`].

use crate::host::{Groups, Hosted, Invite, Member, Opened};
use crate::life::Part;
use crate::name::{GroupId, Opening};
use crate::protocol::Site;
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::hash::Hasher;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Poll, Waker};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable, discard};
use ultramarine_topology::Pe;

/// What a [group] is on one PE. It hears of messages and deaths, and says what to send. Its methods
/// run under a lock: they should be short, and must not wait, nor [act](Handle::act) on their own
/// group or [send](Handle::send) to themselves, for which they would wait for ever (their
/// [`Outbox`] may). If one panics,
/// the job ends with that error; where a task calls it, by `act` or by `send` to its own PE, that
/// task does. (A panic of its destructor is survived.)
pub trait Peer: Send + Sized + 'static {
    /// What peers send each other.
    type Message: Portable;

    /// A message of a peer has arrived, perhaps of this one. Messages of one peer come in the order
    /// in which they were sent to this one; those to all come in an order of their own.
    fn receive(&mut self, from: Pe, message: Self::Message, out: &mut Outbox<Self::Message>);

    /// A PE has died. All that it had sent to this PE, and was not lost, has come before; what it
    /// had sent to all may still come. It may be told twice.
    fn died(&mut self, _dead: Pe, _out: &mut Outbox<Self::Message>) {}

    /// The program has opened the group again: it was started again on another root, or it has
    /// opened two groups of one name. What was sent to the former root may be lost.
    fn renew(&mut self, _home: Pe, _out: &mut Outbox<Self::Message>) {}
}

/// Messages that a [`Peer`] sends.
#[derive(Debug)]
pub struct Outbox<M>(Vec<(Option<Pe>, M)>);

impl<M> Outbox<M> {
    /// Sends a message to the peer on a PE, which may be this one.
    pub fn send(&mut self, to: Pe, message: M) {
        self.0.push((Some(to), message));
    }

    /// Sends a message to all peers, this one included. It goes down a tree: if a PE dies before it
    /// has passed the message on, those below do not get it.
    pub fn send_all(&mut self, message: M) {
        self.0.push((None, message));
    }
}

/// Opens a group: a [`Peer`] on each PE. This PE and, as soon as the message has come to them, the
/// others make theirs by calling `make` with their context and the argument. A message for a peer
/// that is not made yet waits.
///
/// The root's group is known by its name, and by the types of peer and argument. It goes on if the
/// root dies, and is found again by the main task that is started on another PE: with the peers as
/// they are, made with the former argument, which are [renewed](Peer::renew). What another PE opens
/// is always a group of its own, whatever its name, and ends with that PE. The group ends when the
/// [`Group`] is dropped; after that its name may be used for another. (If a PE dies while many
/// groups end, others may keep peers of all but the last eight until the job ends.)
///
/// A peer that dies takes along what only it knew: what must survive it, another knows, too. Here
/// each prime is told to two peers, and the task that has found it ends when both know it. So any
/// PE may die, but for two of them at once. A supervised task is run again then, and may tell its
/// prime again, which counts once:
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use std::collections::BTreeSet;
/// use ultramarine::group::{Handle, Outbox, Peer, group};
/// use ultramarine::prelude::*;
///
/// /// The primes that have been found, on all PEs.
/// struct Primes {
///     cx: Context,
///     /// Those of which this PE knows.
///     known: BTreeSet<u64>,
///     /// The peers that have not answered.
///     missing: BTreeSet<Pe>,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// enum Message {
///     Found(u64),
///     Ask,
///     Answer(BTreeSet<u64>),
/// }
///
/// impl Primes {
///     fn ask(&mut self, out: &mut Outbox<Message>) {
///         let all = (0..self.cx.pes()).map(Pe::new);
///         self.missing = all.filter(|pe| !self.cx.is_dead(*pe)).collect();
///         self.missing.iter().for_each(|pe| out.send(*pe, Message::Ask));
///     }
/// }
///
/// impl Peer for Primes {
///     type Message = Message;
///
///     fn receive(&mut self, from: Pe, message: Message, out: &mut Outbox<Message>) {
///         match message {
///             Message::Found(prime) => _ = self.known.insert(prime),
///             Message::Ask => out.send(from, Message::Answer(self.known.clone())),
///             Message::Answer(known) => {
///                 self.known.extend(known);
///                 self.missing.remove(&from);
///             }
///         }
///     }
///
///     fn died(&mut self, dead: Pe, _: &mut Outbox<Message>) {
///         self.missing.remove(&dead);
///     }
/// }
///
/// /// The next PE that lives.
/// fn neighbour(cx: &Context) -> Pe {
///     let (me, pes) = (cx.pe().number(), cx.pes());
///     let mut others = (1..pes).map(|n| Pe::new((me + n) % pes));
///     others.find(|pe| !cx.is_dead(*pe)).unwrap_or(cx.pe())
/// }
///
/// /// Counts the primes below 1000 as they are found, and not as tasks return.
/// async fn primes(cx: &Context) -> Result<usize, TaskError> {
///     let make = |cx: &Context, (): &()| Primes {
///         cx: cx.clone(),
///         known: BTreeSet::new(),
///         missing: BTreeSet::new(),
///     };
///     let primes = group(cx, "primes", make, ())?;
///     let look = async |cx: Context, (n, primes): (u64, Handle<Primes>)| {
///         if (2..n).all(|d| n % d != 0) {
///             let neighbour = neighbour(&cx);
///             [cx.pe(), neighbour].map(|pe| primes.send(&cx, pe, Message::Found(n)));
///             // It has been told when it answers, unless it dies.
///             let _ = cx.ask(neighbour, async |_: Context, ()| (), ()).await;
///         }
///     };
///     let cx = cx.supervised();
///     let tasks = (2..1000).map(|n| cx.spawn(Distance::ONE, look, (n, primes.handle())));
///     for task in tasks.collect::<Vec<_>>() {
///         task.await?;
///     }
///     primes.act(|primes, out| primes.ask(out));
///     primes.wait(|primes| primes.missing.is_empty().then(|| primes.known.len())).await
/// }
/// ```
///
/// # Errors
///
/// The argument cannot be encoded, or is too large; or the job is ending.
pub fn group<F, A, P>(cx: &Context, name: &str, make: F, argument: A) -> Result<Group<P>, TaskError>
where
    F: Fn(&Context, &A) -> P + Stateless,
    A: Portable + Sync,
    P: Peer,
{
    const { F::CHECKED };
    let opened = Opened::new(cx, digest::<A, P>(name), cx.pe() != cx.root());
    let invitation: Arc<dyn MakesPeer<P>> =
        Arc::new(Invitation { make, argument: Ok(Arc::new(argument)) });
    let part = invitation.as_ref().make(opened.context())?;
    opened.start(invitation, part)?;
    Ok(Group(opened))
}

/// The name, and the types' names.
fn digest<A, P>(name: &str) -> u128 {
    let half = |seed: u64| {
        let mut hasher = siphasher::sip::SipHasher24::new_with_keys(seed, 0);
        [name, type_name::<A>(), type_name::<P>()].iter().for_each(|part| {
            hasher.write_usize(part.len());
            hasher.write(part.as_bytes());
        });
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// A group that this program has [opened](group). Dropping it ends the group on all PEs.
#[must_use = "dropping it ends the group"]
pub struct Group<P: Peer>(Opened<PeerPart<P>>);

impl<P: Peer> std::fmt::Debug for Group<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Group").field(&self.0.id()).finish()
    }
}

impl<P: Peer> Group<P> {
    /// Has this PE's peer do something, under its lock.
    pub fn act<T>(&self, act: impl FnOnce(&mut P, &mut Outbox<P::Message>) -> T) -> Option<T> {
        self.handle().act(self.0.context(), act)
    }

    /// Waits until `look` finds something in this PE's peer. It is called at once, and after each
    /// message, death and [act](Self::act), under the peer's lock.
    ///
    /// # Errors
    ///
    /// A PE could not decode the argument, or a message could not be sent: it could not be encoded,
    /// is too large, or is for a PE that the job does not have; or the job is ending.
    pub async fn wait<T>(&self, mut look: impl FnMut(&mut P) -> Option<T>) -> Result<T, TaskError> {
        std::future::poll_fn(|task| {
            let mut poll = |part: &mut PeerPart<P>| {
                let found = look(&mut part.peer);
                if found.is_none() && !part.waiting.iter().any(|one| one.will_wake(task.waker())) {
                    part.waiting.push(task.waker().clone());
                }
                found.map_or(Poll::Pending, |found| Poll::Ready(Ok(found)))
            };
            let polled = self.0.member().with_opening(self.0.id(), &mut poll);
            polled.map_or_else(
                |error| Poll::Ready(Err(error)),
                |polled| polled.unwrap_or(Poll::Ready(Err(TaskError::ShuttingDown))),
            )
        })
        .await
    }

    /// What names the group on other PEs.
    pub fn handle(&self) -> Handle<P> {
        Handle { id: self.0.id(), peer: PhantomData }
    }
}

/// Names a [`Group`] on all PEs. It can travel.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Handle<P> {
    id: GroupId,
    peer: PhantomData<fn() -> P>,
}

impl<P> Clone for Handle<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Handle<P> {}

impl<P> std::fmt::Debug for Handle<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Handle").field(&self.id).finish()
    }
}

impl<P: Peer> Handle<P> {
    /// Sends a message to the peer on a PE; if that is this PE, it is handled at once. If the peer
    /// is not made yet, the message waits. It is lost if the PE dies, or the group has ended. If it
    /// cannot be sent, the group fails: see [`Group::wait`].
    pub fn send(&self, cx: &Context, to: Pe, message: P::Message) {
        if to == cx.pe() {
            Groups::<PeerPart<P>>::on(cx).receive(self.id, to, [message]);
        } else {
            send_to::<P>(cx, Some(to), self.id, message);
        }
    }

    /// Has this PE's peer do something, under its lock. `None`: this PE has not been invited yet,
    /// or the group has ended.
    pub fn act<T>(
        &self,
        cx: &Context,
        act: impl FnOnce(&mut P, &mut Outbox<P::Message>) -> T,
    ) -> Option<T> {
        let member = Groups::<PeerPart<P>>::on(cx).find(self.id)?;
        let mut done = None;
        let wanted = member.act(|part| done = Some(act(&mut part.peer, &mut part.out)));
        if let Some((id, effects)) = wanted {
            PeerPart::carry_out(cx, &member, id, effects);
        }
        done
    }
}

/// A peer, what it sends, and what waits for it.
pub struct PeerPart<P: Peer> {
    peer: P,
    out: Outbox<P::Message>,
    /// Whether a thread is sending what the peer said before.
    is_sending: bool,
    waiting: Vec<Waker>,
}

impl<P: Peer> Part for PeerPart<P> {
    type Invitation = Arc<dyn MakesPeer<P>>;
    type Message = P::Message;
    type Effects = (Vec<(Option<Pe>, P::Message)>, Vec<Waker>);
    type Error = TaskError;

    fn receive(&mut self, from: Pe, message: P::Message, _: bool) {
        self.peer.receive(from, message, &mut self.out);
    }

    fn died(&mut self, dead: Pe) {
        self.peer.died(dead, &mut self.out);
    }

    fn renew(&mut self, opening: Opening) {
        self.peer.renew(opening.by, &mut self.out);
    }

    fn take_effects(&mut self) -> Self::Effects {
        let sent = if self.is_sending { Vec::new() } else { self.next_to_send() };
        (sent, std::mem::take(&mut self.waiting))
    }
}

impl<P: Peer> PeerPart<P> {
    /// What a thread is to send next: one at a time, or messages could overtake each other.
    fn next_to_send(&mut self) -> Vec<(Option<Pe>, P::Message)> {
        self.is_sending = !self.out.0.is_empty();
        std::mem::take(&mut self.out.0)
    }
}

impl<P: Peer> Hosted for PeerPart<P> {
    fn carry_out(cx: &Context, member: &Member<Self>, id: GroupId, (sent, waiting): Self::Effects) {
        waiting.into_iter().for_each(Waker::wake);
        let mut next = Some((id, sent)).filter(|(_, sent)| !sent.is_empty());
        while let Some((id, sent)) = next {
            sent.into_iter().for_each(|(to, message)| send_to::<P>(cx, to, id, message));
            let more = member.with(|id, part| (id, part.next_to_send()));
            next = more.filter(|(_, sent)| !sent.is_empty());
        }
    }

    fn end(self) {
        self.waiting.into_iter().for_each(Waker::wake);
        discard(self.peer);
    }
}

/// Sends a message to the peer on a PE, or to all.
fn send_to<P: Peer>(cx: &Context, to: Option<Pe>, id: GroupId, message: P::Message) {
    let receive = |cx: &Context, (id, from, message): (GroupId, Pe, P::Message)| {
        Groups::<PeerPart<P>>::on(cx).receive(id, from, [message]);
    };
    let told = (id, cx.pe(), message);
    let told = match to {
        Some(pe) => cx.tell_fn(pe, receive, told),
        None => cx.tell_all_fn(receive, told),
    };
    // No part would know that it waits in vain.
    if let Err(error) = told {
        let groups = Groups::<PeerPart<P>>::on(cx);
        groups.tell_failed(groups.with_table(|table| table.newest(id)), error);
    }
}

/// Makes a peer, from an argument of any type.
pub trait MakesPeer<P: Peer>: Send + Sync {
    #[doc(hidden)]
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), TaskError>;
    #[doc(hidden)]
    fn make(&self, cx: &Context) -> Result<PeerPart<P>, TaskError>;
}

struct Invitation<F, A> {
    make: F,
    /// On the way it may be lost.
    argument: Result<Arc<A>, TaskError>,
}

impl<F, A, P> MakesPeer<P> for Invitation<F, A>
where
    F: Fn(&Context, &A) -> P + Stateless,
    A: Portable + Sync,
    P: Peer,
{
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), TaskError> {
        let make = self.make;
        let invited = move |cx: &Context, id, argument| {
            let invitation = Arc::new(Invitation { make, argument });
            Groups::<PeerPart<P>>::on(cx).accept(id, invitation);
        };
        let argument = self.argument.clone()?;
        match to {
            Some(pe) => cx.tell_with(pe, invited, id, argument),
            None => cx.tell_all_with(invited, id, argument),
        }
    }

    fn make(&self, cx: &Context) -> Result<PeerPart<P>, TaskError> {
        let argument = self.argument.as_ref().map_err(Clone::clone)?;
        let peer = (self.make)(&cx.independent(), argument);
        Ok(PeerPart { peer, out: Outbox(Vec::new()), is_sending: false, waiting: Vec::new() })
    }
}

impl<P: Peer> Invite<PeerPart<P>> for Arc<dyn MakesPeer<P>> {
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), TaskError> {
        (**self).send(cx, to, id)
    }

    fn make(&self, cx: &Context, _: GroupId) -> Result<PeerPart<P>, TaskError> {
        (**self).make(cx)
    }
}
