//! Sleeps until a socket has an event, or another thread wakes the sleeper.

use crate::transport::error::LaneError;
use crate::transport::lane::Sleeper;
use mio::Registry;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sleeps in `poll(2)` on two descriptors: the lane's epoll, which is readable while it has events
/// that the lane has not taken, and a bell. The bell is not in the epoll, because another thread
/// that polls the lane meanwhile would take its ringing away from the sleeper.
pub(super) struct PollSleeper {
    epoll: Arc<Registry>,
    bell: OwnedFd,
    /// The bell was rung and not answered yet: ringing again needs no system call.
    is_rung: AtomicBool,
    /// The lane stopped reading with something left to read; epoll does not report that again.
    has_unread: AtomicBool,
    /// The lane waits for something that epoll may not report.
    is_restless: AtomicBool,
}

/// How long to sleep at most while the lane is restless.
const RESTLESS_SLEEP_MAX: Duration = Duration::from_millis(5);

impl PollSleeper {
    /// A sleeper on the lane's epoll.
    pub(super) fn new(epoll: Arc<Registry>) -> Result<Self, LaneError> {
        let io = |source| LaneError::Io { doing: "making the TCP lane's sleeper".into(), source };
        Ok(PollSleeper {
            epoll,
            bell: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
                .map_err(|errno| io(errno.into()))?,
            is_rung: AtomicBool::new(false),
            has_unread: AtomicBool::new(false),
            is_restless: AtomicBool::new(false),
        })
    }

    pub(super) fn set(&self, has_unread: bool, is_restless: bool) {
        self.has_unread.store(has_unread, Ordering::Release);
        self.is_restless.store(is_restless, Ordering::Release);
    }
}

impl Sleeper for PollSleeper {
    fn sleep(&self, at_most: Duration) {
        if self.has_unread.load(Ordering::Acquire) {
            return;
        }
        let is_restless = self.is_restless.load(Ordering::Acquire);
        let at_most = if is_restless { at_most.min(RESTLESS_SLEEP_MAX) } else { at_most };
        let mut sources =
            [PollFd::new(&self.epoll, PollFlags::IN), PollFd::new(&self.bell, PollFlags::IN)];
        let at_most = Timespec::try_from(at_most).ok();
        // A failure (a signal, say) is an early return, which is allowed.
        let _ = poll(&mut sources, at_most.as_ref());
        if !sources[1].revents().is_empty() {
            // In this order: a ring between the two is lost, but ends this sleep, which is over;
            // the other way round, it would be swallowed and keep all later ones from ringing.
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
            self.is_rung.swap(false, Ordering::AcqRel);
        }
    }

    fn wake(&self) {
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            // Can fail only if the counter is full, and then the bell is ringing.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    fn wakes_on_traffic(&self) -> bool {
        true
    }
}
