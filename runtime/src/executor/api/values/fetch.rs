//! How a PE fetches a value that it needs.

use super::super::body::Async;
use super::super::context::Context;
use crate::array::{self, Array, within};
use crate::error::TaskError;
use crate::executor::keep::slot::Wait;
use crate::executor::keep::store::Key;
use crate::executor::pe::processor::Processor;
use crate::executor::schedule::standby::urgently;
use crate::executor::task::body::{Begins, Body, Run};
use crate::executor::task::caught::caught;
use crate::executor::task::end::{End, Settle};
use crate::executor::task::portable::Portable;
use crate::executor::task::site::Site;
use crate::executor::task::task_code::{Function, function};
use crate::executor::task::travel::travelling;
use async_task::Task;
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use ultramarine_topology::Pe;

/// What a handle says: which value it is, and where to get it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) key: Key,
    pub(crate) maker: Maker,
    /// Another PE that is likely to have it.
    pub(crate) from: Pe,
}

/// Which PE makes a value.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Maker {
    /// Home had it from the beginning; it spreads along a tree.
    Home,
    /// A task on this PE, unless that PE dies.
    On(Pe),
    /// A task on any PE; home knows where once it is made.
    Any,
}

impl Maker {
    /// This PE, if it is one of `pes`. (If not, home has the error.)
    pub(crate) fn on(pe: Pe, pes: u32) -> Self {
        if pe.number() < pes { Maker::On(pe) } else { Maker::Any }
    }
}

/// Waits for the value, and fetches it if it is not here.
pub(crate) fn get_or_fetch<T: Portable + Sync>(pe: &Arc<Processor>, source: Source) -> Wait<T> {
    let slot = pe.kept.values.slot::<T>(source.key);
    if let Some(delivery) = slot.claim_delivery() {
        let (pe_of_task, slot) = (pe.clone(), slot.clone());
        let fetching = async move {
            let give = function(GiveValue::<T>(PhantomData));
            // Held from the moment at which it is seen.
            let here = OnceLock::new();
            let is_here = || slot.now().is_some_and(|now| here.set(now).is_ok());
            let fetched = match fetch(&pe_of_task, source, give, &is_here).await {
                Ok(Fetched::Given(array)) => arrived(array),
                Ok(Fetched::Here) => here.into_inner().expect("it is held when it is seen"),
                Err(error) => Err(error),
            };
            if fetched.is_err() {
                pe_of_task.kept.values.remove(source.key);
            }
            delivery.end_with(fetched);
        };
        let fetching = urgently(|| pe.run_async(fetching));
        fetching.into_iter().for_each(Task::detach);
    }
    slot.wait()
}

/// How a value was fetched.
enum Fetched {
    /// Another PE has given it.
    Given(Array),
    /// It was here meanwhile.
    Here,
}

/// Gets a value from a PE that has it. `give` is the function by which PEs give such values, and
/// `is_here` says whether the value is here meanwhile.
async fn fetch(
    pe: &Arc<Processor>,
    source: Source,
    give: Give,
    is_here: &(dyn Fn() -> bool + Send + Sync),
) -> Result<Fetched, TaskError> {
    let Source { key, maker, from } = source;
    // Whether it is there now, or when the other PE has it.
    let ask = async |other, only_if_here| {
        let request = Request { source, only_if_here, to: pe.me() };
        pe.ask(other, give, request).await.map(Fetched::Given)
    };
    if let Maker::Home = maker {
        while let Some(parent) = parent(pe, key.home) {
            match ask(parent, false).await {
                Err(TaskError::Lost { .. }) if pe.is_dead(parent) => {}
                Err(TaskError::Lost { .. } | TaskError::ValueLost { .. }) => break,
                // It could not be decoded there, which need not be so here.
                Err(TaskError::Codec { .. }) if parent != key.home => {
                    match ask(key.home, false).await {
                        Err(TaskError::Lost { .. } | TaskError::ValueLost { .. }) => break,
                        result => return result,
                    }
                }
                result => return result,
            }
        }
    } else {
        // If the PE that was to make it has died, another may have made it.
        for maker in [maker, Maker::Any] {
            let maker = match maker {
                Maker::On(maker) => Some(maker),
                _ => pe.ask(key.home, function(Async(maker_of)), key).await.unwrap_or(Ok(None))?,
            };
            if let Some(maker) = maker.filter(|maker| *maker != pe.me()) {
                match ask(maker, false).await {
                    Err(TaskError::Lost { .. } | TaskError::ValueLost { .. }) => {}
                    result => return result,
                }
            } else if is_here() {
                return Ok(Fetched::Here);
            }
        }
    }
    let mut others: Vec<Pe> = (0..pe.topology.pes()).map(Pe::new).collect();
    others.sort_by_key(|other| (*other != from, pe.topology.distance(pe.me(), *other)));
    for other in others.into_iter().filter(|other| *other != pe.me() && !pe.is_dead(*other)) {
        if let Ok(given) = ask(other, true).await {
            return Ok(given);
        }
    }
    let pe = if let Maker::On(maker) = maker { maker } else { key.home };
    Err(TaskError::ValueLost { pe })
}

/// The PE that gives this one a value from that home: the parent in the tree along which home would
/// [tell all](super::super::Context::tell_all) something.
fn parent(pe: &Processor, home: Pe) -> Option<Pe> {
    if pe.is_dead(home) || home == pe.me() {
        return None;
    }
    let me = pe.me().number();
    let mut parent = home;
    let mut all = 0..pe.topology.pes();
    loop {
        let branch = pe.topology.branches(parent, all).find(|branch| branch.contains(&me))?;
        let first = branch.clone().map(Pe::new).find(|first| !pe.is_dead(*first))?;
        if first == pe.me() {
            return Some(parent);
        }
        (parent, all) = (first, branch);
    }
}

/// The value that another PE has given.
fn arrived<T: Portable + Sync>(array: Array) -> Result<Arc<T>, TaskError> {
    match array::take_shared(array) {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(codec_error::<T>("it is another type".to_owned())),
        Err(array) => {
            let decode = || within::decode_with(array.bytes(), None);
            let value = travelling(|| caught(type_name::<T>(), decode));
            let value = value.map_err(codec_error::<T>)?;
            value.map(Arc::new).map_err(|error| codec_error::<T>(error.of_a_value()))
        }
    }
}

fn codec_error<T>(reason: String) -> TaskError {
    TaskError::Codec { what: named::<T>(), reason }
}

fn named<T>() -> String {
    format!("shared or remote value of type `{}`", type_name::<T>())
}

/// The PE where a value was made. `None`: home does not know any more.
async fn maker_of(cx: Context, key: Key) -> Result<Option<Pe>, TaskError> {
    match cx.pe.kept.values.home(key).map(|home| home.made) {
        None => Ok(None),
        Some(None) => Ok(Some(cx.pe())),
        Some(Some(made)) => made.wait().await.map(|pe| Some(*pe)),
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    source: Source,
    /// Whether to answer at once, with an error if the value is not there.
    only_if_here: bool,
    to: Pe,
}

/// The function of a task that gives a value to another PE, whatever its type.
type Give = &'static dyn Function<Processor, Request, Array>;

/// The function that gives a value of type `T`.
struct GiveValue<T>(PhantomData<fn() -> T>);

impl<T> Clone for GiveValue<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for GiveValue<T> {}

impl<T: Portable + Sync> Body<Processor, Request> for GiveValue<T> {
    type Output = Array;
    const MAY_WAIT: bool = true;

    fn name() -> &'static str {
        type_name::<Self>()
    }

    fn run(self, pe: &Arc<Processor>, request: Request, begins: Begins<'_, Array>) -> Run<Array> {
        let (giver, (_, waiting)) = (pe.clone(), begins());
        let end = End::new(waiting);
        Run::of(pe.run_async_here(async move {
            let given = give_value::<T>(&giver, &request).await;
            end.end_with(given);
        }))
    }
}

async fn give_value<T: Portable + Sync>(
    pe: &Arc<Processor>,
    request: &Request,
) -> Result<Array, TaskError> {
    let Request { source, only_if_here, to } = *request;
    let lost = TaskError::ValueLost { pe: pe.me() };
    // Home does not fetch a value again after its last handle was dropped.
    let is_over = source.key.home == pe.me() && pe.kept.values.keeper(source.key).is_none();
    let value = if only_if_here || is_over {
        let slot = pe.kept.values.known::<T>(source.key).ok_or(lost.clone())?;
        slot.note_given(to);
        slot.now().ok_or(lost)??
    } else {
        // Noted before the value is here: home's handles may be dropped before it has reached the
        // other PE.
        pe.kept.values.slot::<T>(source.key).note_given(to);
        get_or_fetch::<T>(pe, source).await?
    };
    let array = match array::share(&value) {
        Some(array) => array,
        None => caught(type_name::<T>(), || within::encode(&*value))
            .and_then(|encoded| encoded.map(Array::from).map_err(|error| error.of_a_value()))
            .map_err(codec_error::<T>)?,
    };
    let (bytes, limit) = (array.size_bytes(), pe.value_bytes_max());
    if bytes > limit {
        return Err(TaskError::TooLarge { what: named::<T>(), bytes, limit });
    }
    Ok(array)
}

/// The function of a task that makes a value that stays here. The task's result is this PE.
#[derive(Clone, Copy)]
pub(crate) struct MakeRemote<B>(pub(crate) B);

impl<B, A> Body<Processor, (Key, A)> for MakeRemote<B>
where
    B: Body<Processor, A>,
    B::Output: Sync,
    A: 'static,
{
    type Output = Pe;
    const MAY_WAIT: bool = B::MAY_WAIT;

    fn name() -> &'static str {
        B::name()
    }

    fn run(
        self,
        pe: &Arc<Processor>,
        (key, argument): (Key, A),
        begins: Begins<'_, Pe>,
    ) -> Run<Pe> {
        let begins = || {
            let (origin, waiting) = begins();
            (origin, Arc::new(Made { maker: pe.clone(), key, waiting }) as _)
        };
        match self.0.run(pe, argument, &begins) {
            Run::Computed(result) => Run::Computed(keep(pe, key, result)),
            Run::Ended => Run::Ended,
            Run::Waits(task) => Run::Waits(task),
        }
    }
}

/// The end of a task that makes a value that stays here.
struct Made {
    maker: Arc<Processor>,
    key: Key,
    /// What waits for the task's result, which is this PE.
    waiting: Arc<dyn Settle<Pe>>,
}

impl<T: Portable + Sync> Settle<T> for Made {
    fn settle(&self, result: Result<T, TaskError>) {
        self.waiting.settle(keep(&self.maker, self.key, result));
    }
}

/// Keeps the value, and returns where.
fn keep<T: Portable + Sync>(
    maker: &Processor,
    key: Key,
    result: Result<T, TaskError>,
) -> Result<Pe, TaskError> {
    let made = result.as_ref().map(|_| maker.me()).map_err(TaskError::clone);
    maker.kept.values.slot::<T>(key).settle(result.map(Arc::new));
    if made.is_err() {
        // Home gets the error, and nothing is kept here.
        maker.kept.values.remove(key);
    }
    made
}
