//! Death at any instruction, for tests: atomics that count the changes of shared memory, and end
//! the process, as `kill -9` would, right after the one that was chosen.
//!
//! Between two stores a process changes nothing that others see, so a death after each store is a
//! death at each instruction.

use std::sync::atomic::{self, Ordering};

use portable_atomic::AtomicU128;
use rustix::process::{Signal, getpid, kill_process};

/// Changes until the end; those below zero have no end.
static LEFT: atomic::AtomicI64 = atomic::AtomicI64::new(-1);

/// Changes that [`count`] has seen.
const UNLIMITED: i64 = i64::MAX;

/// Ends the process after this many more changes, from 1.
pub(crate) fn after(changes: i64) {
    LEFT.store(changes, Ordering::Relaxed);
}

/// Counts the changes of what `act` does.
pub(crate) fn count<T>(act: impl FnOnce() -> T) -> (T, i64) {
    LEFT.store(UNLIMITED, Ordering::Relaxed);
    let value = act();
    let left = LEFT.swap(-1, Ordering::Relaxed);
    (value, UNLIMITED - left)
}

/// A change has been made.
fn changed() {
    if LEFT.load(Ordering::Relaxed) > 0 && LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        let _ = kill_process(getpid(), Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

macro_rules! counted {
    ($name:ident, $inner:ty, $value:ty, $($change:ident)*) => {
        #[allow(unreachable_pub, reason = "in the interface of `Memory`")]
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name($inner);

        #[allow(dead_code, reason = "the same for both widths")]
        impl $name {
            pub(crate) const fn new(value: $value) -> Self {
                Self(<$inner>::new(value))
            }

            pub(crate) fn is_lock_free() -> bool {
                AtomicU128::is_lock_free()
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
                changed();
            }

            /// Without a death after it: for content that no word names yet, and for beats.
            pub(crate) fn fill(&self, value: $value) {
                self.0.store(value, Ordering::Relaxed);
            }

            pub(crate) fn compare_exchange(
                &self, old: $value, new: $value, success: Ordering, failure: Ordering,
            ) -> Result<$value, $value> {
                let exchanged = self.0.compare_exchange(old, new, success, failure);
                if exchanged.is_ok() {
                    changed();
                }
                exchanged
            }

            $(pub(crate) fn $change(&self, value: $value, order: Ordering) -> $value {
                let old = self.0.$change(value, order);
                changed();
                old
            })*
        }
    };
}

counted! {
    AtomicU64, atomic::AtomicU64, u64,
    swap fetch_add fetch_or fetch_and fetch_max fetch_min
}
counted! { AtomicBits, AtomicU128, u128, swap }
