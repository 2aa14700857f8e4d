//! Deaths and other faults, and how the other PEs notice them.

use super::Simulation;
use super::events::Event;
use crate::fault::InjectedFault;
use crate::transit::Channel;
use std::time::Duration;
use ultramarine_runtime::detector::FailureEvent;
use ultramarine_runtime::protocol::{Membership, MembershipStatus, Notice};
use ultramarine_topology::Pe;

impl Simulation {
    pub(crate) fn inject(&mut self, fault: InjectedFault) {
        match fault {
            InjectedFault::Death(pe) => self.die(pe),
            InjectedFault::Stop(pe, ns) => {
                let until = self.now + ns;
                if let Some(pe) = &mut self.pes[pe.index()] {
                    pe.stopped_until = until.max(pe.stopped_until);
                }
                for by in (0..self.report.pes).map(Pe::new).filter(|by| *by != pe) {
                    if self.watches(by, pe) {
                        self.begin_to_watch(by, pe, self.now);
                    }
                }
            }
            InjectedFault::SilentDeath(pe) => {
                self.silent.insert(pe);
                self.die(pe);
            }
            InjectedFault::Slander { by, whom } => {
                if self.pes[whom.index()].is_some() {
                    self.report.slandered += 1;
                    self.blind.insert((by, whom));
                    self.begin_to_watch(by, whom, self.now);
                }
            }
            InjectedFault::Cut { from, to, ns } => {
                self.broken_paths.cut(from, to, self.now, self.now.saturating_add(ns));
                for (by, whom) in [(from, to), (to, from)] {
                    if self.watches(by, whom) {
                        self.begin_to_watch(by, whom, self.now);
                    }
                }
            }
            InjectedFault::Overload(ns) => self.overloaded_until = self.now.saturating_add(ns),
        }
    }

    /// A PE dies at once.
    pub(crate) fn die(&mut self, pe: Pe) {
        if self.pes[pe.index()].is_some() {
            self.report.deaths += 1;
            self.report.has_root_died |= pe == Pe::ROOT;
            self.remove(pe);
        }
    }

    /// A PE leaves in order, and tells the PEs that watch it.
    pub(crate) fn leave(&mut self, pe: Pe) {
        let Some(leaver) = &self.pes[pe.index()] else { return };
        let is_in_order = matches!(
            leaver.membership.status(),
            MembershipStatus::Member | MembershipStatus::Over { .. }
        );
        if is_in_order && self.job.detection.is_some() {
            let bulletin = leaver.membership.bulletin();
            for to in self.partners(pe) {
                self.post_notice(pe, to, bulletin.clone());
                self.post_notice(pe, to, Notice::Goodbye);
            }
        }
        self.report.left += 1;
        self.report.gone = Duration::from_nanos(self.now);
        self.remove(pe);
    }

    /// A PE's job ends early: the others hold it for dead.
    pub(crate) fn leave_expelled(&mut self, pe: Pe) {
        self.report.expelled += 1;
        self.report.gone = Duration::from_nanos(self.now);
        self.remove(pe);
    }

    /// A PE's job ends early: it has lost the root.
    pub(crate) fn leave_without_root(&mut self, pe: Pe) {
        self.report.roots_lost += 1;
        let could_reach = !self.broken_paths.is_ever_cut(pe, Pe::ROOT)
            && !self.blind.contains(&(pe, Pe::ROOT))
            && !self.report.has_root_died;
        self.report.misled += u32::from(could_reach && self.pes[0].is_some());
        self.report.unheard += u32::from(could_reach && self.pes[0].is_none());
        self.report.gone = Duration::from_nanos(self.now);
        self.remove(pe);
    }

    fn remove(&mut self, pe: Pe) {
        self.cut_off(pe);
        let Some(gone) = self.pes[pe.index()].take() else { return };
        self.present -= 1;
        self.report.add(&gone);
        if self.job.detection.is_none() {
            return;
        }
        for by in (0..self.report.pes).map(Pe::new) {
            self.notice_absence(by, pe, gone.transit.last_arrival(by, Channel::Notices));
        }
    }

    /// The PEs with which a PE shares a connection.
    fn partners(&self, me: Pe) -> Vec<Pe> {
        let Some(own) = &self.pes[me.index()] else { return Vec::new() };
        let own = own.neighbours(me);
        let all = (0..self.report.pes).map(Pe::new).filter(|pe| *pe != me);
        let calls = |pe: &Pe| {
            self.pes[pe.index()]
                .as_ref()
                .is_some_and(|other| own.contains(pe) || other.neighbours(*pe).contains(&me))
        };
        all.filter(calls).collect()
    }

    /// Whether a PE would notice that another is out of reach.
    fn watches(&self, by: Pe, whom: Pe) -> bool {
        self.pes[by.index()].as_ref().is_some_and(|pe| pe.neighbours(by).contains(&whom))
    }

    /// If a PE watches one that is gone, it will see that, but not before it `heard` what that one
    /// had said.
    fn notice_absence(&mut self, by: Pe, gone: Pe, heard: u64) {
        let Some(detection) = &self.job.detection else { return };
        let sees_after_ns = detection.sees_after_ns.clone();
        if self.watches(by, gone) {
            let delay = self.dice.within(sees_after_ns);
            self.begin_to_watch(by, gone, (self.now + delay).max(heard + 1));
        }
    }

    /// From this moment on a PE looks at another until there is contact, or it is known to be dead.
    pub(crate) fn begin_to_watch(&mut self, by: Pe, whom: Pe, at: u64) {
        if self.watching.insert((by, whom)) {
            self.schedule(at, Event::See { by, whom, since: at });
        }
    }

    /// What one PE sees of another that it has been without contact with for a while: the rules of
    /// the runtime's detector (`detector/reachability.rs`).
    fn see(&mut self, by: Pe, whom: Pe, since: u64) {
        let Some(seer) = &self.pes[by.index()] else { return };
        if seer.membership.status() != MembershipStatus::Member || seer.membership.is_dead(whom) {
            self.watching.remove(&(by, whom));
            return;
        }
        let is_blind = self.blind.contains(&(by, whom));
        let seen = self.pes[whom.index()].as_ref();
        let is_stopped = seen.is_some_and(|pe| self.now < pe.stopped_until);
        let is_reached = self.broken_paths.is_whole(by, whom, self.now) && !is_blind;
        let is_slow = self.now < self.overloaded_until && self.dice.one_in(3);
        let Some(detection) = &self.job.detection else { return };
        let dead_after = detection.dead_after.as_nanos() as u64;
        let (stalled_after, root_after) = (dead_after * 10, dead_after * 10);
        let silence = self.now - since;
        let limits = match (seen.is_some(), is_reached) {
            // Its host refuses connections.
            (false, true) if !self.silent.contains(&whom) => (0, 0),
            (true, true) if !is_stopped && !is_slow => {
                self.watching.remove(&(by, whom));
                return self.act(by, |membership, _, _| membership.reach(whom));
            }
            _ if whom == Pe::ROOT => (dead_after, root_after),
            (true, true) => (dead_after, stalled_after),
            _ if by == Pe::ROOT => (dead_after / 2, dead_after),
            _ => (dead_after / 2, dead_after * 5 / 4),
        };
        if silence >= limits.1 {
            self.act(by, |membership, now, out| membership.lose(now, whom, out));
        } else if silence >= limits.0 {
            self.act(by, |membership, now, out| membership.suspect(now, whom, out));
        }
        let again = self.now + dead_after / 16 + 1;
        self.schedule(again, Event::See { by, whom, since });
    }

    /// Handles an event of the detector.
    pub(crate) fn watch(&mut self, event: Event) {
        match event {
            Event::Notice { from, to, notice } => {
                self.act(to, |membership, now, out| membership.handle(now, from, notice, out));
            }
            Event::See { by, whom, since } => self.see(by, whom, since),
            Event::Patience(at) => {
                self.act(at, |membership, now, out| {
                    membership.tick(now, out);
                });
            }
            Event::Beat(at) => {
                let heartbeat = self.pes[at.index()].as_ref().map(|pe| pe.membership.heartbeat());
                for to in self.partners(at) {
                    heartbeat.iter().for_each(|beat| self.post_notice(at, to, beat.clone()));
                }
                let Some(detection) = &self.job.detection else { return };
                let next = self.now + detection.heartbeat.as_nanos() as u64;
                self.schedule(next, Event::Beat(at));
            }
            _ => {}
        }
    }

    /// Lets a PE's membership do something, and follows up what it found.
    fn act(
        &mut self,
        at: Pe,
        act: impl FnOnce(&mut Membership, Duration, &mut dyn FnMut(Pe, Notice)),
    ) {
        let now = Duration::from_nanos(self.now);
        let Some(pe) = &mut self.pes[at.index()] else { return };
        let mut sent = Vec::new();
        act(&mut pe.membership, now, &mut |to, notice| sent.push((to, notice)));
        let dead = pe.membership.dead()[pe.reported..].to_vec();
        pe.reported += dead.len();
        let status = pe.membership.status();
        let is_news =
            status != MembershipStatus::Member && !std::mem::replace(&mut pe.is_settled, true);
        let patience = pe.membership.clone().tick(now, &mut |_, _| {});
        if at == Pe::ROOT {
            let innocents: Vec<Pe> =
                dead.iter().copied().filter(|pe| self.pes[pe.index()].is_some()).collect();
            self.report.innocents += innocents.len() as u32;
        }
        for (to, notice) in sent {
            match notice {
                Notice::Look { pe } if to == at => {
                    let delay = self.dice.within(10_000..=1_000_000);
                    self.begin_to_watch(at, pe, self.now + delay);
                }
                notice => self.post_notice(at, to, notice),
            }
        }
        if let Some(due) = patience {
            let due = due.as_nanos() as u64;
            self.schedule(due.max(self.now + 1), Event::Patience(at));
        }
        let died = (!dead.is_empty()).then(|| FailureEvent::Dead(dead.clone()));
        let changed = match status {
            _ if !is_news => None,
            MembershipStatus::Member => None,
            MembershipStatus::Over { by } => Some(FailureEvent::JobOver { by }),
            MembershipStatus::Expelled => Some(FailureEvent::Expelled),
            MembershipStatus::RootLost => Some(FailureEvent::RootLost { reason: String::new() }),
        };
        for event in died.into_iter().chain(changed) {
            self.report_failure(at, event);
        }
        if !dead.is_empty() {
            // Its neighbours are others now, who may be gone already.
            let gone = |pe: &Pe| self.pes[pe.index()].is_none();
            let all: Vec<Pe> = (0..self.report.pes).map(Pe::new).filter(gone).collect();
            all.into_iter().for_each(|gone| self.notice_absence(at, gone, 0));
        }
    }

    /// The detector reports an event. The engine handles it in its next turn.
    fn report_failure(&mut self, at: Pe, event: FailureEvent) {
        if self.is_verbose {
            println!("{:>12.3} ms  {at} hears: {event:?}", self.now as f64 / 1e6);
        }
        let Some(pe) = &self.pes[at.index()] else { return };
        pe.site.liveness.note(event);
        let soon = self.now + self.dice.within(0..=1_000_000);
        self.want_turn(at, soon);
    }

    /// A notice goes out; that its receiver is gone, or cannot be reached, shows when it is called.
    fn post_notice(&mut self, from: Pe, to: Pe, notice: Notice) {
        if self.pes[to.index()].is_some() && self.broken_paths.is_whole(from, to, self.now) {
            let at = self.arrival(from, to, Channel::Notices);
            self.schedule(at, Event::Notice { from, to, notice });
        } else if !matches!(notice, Notice::Goodbye) {
            let delay = self.dice.within(10_000..=1_000_000);
            self.begin_to_watch(from, to, self.now + delay);
        }
    }
}
