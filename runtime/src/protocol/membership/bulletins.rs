//! What a PE learns from others' lists of the dead.

use super::term_list::Addition;
use super::{Death, Evidence, Heading, Membership, MembershipMutant, MembershipStatus, Notice};
use std::time::Duration;
use ultramarine_topology::Pe;

impl Membership {
    /// Another PE says how much it knows. It gets what it lacks, or is asked for what it has.
    pub(super) fn compare(
        &self,
        from: Pe,
        of: Heading,
        dead: u32,
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        let told = self.told();
        if of.term > self.list.term() {
            if self.succession.is_some() {
                out(from, self.heartbeat());
            }
        } else if of.term < self.list.term() {
            out(from, self.list.bulletin_to(0, told));
        } else if (dead as usize) < told || of < self.list.heading {
            out(from, self.list.bulletin_to(dead as usize, told));
        }
    }

    /// A part of a list of the dead has arrived.
    pub(super) fn handle_bulletin(
        &mut self,
        now: Duration,
        from: Pe,
        of: Heading,
        (after, dead): (u32, &[Death]),
        out: &mut dyn FnMut(Pe, Notice),
    ) {
        let is_named = dead.iter().any(|death| death.pe == self.me);
        if of.term < self.list.term() && !self.is_mutant(MembershipMutant::ReturnsToFormerJudge) {
            return if !is_named {
                out(from, self.heartbeat());
            } else if of.in_office && !self.list.heading.in_office {
                // It has called for a vote since it is cut off.
                self.end(MembershipStatus::Expelled);
            };
        }
        if of.term != self.list.term() {
            return self.handle_later_term(now, from, of, (after, dead), out);
        }
        if self.is_judge() {
            return;
        }
        let former = self.list.len();
        match self.list.addition(after, dead) {
            Addition::Nothing => return self.note_heading(now, from, of, out),
            // A PE that is named need not know who died before it.
            Addition::Gap if is_named => {}
            Addition::Gap if self.is_mutant(MembershipMutant::OverlooksGaps) => {
                self.list.append(dead);
            }
            Addition::Gap => return out(from, self.heartbeat()),
            Addition::New(new) => self.list.append(&new),
        }
        self.take_over_heading(of);
        if is_named {
            // Also before the judge is in office: this PE has voted for a PE that has lost it.
            return self.end(MembershipStatus::Expelled);
        }
        self.learn(now, former, out);
    }

    /// This PE's list has grown, or is another. Passes on what is new.
    pub(super) fn learn(&mut self, now: Duration, former: usize, out: &mut dyn FnMut(Pe, Notice)) {
        if self.status != MembershipStatus::Member {
            return;
        }
        self.accusations.retain(|pe, _| !self.list.contains(*pe));
        self.tell_children(former, out);
        self.begin_vote(now, out);
    }

    /// Sends the children in the tree the list from this position on, and with it the heading.
    pub(super) fn tell_children(&self, after: usize, out: &mut dyn FnMut(Pe, Notice)) {
        let news = self.list.bulletin_to(after, self.list.len());
        self.list.living().children(self.me).for_each(|child| out(child, news.clone()));
    }

    /// What a part of the judge's list says of the whole.
    pub(super) fn take_over_heading(&mut self, of: Heading) {
        let heading = &mut self.list.heading;
        heading.in_office |= of.in_office;
        heading.confirmed = heading.confirmed.max(of.confirmed);
        if of.ends && !std::mem::replace(&mut heading.ends, true) {
            // The votes so far were for something else.
            self.succession.iter_mut().for_each(|succession| succession.followers.clear());
        }
        self.merge();
    }

    /// Takes over what the list says, if its judge is in office.
    pub(super) fn merge(&mut self) {
        let heading = self.list.heading;
        if !heading.in_office {
            return;
        }
        self.dead.add(self.list.deaths());
        let is_judge = self.is_judge();
        if let Some(succession) = &mut self.succession {
            // With another judge the main task begins anew.
            succession.has_ended &= is_judge;
            let confirmed = (heading.confirmed as usize).min(self.list.len());
            for (at, death) in self.list.deaths().iter().enumerate() {
                let evidence = if at < confirmed { Evidence::Confirmed } else { death.evidence };
                self.dead.note(Death { evidence, ..*death });
            }
        }
        if self.dead.contains(self.me) {
            self.end(MembershipStatus::Expelled);
        }
    }
}
