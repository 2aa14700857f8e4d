//! Tests whose program runs alone, and is observed while it runs.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_testkit::{PATIENCE, itself, scrub};

/// The variable that names the file that is made once the program is heard.
const FILE: &str = "ALONE_FILE";

/// Runs the test that calls this as a program. Returns the lines that this prints on standard error
/// until its end. It must succeed. It [is heard](is_heard) at the first line that `is_awaited`.
pub(crate) fn lines_of(program: impl FnOnce(), is_awaited: impl Fn(&str) -> bool) -> Vec<String> {
    let words = itself(program);
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("heard");
    let mut command = Command::new(&words[0]);
    scrub(command.args(&words[1..]));
    command.env(FILE, &file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let (send, receive) = mpsc::channel();
    let said = BufReader::new(child.stderr.take().expect("it is piped"));
    thread::spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let (mut lines, start) = (Vec::new(), Instant::now());
    while let Ok(line) = receive.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
        if is_awaited(&line) {
            std::fs::write(&file, "").expect("there is room");
        }
        lines.push(line);
    }
    let is_late = start.elapsed() >= PATIENCE;
    if is_late {
        let _ = child.kill();
    }
    let status = child.wait().expect("it is our child");
    assert!(!is_late && status.success(), "{status}: {lines:#?}");
    lines
}

/// Whether the test has heard what it waits for, which this program says.
pub(crate) fn is_heard() -> bool {
    PathBuf::from(std::env::var_os(FILE).expect("the test names it")).exists()
}

/// Blocks the thread until the program [is heard](is_heard).
pub(crate) fn wait_until_heard() {
    let start = Instant::now();
    while !is_heard() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(20));
    }
}
