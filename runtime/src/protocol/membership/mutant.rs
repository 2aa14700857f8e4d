//! Rules that can be left out.

use super::Membership;

/// A rule that can be left out, with the feature `mutants`, to see that the proofs notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipMutant {
    /// The root convicts on an accuser's word.
    BelievesAccusers,
    /// What the root saw before an accuser insisted counts, too.
    TrustsOldSights,
    /// Both ends of a broken path leave.
    ExpelsBoth,
    /// A PE leaves when it hears that the root is lost.
    BelievesHeralds,
}

impl Membership {
    /// Whether this rule is left out.
    #[cfg(feature = "mutants")]
    pub(super) fn is_mutant(&self, mutant: MembershipMutant) -> bool {
        self.mutant == Some(mutant)
    }

    #[cfg(not(feature = "mutants"))]
    #[allow(clippy::unused_self, reason = "as with the feature")]
    pub(super) fn is_mutant(&self, _: MembershipMutant) -> bool {
        false
    }
}
