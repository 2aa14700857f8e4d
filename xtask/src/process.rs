//! Other programs: finding them, running them, and reporting their failures.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// Why a chore stopped, in words for the person who started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// The root of the workspace. Known from the time `xtask` was built, so every chore does the same
/// in whichever folder it is started.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where build folders go: `$CARGO_TARGET_DIR` if the user set it, else `target/`.
pub(crate) fn target_root() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The cargo that started this program, working at the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The first file called `program` in the folders of `$PATH`; a path with a slash stands for
/// itself.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    find_in(env::split_paths(&env::var_os("PATH")?), program)
}

/// The same for a daemon or the like: also in the folders of those, which on Debian only root has
/// in `$PATH`.
pub(crate) fn find_system_program(program: &str) -> Option<PathBuf> {
    find_in(system_folders(&env::var_os("PATH").unwrap_or_default()), program)
}

fn system_folders(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    env::split_paths(path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
}

fn find_in(mut folders: impl Iterator<Item = PathBuf>, program: &str) -> Option<PathBuf> {
    folders.find_map(|folder| Some(folder.join(program)).filter(|path| path.is_file()))
}

/// Whether the command starts and reports success; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// What the command writes to its standard output, if it starts and reports success.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What the command writes to its standard output; its errors are shown.
///
/// # Errors
/// It cannot be started, or fails.
pub(crate) fn output_or_failure(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| cannot_start(command, &error))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(command, output.status))
    }
}

/// A line that a child has written, with its end.
pub(crate) enum Line {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// The lines of a child whose output is piped, as they come, until both pipes end.
pub(crate) fn lines(child: &mut Child) -> Receiver<Line> {
    fn listen(
        pipe: Option<impl Read + Send + 'static>,
        to: Sender<Line>,
        kind: fn(Vec<u8>) -> Line,
    ) {
        let Some(pipe) = pipe else { return };
        thread::spawn(move || {
            let (mut pipe, mut line) = (BufReader::new(pipe), Vec::new());
            // An error of reading ends the output, as its end does.
            while pipe.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                if to.send(kind(std::mem::take(&mut line))).is_err() {
                    break;
                }
            }
        });
    }
    let (sender, lines) = mpsc::channel();
    listen(child.stdout.take(), sender.clone(), Line::Out);
    listen(child.stderr.take(), sender, Line::Err);
    lines
}

/// Takes out what a user's settings would say to the command.
pub(crate) fn scrub(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("ULTRAMARINE_") {
            command.env_remove(name);
        }
    }
}

/// Runs the command with this program's own input and output.
pub(crate) fn status_of(command: &mut Command) -> Result<ExitStatus> {
    command.status().map_err(|error| cannot_start(command, &error))
}

/// Runs the command with this program's own input and output; anything but success is a failure.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status_of(command)?;
    if status.success() { Ok(()) } else { Err(failed(command, status)) }
}

fn failed(command: &Command, status: ExitStatus) -> Failure {
    Failure(format!("`{}` failed ({status})", shown(command)))
}

pub(crate) fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    Failure(format!("cannot start `{}`: {error}", shown(command)))
}

/// The exit code that passes `status` on; death by a signal becomes 1.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The command as one would type it, without its environment.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_in_full() {
        let failure = run(Command::new("/bin/sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(failure.0, "`sh -c exit 3` failed (exit status: 3)");
    }

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("/bin/sh"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find_program("no-such-program-anywhere"), None);
        assert_eq!(find_program("/no/such/program"), None);
    }

    #[test]
    fn daemons_are_found_where_only_root_looks() {
        let folders: Vec<_> = system_folders("/opt/bin:/bin".as_ref()).collect();
        assert_eq!(folders, ["/opt/bin", "/bin", "/usr/sbin", "/sbin"].map(PathBuf::from));
        assert_eq!(find_system_program("sh"), find_program("sh"));
        // Every Linux has it, and in no user's folder.
        assert!(find_in(system_folders("/no/such".as_ref()), "ldconfig").is_some());
    }
}
