//! Processes that die in tests: this program, started again for one test.

use std::process::{Command, ExitStatus, Stdio};

/// Runs the ignored test with this path in a process of its own, with these words in a variable.
pub(crate) fn in_child(test: &str, words: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(WORDS, words).stdout(Stdio::null());
    command
}

/// The words for this process, if it is such a child.
pub(crate) fn words() -> Option<Vec<String>> {
    let words = std::env::var(WORDS).ok()?;
    Some(words.split(' ').map(str::to_owned).collect())
}

const WORDS: &str = "TASKSET_TEST_CHILD";

#[track_caller]
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    assert!(status.success() || status.signal() == Some(9), "the child failed: {status}");
    status.signal() == Some(9)
}
