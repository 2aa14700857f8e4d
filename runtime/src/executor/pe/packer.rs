//! Stolen tasks that take long to pack. A thread apart packs them, while there are any, and gives
//! each to the thief whose FISH came for it.

use super::processor::{Processor, Task};
use crate::executor::engine::site::Outgoing;
use crate::executor::task::start::{Effort, Packed};
use crate::protocol::{Fish, Message};
use std::sync::Arc;

impl Processor {
    /// Has a task packed, and then given to a thief.
    pub(crate) fn pack_apart(self: &Arc<Self>, fish: Fish, task: Task) {
        if self.packer.push((fish, task)) {
            let pe = self.clone();
            let pack_all = move || {
                while let Some((fish, task)) = pe.packer.next() {
                    pe.pack_for(fish, task);
                }
            };
            let name = format!("pe{}-packer", self.me().number());
            let thread = std::thread::Builder::new().name(name);
            if thread.spawn(pack_all.clone()).is_err() {
                // Then messages have to wait.
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
            // It has been taken back, or its result is not waited for any more. There may be
            // another.
            None => self.send_later(Outgoing::Message(self.me(), Message::Fish(fish))),
            Some(Packed::Guest(_) | Packed::Later(_)) => {
                unreachable!("only a task of our own is put off, and only once")
            }
        }
    }
}
