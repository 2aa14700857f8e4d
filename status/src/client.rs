//! Asking a job.

use crate::JobStatus;
use crate::contact::Contact;
use crate::http::{Deadline, read_answer, write_request};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The longest answer: that of 100,000 PEs has some 30 MB.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// How long connecting to one address may take.
const CONNECTED_WITHIN: Duration = Duration::from_secs(2);

/// How long the answer may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No address can be reached.
    #[error(
        "the job does not answer at {addresses}: it has ended, or the process of its root has died \
         ({source})"
    )]
    Gone {
        /// All of them.
        addresses: String,
        /// Why the last one is not reached.
        source: io::Error,
    },
    /// There is no answer in time.
    #[error("the job does not answer at {addresses} in time: its root may be stopped, or busy")]
    Slow {
        /// All that were tried.
        addresses: String,
    },
    /// Another job answers there, or none.
    #[error("what answers at {address} wants another token: the job of this file has ended")]
    Stranger {
        /// Where.
        address: SocketAddr,
    },
    /// The job cannot say it now.
    #[error("the job does not know now: {why}")]
    NotNow {
        /// Its words.
        why: String,
    },
    /// There is an answer that cannot be read.
    #[error("what answers at {address} cannot be understood: {source}")]
    Unreadable {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// Decodes JSON: the asker does it with a library that the job does without.
pub type Decode = fn(&[u8]) -> io::Result<JobStatus>;

/// What the job of this contact does now. It takes some seconds at most for each address.
///
/// # Errors
///
/// See [`AskError`].
pub fn ask(contact: &Contact, decode: Decode) -> Result<JobStatus, AskError> {
    let (mut failed, mut is_slow) = (io::Error::other("the file names no address"), false);
    for &address in &contact.addresses {
        match TcpStream::connect_timeout(&address, CONNECTED_WITHIN) {
            Ok(stream) => return ask_at(address, &stream, &contact.token, decode),
            Err(error) => {
                is_slow |= error.kind() == ErrorKind::TimedOut;
                failed = error;
            }
        }
    }
    let addresses: Vec<_> = contact.addresses.iter().map(SocketAddr::to_string).collect();
    let addresses = addresses.join(", ");
    if is_slow {
        return Err(AskError::Slow { addresses });
    }
    Err(AskError::Gone { addresses, source: failed })
}

fn ask_at(
    address: SocketAddr,
    stream: &TcpStream,
    token: &str,
    decode: Decode,
) -> Result<JobStatus, AskError> {
    let unreadable = |source: io::Error| match source.kind() {
        ErrorKind::TimedOut => AskError::Slow { addresses: address.to_string() },
        _ => AskError::Unreadable { address, source },
    };
    let mut stream = Deadline::new(stream, ANSWERED_WITHIN, None).map_err(unreadable)?;
    let sent = write_request(&mut stream, &address.to_string(), "/job", token);
    sent.map_err(unreadable)?;
    let (code, body) = read_answer(&mut stream, ANSWER_BYTES_MAX).map_err(unreadable)?;
    match code {
        200 => decode(&body).map_err(unreadable),
        401 => Err(AskError::Stranger { address }),
        503 => Err(AskError::NotNow { why: String::from_utf8_lossy(&body).into_owned() }),
        code => Err(unreadable(io::Error::other(format!("HTTP status {code}")))),
    }
}
