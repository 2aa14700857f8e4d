//! What must hold in every state, and what must be possible in some.

use super::case::{Case, Task};
use super::host::Waiting;
use super::model::{State, value};
use stateright::Property;
use std::collections::BTreeSet;
use ultramarine_runtime::error::TaskError;
use ultramarine_topology::Pe;

/// The one that stands for all: wherever nothing can happen any more but further deaths, every
/// future has ended.
pub const NO_FUTURE_STAYS_EMPTY: &str = "no future stays empty";

/// What was lost with more PEs than this is given up when nobody else is left to run it.
const LOSSES_MIN: usize = 3;

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
                    let different: BTreeSet<_> = with.iter().collect();
                    different.len() > LOSSES_MIN && is_alone(case, state)
                }
                (_, Some(end)) => *end == Ok(value()),
            })
        }),
        Property::always("what was lost spares its supervisor", |case: &Case, state: &State| {
            !at_home(case, state).any(was_lost) || is_alone(case, state)
        }),
        Property::always("what was lost spares the root", |case: &Case, state: &State| {
            let root = Pe::ROOT.number();
            case.home == root || !state.pool(root).any(was_lost)
        }),
        Property::sometimes("a task is lost twice", |case: &Case, state: &State| {
            let elsewhere = case.mortals().flat_map(|pe| state.pool(pe));
            elsewhere.into_iter().any(|waiting| waiting.parcel.version.replica > 1)
        }),
    ];
    if case.deaths as usize >= case.mortals().count() {
        properties.push(Property::sometimes(
            "the supervisor runs what was lost",
            |case: &Case, state| at_home(case, state).any(was_lost),
        ));
    }
    if case.hops > 0 {
        properties.push(Property::sometimes(
            "the supervisor steals its task back",
            |case: &Case, state| {
                at_home(case, state).any(|waiting| !waiting.is_local && !was_lost(waiting))
            },
        ));
    }
    properties
}

/// The tasks in the supervisor's pool.
fn at_home<'a>(case: &Case, state: &'a State) -> impl Iterator<Item = &'a Waiting> {
    state.pool(case.home)
}

/// Whether the supervisor has heard that all are dead but the root and itself.
fn is_alone(case: &Case, state: &State) -> bool {
    state.has_heard_of(case.mortals(), case.home)
}

fn was_lost(waiting: &Waiting) -> bool {
    waiting.parcel.version.replica > 0
}
