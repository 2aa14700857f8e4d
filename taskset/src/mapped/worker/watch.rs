//! Which workers have died.
//!
//! A process of this host is dead when the system says so: its pidfd becomes readable, also while
//! no parent has collected it. Since numbers of processes come again, the slot says when its
//! process began. Of a process that this one cannot look for (on another host, or in another
//! container) only the beat is known: it is given up when that has not changed for a while, by this
//! process's clock.
//!
//! All this is in the memory of the process that watches.

use std::fs;
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
            let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            let processes = fs::metadata("/proc/self/ns/pid").map_or(0, |about| about.ino());
            xxh3_64(&[&boot[..], &processes.to_le_bytes()].concat()).max(1)
        });
        let process = getpid().as_raw_nonzero().get().cast_unsigned();
        Self { process, home, born: began(process).unwrap_or(0) }
    }
}

/// When a process began, in ticks since the host did; `None` if there is none, or only its remains.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let began = fields.nth(18)?.parse().ok()?;
    (!has_ended).then_some(began)
}

/// A worker that has died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dead {
    pub(crate) worker: usize,
    pub(crate) life: Life,
}

/// What one worker knows of the others.
#[derive(Debug)]
pub(crate) struct Watch {
    own: Own,
    silent_after: Duration,
    peers: Vec<Option<Peer>>,
}

#[derive(Debug)]
struct Peer {
    life: Life,
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
    /// This process may have no more descriptors: when its process began.
    Born(u32, u64),
    Beat {
        count: u64,
        since: Instant,
    },
}

impl Watch {
    pub(crate) fn new(own: Own, silent_after: Duration) -> Self {
        Self { own, silent_after, peers: Vec::new() }
    }

    /// Those other than `me` that have died and that no worker takes over.
    pub(crate) fn look(&mut self, space: &Space, me: usize) -> Vec<Dead> {
        let (mut dead, mut polled) = (Vec::new(), Vec::new());
        for worker in space.workers().filter(|worker| *worker != me) {
            let slot = space.slot(worker);
            let life = Life::load(&slot.life);
            let Phase::Alive(process) = life.phase else { continue };
            if self.peers.len() <= worker {
                self.peers.resize_with(worker + 1, || None);
            }
            if self.peers[worker].as_ref().is_none_or(|peer| peer.life != life) {
                let sign = self.sign(slot, process);
                self.peers[worker] = sign.map(|sign| Peer { life, sign });
            }
            let Some(peer) = &mut self.peers[worker] else { continue };
            let has_ended = match &mut peer.sign {
                Sign::Ended => true,
                Sign::Here => false,
                Sign::Process(_) => {
                    polled.push(Dead { worker, life });
                    false
                }
                Sign::Born(process, born) => began(*process) != Some(*born),
                Sign::Beat { count, since } => {
                    let now = slot.beat.count.load(Relaxed);
                    if now != *count {
                        (*count, *since) = (now, Instant::now());
                    }
                    since.elapsed() > self.silent_after
                }
            };
            if has_ended {
                dead.push(Dead { worker, life });
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

    /// How the end of this process is noticed; `None` while its slot is not complete.
    fn sign(&self, slot: &Slot, process: u32) -> Option<Sign> {
        let [born, home] = [&slot.born, &slot.home].map(|word| word.load(Acquire));
        if home != 0 && home != self.own.home {
            return Some(Sign::Beat {
                count: slot.beat.count.load(Relaxed),
                since: Instant::now(),
            });
        }
        if process == self.own.process {
            let is_here = born == 0 || born == self.own.born;
            return Some(if is_here { Sign::Here } else { Sign::Ended });
        }
        let descriptor = Pid::from_raw(process.cast_signed())
            .ok_or(Errno::SRCH)
            .and_then(|process| pidfd_open(process, PidfdFlags::empty()));
        match descriptor {
            Err(Errno::SRCH) => Some(Sign::Ended),
            _ if born == 0 => None,
            // Opened before it is asked when it began: it is that process.
            Ok(_) if began(process) != Some(born) => Some(Sign::Ended),
            Ok(descriptor) => Some(Sign::Process(descriptor)),
            Err(_) => Some(Sign::Born(process, born)),
        }
    }
}
