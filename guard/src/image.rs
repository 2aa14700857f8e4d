//! Whether the child is still the program that joined the job. One that a task has replaced by
//! another (`exec`) is dead to the others, whose connections the system has closed; but the
//! launcher would wait for it.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};

/// The digest of what the system told a program at its start: addresses of its own memory, among
/// other things, which are drawn anew for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Image(pub(super) u64);

impl Image {
    /// That of a process. `None` if it cannot be looked into.
    pub(super) fn of(process: u32) -> Option<Self> {
        let told =
            fs::read(format!("/proc/{process}/auxv")).ok().filter(|told| !told.is_empty())?;
        let mut digest = DefaultHasher::new();
        digest.write(&told);
        Some(Image(digest.finish()))
    }

    /// Whether the process has another one by now.
    pub(super) fn is_replaced(self, process: u32) -> bool {
        Image::of(process).is_some_and(|now| now != self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_becomes_another_program_is_seen() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo ready; read go; exec cat"]);
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
        let process = child.id();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut said = [0; 6];
        stdout.read_exact(&mut said).expect("it is ready");
        let image = Image::of(process).expect("it is ours");
        assert!(!image.is_replaced(process));
        stdin.write_all(b"go\nhere").expect("it reads");
        stdout.read_exact(&mut said[..4]).expect("the second program does");
        assert!(image.is_replaced(process));
        drop(stdin);
        child.wait().expect("it is our child");
        assert!(!image.is_replaced(process), "it is no more");
    }
}
