//! Rules that can be left out.

/// A rule that can be left out, with the feature `mutants`, to see that the proofs notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipMutant {
    /// The root declares a PE dead on an accuser's word.
    BelievesAccusers,
    /// What the root saw before an accuser insisted counts as well.
    TrustsOldSights,
    /// Both ends of a broken path leave.
    ExpelsBoth,
    /// A PE leaves when it hears that the root is lost.
    BelievesHeralds,
    /// A PE takes a bulletin although it misses what comes before.
    OverlooksGaps,
    /// The root keeps deaths that follow another to itself.
    NeverAnnouncesLater,
}
