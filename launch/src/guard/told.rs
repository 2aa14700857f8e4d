//! What a ward tells its guard: lines of text through a socket, and with them a file.
//!
//! The guard receives them after the ward's end. Until then they lie in the socket, where it looks whether
//! MPI is starting; and so does the file, which thereby stays open longer than the ward lives.

use super::farewell::Server;
use super::segments::Segment;
use super::sys;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// All that a guard hears of its ward.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// It is part of a job that survives it.
    pub(super) joined: bool,
    /// It leaves without finalising MPI.
    pub(super) leaves: bool,
    /// It has finalised MPI.
    pub(super) finalised: bool,
    /// How it talked to the launcher.
    pub(super) server: Server,
    /// What its MPI library has in shared memory until it is finalised.
    pub(super) segments: Vec<Segment>,
}

const STARTS: &str = "starts ";
const JOINED: &str = "joined";
const LEAVES: &str = "leaves";
const FINALISED: &str = "finalised";
const PMI2: &str = "pmi2";
const LIBRARY: &str = "library ";
const SEGMENT: &str = "segment ";

/// Says that the ward is about to start MPI, and that it is now so late.
pub(super) fn starts(way: &UnixStream, now: SystemTime) -> io::Result<()> {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    say(way, &format!("{STARTS}{}", since.as_nanos()))
}

/// Says that the ward has joined a job, how it talks to the launcher, and what it would leave behind.
pub(super) fn joined(way: &UnixStream, server: &Server, segments: &[Segment]) -> io::Result<()> {
    let mut lines = vec![JOINED.to_owned()];
    lines.extend(server.speaks_pmi2.then(|| PMI2.to_owned()));
    lines.extend(server.libraries.iter().map(|path| format!("{LIBRARY}{}", path.display())));
    lines.extend(segments.iter().map(|segment| format!("{SEGMENT}{}", segment.to_line())));
    let text = lines.join("\n") + "\n";
    let files = server.connection.as_ref().map(|file| [file.as_fd()]);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if let Some(files) = &files {
        beside.push(SendAncillaryMessage::ScmRights(files));
    }
    sendmsg(way, &[IoSlice::new(text.as_bytes())], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Says that the ward is about to leave without finalising MPI.
pub(super) fn leaves(way: &UnixStream) -> io::Result<()> {
    say(way, LEAVES)
}

/// Says that the ward has finalised MPI.
pub(super) fn finalised(way: &UnixStream) -> io::Result<()> {
    say(way, FINALISED)
}

fn say(way: &UnixStream, word: &str) -> io::Result<()> {
    let text = format!("{word}\n");
    let mut nothing = SendAncillaryBuffer::default();
    sendmsg(way, &[IoSlice::new(text.as_bytes())], &mut nothing, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Since when the ward has been starting MPI, if it is doing so: it says this first, and nothing else
/// before it has joined a job.
pub(super) fn starting(way: &UnixStream) -> Option<SystemTime> {
    let mut text = [0; 64];
    let (length, _) = recv(way, &mut text[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).ok()?;
    let text = str::from_utf8(&text[..length]).ok()?;
    let nanoseconds = text.strip_prefix(STARTS)?.strip_suffix('\n')?.parse().ok()?;
    Some(UNIX_EPOCH + Duration::from_nanos(nanoseconds))
}

impl Told {
    /// All that was told so far. A process that the ward has left behind may hold the other end
    /// open: so nothing is waited for.
    pub(super) fn receive(way: &UnixStream) -> Self {
        sys::never_wait_for(way);
        let (mut told, mut text, mut part) = (Told::default(), Vec::new(), [0; 4096]);
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let into = &mut [IoSliceMut::new(&mut part)];
            let Ok(received) = recvmsg(way, into, &mut beside, RecvFlags::CMSG_CLOEXEC) else {
                break;
            };
            for message in beside.drain() {
                if let RecvAncillaryMessage::ScmRights(files) = message {
                    told.server.connection = files.last();
                }
            }
            if received.bytes == 0 {
                break;
            }
            text.extend_from_slice(&part[..received.bytes]);
        }
        told.read(&String::from_utf8_lossy(&text));
        told
    }

    pub(super) fn read(&mut self, text: &str) {
        for line in text.lines() {
            self.joined |= line == JOINED;
            self.leaves |= line == LEAVES;
            self.finalised |= line == FINALISED;
            self.server.speaks_pmi2 |= line == PMI2;
            self.server.libraries.extend(line.strip_prefix(LIBRARY).map(PathBuf::from));
            self.segments.extend(line.strip_prefix(SEGMENT).and_then(Segment::from_line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn what_was_told_is_heard_after_the_end() {
        let (ward, guard) = UnixStream::pair().expect("sockets");
        let (mut far, near) = UnixStream::pair().expect("sockets");
        let libraries = vec![PathBuf::from("/lib/a b.so"), PathBuf::from("/lib/c.so")];
        let connection = Some(near.into());
        let server = Server { libraries: libraries.clone(), speaks_pmi2: true, connection };
        let segment = Segment::from_line("3 4711 /dev/shm/a b").expect("it is one");
        assert_eq!(starting(&guard), None);
        let now = SystemTime::now();
        starts(&ward, now).expect("there is room");
        assert_eq!([starting(&guard), starting(&guard)], [Some(now); 2]);
        joined(&ward, &server, std::slice::from_ref(&segment)).expect("there is room");
        assert_eq!(starting(&guard), None);
        leaves(&ward).expect("there is room");
        finalised(&ward).expect("there is room");
        drop((ward, server));
        let told = Told::receive(&guard);
        assert!(told.joined && told.leaves && told.finalised && told.server.speaks_pmi2);
        assert_eq!(told.segments, [segment]);
        assert_eq!(told.server.libraries, libraries);
        // The file has outlived its owner.
        let connection = told.server.connection.expect("it was sent");
        UnixStream::from(connection).write_all(b"hello").expect("it is open");
        let mut heard = String::new();
        far.read_to_string(&mut heard).expect("it is closed now");
        assert_eq!(heard, "hello");
    }

    #[test]
    fn nobody_is_waited_for() {
        let (_ward, guard) = UnixStream::pair().expect("sockets");
        assert!(!Told::receive(&guard).joined);
    }
}
