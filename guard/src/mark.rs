//! The mark by which a process knows whether it has a guard, or is to become one.

use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use ultramarine_environment::variables;

/// The variable that says whether a process has a guard, so that none gets two.
pub(super) const MARK: &str = variables::GUARDED.name;

/// Its value in a process that is to become a guard before `main`.
pub(super) const BEGIN: &str = "begin";

/// What [`MARK`] says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing: the launcher has just started this process.
    None,
    /// The guard was to be made before `main`, and was not.
    Failed(String),
    /// The guard has this number, and the child tells it things through this socket.
    Guarded { guard: u32, channel: RawFd },
}

impl Mark {
    pub(super) fn read(text: Option<&str>) -> Self {
        let guarded = |text: &str| {
            let (guard, channel) = text.split_once(':')?;
            Some(Mark::Guarded { guard: guard.parse().ok()?, channel: channel.parse().ok()? })
        };
        match text {
            None => Mark::None,
            Some(BEGIN) => Mark::Failed("nothing runs before main here".to_owned()),
            Some(text) => guarded(text).unwrap_or_else(|| Mark::Failed(text.to_owned())),
        }
    }

    pub(super) fn text(guard: u32, channel: &UnixStream) -> String {
        format!("{guard}:{}", channel.as_raw_fd())
    }
}
