//! A share as one of its holders has it.

use super::message::Request;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use ultramarine_topology::Pe;

/// By which requests a share has changed, and what came of those whose answers may still be asked
/// for: so a request that is sent again, after a death, is not done again.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AppliedRequests<A>(BTreeMap<Pe, (u64, BTreeMap<u64, A>)>);

impl<A> Default for AppliedRequests<A> {
    fn default() -> Self {
        AppliedRequests(BTreeMap::new())
    }
}

/// What is known of a request.
pub(super) enum RequestState<'a, A> {
    New,
    /// It has changed something, and this came of it.
    Applied(&'a A),
    /// Who asked has the answer.
    Answered,
}

impl<A> AppliedRequests<A> {
    /// Forgets the answers that the asking PE has.
    pub(super) fn forget(&mut self, request: Request) {
        if let Some((before, answers)) = self.0.get_mut(&request.by)
            && request.answered_before > *before
        {
            *before = request.answered_before;
            *answers = answers.split_off(before);
        }
    }

    pub(super) fn note(&mut self, request: Request, answer: A) {
        let (before, answers) = self.0.entry(request.by).or_default();
        *before = request.answered_before.max(*before);
        answers.insert(request.number, answer);
    }

    pub(super) fn of(&self, request: Request) -> RequestState<'_, A> {
        match self.0.get(&request.by) {
            Some((before, _)) if request.number < *before => RequestState::Answered,
            Some((_, answers)) => {
                answers.get(&request.number).map_or(RequestState::New, RequestState::Applied)
            }
            None => RequestState::New,
        }
    }

    /// Forgets a PE, which asks for nothing more.
    pub(super) fn forget_all_of(&mut self, dead: Pe) {
        self.0.remove(&dead);
    }
}

/// An answer that is given when all copies have followed so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Unanswered<A> {
    pub(super) index: u64,
    pub(super) to: Pe,
    pub(super) number: u64,
    pub(super) answer: A,
}

/// What a holder is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Role<A> {
    /// It follows this owner; it is not whole until it has all entries.
    Copy {
        of: Pe,
        is_whole: bool,
    },
    Owner(Owner<A>),
}

/// What an owner has to see to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Owner<A> {
    pub(super) copies: BTreeMap<Pe, Copying>,
    /// Requests that are being applied.
    pub(super) applying: BTreeSet<(Pe, u64)>,
    pub(super) unanswered: VecDeque<Unanswered<A>>,
}

/// How far a copy is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Copying {
    /// The entries are being copied.
    Waits,
    /// It is told of changes, and has not said anything yet.
    Told,
    Follows(u64),
}

impl<A> Owner<A> {
    pub(super) fn new() -> Self {
        let (copies, applying, unanswered) = Default::default();
        Owner { copies, applying, unanswered }
    }

    /// Takes the next answer that may be given, if any.
    pub(super) fn take_answer(&mut self) -> Option<Unanswered<A>> {
        let followed = self.copies.values().map(|copy| match copy {
            Copying::Follows(index) => Some(*index),
            _ => None,
        });
        // If there are no copies, nothing is waited for.
        let followed = followed.min().unwrap_or(Some(u64::MAX))?;
        let is_next = self.unanswered.front().is_some_and(|answer| answer.index <= followed);
        is_next.then(|| self.unanswered.pop_front()).flatten()
    }
}

/// A share on one of its holders.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Share<A> {
    pub(super) role: Role<A>,
    /// The owner that fills a copy, if one does.
    pub(super) filled_by: Option<Pe>,
    /// How often it has changed.
    pub(super) index: u64,
    pub(super) applied: AppliedRequests<A>,
}

impl<A> Share<A> {
    pub(super) fn with(role: Role<A>) -> Self {
        Share { role, filled_by: None, index: 0, applied: AppliedRequests::default() }
    }
}
