//! What a launcher must hear from a process that will not finalise MPI, so as not to take its end
//! for a failure.
//!
//! Launchers give each process a server to talk to, and expect a word of leave on that way:
//!
//! - hydra (MPICH's `mpiexec`) and `srun --mpi=pmi2` hand down a socket, whose number is in `PMI_FD`.
//!   Two languages are spoken on it: PMI-1 in lines, PMI-2 in counted messages. Which of them, the
//!   first message of the process says; the libraries that it has loaded give it away.
//! - `mpirun` (Open MPI) and `srun --mpi=pmix` have a `PMIx` server that the process connects to.
//!   The server forgets nobody whose connection broke, and lets the same rank connect once more: so
//!   the guard comes, says that it is that rank, and takes leave. For this it loads the library that
//!   the process itself used; the protocol is private to that.

use super::sys;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The longest that a launcher may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// How the names of the libraries start that tell how to talk to the launcher.
const TELLING: [&str; 4] = ["libpmix.so", "mca_pmix_", "libopen-pal.so", "libpmi2.so"];

/// What `PMIx_` stands behind in libraries that have it built in.
const PREFIXES: [&str; 4] = ["", "OPAL_MCA_PMIX4X_", "OPAL_MCA_PMIX3X_", "OPAL_MCA_PMIX2X_"];

/// The libraries of this process that tell how to talk to the launcher.
pub(super) fn telling_libraries() -> Vec<PathBuf> {
    libraries_in(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// The telling ones in a list of what is mapped, the most telling first, each once.
fn libraries_in(maps: &str) -> Vec<PathBuf> {
    let path = |line: &str| line.find('/').map(|start| PathBuf::from(&line[start..]));
    let rank = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        TELLING.iter().position(|start| name.starts_with(start))
    };
    let found = maps.lines().filter_map(path);
    let mut found: Vec<_> = found.filter_map(|path| Some((rank(&path)?, path))).collect();
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Takes leave of the launcher in the name of a process that had loaded these libraries.
pub(super) fn say(libraries: &[PathBuf]) -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(socket) = variable("PMI_FD") {
        let number = socket.trim().parse().map_err(|_| format!("PMI_FD = `{socket}`"))?;
        let socket = sys::shared(number).map_err(|error| format!("PMI_FD: {error}"))?;
        let of_pmi2 = |path: &PathBuf| path.to_string_lossy().contains("libpmi2.so");
        let word: &[u8] = if libraries.iter().any(of_pmi2) {
            // The length, in six places, and what it is the length of.
            b"13    cmd=finalize;"
        } else {
            b"cmd=finalize\n"
        };
        return say_on(socket.into(), word).map_err(|error| format!("PMI: {error}"));
    }
    if variable("PMIX_NAMESPACE").is_some() {
        let libraries = libraries.to_vec();
        let (done, is_done) = mpsc::channel();
        let visit = move || done.send(visit_pmix(&libraries));
        // A thread that may be left behind: the library waits for the server as long as it likes.
        std::thread::Builder::new().spawn(visit).map_err(|error| error.to_string())?;
        return is_done.recv_timeout(PATIENCE).map_err(|_| "PMIx: no answer".to_owned())?;
    }
    Ok(())
}

/// Says the word and waits until it was understood. A launcher that has gone hears nothing.
fn say_on(mut socket: UnixStream, word: &[u8]) -> std::io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(word)?;
    let (start, mut answer, mut part) = (Instant::now(), Vec::new(), [0; 256]);
    // The answer to what the process itself had asked last may come before.
    while !answer.windows(8).any(|part| part == b"finalize") && start.elapsed() < PATIENCE {
        match socket.read(&mut part)? {
            0 => break,
            n => answer.extend_from_slice(&part[..n]),
        }
    }
    Ok(())
}

fn visit_pmix(libraries: &[PathBuf]) -> Result<(), String> {
    let usual = [PathBuf::from("libpmix.so.2")];
    let mut reasons = Vec::new();
    // Some programs have the library inside.
    let libraries = libraries.iter().chain(&usual).map(Some).chain([None]);
    for library in libraries {
        for prefix in PREFIXES {
            let names = ["PMIx_Init", "PMIx_Finalize"].map(|name| format!("{prefix}{name}"));
            match sys::visit_pmix(library.map(PathBuf::as_path), &names[0], &names[1]) {
                Ok(()) => return Ok(()),
                Err(reason) => reasons.push(format!("{library:?}: {reason}")),
            }
        }
    }
    Err(reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn libraries_that_tell_are_found_once_each() {
        let maps = "7f00-7f01 r--p 00000000 fe:01 12   /usr/lib/libopen-pal.so.40.30.2\n\
                    7f02-7f03 r--p 00000000 fe:01 13   /usr/lib/pmix2/lib/libpmix.so.2.9.0\n\
                    7f03-7f04 r-xp 00000000 fe:01 13   /usr/lib/pmix2/lib/libpmix.so.2.9.0\n\
                    7f05-7f06 r-xp 00000000 fe:01 14   /opt/some place/libpmi2.so.0\n\
                    7f07-7f08 rw-p 00000000 00:00 0    [heap]\n\
                    7f09-7f0a r-xp 00000000 fe:01 15   /usr/lib/libc.so.6\n";
        let found = [
            "/usr/lib/pmix2/lib/libpmix.so.2.9.0",
            "/usr/lib/libopen-pal.so.40.30.2",
            "/opt/some place/libpmi2.so.0",
        ];
        assert_eq!(libraries_in(maps), found.map(PathBuf::from));
    }

    #[test]
    fn a_word_waits_for_its_own_answer() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let launcher = thread::spawn(move || {
            theirs.write_all(b"cmd=get_result rc=0\n").expect("it listens");
            let mut heard = [0; 13];
            theirs.read_exact(&mut heard).expect("it speaks");
            theirs.write_all(b"cmd=finalize_ack\n").expect("it listens");
            heard
        });
        say_on(ours, b"cmd=finalize\n").expect("it was understood");
        assert_eq!(&launcher.join().expect("no panic"), b"cmd=finalize\n");
    }

    #[test]
    fn a_launcher_that_has_gone_is_not_waited_for() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        drop(theirs);
        say_on(ours, b"cmd=finalize\n").expect_err("nobody listens");
    }
}
