//! How a program is run, and awaited.

use super::error::BspError;
use super::kind::Run;
use super::machine::{Machine, Saving};
use super::part::RunPart;
use super::program::Program;
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::Poll;
use ultramarine_group::{GroupId, Groups, Invite, Opened, Site};
use ultramarine_journal::Digest;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_runtime::wire::encode;
use ultramarine_topology::Pe;

/// A bulk-synchronous run of a [`Program`]: its ranks compute, send each other messages, and meet;
/// what was sent in one *superstep* is there in the next (Valiant, A bridging model for parallel
/// computation, 1990; Kromonov, NEWT).
///
/// Each PE has a range of ranks. A superstep has ended when all ranks have taken their steps, and
/// all messages have come; the PEs tell each other so in ⌈log₂ n⌉ rounds, without a master.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use ultramarine_runtime::executor::Context;
/// use ultramarine_skeletons::bsp::{BspError, Comm, Next, Program, Start, bsp, op};
///
/// /// π by the midpoint rule: each rank adds some of the rectangles up.
/// #[derive(Serialize, Deserialize)]
/// struct Pi {
///     sum: f64,
/// }
///
/// #[derive(Clone, Serialize, Deserialize, Default, Debug)]
/// enum Stage {
///     #[default]
///     Add,
///     End,
/// }
///
/// impl Program for Pi {
///     type Argument = u32;
///     type Stage = Stage;
///     type Message = ();
///     type Output = f64;
///
///     fn new(start: &Start, rectangles: &u32) -> Self {
///         let own = (start.rank..*rectangles).step_by(start.ranks as usize);
///         let width = 1.0 / f64::from(*rectangles);
///         let height = |n| 4.0 / (1.0 + (width * (f64::from(n) + 0.5)).powi(2));
///         Pi { sum: own.map(height).sum::<f64>() * width }
///     }
///
///     fn step(&mut self, stage: Stage, comm: &mut Comm<Self>) -> Next<Self> {
///         match stage {
///             Stage::Add => {
///                 comm.all_reduce(&self.sum, op::sum::<f64>);
///                 Next::Stage(Stage::End)
///             }
///             Stage::End => Next::End(comm.result().expect("all took part")),
///         }
///     }
/// }
///
/// async fn pi(cx: &Context) -> Result<f64, BspError> {
///     Ok(bsp::<Pi>(1_000_000).ranks(8).run(cx).await?[0])
/// }
/// ```
pub fn bsp<P: Program>(argument: P::Argument) -> Bsp<P> {
    Bsp { argument, ranks: None, saving: Saving::Never }
}

/// A run that is yet to begin; see [`bsp`].
#[must_use = "a program does not run until it is told to"]
pub struct Bsp<P: Program> {
    argument: P::Argument,
    ranks: Option<u32>,
    saving: Saving,
}

impl<P: Program> std::fmt::Debug for Bsp<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Bsp");
        shown.field("ranks", &self.ranks).field("saving", &self.saving).finish_non_exhaustive()
    }
}

impl<P: Program> Bsp<P> {
    /// The number of ranks. Default: that of the PEs. Ranks of one PE take their steps at once, as
    /// far as it has threads.
    ///
    /// # Panics
    ///
    /// `ranks` is 0.
    #[track_caller]
    pub fn ranks(mut self, ranks: u32) -> Self {
        assert!(ranks > 0, "a run has at least one rank");
        self.ranks = Some(ranks);
        self
    }

    /// A checkpoint is taken at the beginning of every so many supersteps, or as soon after that as
    /// the one before is whole. Default: none.
    ///
    /// A checkpoint is the states of all ranks and what was sent to them, encoded. Each PE keeps
    /// its own, and a copy of another's, on another host if there is one. So it takes twice the
    /// memory of the states; and twice that while the next one is made. If a PE dies, all go back
    /// to the last checkpoint of which there is a copy of each rank, and the dead PE's ranks are
    /// those of PEs near it from then on. If there is none, they begin anew.
    pub fn checkpoint_every(mut self, supersteps: NonZeroU64) -> Self {
        self.saving = Saving::Every(supersteps.get());
        self
    }

    /// Runs the program. Returns the outputs of its ranks, by their numbers.
    ///
    /// # Errors
    ///
    /// A rank panicked, or cannot be saved or sent; the program does what no program may
    /// ([`BspError::Program`]); or the job ends.
    pub async fn run(self, cx: &Context) -> Result<Vec<P::Output>, BspError> {
        let Bsp { argument, ranks, saving } = self;
        let head = Head { ranks: ranks.unwrap_or(cx.pes()), saving };
        let digest = digest_of::<P>(&head, &argument)?;
        let run = Opened::<RunPart<P>>::new(cx, digest, cx.pe() != cx.root());
        let invitation = RunInvitation { head, argument: Ok(Arc::new(argument)) };
        let part = invitation.make(run.context(), run.id())?;
        run.start(invitation, part)?;
        let outputs = std::future::poll_fn(|task| {
            let poll = |part: &mut RunPart<P>| {
                if let Some(outputs) = &part.ended {
                    return Poll::Ready(Ok(outputs.clone()));
                }
                if !part.waiting.iter().any(|waker| waker.will_wake(task.waker())) {
                    part.waiting.push(task.waker().clone());
                }
                Poll::Pending
            };
            let over = || Poll::Ready(Err(TaskError::ShuttingDown.into()));
            let polled = run.member().with_opening(run.id(), poll);
            polled
                .map_or_else(|error| Poll::Ready(Err(error)), |polled| polled.unwrap_or_else(over))
        })
        .await?;
        let decode = |(rank, output): (u32, super::kind::Bytes)| {
            let superstep = 0;
            output.get().map_err(|message| BspError::Codec { rank, superstep, message })
        };
        outputs.into_iter().map(decode).collect()
    }
}

/// What tells a run from others.
fn digest_of<P: Program>(head: &Head, argument: &P::Argument) -> Result<u128, BspError> {
    let codec = |error: ultramarine_runtime::wire::WireError| TaskError::Codec {
        what: "argument".into(),
        reason: error.to_string(),
    };
    let mut digest = Digest::default();
    digest.add(type_name::<P>().as_bytes());
    digest.add(&encode(head).map_err(codec)?);
    digest.add(&encode(argument).map_err(codec)?);
    Ok(digest.finish())
}

/// What a PE must know of a run beside its argument.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Head {
    ranks: u32,
    saving: Saving,
}

/// What makes a PE take part in a run.
pub(super) struct RunInvitation<P: Program> {
    head: Head,
    /// On the way it may be lost.
    argument: Result<Arc<P::Argument>, TaskError>,
}

impl<P: Program> Clone for RunInvitation<P> {
    fn clone(&self) -> Self {
        RunInvitation { head: self.head, argument: self.argument.clone() }
    }
}

impl<P: Program> Invite<RunPart<P>> for RunInvitation<P> {
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), BspError> {
        let invited = async |cx: Context, (id, head): (GroupId, Head), argument| {
            let invitation = RunInvitation::<P> { head, argument };
            Groups::<RunPart<P>>::on(&cx).accept(id, invitation);
        };
        let (told, argument) = ((id, self.head), self.argument.clone()?);
        Ok(match to {
            Some(pe) => cx.tell_with(pe, invited, told, argument),
            None => cx.tell_all_with(invited, told, argument),
        }?)
    }

    fn make(&self, cx: &Context, id: GroupId) -> Result<RunPart<P>, BspError> {
        let Head { ranks, saving } = self.head;
        let topology = cx.topology().clone();
        let machine: Machine<Run<P>> =
            Machine::new(cx.pe(), ranks, topology, saving, id.opening.by);
        Ok(RunPart::new(machine, ranks, self.argument.clone()?))
    }
}
