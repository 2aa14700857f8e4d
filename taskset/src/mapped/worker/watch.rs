//! Which workers have died.
//!
//! A process of this host is dead when the system says so: its pidfd becomes readable, also while
//! no parent has collected it. Since numbers of processes come again, the slot says when its
//! process began. Of a process that this one cannot look for (on another host, or in another
//! container) only the beat is known: it is given up when that has not changed for a while, by this
//! process's clock.
//!
//! What is *not known* counts as alive: a process that may open no more files cannot look at the
//! others, and must not take their work.
//!
//! All this is in the memory of the process that watches, once for all of its workers.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use xxhash_rust::xxh3::xxh3_64;

use super::life::{Life, Phase};
use crate::mapped::arena::{Slot, Space};
use crate::sync::Ordering::{Acquire, Relaxed};

/// What the others can know of this process: which processes can look for it, and when it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) process: u32,
    pub(crate) home: u64,
    pub(crate) born: u64,
}

impl Own {
    /// Of this process.
    pub(crate) fn get() -> Self {
        static HOME: OnceLock<u64> = OnceLock::new();
        let home = *HOME.get_or_init(|| {
            // Where the system does not say it, no other process can be looked for.
            home().unwrap_or_else(|_| RandomState::new().hash_one(())).max(1)
        });
        let process = getpid().as_raw_nonzero().get().cast_unsigned();
        Self { process, home, born: began(process).ok().flatten().unwrap_or(0) }
    }
}

/// This host since it was started, and the numbers of processes as this one sees them.
fn home() -> io::Result<u64> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id")?;
    let processes = fs::metadata("/proc/self/ns/pid")?.ino();
    Ok(xxh3_64(&[&boot[..], &processes.to_le_bytes()].concat()))
}

/// When a process began, in ticks since the host did; `None` if there is none, or only its remains.
///
/// # Errors
/// It is not known: for want of a descriptor, say, or since `/proc` is of another namespace, where
/// the number means something else.
fn began(process: u32) -> io::Result<Option<u64>> {
    if fs::read_link("/proc/self")?.as_os_str() != getpid().to_string().as_str() {
        return Err(ErrorKind::Unsupported.into());
    }
    let stat = match fs::read_to_string(format!("/proc/{process}/stat")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => return Ok(None),
        stat => stat?,
    };
    let began = || {
        // The name in parentheses may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let has_ended = matches!(fields.next()?, "Z" | "X");
        let began = fields.nth(18)?.parse().ok()?;
        Some((!has_ended).then_some(began))
    };
    began().ok_or_else(|| ErrorKind::InvalidData.into())
}

/// A worker that has died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dead {
    pub(crate) worker: usize,
    pub(crate) life: Life,
    /// One that was given up was about to take it over, and may still do so.
    pub(crate) is_left: bool,
}

/// Whether no worker takes over what this one was about to: it went on after it was taken for dead.
fn is_given_up(space: &Space, worker: u32) -> bool {
    let worker = worker as usize;
    let phase = |worker| Life::load(&space.slot(worker).life).phase;
    !space.workers().contains(&worker) || matches!(phase(worker), Phase::Free | Phase::Silent)
}

/// What the workers of one process know of the others.
#[derive(Debug)]
pub(crate) struct Watch {
    own: Own,
    silent_after: Duration,
    peers: Vec<Option<Peer>>,
}

#[derive(Debug)]
struct Peer {
    life: Life,
    home: u64,
    sign: Sign,
}

/// How the end of a life is noticed.
#[derive(Debug)]
enum Sign {
    /// It has ended already.
    Ended,
    /// A thread of this process, which leaves in order.
    Here,
    Process(OwnedFd),
    Beat {
        count: u64,
        since: Instant,
    },
}

impl Watch {
    pub(crate) fn new(own: Own, silent_after: Duration) -> Self {
        Self { own, silent_after, peers: Vec::new() }
    }

    /// Those that have died and that no living worker takes over.
    pub(crate) fn look(&mut self, space: &Space) -> Vec<Dead> {
        let (mut dead, mut polled) = (Vec::new(), Vec::new());
        for worker in space.workers() {
            let slot = space.slot(worker);
            let life = Life::load(&slot.life);
            let process = match life.phase {
                Phase::Alive(process) => process,
                Phase::Taken(by) if is_given_up(space, by) => {
                    dead.push(Dead { worker, life, is_left: true });
                    continue;
                }
                _ => continue,
            };
            if self.peers.len() <= worker {
                self.peers.resize_with(worker + 1, || None);
            }
            let home = slot.home.load(Acquire);
            let is_same = |peer: &Peer| (peer.life, peer.home) == (life, home);
            if !self.peers[worker].as_ref().is_some_and(is_same) {
                let sign = self.sign(slot, home, process);
                self.peers[worker] = sign.map(|sign| Peer { life, home, sign });
            }
            let Some(peer) = &mut self.peers[worker] else { continue };
            let has_ended = match &mut peer.sign {
                Sign::Ended => true,
                Sign::Here => false,
                Sign::Process(_) => {
                    polled.push(Dead { worker, life, is_left: false });
                    false
                }
                Sign::Beat { count, since } => {
                    let now = slot.beat.count.load(Relaxed);
                    if now != *count {
                        (*count, *since) = (now, Instant::now());
                    }
                    since.elapsed() > self.silent_after
                }
            };
            if has_ended {
                dead.push(Dead { worker, life, is_left: false });
            }
        }
        dead.extend(self.ended(&polled));
        dead
    }

    /// Those of them whose processes have ended.
    fn ended(&self, polled: &[Dead]) -> Vec<Dead> {
        let descriptor = |dead: &Dead| match self.peers[dead.worker].as_ref().map(|peer| &peer.sign)
        {
            Some(Sign::Process(descriptor)) => Some(PollFd::new(descriptor, PollFlags::IN)),
            _ => None,
        };
        let mut descriptors: Vec<_> = polled.iter().filter_map(descriptor).collect();
        if descriptors.is_empty() || poll(&mut descriptors, Some(&Timespec::default())).is_err() {
            return Vec::new();
        }
        let results = polled.iter().zip(&descriptors);
        results.filter(|(_, one)| !one.revents().is_empty()).map(|(dead, _)| *dead).collect()
    }

    /// How the end of this process is noticed; `None` while that is not known, and it is looked for
    /// in this way each time.
    fn sign(&self, slot: &Slot, home: u64, process: u32) -> Option<Sign> {
        // Also of a worker that has not said yet where it is: its number may be of anywhere.
        if home != self.own.home {
            return Some(Sign::Beat {
                count: slot.beat.count.load(Relaxed),
                since: Instant::now(),
            });
        }
        let born = slot.born.load(Acquire);
        if process == self.own.process {
            let is_here = born == 0 || born == self.own.born;
            return Some(if is_here { Sign::Here } else { Sign::Ended });
        }
        let descriptor = Pid::from_raw(process.cast_signed())
            .ok_or(Errno::SRCH)
            .and_then(|process| pidfd_open(process, PidfdFlags::empty()));
        if matches!(descriptor, Err(Errno::SRCH)) {
            return Some(Sign::Ended);
        }
        if born == 0 {
            // It did not know when it began: a process of its number is taken for it.
            return descriptor.ok().map(Sign::Process);
        }
        // Opened before it is asked when it began: it is that process.
        match began(process) {
            Ok(began) if began != Some(born) => Some(Sign::Ended),
            Ok(_) => descriptor.ok().map(Sign::Process),
            Err(_) => None,
        }
    }
}
