//! What must hold in every state, and what must be possible in some.

use super::case::{Case, Task};
use super::host::Waiting;
use super::model::{State, value};
use stateright::Property;
use ultramarine_runtime::error::TaskError;
use ultramarine_topology::Pe;

/// The one that stands for all: wherever nothing can happen any more but further deaths, every
/// future has ended.
pub const NO_FUTURE_STAYS_EMPTY: &str = "no future stays empty";

/// What was lost more often than this is given up when nobody else is left to run it.
const LOSSES_MIN: usize = 2;

/// All that apply to a case.
pub(super) fn of(case: &Case) -> Vec<Property<Case>> {
    let mut properties = vec![
        Property::always(NO_FUTURE_STAYS_EMPTY, |case: &Case, state: &State| {
            state.has_ended() || case.can_go_on(state)
        }),
        Property::always("what is supervised ends with its value", |case: &Case, state: &State| {
            let mut ends = case.tasks.iter().zip(&state.ends);
            ends.all(|(task, end)| match (task, end) {
                (_, None) | (Task::Unsupervised, Some(Err(TaskError::Lost { .. }))) => true,
                // It may be what killed everybody.
                (_, Some(Err(TaskError::GaveUp { with, .. }))) => {
                    with.len() > LOSSES_MIN && state.is_alone(Pe::ROOT.number(), case.pes())
                }
                (_, Some(end)) => *end == Ok(value()),
            })
        }),
        Property::always("what was lost is spared its supervisor", |case: &Case, state: &State| {
            !at_root(state).any(was_lost) || state.is_alone(Pe::ROOT.number(), case.pes())
        }),
        Property::sometimes("a task is lost twice", |_, state: &State| {
            let pes = 1..state.actors.len() as u32;
            pes.flat_map(|pe| state.pool(pe)).any(|waiting| waiting.parcel.version.replica > 1)
        }),
    ];
    if case.deaths >= case.workers {
        properties.push(Property::sometimes("the supervisor runs what was lost", |_, state| {
            at_root(state).any(was_lost)
        }));
    }
    if case.hops > 0 {
        properties.push(Property::sometimes("the supervisor steals its task back", |_, state| {
            at_root(state).any(|waiting| !waiting.is_local && !was_lost(waiting))
        }));
    }
    properties
}

fn at_root(state: &State) -> impl Iterator<Item = &Waiting> {
    state.pool(Pe::ROOT.number())
}

fn was_lost(waiting: &Waiting) -> bool {
    waiting.parcel.version.replica > 0
}
