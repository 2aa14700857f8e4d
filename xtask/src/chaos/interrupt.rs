//! Ctrl-C, and `kill`: the running job is ended, its files are removed, and no further job starts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::process::{Failure, Result};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Notes both signals from now on; until then they end this program.
pub(crate) fn catch() -> Result<()> {
    let asked = ASKED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        let registered = signal_hook::flag::register(signal, asked.clone());
        registered.map_err(|error| Failure(format!("Ctrl-C cannot be heard: {error}")))?;
    }
    Ok(())
}

/// Whether one of them has come.
pub(crate) fn is_asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}
