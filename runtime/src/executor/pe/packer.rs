//! Stolen tasks that take long to pack. A separate thread packs them, and gives each to the thief
//! whose FISH asked for it.

use super::processor::{Processor, Task};
use crate::executor::engine::site::Outgoing;
use crate::executor::task::start::{Effort, Packed};
use crate::protocol::{Fish, Message};
use std::sync::Arc;

impl Processor {
    /// Has a task packed by the packer thread, and then given to the thief.
    pub(crate) fn pack_apart(self: &Arc<Self>, fish: Fish, task: Task) {
        if self.turns.packer.push((fish, task)) {
            let pe = self.clone();
            let pack_all = move || {
                while let Some((fish, task)) = pe.turns.packer.next() {
                    pe.pack_for(fish, task);
                }
            };
            let name = format!("pe{}-packer", self.me().number());
            let thread = std::thread::Builder::new().name(name);
            if thread.spawn(pack_all.clone()).is_err() {
                // Without a thread, messages have to wait.
                pack_all();
            }
        }
    }

    fn pack_for(&self, fish: Fish, task: Task) {
        if self.is_ending() {
            return task.call_off();
        }
        match task.pack(self, Effort::Full) {
            Some(Packed::Own(task)) => self.send_later(Outgoing::Stolen(fish, task)),
            // The task was taken back or cancelled. A thief that has cast a FISH may get another.
            None if fish.serial == 0 => {}
            None => self.send_later(Outgoing::Message(self.me(), Message::Fish(fish))),
            Some(Packed::Guest(_) | Packed::Later(_)) => {
                unreachable!("only a task of our own is packed later, and only once")
            }
        }
    }
}
