//! Reading the news: messages from other PEs' programs, and deaths.

use super::processor::{Processor, Task};
use crate::executor::keep::inbox::News;
use crate::executor::task::arrival::start_in_bytes;
use crate::executor::task::start::{Effort, Packed, Start};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Reads the next news in the inbox.
struct Reader;

impl Start<Processor> for Reader {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        pe.uncounted.fetch_add(1, Ordering::SeqCst);
        match pe.inbox.next() {
            None => return,
            Some(News::Message(mut body)) => {
                // (What is told has no handles to wait for.)
                let _ = start_in_bytes(pe, None, false, &mut body);
            }
            Some(News::Death(dead)) => pe.deaths.announce(dead),
        }
        pe.queues.place_first(self);
    }

    fn pack(self: Arc<Self>, _: &Processor, _: Effort) -> Option<Packed<Task>> {
        unreachable!("it was placed here, and stands on no shelf")
    }

    fn call_off(&self) {}
}

impl Processor {
    /// Has a worker read the news.
    pub(crate) fn read(self: &Arc<Self>, news: News) {
        if self.inbox.push(news) {
            self.queues.place_first(Arc::new(Reader));
            self.summon();
        }
    }
}
