//! Values that stay in a process, and the handles by which tasks on all PEs use them.
//!
//! A handle travels as a few bytes within the argument of a task. On arrival the value is
//! [fetched](fetch) once, before the task starts, and kept for tasks that come later.
//!
//! ```text
//!  home: makes the handle        another PE
//!    │ task with the handle ────→  │  the first that arrives: the value is fetched, the task waits
//!    │ ←────────────────── asks ── │  (others of the PE wait for the same value)
//!    │ ── value, by the bulk path →│  they start
//!    │ ←───────────────── result ─ │
//!    │ the last handle is dropped  │
//!    │ ── weaken ──────────────────→ │  forgets the value, unless a task there still has a handle
//! ```
//!
//! Home's own handles keep the value everywhere. While a task is on another PE, the PE that sent it
//! keeps the handles that the task took along. So nothing is counted across PEs, and a death loses
//! no count.

mod fetch;
mod keeping;

use self::fetch::{MakeRemote, Maker, Source, get_or_fetch};
use super::body::Async;
use super::context::Context;
use crate::code::Stateless;
use crate::error::TaskError;
use crate::executor::keep::slot::Slot;
use crate::executor::keep::store::Key;
use crate::executor::pe::processor::Processor;
use crate::executor::schedule::standby::urgently;
use crate::executor::task::portable::Portable;
use crate::executor::task::task_code::function;
use crate::executor::task::travel;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use ultramarine_topology::{Distance, Pe};

/// A value that all tasks may read, wherever they run. Cheap to clone.
///
/// [`Context::share`] makes it. The handle travels within the argument of a task, in a few bytes.
/// The value goes at most once to each process, and is there before the task starts. It spreads
/// along a tree that follows the hierarchy of the machine, so that it enters each host once;
/// processes that pass it on keep it too. A `Vec` of numbers is not encoded, but sent from where it
/// lies; other values are encoded once for each process they go to.
///
/// The value stays in each process until the last handle on the PE that made it is dropped, and no
/// task with a handle is away from there. If PEs die, others get the value from a PE that has it.
/// If no PE has it, the task ends with [`TaskError::ValueLost`].
///
/// # Limits
///
/// A handle travels only within the argument of a task: not within a result, a
/// [message](Context::tell) or another shared value. There it is an error, [`TaskError::Codec`].
/// For a result this shows only if the task ran on another PE: on the PE that spawned it nothing is
/// encoded, and the handle just works. So test with several PEs.
///
/// A value longer than a message may be (`message_bytes_max`, 256 MiB by default) does not travel:
/// tasks on other PEs that need it end with [`TaskError::TooLarge`].
///
/// ```
/// # use ultramarine_runtime::executor::{Context, Shared};
/// # use ultramarine_runtime::error::TaskError;
/// # use ultramarine_topology::Distance;
/// /// The sum of some entries of a long table.
/// async fn sum(cx: &Context, table: Vec<f64>, numbers: Vec<usize>) -> Result<f64, TaskError> {
///     let table = cx.share(table);
///     let mut entries = Vec::new();
///     for number in numbers {
///         let entry = |(table, number): (Shared<Vec<f64>>, usize)| table[number];
///         entries.push(cx.spawn_fn(Distance::ONE, entry, (table.clone(), number)));
///     }
///     let mut sum = 0.0;
///     for entry in entries {
///         sum += entry.await?;
///     }
///     Ok(sum)
/// }
/// ```
pub struct Shared<T>(Arc<Handle<T>>);

/// A value that stays on the PE where it was made. Cheap to clone.
///
/// [`Context::remote`] has a task make it. The handle travels within the argument of a task, even
/// before the value is made. On another PE that task starts when the value has been fetched, once
/// for all tasks of its process. On the PE that spawned it the task starts at once, and
/// [`get`](Self::get) waits. So intermediate results need not pass through the PE that spawns the
/// tasks.
///
/// The value stays until the last handle on the PE that had it made is dropped, and no task with a
/// handle is away from there. If the PE that has the value dies, and no other has fetched it, it is
/// lost: [`TaskError::ValueLost`]. If the task that makes it fails, all tasks that wait for the
/// value get its error.
///
/// If the PE of a supervised maker dies, the maker is run again, though another PE may have fetched
/// the value of the first run. So the function must make the same value of the same argument. It
/// must not turn the loss of a value that it needs into a value of its own.
///
/// Like [`Shared`], a handle travels only within the argument of a task.
pub struct Remote<T>(Arc<Handle<T>>);

/// Where a task may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On this PE.
    On(Pe),
    /// On any PE within this radius of the one that spawns the task.
    Within(Distance),
}

impl From<Pe> for Placement {
    fn from(pe: Pe) -> Self {
        Placement::On(pe)
    }
}

impl From<Distance> for Placement {
    fn from(radius: Distance) -> Self {
        Placement::Within(radius)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<T> Clone for Remote<T> {
    fn clone(&self) -> Self {
        Remote(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    /// # Panics
    ///
    /// In the `Deserialize` of a type that contains the handle: the value has not arrived yet.
    fn deref(&self) -> &T {
        self.0.value.get().expect("the value has arrived before the task starts")
    }
}

impl<T: Portable + Sync> Remote<T> {
    /// The value, fetched to this PE if it is elsewhere. All tasks of a process share it.
    ///
    /// # Errors
    ///
    /// The task that makes the value failed; the value was lost with the PEs that had it; it cannot
    /// be encoded, or is longer than a message; or the job is ending.
    pub fn get(&self) -> impl Future<Output = Result<Arc<T>, TaskError>> + Send + use<T> {
        let handle = self.0.clone();
        async move {
            if let Some(value) = handle.value.get() {
                return Ok(value.clone());
            }
            let site = handle.site.get().expect("it has arrived before its task starts");
            let value = get_or_fetch(&site.pe, handle.source).await?;
            Ok(handle.value.get_or_init(|| value).clone())
        }
    }
}

impl<T: Portable + Sync> Remote<T> {
    /// [Gets](Self::get) the value for the one task that goes on with it: this PE keeps it no
    /// longer. If no other task here has it, [`Arc::unwrap_or_clone`] gives the value itself, to be
    /// changed in place. A task that asks for it here after that finds it
    /// [lost](TaskError::ValueLost), unless another PE has fetched it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use ultramarine_runtime::executor::{Context, Remote};
    /// # use ultramarine_runtime::error::TaskError;
    /// /// Makes the next state of a simulation from the last.
    /// async fn step(_: Context, state: Remote<Vec<f64>>) -> Result<Vec<f64>, TaskError> {
    ///     let mut state = Arc::unwrap_or_clone(state.take().await?);
    ///     state.iter_mut().for_each(|x| *x *= 0.5);
    ///     Ok(state)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub async fn take(self) -> Result<Arc<T>, TaskError> {
        let value = self.get().await?;
        let key = self.0.source.key;
        let pe = self.0.site.get().map(|site| site.pe.clone());
        // The handle holds the value, too.
        drop(self);
        let slot = pe.and_then(|pe| pe.kept.values.known::<T>(key));
        slot.iter().for_each(|slot| slot.weaken_unless_awaited());
        Ok(value)
    }
}

impl<T> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("source", &self.0.source).finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for Remote<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("source", &self.0.source).finish_non_exhaustive()
    }
}

impl<T: Portable + Sync> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Handle::serialize(&self.0, to)
    }
}

impl<T: Portable + Sync> Serialize for Remote<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Handle::serialize(&self.0, to)
    }
}

impl<'de, T: Portable + Sync> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Handle::deserialize(from).map(Shared)
    }
}

impl<'de, T: Portable + Sync> Deserialize<'de> for Remote<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Handle::deserialize(from).map(Remote)
    }
}

/// The content of either kind of handle.
struct Handle<T> {
    source: Source,
    value: OnceLock<Arc<T>>,
    /// Set once the handle has arrived, or was made here.
    site: OnceLock<HandleSite>,
}

/// The PE where a handle is.
struct HandleSite {
    pe: Arc<Processor>,
    /// What keeps the value on all PEs, if this PE is its home.
    _keeper: Option<Arc<dyn Any + Send + Sync>>,
}

impl<T: Portable + Sync> Handle<T> {
    fn serialize<S: Serializer>(self: &Arc<Self>, to: S) -> Result<S::Ok, S::Error> {
        let site = self.site.get().filter(|_| travel::note_packed(self.clone()));
        let site = site.ok_or_else(|| serde::ser::Error::custom(ONLY_WITH_TASKS))?;
        let from = if self.value.get().is_some() { site.pe.me() } else { self.source.from };
        Source { from, ..self.source }.serialize(to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Self>, D::Error> {
        let source = Source::deserialize(from)?;
        let handle = Arc::new(Handle { source, value: OnceLock::new(), site: OnceLock::new() });
        let has_arrived = travel::note_arrived(handle.clone());
        has_arrived.then_some(handle).ok_or_else(|| serde::de::Error::custom(ONLY_WITH_TASKS))
    }
}

const ONLY_WITH_TASKS: &str = "a Shared or Remote travels only within the argument of a task";

impl<T: Portable + Sync> travel::ArrivedHandle for Handle<T> {
    fn attach(self: Arc<Self>, site: &Arc<dyn Any + Send + Sync>) -> Option<travel::PendingValues> {
        let pe = site.clone().downcast::<Processor>();
        let pe = &pe.unwrap_or_else(|_| unreachable!("a process has one kind of PE"));
        let keeper = pe.kept.values.keeper(self.source.key);
        let _ = self.site.set(HandleSite { pe: pe.clone(), _keeper: keeper });
        if let Some(Ok(value)) = pe.kept.values.known(self.source.key).and_then(|slot| slot.now()) {
            let _ = self.value.set(value);
            return None;
        }
        let value = get_or_fetch(pe, self.source);
        let is_made = matches!(self.source.maker, Maker::Home);
        let arrival = Box::pin(async move {
            let _ = self.value.set(value.await?);
            Ok(())
        });
        Some(travel::PendingValues { arrival, is_made })
    }
}

impl Processor {
    /// Makes a handle of a value whose home is this PE.
    fn new_handle<T>(
        self: &Arc<Self>,
        key: Key,
        maker: Maker,
        made: Option<Arc<Slot<Pe>>>,
    ) -> Arc<Handle<T>> {
        let site = HandleSite { pe: self.clone(), _keeper: Some(self.keep(key, made)) };
        let from = if let Maker::On(maker) = maker { maker } else { self.me() };
        let source = Source { key, maker, from };
        Arc::new(Handle { source, value: OnceLock::new(), site: OnceLock::from(site) })
    }
}

impl Context {
    /// Makes a value readable for all tasks, wherever they run. See [`Shared`].
    pub fn share<T: Portable + Sync>(&self, value: T) -> Shared<T> {
        let (key, value) = (self.new_key(), Arc::new(value));
        self.pe.kept.values.slot(key).settle(Ok(value.clone()));
        let handle = self.pe.new_handle(key, Maker::Home, None);
        let _ = handle.value.set(value);
        Shared(handle)
    }

    /// Has a task make a value that stays where it is made, on a PE or anywhere within a radius.
    /// See [`Remote`]. If this context is supervised and the PE dies before the value is made,
    /// another PE makes it.
    ///
    /// ```
    /// # use ultramarine_runtime::executor::{Context, Remote};
    /// # use ultramarine_runtime::error::TaskError;
    /// # use ultramarine_topology::Pe;
    /// /// A vector is made and used on one PE; only a number travels.
    /// async fn norm(cx: &Context, pe: Pe, length: u32) -> Result<f64, TaskError> {
    ///     let make = async |_, n: u32| (0..n).map(f64::from).collect::<Vec<_>>();
    ///     let vector = cx.remote(pe, make, length);
    ///     let norm = async |_, vector: Remote<Vec<f64>>| {
    ///         let vector = vector.get().await?;
    ///         Ok::<_, TaskError>(vector.iter().map(|x| x * x).sum::<f64>().sqrt())
    ///     };
    ///     cx.spawn_at(pe, norm, vector).await?
    /// }
    /// ```
    pub fn remote<F, A, T>(
        &self,
        place: impl Into<Placement>,
        f: F,
        argument: A,
    ) -> Remote<T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: Future + Send + 'static,
        T::Output: Portable + Sync,
    {
        const { F::CHECKED };
        let key = self.new_key();
        let (pe, origin) = (&self.pe, self.origin);
        let (function, argument) = (function(MakeRemote(Async(f))), (key, argument));
        let (maker, making) = match place.into() {
            Placement::On(on) => {
                (Maker::on(on, self.pes()), pe.spawn_at(origin, on, function, argument))
            }
            Placement::Within(radius) => (Maker::Any, pe.spawn(origin, radius, function, argument)),
        };
        let made = Arc::new(Slot::default());
        let handle = pe.new_handle(key, maker, Some(made.clone()));
        let task_pe = pe.clone();
        let note = async move {
            let result = making.await;
            if let (Ok(maker), None) = (&result, task_pe.kept.values.keeper(key)) {
                // The value is not wanted any more.
                task_pe.tell_weaken(*maker, key);
            }
            made.settle(result.map(Arc::new));
        };
        // Other tasks may wait for this.
        let note = urgently(|| pe.run_async(note));
        note.into_iter().for_each(async_task::Task::detach);
        Remote(handle)
    }
}
