//! Takes leave of the launcher for a process that will not finalise MPI. Otherwise the launcher
//! would take its end for a failure.
//!
//! Launchers give each process a server to talk to, and expect it to take leave there:
//!
//! - hydra (MPICH's `mpiexec`) and `srun --mpi=pmi2` hand down a socket, whose number is in
//!   `PMI_FD`. It carries one of two protocols: PMI-1 in lines, PMI-2 in counted messages. The
//!   first message of the process chooses; the guard tells from the libraries that it has loaded.
//! - `mpirun` (Open MPI) and `srun --mpi=pmix` have a `PMIx` server that the process connects to.
//!   `mpirun` remembers a rank whose connection broke, and lets it connect once more: so the guard
//!   connects as that rank, and takes leave. For this it loads the library
//!   that the process itself used.
//! - Slurm kills the job as soon as such a connection breaks. So the child gives the guard a copy
//!   of its end, which stays open, and the guard sends on it what the library would have sent.

use super::standstill;
use super::sys::{self, Fork};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ultramarine_environment::launcher::{PMI_FD, PMIX_NAMESPACE, PMIX_SERVER_URI};

/// The longest that a launcher may take to answer: it may be stopped for a while. A guard does not
/// wait for a launcher that is gone. A launcher that finds the guard gone ends the job (hydra
/// does).
const PATIENCE: Duration = Duration::from_mins(1);

/// How long the first visit to a `PMIx` server may take; each of the others may take twice as long
/// as the last. A server that is only just hearing of the process's own end may accept a visitor in
/// its name and never answer: once in a hundred times on a busy machine. And a visit that is broken
/// off while the server is only slow can make it fail, or stand still for ever. So while the server
/// is stopped no time passes.
const VISIT_PATIENCE: Duration = Duration::from_millis(1500);
const VISITS_MAX: u32 = 5;

/// How often to look meanwhile whether the server is stopped. Time is counted in looks: it passes
/// only while the guard itself runs.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long to wait for the signal of a child's end before looking again, in milliseconds.
const REAP_MS: u32 = 20;

/// How the names of the libraries start that tell which protocol the launcher speaks.
const TELLING: [&str; 4] = ["libpmix.so", "mca_pmix_", "libopen-pal.so", "libpmi2.so"];

/// What `PMIx_` stands behind in libraries that have it built in.
const PREFIXES: [&str; 4] = ["", "OPAL_MCA_PMIX4X_", "OPAL_MCA_PMIX3X_", "OPAL_MCA_PMIX2X_"];

/// What says goodbye to a `PMIx` server of version 4 and later: the length of a command, which is
/// 2, in a header with this tag, and the command (one of it, number 5).
const PMIX_GOODBYE: [u8; 18] = [0, 0, 0, 0, b'b', b'y', b'e', b'!', 0, 0, 0, 2, 0, 0, 0, 0, 2, 5];

/// Open MPI's setting that spares `MPI_Finalize` its barrier, as a variable for processes that
/// start MPI. All have agreed on the end before. And when processes leave or die in that barrier,
/// the `PMIx` server of `mpirun` may complete it twice (its authors know that as issue 109 of
/// PRRTE), and then stands still or crashes: seen in one of a hundred such ends on a busy machine.
pub(super) const WITHOUT_BARRIER: (&str, &str) = ("OMPI_MCA_async_mpi_finalize", "1");

/// How a process talks to its launcher.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// The libraries among these that it has loaded.
    pub(super) libraries: Vec<PathBuf>,
    /// The protocol on `PMI_FD`.
    pub(super) speaks_pmi2: bool,
    /// Its connection, where that must not break.
    pub(super) connection: Option<OwnedFd>,
}

impl Server {
    /// This process's own, once MPI has started.
    pub(super) fn own(library_version: impl FnOnce() -> String) -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let libraries = libraries_in(&maps);
        let of_pmi2 = |path: &PathBuf| path.to_string_lossy().contains("libpmi2.so");
        // MPICH can have its own PMI-2 inside, and says then how it was configured.
        let speaks_pmi2 =
            libraries.iter().any(of_pmi2) || library_version().contains("--with-pmi=pmi2");
        let namespace = std::env::var(PMIX_NAMESPACE).unwrap_or_default();
        let of_slurm = namespace.starts_with("slurm.pmix.");
        let connection = of_slurm.then(connection_to_pmix).flatten();
        Server { libraries, speaks_pmi2, connection }
    }
}

/// A copy of this process's connection to its `PMIx` server.
fn connection_to_pmix() -> Option<OwnedFd> {
    let uris = std::env::vars().filter(|(name, _)| name.starts_with(PMIX_SERVER_URI));
    let servers: Vec<_> = uris.filter_map(|(_, uri)| address_in(&uri)).collect();
    let numbers = std::fs::read_dir("/proc/self/fd").ok()?;
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number| sys::shared(number).ok()).map(TcpStream::from).find_map(|file| {
        let peer = file.peer_addr().ok()?;
        servers.contains(&peer).then(|| file.into())
    })
}

/// The address in what `PMIx` says of its server, as in `name.0;tcp4://127.0.0.1:4000`.
fn address_in(uri: &str) -> Option<SocketAddr> {
    uri.split(';').find_map(|part| part.strip_prefix("tcp")?.split_once("://")?.1.parse().ok())
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

/// Takes leave of the launcher in the name of a process that talked to it so. `launcher` is the
/// launcher's process number.
pub(super) fn on_behalf_of(server: Server, launcher: u32) -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(socket) = variable(PMI_FD) {
        let number = socket.trim().parse().map_err(|_| format!("{PMI_FD} = `{socket}`"))?;
        let socket = sys::shared(number).map_err(|error| format!("{PMI_FD}: {error}"))?;
        // PMI-2 wants the length, in six places, and what it is the length of.
        let word: &[u8] =
            if server.speaks_pmi2 { b"13    cmd=finalize;" } else { b"cmd=finalize\n" };
        let said = say_on(socket.into(), word, b"finalize");
        return said.map_err(|error| format!("PMI: {error}"));
    }
    if let Some(connection) = server.connection {
        // The answer has the same tag.
        let said = say_on(connection.into(), &PMIX_GOODBYE, &PMIX_GOODBYE[4..8]);
        return said.map_err(|error| format!("PMIx: {error}"));
    }
    if variable(PMIX_NAMESPACE).is_some() {
        for visit in 0..VISITS_MAX {
            let patience = VISIT_PATIENCE * 2_u32.pow(visit);
            if let Some(answer) = visit_apart(&server.libraries, patience, launcher)? {
                return answer;
            }
        }
        return Err("PMIx: no answer".to_owned());
    }
    Ok(())
}

/// One visit to the `PMIx` server, in a separate process: the library may wait for the server
/// without limit, and cannot be used a second time. `None`: no answer.
fn visit_apart(
    libraries: &[PathBuf],
    patience: Duration,
    launcher: u32,
) -> Result<Option<Result<(), String>>, String> {
    let (ours, mut theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
    match sys::fork().map_err(|error| format!("PMIx: {error}"))? {
        Fork::Child => {
            sys::end_with_parent();
            let answer = visit_pmix(libraries).err().unwrap_or_default();
            // The end of this process ends what is read; its first byte says that there is an
            // answer.
            let _ = theirs.write_all(format!("!{answer}").as_bytes());
            sys::exit(0)
        }
        Fork::Parent { child } => {
            drop(theirs);
            let is_stopped = || standstill::is_process_stopped(launcher);
            let answer = read_until(ours, |_| false, patience, is_stopped).ok().flatten();
            sys::send(child, libc::SIGKILL);
            while sys::reap(child).is_none() {
                // Until word comes of its end.
                sys::next_signal(REAP_MS);
            }
            let answer = answer.and_then(|text| String::from_utf8(text).ok());
            let answer = answer.and_then(|text| text.strip_prefix('!').map(str::to_owned));
            Ok(answer.map(|reason| if reason.is_empty() { Ok(()) } else { Err(reason) }))
        }
    }
}

/// What comes until it `is_whole`, or ends; `None` if that takes too long. While the other side
/// `is_stopped`, no time passes, but for [`PATIENCE`] in all.
fn read_until(
    mut socket: UnixStream,
    is_whole: impl Fn(&[u8]) -> bool,
    patience: Duration,
    is_stopped: impl Fn() -> bool,
) -> io::Result<Option<Vec<u8>>> {
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    let (mut waited, mut passed) = (Duration::ZERO, Duration::ZERO);
    let (mut text, mut part) = (Vec::new(), [0; 256]);
    while !is_whole(&text) {
        if passed >= patience || waited >= PATIENCE {
            return Ok(None);
        }
        match socket.read(&mut part) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                waited += LOOK_EVERY;
                passed += if is_stopped() { Duration::ZERO } else { LOOK_EVERY };
            }
            // The guard itself was stopped, and goes on.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(text))
}

/// Sends the command and waits for the answer. A launcher that has gone gets nothing. (The
/// socket may be one of TCP as well.)
fn say_on(mut socket: UnixStream, word: &[u8], answer_has: &[u8]) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.write_all(word)?;
    // The answer to what the process itself had asked last may come before.
    let has_come = |answer: &[u8]| answer.windows(answer_has.len()).any(|part| part == answer_has);
    let answer = read_until(socket, has_come, PATIENCE, || false)?;
    answer.map(drop).ok_or_else(|| ErrorKind::TimedOut.into())
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
    use std::process::Command;
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
    fn the_address_of_a_server_is_read() {
        let found = |uri| address_in(uri).map(|address| address.to_string());
        let four = found("pmix-server.4610;tcp4://127.0.0.1:38395");
        assert_eq!(four.as_deref(), Some("127.0.0.1:38395"));
        let six = found("prte@n1.0;tcp6://[::1]:4000;more");
        assert_eq!(six.as_deref(), Some("[::1]:4000"));
        assert_eq!(found("pmix-server.4610"), None);
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
        say_on(ours, b"cmd=finalize\n", b"finalize").expect("it was understood");
        assert_eq!(&launcher.join().expect("no panic"), b"cmd=finalize\n");
    }

    #[test]
    fn a_launcher_that_is_stopped_for_a_while_is_waited_for() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let launcher = thread::spawn(move || {
            thread::sleep(Duration::from_secs(4));
            theirs.write_all(b"cmd=finalize_ack\n").expect("it listens");
        });
        say_on(ours, b"cmd=finalize\n", b"finalize").expect("it was understood");
        launcher.join().expect("no panic");
    }

    #[test]
    fn a_guard_that_was_stopped_itself_goes_on_waiting() {
        let stop =
            "for n in 1 2 3; do sleep 0.1; kill -STOP $PPID; sleep 0.2; kill -CONT $PPID; done";
        let mut stops = Command::new("sh").args(["-c", stop]).spawn().expect("it is there");
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let server = thread::spawn(move || {
            stops.wait().expect("it is our child");
            theirs.write_all(b"cmd=finalize_ack\n").expect("it listens");
        });
        say_on(ours, b"cmd=finalize\n", b"finalize").expect("it was understood");
        server.join().expect("no panic");
    }

    #[test]
    fn no_time_passes_for_a_server_that_is_stopped() {
        let answer = |is_stopped: bool| {
            let (ours, mut theirs) = UnixStream::pair().expect("sockets");
            let server = thread::spawn(move || {
                thread::sleep(LOOK_EVERY * 8);
                let _ = theirs.write_all(b"!");
            });
            let answer = read_until(ours, |_| false, LOOK_EVERY * 3, || is_stopped);
            server.join().expect("no panic");
            answer.expect("the socket is whole")
        };
        assert_eq!((answer(true), answer(false)), (Some(b"!".to_vec()), None));
    }

    #[test]
    fn a_launcher_that_has_gone_is_not_waited_for() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        drop(theirs);
        say_on(ours, b"cmd=finalize\n", b"finalize").expect_err("no launcher reads it");
    }
}
