//! Why GAP has not computed a value.

use crate::frame::BadFrame;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why there is no value. Like a value, it can be the result of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum GapError {
    /// There is no such program on this host.
    #[error(
        "there is no program `{program}`. To install GAP on Debian or Ubuntu: \
         `apt-get install --no-install-recommends gap-core`; for others see \
         https://www.gap-system.org/. If it is elsewhere, set ULTRAMARINE_GAP to its path"
    )]
    NotFound {
        /// The program that was looked for.
        program: String,
    },
    /// The program is a GAP that is too old.
    #[error("`{program}` is GAP {found}, but {} or later is needed", crate::OLDEST)]
    TooOld {
        /// The program.
        program: String,
        /// Its version.
        found: String,
    },
    /// GAP has not begun to serve.
    #[error("`{program}` did not start: {how}{}", said(.printed))]
    NoStart {
        /// The program.
        program: String,
        /// How its start ended.
        how: Death,
        /// The last lines that it printed.
        printed: String,
    },
    /// A library of the settings has an error.
    #[error("GAP cannot read {library}: {message}")]
    Library {
        /// The file, or that it is a text.
        library: String,
        /// What GAP says.
        message: String,
    },
    /// The call ended with an error of GAP.
    #[error("GAP says: {message}")]
    Said {
        /// GAP's message, as it is.
        message: String,
    },
    /// The result is of a kind that does not travel.
    #[error("the result cannot leave GAP: {what}")]
    NotSendable {
        /// The kind of the value, and how it is printed, at most 200 bytes.
        what: String,
    },
    /// GAP died amid the call, in each try.
    #[error("GAP died amid the call (tries: {tries}): {how}{}", said(.printed))]
    Died {
        /// The number of processes that have died of the call.
        tries: u32,
        /// How the last one did.
        how: Death,
        /// The last lines that it printed.
        printed: String,
    },
    /// The caller has given up.
    #[error("the call was given up")]
    GivenUp,
    /// The value is not of the type that the program wants.
    #[error(transparent)]
    WrongType(#[from] WrongType),
}

impl GapError {
    /// Whether the same call may succeed in another process or on another host.
    pub fn is_of_this_place(&self) -> bool {
        match self {
            GapError::NotFound { .. }
            | GapError::TooOld { .. }
            | GapError::NoStart { .. }
            | GapError::Library { .. } => true,
            GapError::Died { how, .. } => !matches!(how, Death::TooLong { .. }),
            GapError::Said { .. }
            | GapError::NotSendable { .. }
            | GapError::GivenUp
            | GapError::WrongType(_) => false,
        }
    }
}

/// How a GAP ended that should have served on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Death {
    /// A signal killed it.
    #[error("signal {signal} killed it")]
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// It ended by itself.
    #[error("it ended with code {code}")]
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// It took longer than allowed, and was killed.
    #[error("it took longer than {limit:?}, and was killed")]
    TooSlow {
        /// The limit of the settings.
        limit: Duration,
    },
    /// It had no more memory, and was killed.
    #[error("it needed more memory than it may have")]
    OutOfMemory,
    /// What it replied made no sense, and it was killed.
    #[error("its reply makes no sense ({reason}), and it was killed")]
    BadReply {
        /// What is wrong with it.
        reason: String,
    },
    /// Its reply was longer than allowed, and it was killed.
    #[error("its reply is longer than {bytes_max} bytes, and it was killed")]
    TooLong {
        /// The limit of the settings.
        bytes_max: usize,
    },
    /// The system refused to start it, or to carry its messages.
    #[error("the system says: {reason}")]
    System {
        /// The system's message.
        reason: String,
    },
}

impl From<BadFrame> for Death {
    fn from(bad: BadFrame) -> Self {
        match bad {
            BadFrame::TooLong { bytes_max } => Death::TooLong { bytes_max },
            BadFrame::Unreadable(reason) => Death::BadReply { reason },
        }
    }
}

impl From<std::io::Error> for Death {
    fn from(error: std::io::Error) -> Self {
        Death::System { reason: error.to_string() }
    }
}

/// A [`Value`](crate::Value) of another kind than the program wants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("expected {expected}, found {found}")]
pub struct WrongType {
    /// What the program wants.
    pub expected: String,
    /// What the value is.
    pub found: String,
}

/// The last lines that GAP printed, for the end of a message.
fn said(printed: &str) -> String {
    if printed.is_empty() { String::new() } else { format!(". It printed last:\n{printed}") }
}
