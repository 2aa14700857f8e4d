//! Runs user code where no panic may get out.
//!
//! Not only a task's function may panic: so may the drop of its argument, of its result, or of the
//! payload of another panic. The owner of such a value drops it with these functions. So the task's
//! future still ends, and the PE goes on.

use crate::forked::end_if_forked;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Longer panic messages are cut to this, in bytes, so that they can always travel.
const PANIC_MESSAGE_BYTES_MAX: usize = 2000;

/// Runs user code. A panic becomes its message.
pub(crate) fn caught<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(into_message)
}

#[cold]
#[inline(never)] // As below: there are hundreds of callers.
fn into_message(payload: Box<dyn Any + Send>) -> String {
    end_if_forked();
    let message = message(payload.as_ref());
    discard(payload);
    message
}

/// Drops a value of a user's type. If that panics, it is logged.
pub fn discard<T>(value: T) {
    discard_with(|| drop(value));
}

/// Runs code that drops values of users' types.
pub(crate) fn discard_with(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        forget_panic(payload);
    }
}

#[cold]
#[inline(never)]
fn forget_panic(payload: Box<dyn Any + Send>) {
    // The payload is nearly always text. If it is not, its drop may panic as well, and so on
    // without end.
    if payload.is::<&str>() || payload.is::<String>() {
        drop(payload);
    } else {
        std::mem::forget(payload);
    }
    tracing::error!("a value panicked when it was dropped");
}

/// The message in a panic's payload.
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
