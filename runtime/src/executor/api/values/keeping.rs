//! How long a value is kept: on all PEs, as long as its home has a handle.

use super::super::body::Async;
use super::super::context::Context;
use crate::executor::keep::slot::Slot;
use crate::executor::keep::store::Key;
use crate::executor::keep::values::Home;
use crate::executor::pe::processor::Processor;
use crate::executor::task::task_code::function;
use std::any::Any;
use std::sync::{Arc, Weak};
use ultramarine_topology::Pe;

/// Keeps a value on all PEs. All handles at home share one keeper.
pub(crate) struct Keeper {
    pe: Arc<Processor>,
    key: Key,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.pe.on_last_handle_dropped(self.key);
    }
}

impl Processor {
    /// Keeps a value whose home is this PE, until the result is dropped.
    pub(crate) fn keep(self: &Arc<Self>, key: Key, made: Option<Arc<Slot<Pe>>>) -> Arc<Keeper> {
        let keeper = Arc::new(Keeper { pe: self.clone(), key });
        let weak: Weak<dyn Any + Send + Sync> = Arc::<Keeper>::downgrade(&keeper);
        let home = Home { keeper: weak, made };
        self.kept.values.add_home(key, home);
        keeper
    }

    /// The last handle at home was dropped: other PEs need not keep the value.
    fn on_last_handle_dropped(self: &Arc<Self>, key: Key) {
        let home = self.kept.values.remove_home(key);
        let made = home.and_then(|home| home.made).and_then(|made| made.now());
        if self.liveness.has_failures() {
            // A PE that was to pass this on may be dead, so all PEs are told.
            let _ = self.tell(0..self.topology.pes(), function(Async(weaken)), key);
            return;
        }
        if let Some(Ok(maker)) = made {
            self.tell_weaken(*maker, key);
        }
        self.weaken_below(key);
    }

    pub(crate) fn tell_weaken(self: &Arc<Self>, pe: Pe, key: Key) {
        if pe == self.me() {
            self.weaken_below(key);
        } else {
            // An ending job forgets everything anyway.
            let _ = self.tell(pe.number()..pe.number() + 1, function(Async(weaken)), key);
        }
    }

    /// Keeps a value no longer than tasks do, here and on the PEs that got it from here.
    fn weaken_below(self: &Arc<Self>, key: Key) {
        let given = self.kept.values.weaken_one(key);
        given.into_iter().for_each(|pe| self.tell_weaken(pe, key));
    }
}

async fn weaken(cx: Context, key: Key) {
    cx.pe.weaken_below(key);
}
