//! The properties that must hold in every state, and those that must hold in some.

use super::case::SuperstepsCase;
use super::state::{Fault, State};
use stateright::Property;
use ultramarine_skeletons::bsp::machine::When;

/// In every state in which nothing but further deaths can happen, the program has been told how the
/// run has ended.
pub const EVERY_RUN_ENDS: &str = "every run ends";
/// It is told what one loop comes to.
pub const OUTPUTS_ARE_RIGHT: &str = "the outputs are those of one loop";
/// What is sent in a superstep is seen in the next one, and in no other.
pub const SUPERSTEPS_ARE_APART: &str = "a message is seen in the next superstep";
/// But for what was saved with a rank.
pub const VIEWS_ARE_APART: &str = "no message of an earlier view is taken";
/// A checkpoint that any PE has held for whole outlives one death.
pub const CHECKPOINTS_ARE_SAFE: &str = "a run goes on from a checkpoint that was whole";
/// No PE has copies of more than two checkpoints.
pub const COPIES_ARE_FEW: &str = "copies are few";
/// What machines take for granted holds.
pub const NO_MACHINE_PANICS: &str = "no machine panics";

pub(super) fn of(case: &SuperstepsCase) -> Vec<Property<SuperstepsCase>> {
    let mut properties = vec![
        Property::always(EVERY_RUN_ENDS, |case: &SuperstepsCase, state: &State| {
            case.is_over(state) || state.end.is_some() || case.can_go_on(state)
        }),
        Property::always(OUTPUTS_ARE_RIGHT, |case: &SuperstepsCase, state: &State| {
            state.end.as_ref().is_none_or(|end| *end == case.program.end())
        }),
        Property::always(SUPERSTEPS_ARE_APART, |_, state: &State| {
            state.fault != Some(Fault::WrongSuperstep)
        }),
        Property::always(VIEWS_ARE_APART, |_, state: &State| {
            state.fault != Some(Fault::FormerView)
        }),
        Property::always(CHECKPOINTS_ARE_SAFE, |_, state: &State| {
            state.fault != Some(Fault::LosesCheckpoint)
        }),
        Property::always(COPIES_ARE_FEW, |_, state: &State| {
            state.fault != Some(Fault::KeepsTooMuch)
        }),
        Property::always(NO_MACHINE_PANICS, |_, state: &State| state.fault != Some(Fault::Panics)),
        Property::sometimes("the program is told", |_, state: &State| state.end.is_some()),
    ];
    if case.program.is_uneven {
        properties.push(Property::sometimes("ranks move", |_, state: &State| state.has_moved));
    }
    if case.deaths > 0 {
        properties.push(Property::sometimes("a run begins anew", |_, state: &State| {
            state.resumed == Some(0)
        }));
        // In one superstep a checkpoint is taken and copied, in the next all say so.
        if case.saving.when != When::Never && case.program.supersteps > 2 {
            let resumes = |_: &_, state: &State| state.resumed > Some(0);
            properties.push(Property::sometimes("a run goes on from a checkpoint", resumes));
        }
    }
    properties
}
