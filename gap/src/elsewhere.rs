//! A task whose GAP fails where it is runs again on another PE.

use crate::error::GapError;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Portable};
use ultramarine_topology::{Distance, Pe};

/// How many random PEs are looked at for one that was not tried yet.
const DRAWS: u32 = 20;

/// A random PE within the radius that lives and is none of these, if one is found.
pub fn another(cx: &Context, radius: Distance, tried: &[Pe]) -> Option<Pe> {
    let mut drawn = (0..DRAWS).map(|_| cx.random_within(radius));
    drawn.find(|pe| !tried.contains(pe) && !cx.is_dead(*pe))
}

/// Spawns a task that calls GAP, as [`Context::spawn`] does. If GAP is missing where the task
/// runs, or dies of it, the task runs again on another PE within the radius, on `pes` PEs at most.
/// The function gets the context of the task that calls it, which is cancelled if this is dropped.
///
/// What GAP says of the call itself, such as an error in its function, is the result at once.
///
/// # Errors
///
/// The task panics, or is lost with its PE. The inner error is the last PE's.
pub async fn elsewhere<F, A, R>(
    cx: &Context,
    radius: Distance,
    pes: u32,
    f: F,
    argument: A,
) -> Result<Result<R, GapError>, TaskError>
where
    F: Fn(&Context, A) -> Result<R, GapError> + Stateless,
    A: Portable + Clone,
    R: Portable,
{
    let here = move |cx: Context, argument: A| async move { (cx.pe(), f(&cx, argument)) };
    let (pe, mut result) = AbortOnDrop::new(cx.spawn(radius, here, argument.clone())).await?;
    let mut tried = vec![pe];
    for _ in 1..pes {
        if !result.as_ref().is_err_and(GapError::is_of_this_place) {
            break;
        }
        let Some(pe) = another(cx, radius, &tried) else { break };
        tried.push(pe);
        result = AbortOnDrop::new(cx.spawn_at(pe, here, argument.clone())).await?.1;
    }
    Ok(result)
}
