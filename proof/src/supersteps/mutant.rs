//! Runs with a rule left out. The machine is that of real runs all the same: what stands for the
//! rest of the PE deceives it, so that the rule has no effect.

use super::case::SuperstepsCase;
use super::program::Toy;
use super::state::{Member, State};
use ultramarine_skeletons::bsp::machine::{MessageOf, Told, Work};
use ultramarine_topology::Pe;

/// A rule to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuperstepsMutant {
    /// A PE comes to the meeting before what it has sent has come.
    AwaitsNoReceipts,
    /// A meeting has a round too few.
    MeetsTooBriefly,
    /// What was sent is taken for sent in the receiver's superstep.
    MixesSupersteps,
    /// Messages of an earlier view are taken for those of the receiver's.
    BelievesFormerViews,
    /// Work from before a death is taken for what was asked for last.
    ReusesTickets,
    /// Checkpoints are forgotten when the next one begins, and not when that is whole.
    ForgetsTooSoon,
    /// A partner is held to have copies as soon as they are sent.
    TrustsPartners,
}

impl SuperstepsCase {
    /// What another PE gets of this, if anything.
    pub(super) fn sends(
        &self,
        state: &State,
        (at, member): (u32, &mut Member),
        (to, told): (Pe, Told<Toy>),
    ) -> Option<Told<Toy>> {
        use SuperstepsMutant::{AwaitsNoReceipts, MeetsTooBriefly, TrustsPartners};
        member.view = Some(told.0);
        let (view, message) = &told;
        let Some(mutant) = self.mutant else { return Some(told) };
        let answer = match (mutant, message) {
            (AwaitsNoReceipts, MessageOf::Batch { superstep, is_to_be_acknowledged: true, .. }) => {
                MessageOf::Received { superstep: *superstep }
            }
            (TrustsPartners, MessageOf::Kept { key, .. }) => MessageOf::Keeps { key: *key },
            (MeetsTooBriefly, MessageOf::Round { round, .. }) => {
                let living = self.pes - state.heard[at as usize].count_ones();
                if 2 << round < living {
                    return Some(told);
                }
                member.machine.receive(to, told);
                return None;
            }
            _ => return Some(told),
        };
        member.machine.receive(to, (*view, answer));
        Some(told)
    }

    /// What a PE hears when it is told this.
    pub(super) fn hears(&self, member: &Member, (view, mut message): Told<Toy>) -> Told<Toy> {
        if let MessageOf::Batch { superstep, .. } = &mut message
            && self.mutant == Some(SuperstepsMutant::MixesSupersteps)
        {
            *superstep = member.machine.superstep();
        }
        let believes = self.mutant == Some(SuperstepsMutant::BelievesFormerViews);
        let now = member.view.filter(|now| believes && view < *now);
        (now.unwrap_or(view), message)
    }

    /// For which work the result of this counts.
    pub(super) fn counts(&self, member: &Member, work: Work) -> Work {
        let reuses = self.mutant == Some(SuperstepsMutant::ReusesTickets);
        Work { ticket: if reuses { member.ticket } else { work.ticket }, ..work }
    }

    /// A superstep begins.
    pub(super) fn begins(&self, member: &mut Member, work: Work) {
        let forgets = self.mutant == Some(SuperstepsMutant::ForgetsTooSoon) && work.is_saved;
        if let Some((key, _)) = member.machine.saving_now.filter(|_| forgets) {
            drop(member.machine.checkpoints.forget_before(key));
        }
    }
}
