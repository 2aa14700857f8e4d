//! Programs that run alone, and that the test observes while they run.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;
use ultramarine_testkit::{PATIENCE, scrub};

/// The lines that a program prints on standard error until its end. It must succeed. It may wait
/// for the file that this variable names: the file is made at the first line that `is_awaited`.
pub(crate) fn lines_of(
    program: &[OsString],
    variable: &str,
    is_awaited: impl Fn(&str) -> bool,
) -> Vec<String> {
    let name = program.last().expect("it has a name").to_string_lossy().replace("::", "-");
    let file = format!("ultramarine-{name}-{}", std::process::id());
    let file = std::env::temp_dir().join(file);
    let mut command = Command::new(&program[0]);
    scrub(command.args(&program[1..]));
    command.env(variable, &file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let (send, receive) = mpsc::channel();
    let said = BufReader::new(child.stderr.take().expect("it is piped"));
    std::thread::spawn(move || {
        said.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
    });
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
    let _ = std::fs::remove_file(&file);
    assert!(!is_late && status.success(), "{status}: {lines:#?}");
    lines
}
