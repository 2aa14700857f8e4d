//! The properties that must hold in every state, and those that must hold in some.

use super::case::TablesCase;
use super::model::is_doubled;
use super::state::{Fault, Member, SHARE, State};
use crate::frame::Digested;
use stateright::Property;
use std::sync::Arc;

/// In every state in which nothing but further deaths can happen, each living PE has the answers to
/// all that it has asked, or a machine has said that the table is lost.
pub const EVERY_REQUEST_ENDS: &str = "every request ends";
/// Nothing is done twice, in no answer and in no PE's entries.
pub const REQUESTS_ARE_DONE_ONCE: &str = "each request is done once";
/// An answer shows what was asked for, and all that earlier answers have shown, in the same order.
/// In the end the owner's entries do.
pub const ANSWERS_STAY: &str = "what was answered stays";
/// If nothing but further deaths can happen, all living holders have the owner's entries: it has
/// as many copies as it should.
pub const COPIES_AGREE: &str = "copies agree";
/// A table is lost only when more PEs have died than there are copies.
pub const LOSSES_ARE_REAL: &str = "losses are real";

/// The living holders, the owner first, once nothing but further deaths can happen.
fn holders_at_rest<'a>(
    case: &TablesCase,
    state: &'a State,
) -> Option<impl Iterator<Item = &'a Arc<Digested<Member>>>> {
    let is_at_rest = !TablesCase::is_over(state) && !case.can_go_on(state);
    is_at_rest.then(|| state.members.iter().flatten().take(1 + case.copies))
}

/// Whether the owner has seen to the share. If only dead PEs have asked for anything, it need not.
fn owns(owner: &Member) -> bool {
    owner.machine.owned_shares().any(|share| share == SHARE)
}

fn keeps_answers(case: &TablesCase, state: &State) -> bool {
    let Some(mut holders) = holders_at_rest(case, state) else { return true };
    let Some(owner) = holders.next() else { return false };
    if owns(owner) {
        owner.entries.starts_with(&state.certain)
    } else {
        // It says that the table is lost when something is asked.
        state.certain.is_empty() || state.dead.count_ones() as usize > case.copies
    }
}

fn copies_agree(case: &TablesCase, state: &State) -> bool {
    let Some(mut holders) = holders_at_rest(case, state) else { return true };
    let Some(owner) = holders.next() else { return false };
    !owns(owner) || holders.all(|copy| copy.entries == owner.entries)
}

pub(super) fn of(case: &TablesCase) -> Vec<Property<TablesCase>> {
    let mut properties = vec![
        Property::always(EVERY_REQUEST_ENDS, |case: &TablesCase, state: &State| {
            let is_open = || state.members.iter().flatten().any(|member| !member.open.is_empty());
            TablesCase::is_over(state) || !is_open() || case.can_go_on(state)
        }),
        Property::always(REQUESTS_ARE_DONE_ONCE, |_, state: &State| {
            let is_doubled = |member: &Arc<Digested<Member>>| is_doubled(&member.entries);
            state.fault != Some(Fault::DoneTwice) && !state.members.iter().flatten().any(is_doubled)
        }),
        Property::always(ANSWERS_STAY, |case, state: &State| {
            state.fault != Some(Fault::Forgets) && keeps_answers(case, state)
        }),
        Property::always(COPIES_AGREE, copies_agree),
        Property::always(LOSSES_ARE_REAL, |_, state: &State| {
            state.fault != Some(Fault::LosesTooSoon)
        }),
        Property::sometimes("all is answered", |case: &TablesCase, state: &State| {
            let is_done =
                |member: &Arc<Digested<Member>>| member.to_ask.is_empty() && member.open.is_empty();
            state.dead == 0 && state.members.iter().flatten().all(is_done) && !case.can_go_on(state)
        }),
    ];
    if case.copies > 0 && case.deaths > 0 {
        properties.push(Property::sometimes("another owner answers", |_, state: &State| {
            state.is_succeeded
        }));
    }
    if case.deaths as usize > case.copies {
        properties.push(Property::sometimes("a table is lost", |_, state: &State| state.is_lost));
    }
    properties
}
