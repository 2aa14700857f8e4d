//! What goes wrong, and how processes end: by dying, with their host or without, or in order.

use super::packets::Packet;
use super::{EngineRequest, Process, TESTIFIES_NS};
use crate::fault::InjectedFault;
use crate::traffic::Traffic;
use crate::world::Simulation;
use crate::world::events::Event;
use std::time::Duration;
use ultramarine_runtime::detector::watch::CloseReason;
use ultramarine_topology::Pe;

impl Simulation {
    pub(crate) fn inject(&mut self, fault: InjectedFault) {
        if self.report.detection.connections == 0 {
            self.report.detection.connections = self.detectors.connections();
        }
        match fault {
            InjectedFault::Death(pe) => self.die(pe),
            InjectedFault::Stop(pe, ns) => self.stop(pe, ns),
            InjectedFault::SilentDeath(pe) => self.lose_host(pe),
            InjectedFault::HostDeaths { first, last } => {
                (first.number()..=last.number()).for_each(|pe| self.lose_host(Pe::new(pe)));
            }
            InjectedFault::Slander { by, whom } => {
                if self.pes[whom.index()].is_some() {
                    self.report.slandered += 1;
                    self.detectors.blind.insert((by, whom));
                }
            }
            InjectedFault::Cut { from, to, ns } => {
                self.broken_paths.cut(from, to, self.now, self.now.saturating_add(ns));
            }
            InjectedFault::Partition { first, last, ns } => {
                self.broken_paths.part(first..=last, self.now, self.now.saturating_add(ns));
            }
            InjectedFault::Overload(ns) => self.overloaded_until = self.now.saturating_add(ns),
        }
    }

    fn stop(&mut self, at: Pe, ns: u64) {
        let until = self.now + ns;
        if let Some(pe) = &mut self.pes[at.index()] {
            pe.stopped_until = until.max(pe.stopped_until);
        }
        self.stop_detector(at, until);
    }

    /// A detector gets no core for a while, unless that is so already. Its host answers.
    pub(super) fn stall(&mut self, at: Pe) {
        let ns = self.dice.within(0..=self.job.dead_after_ns());
        if self.now >= self.detectors.all[at.index()].stopped_until {
            self.stop_detector(at, self.now + ns);
        }
    }

    fn stop_detector(&mut self, at: Pe, until: u64) {
        if let Some(detector) = self.detectors.all.get_mut(at.index()) {
            let since = detector.stopped_until.max(self.now);
            detector.behind += until.saturating_sub(since);
            detector.stopped_until = until.max(since);
            self.schedule(until, Event::Resume(at));
        }
    }

    /// A process that was stopped goes on.
    pub(super) fn resume(&mut self, at: Pe) {
        let detector = &mut self.detectors.all[at.index()];
        if detector.process == Process::Running && self.now >= detector.stopped_until {
            for (number, packet) in std::mem::take(&mut detector.unread) {
                self.read_packet(number, at, packet);
            }
            self.run_commands(at);
            self.take_turn(at);
        }
    }

    /// A PE dies at once.
    pub(crate) fn die(&mut self, pe: Pe) {
        if self.pes[pe.index()].is_some() {
            self.report.deaths += 1;
            self.report.has_root_died |= pe == Pe::ROOT;
            self.offices.end(pe, self.now, true);
            self.detectors.tally.note_death(self.now, pe);
            self.cut_off(pe);
            self.remove(pe);
        }
        // (It may have left, and still be saying goodbye.)
        let (Some(detector), Some(detection)) =
            (self.detectors.all.get_mut(pe.index()), &self.job.detection)
        else {
            return;
        };
        if detector.process == Process::Running {
            detector.process = Process::Dying;
            self.detectors.running -= 1;
            let cleared = self.now + self.dice.within(detection.sees_after_ns.clone());
            self.schedule(cleared, Event::Cleared(pe));
        }
    }

    /// A PE dies with its host.
    fn lose_host(&mut self, pe: Pe) {
        self.die(pe);
        if !self.detectors.all.is_empty() {
            self.end_process(pe, Process::HostGone);
        }
    }

    /// The system has cleared away what is left of a process that has died.
    pub(super) fn clear(&mut self, pe: Pe) {
        if self.detectors.all[pe.index()].process == Process::Dying {
            let is_guarded = self.job.detection.as_ref().is_some_and(|it| it.is_guarded);
            if is_guarded {
                self.detectors.all[pe.index()].testifies_until = self.now + TESTIFIES_NS;
            }
            self.end_process(pe, Process::Gone);
        }
    }

    /// A process has ended: its system closes its connections, if its host is still there.
    pub(super) fn end_process(&mut self, pe: Pe, process: Process) {
        let detector = &mut self.detectors.all[pe.index()];
        let former = std::mem::replace(&mut detector.process, process);
        self.detectors.running -= u32::from(former == Process::Running);
        for number in std::mem::take(&mut detector.ends) {
            if process == Process::Gone {
                self.send_packet(number, pe, Packet::End(CloseReason::Broken));
            }
            self.detectors.wires.remove_end(number, pe);
        }
    }

    /// A PE leaves in order.
    pub(crate) fn leave(&mut self, pe: Pe) {
        if self.pes[pe.index()].is_some() {
            self.report.left += 1;
            self.go(pe);
        }
    }

    /// A PE's job ends early: the others hold it for dead.
    pub(crate) fn leave_expelled(&mut self, pe: Pe) {
        self.report.expelled += 1;
        self.go(pe);
    }

    /// A PE's job ends early: it has lost the root.
    pub(crate) fn leave_without_root(&mut self, pe: Pe) {
        self.report.roots_lost += 1;
        if self.job.outlives_root {
            if self.offices.is_delivered() {
                self.report.unheard += 1;
            } else {
                self.detectors.early_leavers.insert(pe);
            }
            return self.go(pe);
        }
        let could_reach = !self.broken_paths.is_ever_cut(pe, Pe::ROOT)
            && !self.detectors.blind.contains(&(pe, Pe::ROOT))
            && !self.report.has_root_died;
        self.report.misled += u32::from(could_reach && self.pes[0].is_some());
        self.report.unheard += u32::from(could_reach && self.pes[0].is_none());
        self.go(pe);
    }

    /// A PE leaves. Its process is there until its detector has said goodbye.
    fn go(&mut self, pe: Pe) {
        self.report.gone = Duration::from_nanos(self.now);
        self.offices.end(pe, self.now, false);
        if let Traffic::Random(_) = self.job.traffic {
            // A network by chance may even lose what a PE sent before it left.
            self.cut_off(pe);
        }
        self.remove(pe);
        self.request(pe, EngineRequest::Goodbye);
    }

    fn remove(&mut self, pe: Pe) {
        let Some(gone) = self.pes[pe.index()].take() else { return };
        self.present -= 1;
        if pe == Pe::ROOT {
            self.report.peers.root = gone.engine.peers() as u64;
        }
        self.report.add(&gone);
    }
}
