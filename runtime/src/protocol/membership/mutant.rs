//! Rules that can be left out.

/// A rule that can be left out, with the feature `mutants`, to see that the proofs notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipMutant {
    /// The judge declares a PE dead on an accuser's word.
    BelievesAccusers,
    /// What the judge saw before an accuser insisted counts as well.
    TrustsOldSights,
    /// Both ends of a broken path leave.
    ExpelsBoth,
    /// A PE takes the judge for lost when it hears that another has lost it.
    BelievesHeralds,
    /// A PE takes a bulletin although it misses what comes before.
    OverlooksGaps,
    /// The judge keeps deaths that follow another to itself.
    NeverAnnouncesLater,
    /// A PE takes office without a vote.
    NeedsNoVotes,
    /// A judge goes on, however many PEs it has lost.
    IgnoresSilence,
    /// A PE that has voted follows its former judge again.
    ReturnsToFormerJudge,
    /// A PE has no vote as soon as another has seen that its process is gone.
    ForgetsWitnessed,
    /// A PE that has agreed to the job's end follows another judge.
    LeavesAtTheEnd,
    /// A PE votes although it is in contact with its judge.
    VotesAtOnce,
    /// A PE that asks for votes leaves at once.
    GivesUp,
    /// A candidate that has lost half of the votes waits for more.
    WaitsAtHalf,
    /// A PE takes another for gone whose calls are refused.
    BelievesRefusals,
    /// A judge takes its list for confirmed without a vote.
    ConfirmsAlone,
}
