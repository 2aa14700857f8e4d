//! Tables with a rule left out. The machine is that of real tables all the same: what stands for
//! the rest of the PE deceives it, so that the rule has no effect.

use super::case::TablesCase;
use super::state::{Member, SHARE, Toy};
use ultramarine_skeletons::table::machine::{AppliedRequests, MessageOf, Told};
use ultramarine_topology::Pe;

/// A rule to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablesMutant {
    /// A copy does not know which requests have led to the changes.
    ForgetsRequests,
    /// A copy is held to have followed as soon as it is told of a change.
    TrustsCopies,
    /// What is only read is answered before earlier changes are certain.
    AnswersReadersAtOnce,
    /// After a death no new copies are made.
    MakesNoCopies,
    /// Changes of a former owner are taken for those of the one that has filled the copy.
    BelievesFormerOwners,
    /// A PE that does not know yet that it is the owner forgets what it is asked.
    ForgetsEarlyRequests,
    /// The first piece of a copy takes the place of what there was, before all have come.
    TakesPieces,
}

impl TablesCase {
    /// Whether this rule is left out.
    pub(super) fn lacks(&self, mutant: TablesMutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// A member sends this to another: what it believes to have heard from there at once.
    pub(super) fn sends(&self, member: &mut Member, to: Pe, (share, message): &Told<Toy>) {
        let (MessageOf::Change { index, .. } | MessageOf::Fill { last: Some((index, _)), .. }) =
            message
        else {
            return;
        };
        if self.lacks(TablesMutant::TrustsCopies) {
            member.machine.receive(to, (*share, MessageOf::Follows { index: *index }));
        }
    }

    /// What a member hears when this has come, and from whom it believes it to come.
    pub(super) fn hears(
        &self,
        member: &mut Member,
        from: Pe,
        (share, mut message): Told<Toy>,
    ) -> (Pe, Told<Toy>) {
        let mut believed = from;
        match &mut message {
            MessageOf::Change { request, .. } => {
                if self.lacks(TablesMutant::ForgetsRequests) {
                    request.number = u64::MAX;
                }
                believed = member.filled_by.unwrap_or(from);
            }
            MessageOf::Fill { last: Some((_, known)), .. } => {
                if self.lacks(TablesMutant::ForgetsRequests) {
                    *known = AppliedRequests::default();
                }
                member.filled_by = self.lacks(TablesMutant::BelievesFormerOwners).then_some(from);
            }
            _ => {}
        }
        (believed, (share, message))
    }

    /// Whether a member forgets this that has come.
    pub(super) fn forgets(&self, member: &Member, at: Pe, (share, message): &Told<Toy>) -> bool {
        let is_asked = matches!(message, MessageOf::Ask(..));
        let is_early = is_asked && member.machine.owner(*share) != at;
        is_early && self.lacks(TablesMutant::ForgetsEarlyRequests)
    }

    /// Whether a copy that is to be made is not, but held to be there.
    pub(super) fn skips_copy(&self, member: &mut Member, heard: u32, to: Pe) -> bool {
        let skips = heard != 0 && self.lacks(TablesMutant::MakesNoCopies);
        if skips {
            member.machine.receive(to, (SHARE, MessageOf::Follows { index: u64::MAX }));
        }
        skips
    }
}
