//! The properties that must hold in every state, and those that must hold in some.

use super::case::{SupervisionCase, Task};
use super::host::PooledTask;
use super::state::{State, value};
use stateright::Property;
use std::collections::BTreeSet;
use ultramarine_runtime::error::TaskError;
use ultramarine_topology::Pe;

/// The main property: in every state in which nothing but further deaths can happen, every future
/// has ended.
pub const NO_FUTURE_STAYS_EMPTY: &str = "no future stays empty";

/// A task that was lost with more PEs than this is given up when no other PE is left to run it.
const LOSSES_MIN: usize = 3;

/// The properties that apply to a case.
pub(super) fn of(case: &SupervisionCase) -> Vec<Property<SupervisionCase>> {
    let mut properties = vec![
        Property::always(NO_FUTURE_STAYS_EMPTY, |case: &SupervisionCase, state: &State| {
            state.has_ended() || case.can_go_on(state)
        }),
        Property::always(
            "what is supervised ends with its value",
            |case: &SupervisionCase, state: &State| {
                let mut ends = case.tasks.iter().zip(&state.ends);
                ends.all(|(task, end)| match (task, end) {
                    (_, None) | (Task::Unsupervised, Some(Err(TaskError::Lost { .. }))) => true,
                    // The task may be what killed the PEs.
                    (_, Some(Err(TaskError::GaveUp { with, .. }))) => {
                        let different: BTreeSet<_> = with.iter().collect();
                        different.len() > LOSSES_MIN && is_alone(case, state)
                    }
                    (_, Some(end)) => *end == Ok(value()),
                })
            },
        ),
        Property::always(
            "what was lost spares its supervisor",
            |case: &SupervisionCase, state: &State| {
                !at_home(case, state).any(was_lost) || is_alone(case, state)
            },
        ),
        Property::always(
            "what was lost spares the root",
            |case: &SupervisionCase, state: &State| {
                let root = Pe::ROOT.number();
                case.home == root || !state.pool(root).any(was_lost)
            },
        ),
        Property::sometimes("a task is lost twice", |case: &SupervisionCase, state: &State| {
            let elsewhere = case.mortals().flat_map(|pe| state.pool(pe));
            elsewhere.into_iter().any(|pooled| pooled.parcel.version.replica > 1)
        }),
    ];
    if case.deaths as usize >= case.mortals().count() {
        properties.push(Property::sometimes(
            "the supervisor runs what was lost",
            |case: &SupervisionCase, state| at_home(case, state).any(was_lost),
        ));
    }
    if case.hops > 0 {
        properties.push(Property::sometimes(
            "the supervisor steals its task back",
            |case: &SupervisionCase, state| {
                at_home(case, state).any(|pooled| !pooled.is_local && !was_lost(pooled))
            },
        ));
    }
    properties
}

/// The tasks in the supervisor's pool.
fn at_home<'a>(case: &SupervisionCase, state: &'a State) -> impl Iterator<Item = &'a PooledTask> {
    state.pool(case.home)
}

/// Whether the supervisor has heard that all PEs but the root and itself are dead.
fn is_alone(case: &SupervisionCase, state: &State) -> bool {
    state.has_heard_of(case.mortals(), case.home)
}

fn was_lost(pooled: &PooledTask) -> bool {
    pooled.parcel.version.replica > 0
}
