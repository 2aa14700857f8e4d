//! Runs code of the user's where no panic may pass.
//!
//! Not only a task's function may panic: so may the drop of its argument, of its result, or of the
//! payload of another panic. The owner of such a value drops it here, so that the task's future
//! ends all the same, and its PE goes on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is kept of a panic's message, so that it can always travel.
const PANIC_MESSAGE_BYTES_MAX: usize = 2000;

/// Runs code of the user's. A panic becomes its message.
pub(crate) fn caught<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let message = message(payload.as_ref());
        discard(payload);
        message
    })
}

/// Drops a value of the user's.
pub(crate) fn discard<T>(value: T) {
    discard_with(|| drop(value));
}

/// Runs code that drops values of the user's.
pub(crate) fn discard_with(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        // It is text nearly always. If it is not, its drop may panic as well, and so on without
        // end.
        if payload.is::<&str>() || payload.is::<String>() {
            drop(payload);
        } else {
            std::mem::forget(payload);
        }
        tracing::error!("a value panicked when it was dropped");
    }
}

/// What a panic's payload says.
fn message(payload: &(dyn Any + Send)) -> String {
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(its payload is not a text)".to_owned());
    let end = message.floor_char_boundary(PANIC_MESSAGE_BYTES_MAX);
    message[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics when it is dropped, with another of the kind, this number of times.
    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                std::panic::panic_any(Bomb(self.0 - 1));
            }
        }
    }

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(caught(|| panic!("seven")), Err::<(), _>("seven".to_owned()));
        let long = caught(|| panic!("{}", "ä".repeat(PANIC_MESSAGE_BYTES_MAX)));
        assert_eq!(long.map_err(|text: String| text.len()), Err::<(), _>(PANIC_MESSAGE_BYTES_MAX));
    }

    #[test]
    fn no_drop_passes_however_deep_it_panics() {
        for depth in 0..5 {
            let text = caught(|| std::panic::panic_any(Bomb(depth)));
            assert_eq!(text, Err::<(), _>("(its payload is not a text)".to_owned()));
            discard(Bomb(depth));
        }
    }
}
