//! Runs user code where no panic may get out.
//!
//! Not only a task's function may panic: so may the drop of its argument, of its result, or of the
//! payload of another panic. The owner of such a value drops it with these functions. So the task's
//! future still ends, and the PE goes on.

use std::any::{Any, type_name};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// Longer panic messages are cut to this, in bytes, so that they can always travel.
const PANIC_MESSAGE_BYTES_MAX: usize = 2000;

thread_local! {
    /// The name of the user code that this thread is inside of.
    static CODE: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The name of the user code that the calling thread is inside of, if a panic of it gets no
/// further: for a panic hook, which need not say more than where that was.
pub fn caught_code() -> Option<&'static str> {
    CODE.get()
}

fn catch<T>(name: Option<&'static str>, code: impl FnOnce() -> T) -> thread::Result<T> {
    let outer = CODE.replace(name);
    let result = catch_unwind(AssertUnwindSafe(code));
    CODE.set(outer);
    result
}

/// Runs user code of this name. A panic becomes its message.
///
/// # Errors
///
/// The message of a panic.
pub fn caught<T>(name: &'static str, code: impl FnOnce() -> T) -> Result<T, String> {
    catch(Some(name), code).map_err(into_message)
}

/// The same for code of the runtime, whose panics are its own faults.
pub(crate) fn caught_own<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch(None, code).map_err(into_message)
}

#[cold]
#[inline(never)] // As below: there are hundreds of callers.
fn into_message(payload: Box<dyn Any + Send>) -> String {
    let message = panic_message(payload.as_ref());
    discard(payload);
    message
}

/// Drops a value of a user's type. If that panics, it is logged.
pub fn discard<T>(value: T) {
    discard_as(type_name::<T>(), || drop(value));
}

/// Runs code that drops a value of a user's type of this name.
pub(crate) fn discard_as(name: &'static str, code: impl FnOnce()) {
    if let Err(payload) = catch(Some(name), code) {
        forget_panic(payload);
    }
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
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
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
        assert_eq!(caught("code", caught_code), Ok(Some("code")));
        assert_eq!(caught("code", || panic!("seven")), Err::<(), _>("seven".to_owned()));
        assert_eq!(caught_code(), None);
        let long = caught("code", || panic!("{}", "ä".repeat(PANIC_MESSAGE_BYTES_MAX)));
        assert_eq!(long.map_err(|text: String| text.len()), Err::<(), _>(PANIC_MESSAGE_BYTES_MAX));
    }

    #[test]
    fn no_drop_passes_however_deep_it_panics() {
        for depth in 0..5 {
            let text = caught("code", || std::panic::panic_any(Bomb(depth)));
            assert_eq!(text, Err::<(), _>("(its payload is not a text)".to_owned()));
            discard(Bomb(depth));
        }
    }
}
