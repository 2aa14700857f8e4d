//! What a detector tells its PE.

use crate::world::Simulation;
use std::iter;
use ultramarine_runtime::detector::FailureEvent;
use ultramarine_runtime::protocol::{Membership, Notice};
use ultramarine_topology::Pe;

/// The longest time from a detector's report to a turn of the engine, in nanoseconds.
const REPORT_NS_MAX: u64 = 1_000_000;

impl Simulation {
    /// The detector reports an event. The engine handles it in its next turn.
    pub(super) fn report_failure(&mut self, at: Pe, event: FailureEvent) {
        if self.is_verbose {
            self.print_event(format_args!("{at} hears: {event:?}"));
        }
        if self.pes[at.index()].is_none() {
            return;
        }
        match &event {
            FailureEvent::Dead(dead) => {
                self.detectors.tally.note_known(self.now, dead);
                let membership = self.detectors.all[at.index()].watch.membership();
                if membership.is_judge() && membership.heading().in_office {
                    self.note_innocents(at, dead);
                }
            }
            FailureEvent::Succession { judge } => {
                self.detectors.tally.note_succession(self.now, at, *judge);
                if *judge == at {
                    self.report.successions += 1;
                    self.offices.begin(at, self.now);
                }
            }
            _ => {}
        }
        if let Some(pe) = &self.pes[at.index()] {
            pe.site.liveness.note(event);
        }
        if self.job.outlives_root {
            self.check_beginning(at);
        } else {
            self.check_order(at);
        }
        let soon = self.now + self.dice.within(0..=REPORT_NS_MAX);
        self.want_turn(at, soon);
    }

    /// A judge has declared these PEs dead.
    fn note_innocents(&mut self, judge: Pe, dead: &[Pe]) {
        for pe in dead {
            // For a PE that is leaving the job is over: to be taken for dead does it no harm.
            let is_innocent = self.pes[pe.index()].as_ref().is_some_and(|pe| !pe.is_ending);
            if !is_innocent || !self.detectors.early_leavers.insert(*pe) {
                continue;
            }
            if self.broken_paths.is_ever_parted(judge, *pe) {
                self.report.parted += 1;
            } else {
                self.report.innocents += 1;
            }
        }
    }

    /// All members hear of the same deaths, in the order in which the root declared them.
    fn check_order(&mut self, at: Pe) {
        let [all, own] = [Pe::ROOT, at].map(|pe| self.detectors.all[pe.index()].watch.membership());
        let former = self.detectors.all[at.index()].checked;
        let count = own.dead().len();
        if all.dead().get(former..count) != own.dead().get(former..) {
            self.note_wrong(format!("{at} knows other deaths than the root"));
        }
        self.detectors.all[at.index()].checked = count;
    }

    /// The list of a PE is a beginning of that of the judge that it follows.
    fn check_beginning(&mut self, at: Pe) {
        let own = self.detectors.all[at.index()].watch.membership();
        let judge = self.detectors.all[own.judge().index()].watch.membership();
        if own.heading().term != judge.heading().term {
            return;
        }
        let [own, all] = [own, judge].map(Membership::bulletin);
        let (Notice::Bulletin { dead: own, .. }, Notice::Bulletin { dead: all, .. }) = (own, all)
        else {
            return;
        };
        let differs = |(own, all): (_, Option<_>)| Some(own) != all;
        if own.iter().zip(all.iter().map(Some).chain(iter::repeat(None))).any(differs) {
            self.note_wrong(format!("{at} knows other deaths than its judge"));
        }
    }
}
