//! How a program is run, and awaited.

use super::error::BspError;
use super::folder::Folder;
use super::kind::{Left, Run};
use super::machine::{Machine, Saving, When};
use super::pace::{Interval, Pace};
use super::part::{RunPart, warn_of_unread};
use super::program::Program;
use crate::journal::{builds, program};
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use ultramarine_group::{GroupId, Groups, Invite, Member, Opened, Site};
use ultramarine_journal::{Digest, Identity, OtherBuilds};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_runtime::wire::{WireError, encode};
use ultramarine_topology::Pe;

/// A bulk-synchronous run of a [`Program`]: its ranks compute, send each other messages, and meet;
/// what was sent in one *superstep* is there in the next (Valiant, A bridging model for parallel
/// computation, 1990; Kromonov, NEWT).
///
/// Each PE has a range of ranks. A superstep has ended when all ranks have taken their steps, and
/// all messages have come; the PEs tell each other so in ⌈log₂ n⌉ rounds, without a master.
///
/// # Checkpoints
///
/// A checkpoint is the states of all ranks as a superstep begins and what was sent to them,
/// encoded. Each PE keeps its own, and a copy of another's, on another host if there is one. So it
/// takes twice the memory of the states; and twice that while the next one is made. If a PE dies,
/// all go back to the last checkpoint of which there is a copy of each rank, and the dead PE's
/// ranks are those of PEs near it from then on. If there is none, they begin anew.
///
/// The interval is that which costs least, √(2 · cost · time between failures of the job) (Young
/// 1974). The cost is how long the last checkpoint has kept the PE that it has kept for longest;
/// the setting `host_mtbf` is the mean time between failures of a host. The first checkpoint, by
/// which the cost is measured, is taken after 10 s. A job of one PE takes none, unless it has a
/// [directory](Bsp::checkpoint_dir).
///
/// # Example
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
    let (interval, folder) = (Interval::Best, None);
    Bsp {
        argument,
        ranks: None,
        interval,
        folder,
        other_builds: OtherBuilds::Refuse,
        in_memory: true,
        is_balanced: true,
        watch: None,
    }
}

/// A run that is yet to begin; see [`bsp`].
#[must_use = "a program does not run until it is told to"]
pub struct Bsp<P: Program> {
    argument: P::Argument,
    ranks: Option<u32>,
    interval: Interval,
    folder: Option<PathBuf>,
    other_builds: OtherBuilds,
    in_memory: bool,
    is_balanced: bool,
    watch: Option<(Duration, Tell)>,
}

/// What is called with the progress.
type Tell = Box<dyn FnMut(&Progress) + Send>;

/// How far a run is.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The superstep that is computed.
    pub superstep: u64,
    /// The time of a superstep since the last call.
    pub per_superstep: Duration,
    /// What a rank of this PE has [said](super::Comm::note) last.
    pub note: Option<String>,
}

impl<P: Program> std::fmt::Debug for Bsp<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Bsp");
        shown.field("ranks", &self.ranks).field("interval", &self.interval);
        shown.field("folder", &self.folder).finish_non_exhaustive()
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

    /// A checkpoint is taken once this number of supersteps has passed since the last one was
    /// begun, and that is whole. By default [the interval](bsp#checkpoints) is the best one.
    pub fn checkpoint_every(mut self, supersteps: NonZeroU64) -> Self {
        self.interval = Interval::Supersteps(supersteps.get());
        self
    }

    /// A checkpoint is taken as a superstep begins, once this time has passed since the last one
    /// was begun, and that is whole.
    pub fn checkpoint_interval(mut self, time: Duration) -> Self {
        self.interval = Interval::Time(time);
        self
    }

    /// No checkpoints are taken. After a death all begin anew, or go on from the directory.
    pub fn without_checkpoints(mut self) -> Self {
        self.interval = Interval::Never;
        self
    }

    /// Checkpoints are also put into this directory, which all hosts must see, and which is made if
    /// need be. A job that was killed whole, and is started again, also with other PEs, goes on
    /// from the last one that is whole there. The last two are kept, also when the run has ended.
    ///
    /// They belong to this program with this argument and this number of ranks. The run fails, and
    /// nothing is changed, if those of something else or of [another build](Self::other_builds) are
    /// there, or if another job is using the directory. What is torn or damaged is not used. A
    /// checkpoint that cannot be written is told of in a warning; the run goes on.
    pub fn checkpoint_dir(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // The others may have been started elsewhere.
        self.folder = Some(std::path::absolute(&path).unwrap_or(path));
        self
    }

    /// What becomes of checkpoints in the directory that another build of the program has written.
    /// Default: they are [refused](OtherBuilds::Refuse), since a state in which something has
    /// changed can mostly be read all the same, as something else.
    pub fn other_builds(mut self, builds: OtherBuilds) -> Self {
        self.other_builds = builds;
        self
    }

    /// Whether PEs keep checkpoints in memory. Default: yes. (Without that, a death costs reading
    /// from the directory.)
    pub fn checkpoints_in_memory(mut self, in_memory: bool) -> Self {
        self.in_memory = in_memory;
        self
    }

    /// Whether ranks move from busy PEs to others. Default: yes, if checkpoints are in memory.
    ///
    /// Once a second it is seen for how long each PE has computed. If the busiest one has for a
    /// quarter longer than the idlest, and other ranges of ranks would have it a fifth less to do,
    /// all ranks are saved between two supersteps, and go on where they are then. (The state of
    /// each is encoded and decoded for that. A PE has a range of ranks all the same, so there must
    /// be more ranks than PEs.) Each time that PEs were unevenly busy, the next look is twice as
    /// far away.
    pub fn balance(mut self, is_balanced: bool) -> Self {
        self.is_balanced = is_balanced;
        self
    }

    /// Calls `f` on this PE while the program runs, each time that `every` has passed (at least
    /// 1 ms) and a superstep has ended since.
    pub fn progress<F>(mut self, every: Duration, f: F) -> Self
    where
        F: FnMut(&Progress) + Send + 'static,
    {
        self.watch = Some((every.max(Duration::from_millis(1)), Box::new(f)));
        self
    }

    /// Runs the program. Returns the outputs of its ranks, by their numbers.
    ///
    /// # Errors
    ///
    /// A rank panicked, or cannot be saved or sent; the program does what no program may
    /// ([`BspError::Program`]); the directory cannot be used; or the job ends.
    pub async fn run(self, cx: &Context) -> Result<Vec<P::Output>, BspError> {
        let Bsp { argument, ranks, mut interval, folder, watch, .. } = self;
        let is_kept = self.in_memory && cx.pes() > 1 || folder.is_some();
        if interval != Interval::Never && !is_kept {
            let what = "no checkpoint is taken: there is no other PE to keep a copy";
            if interval == Interval::Best {
                tracing::info!("{what}, and no directory");
            } else {
                tracing::warn!("{what}, and no directory");
            }
            interval = Interval::Never;
        }
        let ranks = ranks.unwrap_or(cx.pes());
        let identity = digest_of::<P>(ranks, &argument)?;
        let Bsp { other_builds, in_memory, is_balanced, .. } = self;
        let head = Head { ranks, interval, folder, other_builds, in_memory, is_balanced, identity };
        let mut digest = Digest::default();
        digest.add(&encode(&head).map_err(|error| codec(&error))?);
        let digest = digest.finish();
        let run = Opened::<RunPart<P>>::new(cx, digest, cx.pe() != cx.root());
        let invitation = RunInvitation { head, argument: Ok(Arc::new(argument)) };
        let part = invitation.make(run.context(), run.id())?;
        run.start(invitation, part)?;
        let ended = std::future::poll_fn(|task| {
            let poll = |part: &mut RunPart<P>| {
                if let Some(outputs) = &part.ended {
                    return Poll::Ready(Ok((part.machine.superstep(), outputs.clone())));
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
        });
        let (superstep, outputs) = match watch {
            Some((every, f)) => tell_progress(cx, run.member(), every, f, ended).await?,
            None => ended.await?,
        };
        warn_of_unread(&outputs.values().flat_map(|left| left.unread.iter().cloned()).collect());
        let decode = |(rank, left): (u32, Left)| {
            left.output.decode().map_err(|error| {
                let message = format!("its output: {error}");
                BspError::Codec { rank, superstep, message }
            })
        };
        outputs.into_iter().map(decode).collect()
    }
}

/// Tells how far a run is until it has ended.
async fn tell_progress<P: Program, T>(
    cx: &Context,
    member: &Member<RunPart<P>>,
    every: Duration,
    mut tell: Tell,
    ended: impl Future<Output = T>,
) -> T {
    let look = |_, part: &mut RunPart<P>| (part.machine.superstep(), part.note.clone());
    let (mut ended, mut last, mut at) = (pin!(ended), 0, Instant::now());
    loop {
        if let Ok(ended) = cx.timeout(every, ended.as_mut()).await {
            return ended;
        }
        let Some((superstep, note)) = member.with(look) else { continue };
        if superstep > last && last > 0 {
            let per_superstep = at.elapsed() / u32::try_from(superstep - last).unwrap_or(u32::MAX);
            tell(&Progress { superstep, per_superstep, note });
        }
        // After a death it may be less.
        if superstep != last {
            (last, at) = (superstep, Instant::now());
        }
    }
}

/// The files in a folder, by their names, for a program with this number of ranks: each has one, or
/// none if there are fewer.
///
/// # Errors
///
/// [`BspError::Input`]: the folder cannot be read, has no files, or more than there are ranks.
pub fn files_in(folder: impl AsRef<Path>, ranks: u32) -> Result<Vec<PathBuf>, BspError> {
    let folder = folder.as_ref();
    let input = |what: &str| {
        let message = format!("the folder `{}` {what}", folder.display());
        BspError::Input { message }
    };
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in folder.read_dir()? {
            let path = entry?.path();
            if path.is_file() {
                files.push(path);
            }
        }
        Ok(files)
    };
    let mut files = read().map_err(|error| input(&format!("cannot be read: {error}")))?;
    if files.is_empty() {
        return Err(input("has no files, and each rank needs one"));
    }
    if files.len() > ranks as usize {
        return Err(input(&format!("has {} files, and there are {ranks} ranks", files.len())));
    }
    files.sort();
    Ok(files)
}

/// What tells a program with its argument from others.
fn digest_of<P: Program>(ranks: u32, argument: &P::Argument) -> Result<u128, BspError> {
    let mut digest = Digest::default();
    digest.add(type_name::<P>().as_bytes());
    digest.add(&encode(&ranks).map_err(|error| codec(&error))?);
    digest.add(&encode(argument).map_err(|error| codec(&error))?);
    Ok(digest.finish())
}

fn codec(error: &WireError) -> BspError {
    TaskError::Codec { what: "argument".into(), reason: error.to_string() }.into()
}

/// What a PE must know of a run beside its argument.
#[derive(Clone, Serialize, Deserialize)]
struct Head {
    ranks: u32,
    interval: Interval,
    folder: Option<PathBuf>,
    other_builds: OtherBuilds,
    in_memory: bool,
    is_balanced: bool,
    /// Of the program and its argument.
    identity: u128,
}

impl Head {
    fn saving(&self) -> Saving {
        let when = match self.interval {
            Interval::Never => When::Never,
            Interval::Supersteps(every) => When::Every(every),
            Interval::Time(_) | Interval::Best => When::Told,
        };
        Saving { when, in_memory: self.in_memory, on_disk: self.folder.is_some() }
    }

    fn folder<P: Program>(&self) -> Option<Folder> {
        let identity = Identity {
            program: program(),
            call: type_name::<P>().to_owned(),
            // Each checkpoint has its own.
            result: String::new(),
            items: self.ranks.into(),
            digest: self.identity,
        };
        let path = self.folder.clone()?;
        let (builds, is_failing) = (builds(self.other_builds), Arc::default());
        Some(Folder { path, identity, builds, is_failing })
    }
}

/// What makes a PE take part in a run.
pub(super) struct RunInvitation<P: Program> {
    head: Head,
    /// On the way it may be lost.
    argument: Result<Arc<P::Argument>, TaskError>,
}

impl<P: Program> Clone for RunInvitation<P> {
    fn clone(&self) -> Self {
        RunInvitation { head: self.head.clone(), argument: self.argument.clone() }
    }
}

impl<P: Program> Invite<RunPart<P>> for RunInvitation<P> {
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), BspError> {
        let invited = |cx: &Context, (id, head): (GroupId, Head), argument| {
            let invitation = RunInvitation::<P> { head, argument };
            Groups::<RunPart<P>>::on(cx).accept(id, invitation);
        };
        let (told, argument) = ((id, self.head.clone()), self.argument.clone()?);
        Ok(match to {
            Some(pe) => cx.tell_with(pe, invited, told, argument),
            None => cx.tell_all_with(invited, told, argument),
        }?)
    }

    fn make(&self, cx: &Context, id: GroupId) -> Result<RunPart<P>, BspError> {
        let (head, topology) = (&self.head, cx.topology().clone());
        let mtbf = cx.host_mtbf() / topology.hosts();
        let pace = Pace::new(head.interval, mtbf, head.is_balanced);
        let machine: Machine<Run<P>> =
            Machine::new(cx.pe(), head.ranks, topology, head.saving(), id.opening.by);
        let folder = head.folder::<P>();
        Ok(RunPart::new(machine, (head.ranks, self.argument.clone()?), pace, folder))
    }
}
