//! How a job ends.
//!
//! As long as no PE has died, the end is orderly. SHUTDOWN goes down the tree of the PEs. A PE
//! sends FAREWELL up the tree once all PEs below it have, and all that it sent has arrived. When
//! the root has heard from all, no message is on its way anywhere, and RELEASE goes down the tree.
//!
//! After a death, SHUTDOWN goes down the tree of the living PEs, and each PE leaves as soon as it
//! knows that its SHUTDOWNs have arrived.

use super::membership::Living;
use super::message::Message;
use super::node::{Host, Node};
use super::phase::Phase;
use ultramarine_topology::Pe;

impl Node {
    /// Ends the job on this PE: the main task has ended. The owner calls this on the root;
    /// elsewhere SHUTDOWN does.
    pub fn end(&mut self, host: &mut impl Host) {
        if self.ending.phase != Phase::Running {
            return;
        }
        self.ending.phase = Phase::Ending;
        host.shut_down();
        self.ending.farewells_awaited = self.pass_down(&Message::Shutdown, host);
    }

    /// Sends FAREWELL, once all PEs below in the tree have. The owner calls this while the job is
    /// ending, whenever everything that this PE sent has arrived. So when the root sends RELEASE,
    /// no message is on its way anywhere.
    pub fn take_leave(&mut self, host: &mut impl Host) {
        if self.ending.phase != Phase::Ending {
            return;
        }
        if !self.dead.is_empty() {
            self.ending.phase = Phase::Released;
            return;
        }
        if self.ending.farewells_awaited > 0 || self.ending.said_farewell {
            return;
        }
        self.ending.said_farewell = true;
        match self.living().parent(self.me) {
            Some(parent) => host.send(parent, Message::Farewell),
            None => self.release(host),
        }
    }

    pub(super) fn release(&mut self, host: &mut impl Host) {
        self.ending.phase = Phase::Released;
        self.pass_down(&Message::Release, host);
    }

    /// Leaves without waiting for the others: they have left, or do not answer.
    pub fn let_go(&mut self, host: &mut impl Host) {
        if self.ending.phase == Phase::Ending {
            self.release(host);
        }
    }

    pub(super) fn handle_farewell(&mut self) {
        self.ending.farewells_awaited = self.ending.farewells_awaited.saturating_sub(1);
    }

    /// A PE has died while the job ends: sends SHUTDOWN again, down the tree of the living. The PEs
    /// below the dead one may not have heard of the end yet.
    pub(super) fn end_anew(&mut self, host: &mut impl Host) {
        if self.ending.phase == Phase::Ending {
            self.pass_down(&Message::Shutdown, host);
        }
    }

    /// Sends a message to the children in the tree of the living PEs. Returns their number.
    fn pass_down(&self, message: &Message, host: &mut impl Host) -> usize {
        let living = self.living();
        living.children(self.me).map(|child| host.send(child, message.clone())).count()
    }

    /// The PEs that hear of the end from this PE.
    pub fn children(&self) -> Vec<Pe> {
        self.living().children(self.me).collect()
    }

    fn living(&self) -> Living {
        let dead: Vec<_> = self.dead.iter().copied().collect();
        Living::new(self.topology.pes(), &dead)
    }
}
