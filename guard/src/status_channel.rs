//! What a child tells its guard: lines of text through a socket, and with some of them a file.
//!
//! The guard hears them when it looks after its child, and once more after the child's end. The
//! files stay open longer than the child lives.

use super::descendants;
use super::finalize::Server;
use super::image::Image;
use super::segments::Segment;
use super::testimony::Testimony;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// All that a guard hears of its child.
#[derive(Debug, Default)]
pub(super) struct ChildStatus {
    /// When it was about to start MPI.
    pub(super) began: Option<SystemTime>,
    /// It is part of a job that survives it.
    pub(super) joined: bool,
    /// How long it may be stopped before the others give it up: while it starts, and then, with
    /// another value, once it has joined the job.
    pub(super) stalled_after: Option<Duration>,
    /// What it was when it joined.
    pub(super) image: Option<Image>,
    /// It leaves a job that goes on.
    pub(super) given_up: Option<GivenUp>,
    /// How its part of the job ends, once it does.
    pub(super) ending: Option<Ending>,
    /// Since [when](descendants::boundary_ticks) what it starts is the job's, once it has joined.
    pub(super) began_at_ticks: Option<u64>,
    /// Since when it is not the job's any more, if anything of the job's still ran then.
    pub(super) over_at_ticks: Option<u64>,
    /// The first interrupt does not end it: a second one is to.
    pub(super) listens: bool,
    /// How it talked to the launcher.
    pub(super) server: Server,
    /// Once the job is over: whether its result depends on the child.
    pub(super) is_vital: Option<bool>,
    /// Where other processes of a job listen that outlives its root.
    pub(super) others: Vec<SocketAddr>,
    /// What its MPI library has in shared memory until it is finalised.
    pub(super) segments: Vec<Segment>,
    /// What the guard needs to say that the child is gone.
    pub(super) testimony: Option<Testimony>,
    /// The start of a line whose end has not come.
    unread: Vec<u8>,
    /// Files whose lines have not come yet.
    files: VecDeque<OwnedFd>,
}

/// What a child that leaves a job is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// It tells them, or they have given it up themselves.
    Known,
    /// As one that has died.
    AsDead,
}

/// How a child's part of a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It leaves without finalising MPI.
    Leaves,
    /// It has finalised MPI.
    Finalised,
    /// It ends the whole job, through MPI.
    Aborts,
}

const STARTS: &str = "starts ";
const JOINED: &str = "joined";
const STALLED_AFTER: &str = "stalled_after_ms ";
const VITAL: &str = "vital ";
const GIVES_UP: &str = "gives up";
const AS_DEAD: &str = "is as dead";
const IMAGE: &str = "image ";
const LEAVES: &str = "leaves";
const FINALISED: &str = "finalised";
const ABORTS: &str = "aborts";
const BEGAN_AT: &str = "began at ";
const OVER_AT: &str = "over at ";
const LISTENS: &str = "listens";
const PMI2: &str = "pmi2";
const LIBRARY: &str = "library ";
const SEGMENT: &str = "segment ";
const OTHER: &str = "other ";
/// The child's connection with the launcher comes with this line.
const CONNECTION: &str = "connection";
/// The child's listener comes with this line.
const TESTIMONY: &str = "testimony ";

/// Says that the child is about to start MPI, that it is now so late, and how long the others wait
/// for it.
pub(super) fn starts(channel: &UnixStream, now: SystemTime, deadline: Duration) -> io::Result<()> {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let limit = deadline.as_millis();
    say(channel, &format!("{STALLED_AFTER}{limit}\n{STARTS}{}", since.as_nanos()))
}

/// Says that the child has joined a job, how long that job bears with it while it is stopped, how
/// it talks to the launcher, what it would leave behind, and where others listen that go on without
/// it.
pub(super) fn joined(
    channel: &UnixStream,
    stalled_after: Duration,
    server: &Server,
    segments: &[Segment],
    others: &[SocketAddr],
) -> io::Result<()> {
    let limit = format!("{STALLED_AFTER}{}", stalled_after.as_millis());
    // If nothing else runs, what runs later is of the job.
    let began_at = format!("{BEGAN_AT}{}", descendants::boundary_ticks().unwrap_or_default());
    let mut lines = vec![limit, began_at, JOINED.to_owned()];
    lines.extend(Image::of(std::process::id()).map(|Image(digest)| format!("{IMAGE}{digest}")));
    lines.extend(server.speaks_pmi2.then(|| PMI2.to_owned()));
    lines.extend(server.libraries.iter().map(|path| format!("{LIBRARY}{}", path.display())));
    lines.extend(segments.iter().map(|segment| format!("{SEGMENT}{}", segment.to_line())));
    lines.extend(others.iter().map(|address| format!("{OTHER}{address}")));
    lines.extend(server.connection.as_ref().map(|_| CONNECTION.to_owned()));
    let file = server.connection.as_ref().map(|file| file.as_fd());
    say_with(channel, &lines.join("\n"), file)
}

/// Hands over what the guard needs to say that the child is gone.
pub(super) fn hands_over(channel: &UnixStream, testimony: &Testimony) -> io::Result<()> {
    let line = format!("{TESTIMONY}{}", testimony.words);
    say_with(channel, &line, Some(testimony.listener.as_fd()))
}

/// Says that the job is over, and whether its result depends on the child.
pub(super) fn job_is_over(channel: &UnixStream, is_vital: bool) -> io::Result<()> {
    say(channel, &format!("{VITAL}{is_vital}"))
}

/// Says that the child leaves a job that goes on.
pub(super) fn gives_up(channel: &UnixStream, is_as_dead: bool) -> io::Result<()> {
    say(channel, if is_as_dead { AS_DEAD } else { GIVES_UP })
}

/// Says that the child is about to leave without finalising MPI.
pub(super) fn leaves(channel: &UnixStream) -> io::Result<()> {
    over_at(channel)?;
    say(channel, LEAVES)
}

/// Says that the child has finalised MPI.
pub(super) fn finalised(channel: &UnixStream) -> io::Result<()> {
    over_at(channel)?;
    say(channel, FINALISED)
}

/// Says since when what the child starts is not the job's any more, if anything runs that it has
/// started before.
fn over_at(channel: &UnixStream) -> io::Result<()> {
    let ticks = descendants::boundary_ticks();
    ticks.map_or(Ok(()), |ticks| say(channel, &format!("{OVER_AT}{ticks}")))
}

/// Says that the child is about to end the whole job through MPI.
pub(super) fn aborts(channel: &UnixStream) -> io::Result<()> {
    say(channel, ABORTS)
}

/// Says that the first interrupt will not end the child, and that a second one is to.
pub(super) fn listens(channel: &UnixStream) -> io::Result<()> {
    say(channel, LISTENS)
}

fn say(channel: &UnixStream, word: &str) -> io::Result<()> {
    say_with(channel, word, None)
}

/// Says these lines, and hands over a file with them.
fn say_with(channel: &UnixStream, lines: &str, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let text = format!("{lines}\n");
    let files = file.map(|file| [file]);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if let Some(files) = &files {
        beside.push(SendAncillaryMessage::ScmRights(files));
    }
    sendmsg(channel, &[IoSlice::new(text.as_bytes())], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

impl ChildStatus {
    /// Whether the job still needs the child: if it ends now, it dies.
    pub(super) fn is_amid_job(&self) -> bool {
        self.joined && self.ending.is_none()
    }

    /// What the child has started in these ticks is the job's. There are none if it has joined no
    /// job, or if nothing that it had started ran at the end.
    pub(super) fn job_ticks(&self) -> Range<u64> {
        let ticks = self.began_at_ticks.zip(self.over_at_ticks);
        ticks.map_or(0..0, |(began, over)| began..over)
    }

    /// Adds all that was told since. A process that the child has left behind may hold the other
    /// end open: so nothing is waited for.
    pub(super) fn hear(&mut self, channel: &UnixStream) {
        let mut part = [0; 4096];
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let into = &mut [IoSliceMut::new(&mut part)];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            let Ok(received) = recvmsg(channel, into, &mut beside, flags) else { break };
            for message in beside.drain() {
                if let RecvAncillaryMessage::ScmRights(files) = message {
                    self.files.extend(files);
                }
            }
            if received.bytes == 0 {
                break;
            }
            self.unread.extend_from_slice(&part[..received.bytes]);
        }
        let whole = self.unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.unread.drain(..whole).collect();
        self.read(&String::from_utf8_lossy(&lines));
    }

    pub(super) fn read(&mut self, text: &str) {
        for line in text.lines() {
            let number = |start| line.strip_prefix(start)?.parse().ok();
            let began = number(STARTS).map(|since| UNIX_EPOCH + Duration::from_nanos(since));
            self.began = began.or(self.began);
            let limit = number(STALLED_AFTER).map(Duration::from_millis);
            self.stalled_after = limit.or(self.stalled_after);
            self.joined |= line == JOINED;
            self.image = number(IMAGE).map(Image).or(self.image);
            let given_up = match line {
                GIVES_UP => Some(GivenUp::Known),
                AS_DEAD => Some(GivenUp::AsDead),
                _ => None,
            };
            self.given_up = given_up.or(self.given_up);
            let ending = match line {
                LEAVES => Some(Ending::Leaves),
                FINALISED => Some(Ending::Finalised),
                ABORTS => Some(Ending::Aborts),
                _ => None,
            };
            self.ending = ending.or(self.ending);
            self.began_at_ticks = number(BEGAN_AT).or(self.began_at_ticks);
            self.over_at_ticks = number(OVER_AT).or(self.over_at_ticks);
            let is_vital = line.strip_prefix(VITAL).and_then(|text| text.parse().ok());
            self.is_vital = is_vital.or(self.is_vital);
            self.listens |= line == LISTENS;
            self.server.speaks_pmi2 |= line == PMI2;
            self.server.libraries.extend(line.strip_prefix(LIBRARY).map(PathBuf::from));
            self.others
                .extend(line.strip_prefix(OTHER).and_then(|text| text.parse::<SocketAddr>().ok()));
            self.segments.extend(line.strip_prefix(SEGMENT).and_then(Segment::from_line));
            // A file comes with its line, or before it.
            if line == CONNECTION {
                self.server.connection = self.files.pop_front();
            }
            if let Some(words) = line.strip_prefix(TESTIMONY)
                && let Some(file) = self.files.pop_front()
            {
                let (listener, words) = (TcpListener::from(file), words.to_owned());
                self.testimony = Some(Testimony { listener, words });
            }
        }
        if self.ending.is_some() && self.given_up != Some(GivenUp::AsDead) {
            // It closes its listener itself, in order.
            self.testimony = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::process::Command;

    #[test]
    fn what_was_told_is_heard_after_the_end() {
        let (child, guard) = UnixStream::pair().expect("sockets");
        let (mut far, near) = UnixStream::pair().expect("sockets");
        let mut other = Command::new("sleep").arg("1000").spawn().expect("it is there");
        let libraries = vec![PathBuf::from("/lib/a b.so"), PathBuf::from("/lib/c.so")];
        let connection = Some(near.into());
        let server = Server { libraries: libraries.clone(), speaks_pmi2: true, connection };
        let segment = Segment::from_line("3 4711 /dev/shm/a b").expect("it is one");
        let (now, limit) = (SystemTime::now(), Duration::from_millis(1500));
        let mut status = ChildStatus::default();
        status.hear(&guard);
        assert_eq!((status.began, status.joined), (None, false));
        let deadline = Duration::from_mins(1);
        starts(&child, now, deadline).expect("there is room");
        status.hear(&guard);
        assert_eq!((status.began, status.joined), (Some(now), false));
        assert_eq!(status.stalled_after, Some(deadline));
        let others = ["127.0.0.1:4711", "[::1]:80"].map(|text| text.parse().expect("an address"));
        joined(&child, limit, &server, std::slice::from_ref(&segment), &others)
            .expect("there is room");
        status.hear(&guard);
        assert!(status.is_amid_job());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let testimony = Testimony { listener, words: "1 2 3".to_owned() };
        hands_over(&child, &testimony).expect("there is room");
        drop(testimony);
        status.hear(&guard);
        assert_eq!(status.testimony.as_ref().map(|it| &it.words[..]), Some("1 2 3"));
        std::net::TcpStream::connect(address).expect("it is open still");
        finalised(&child).expect("there is room");
        let _ = (other.kill(), other.wait());
        drop((child, server));
        status.hear(&guard);
        std::net::TcpStream::connect(address).expect_err("it is closed in order");
        assert!(status.joined && status.server.speaks_pmi2);
        assert_eq!(status.ending, Some(Ending::Finalised));
        let (began, over) = (status.began_at_ticks, status.over_at_ticks);
        assert!(began.is_some_and(|began| began > 0) && began < over, "{began:?}, {over:?}");
        assert_eq!((status.began, status.stalled_after), (Some(now), Some(limit)));
        assert_eq!(status.segments, [segment]);
        assert_eq!(status.others, others);
        assert_eq!(status.server.libraries, libraries);
        // The file has outlived its owner.
        let connection = status.server.connection.expect("it was sent");
        UnixStream::from(connection).write_all(b"hello").expect("it is open");
        let mut heard = String::new();
        far.read_to_string(&mut heard).expect("it is closed now");
        assert_eq!(heard, "hello");
    }

    #[test]
    fn a_line_may_come_in_parts() {
        let (mut child, guard) = UnixStream::pair().expect("sockets");
        let mut status = ChildStatus::default();
        for (part, is_whole) in [("stalled_after_ms 7", false), ("00\njoi", true), ("ned", true)] {
            child.write_all(part.as_bytes()).expect("there is room");
            status.hear(&guard);
            let limit = is_whole.then_some(Duration::from_millis(700));
            assert_eq!((status.stalled_after, status.joined), (limit, false), "{part}");
        }
        child.write_all(b"\n").expect("there is room");
        status.hear(&guard);
        assert!(status.joined);
    }
}
