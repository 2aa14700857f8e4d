//! What must hold of membership.

use super::{MembershipCase, RootCrash, State};
use stateright::Property;
use std::collections::{BTreeMap, BTreeSet};
use ultramarine_runtime::protocol::{Death, Membership, MembershipStatus, Notice};
use ultramarine_topology::Pe;

/// The main property: in every state in which nothing can happen but further faults, all living PEs
/// have the same list of the dead, and it has every PE that does not live.
pub const ALL_AGREE_IN_THE_END: &str = "all living PEs agree in the end";

/// Of any two lists of the dead of one term, one is a beginning of the other.
pub const LISTS_BEGIN_ALIKE: &str = "lists begin alike, and never hold their judge";

/// Each broken path, and each PE that is wrongly lost, costs at most one living PE.
pub const FEW_INNOCENTS: &str = "a broken path costs one PE at most";

/// A PE that leaves because the judge is lost has lost the judge itself.
pub const NONE_IS_MISLED: &str = "no PE is misled about the judge";

/// There are at most two rounds of votes for each PE.
pub const ROUNDS_END: &str = "rounds of votes end";

/// Only one PE has ever had a result that counts, unless it crashes.
pub const ONE_RESULT_COUNTS: &str = "one result counts";

/// A judge whose main task has ended, and that stays, is told in the end that its result counts.
pub const RESULTS_COME: &str = "results come";

/// If PEs only crash, all others go on, unless the job needs its root and that has crashed, or half
/// of the PEs are silent.
pub const OTHERS_GO_ON: &str = "all that live go on";

/// If all paths break between two sides, and nothing else goes wrong, the larger side goes on, or
/// of two halves the one with the root.
pub const ONE_SIDE_GOES_ON: &str = "one side goes on";

/// The properties of a case.
pub(super) fn of(case: &MembershipCase) -> Vec<Property<MembershipCase>> {
    let mut properties = always();
    properties.extend(sometimes(case));
    properties
}

/// What holds in each state.
fn always() -> Vec<Property<MembershipCase>> {
    vec![
        Property::always(ALL_AGREE_IN_THE_END, |case: &MembershipCase, state: &State| {
            is_agreed(case, state) || case.can_go_on(state)
        }),
        Property::always(LISTS_BEGIN_ALIKE, |_, state: &State| {
            let mut lists: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for (_, member) in MembershipCase::living(state) {
                let Notice::Bulletin { of, dead, .. } = member.bulletin() else { continue };
                lists.entry(of.term).or_default().push(dead);
            }
            lists.iter_mut().all(|(term, lists)| {
                lists.sort_by_key(Vec::len);
                let names_judge = |dead: &Vec<Death>| dead.iter().any(|d| d.pe == term.judge);
                lists.windows(2).all(|pair| pair[1].starts_with(&pair[0]))
                    && !lists.last().is_some_and(names_judge)
            })
        }),
        Property::always(FEW_INNOCENTS, |case: &MembershipCase, state: &State| {
            let apart = state.ever_cut.len() as u32 + state.slandered;
            // Those that cannot have more than half of the votes leave, too.
            let has_votes = !case.has_succession() || 2 * (apart + state.crashed) < case.pes;
            state.left <= apart || !has_votes
        }),
        Property::always(ROUNDS_END, |case: &MembershipCase, state: &State| {
            MembershipCase::living(state)
                .all(|(_, member)| member.heading().term.round <= 2 * case.pes)
        }),
        Property::always(ONE_RESULT_COUNTS, |_, state: &State| state.results.len() < 2),
        Property::always(OTHERS_GO_ON, |case: &MembershipCase, state: &State| {
            let is_witnessed = !case.hosts_crash;
            let has_enough = is_witnessed || 2 * state.crashed < case.pes;
            let is_calm = state.ever_cut.is_empty() && state.slandered + state.doubts == 0;
            let living = MembershipCase::living(state).count() as u32;
            !case.has_succession() || !has_enough || !is_calm || living + state.crashed == case.pes
        }),
        Property::always(ONE_SIDE_GOES_ON, |case: &MembershipCase, state: &State| {
            let is_parted = state.partitions == 1 && case.cuts + state.healed == 0;
            let is_all = case.ends + state.crashed + state.slandered == 0;
            !is_parted || !is_all || has_winner(case, state) || case.can_go_on(state)
        }),
        Property::always(RESULTS_COME, |case: &MembershipCase, state: &State| {
            let is_answered = |(pe, member): (Pe, &Membership)| {
                let is_member = member.status() == MembershipStatus::Member;
                !is_member || !MembershipCase::has_ended(member) || state.results.contains(&pe)
            };
            MembershipCase::living(state).all(is_answered) || case.can_go_on(state)
        }),
        Property::always(NONE_IS_MISLED, |_, state: &State| state.misled <= state.slandered),
    ]
}

/// What happens in one of the states at least.
fn sometimes(case: &MembershipCase) -> Vec<Property<MembershipCase>> {
    let mut properties = Vec::new();
    if case.slandered + case.cuts > 0 {
        properties.push(Property::sometimes("a PE is expelled", |_, state: &State| {
            MembershipCase::living(state)
                .any(|(_, member)| member.status() == MembershipStatus::Expelled)
        }));
    }
    // One of two is no majority.
    if case.has_succession() && case.pes + case.crashes > 2 {
        properties.push(Property::sometimes("another PE is the judge", |_, state: &State| {
            MembershipCase::living(state).any(|(pe, member)| {
                pe != Pe::ROOT && member.is_judge() && member.heading().in_office
            })
        }));
    }
    if !case.has_succession() && (case.slandered > 0 || case.root != RootCrash::Never) {
        properties.push(Property::sometimes("a PE loses the root", |_, state: &State| {
            MembershipCase::living(state)
                .any(|(_, member)| member.status() == MembershipStatus::RootLost)
        }));
    }
    properties
}

/// Whether all PEs live and have a judge on the side that goes on.
fn has_winner(case: &MembershipCase, state: &State) -> bool {
    let is_with_root = |pe: &Pe| *pe == Pe::ROOT || !state.cuts.contains(&(Pe::ROOT, *pe));
    let (roots, others): (Vec<Pe>, Vec<Pe>) = case.all().partition(is_with_root);
    let winners = if roots.len() >= others.len() { roots } else { others };
    winners.iter().all(|pe| {
        let member = state.members[pe.index()].as_deref();
        member.is_some_and(|member| {
            let is_member = member.status() == MembershipStatus::Member;
            is_member && member.heading().in_office && winners.contains(&member.judge())
        })
    })
}

/// Whether all living PEs have the same list of the dead, and it has every PE that does not
/// live.
fn is_agreed(case: &MembershipCase, state: &State) -> bool {
    let gone: BTreeSet<Pe> = case.all().filter(|pe| state.members[pe.index()].is_none()).collect();
    // A PE that loses the root leaves, unless another takes its place.
    let has_job = case.has_succession() || !gone.contains(&Pe::ROOT);
    let judge = MembershipCase::living(state).next().map(|(pe, _)| pe);
    MembershipCase::living(state).all(|(_, member)| {
        has_job
            && member.status() == MembershipStatus::Member
            && Some(member.judge()) == judge
            && member.heading().in_office
            && member.dead().iter().copied().collect::<BTreeSet<_>>() == gone
    })
}
