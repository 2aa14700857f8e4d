//! What the tests of several crates need: commands and jobs that end in time, waiting with a limit,
//! processes, small hierarchies, wakers, and a [world] of state machines.
//!
//! Only tests depend on this crate, and it depends on none of those it tests but the topology and
//! what runs programs, so that it is built once.
//!
//! ```
//! use ultramarine_testkit::{alone, run};
//!
//! let ended = run(&mut alone("echo", "{\"result\": 5}"));
//! assert_eq!(ended.report()["result"], 5);
//! ```

#![forbid(unsafe_code)]

mod command;
mod launcher;
mod log;
mod places;
mod process;
mod wait;
mod woken;
pub mod world;

pub use command::{Ended, alone, behind, finish, run, run_until, scrub};
pub use launcher::{itself, launcher, launcher_name};
pub use log::Log;
pub use places::racks;
pub use process::{kill, marked};
pub use wait::{bounded, eventually, eventually_within, within};
pub use woken::Woken;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest that a wait or a command lasts where a test says nothing else; reached only when the
/// test fails.
pub const PATIENCE: Duration = Duration::from_secs(50);

/// An empty folder for the files of one test.
#[macro_export]
macro_rules! folder {
    ($test:expr) => {
        $crate::empty_folder(env!("CARGO_TARGET_TMPDIR"), module_path!(), $test)
    };
}

/// A program of another package. Cargo puts it into the folder above that of the tests, if it
/// builds both.
///
/// # Panics
///
/// If its package has not been built.
pub fn beside_the_tests(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the test has a file");
    let folder = own.parent().and_then(Path::parent).expect("cargo has folders for both");
    let file = folder.join(name);
    assert!(file.exists(), "{} is not built: build its package first", file.display());
    file
}

#[doc(hidden)]
pub fn empty_folder(tests: &str, module: &str, test: &str) -> PathBuf {
    let folder = Path::new(tests).join(module.replace("::", "/")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("cargo gives tests a folder");
    folder
}
