//! How a job ends.
//!
//! While nobody has died the end is orderly. SHUTDOWN goes down the tree of the PEs; FAREWELL
//! comes up once all below have said it and all that a PE sent has arrived; when the root has heard
//! from all, no message is on its way anywhere, and RELEASE goes down.
//!
//! Once somebody has died there is nothing to be orderly about: SHUTDOWN goes down the tree of the
//! living, and each PE leaves as soon as it knows that its SHUTDOWNs have arrived.

use super::membership::Living;
use super::message::Message;
use super::node::{Host, Node};
use super::phase::Phase;
use ultramarine_topology::Pe;

impl Node {
    /// The main task has ended. Called on the root by its owner, elsewhere by a message.
    pub fn end(&mut self, host: &mut impl Host) {
        if self.ending.phase != Phase::Running {
            return;
        }
        self.ending.phase = Phase::Ending;
        host.shut_down();
        self.ending.farewells_awaited = self.pass_down(&Message::Shutdown, host);
    }

    /// Takes leave, once all below in the tree have. To be called while the job is ending,
    /// whenever everything that this PE sent has arrived: so the root's release means that no
    /// message is on its way anywhere.
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

    /// Leaves whatever others say: they have left, or do not answer.
    pub fn let_go(&mut self, host: &mut impl Host) {
        if self.ending.phase == Phase::Ending {
            self.release(host);
        }
    }

    pub(super) fn handle_farewell(&mut self) {
        self.ending.farewells_awaited = self.ending.farewells_awaited.saturating_sub(1);
    }

    /// Somebody has died while PEs took leave of each other. Those above whom the tree has broken
    /// may not have heard of the end yet.
    pub(super) fn end_anew(&mut self, host: &mut impl Host) {
        if self.ending.phase == Phase::Ending {
            self.pass_down(&Message::Shutdown, host);
        }
    }

    /// Sends a message to the children in the tree of the living. Returns how many those are.
    fn pass_down(&self, message: &Message, host: &mut impl Host) -> usize {
        let living = self.living();
        living.children(self.me).map(|child| host.send(child, message.clone())).count()
    }

    /// Those who hear of the end from this PE.
    pub fn children(&self) -> Vec<Pe> {
        self.living().children(self.me).collect()
    }

    fn living(&self) -> Living {
        let dead: Vec<_> = self.dead.iter().copied().collect();
        Living::new(self.topology.pes(), &dead)
    }
}
