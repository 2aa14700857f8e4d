//! Jobs under a launcher of MPI, and tests that are programs.

use crate::command::scrub;
use std::ffi::OsString;
use std::process::Command;
use std::thread;

/// Names the launcher that belongs to the MPI that the tests are built with.
const VARIABLE: &str = "MPIEXEC_FOR_TESTS";

/// The launcher that belongs to this build, in an environment without other launchers and settings.
/// `None` where there is none, which it says: the test then has nothing to do.
pub fn launcher() -> Option<Command> {
    let mut command = Command::new(launcher_name()?);
    scrub(&mut command);
    Some(command)
}

/// The name of that launcher.
pub fn launcher_name() -> Option<OsString> {
    let launcher = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    if launcher.is_none() {
        println!("skipped: {VARIABLE} names no launcher");
    }
    launcher
}

/// Among the arguments of a test program: its test is to run as a program.
const AS_PROGRAM: &str = "as-a-program";

/// The words that start the test that calls this in another process, as a program: there this runs
/// `program`, and ends the process.
///
/// # Panics
///
/// If this is not the thread of a test.
pub fn itself(program: impl FnOnce()) -> Vec<OsString> {
    if std::env::args_os().any(|word| word == AS_PROGRAM) {
        program();
        std::process::exit(0);
    }
    let own = std::env::current_exe().expect("the test has a file");
    let thread = thread::current();
    let test = thread.name().filter(|name| *name != "main").expect("a test's thread has its name");
    // No test's name is the last word: only this one is run.
    let words = ["--exact", "--nocapture", "--test-threads=1", test, AS_PROGRAM];
    std::iter::once(own.into()).chain(words.map(OsString::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_starts_itself_as_a_program() {
        let words = itself(|| println!("all is well"));
        let ended = crate::run(Command::new(&words[0]).args(&words[1..]));
        ended.is_well();
        assert!(ended.out.contains("running 1 test"), "{}", ended.out);
    }
}
