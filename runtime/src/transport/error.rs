//! Why a lane cannot go on, in words for the person who started the job.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;
use ultramarine_topology::Pe;

/// Why a lane cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The job has no such PE.
    #[error("{0} does not exist in this job")]
    NoSuchPe(Pe),
    /// A PE of this process has ended. Each PE that sends to it gets this error once.
    #[error("{0} has left the job before its end; its own message stands above")]
    HasLeft(Pe),
    /// A frame is longer than the lane carries: a defect of the layer above.
    #[error("a frame of {bytes} bytes is longer than the {limit} bytes that the lane carries")]
    FrameTooLong {
        /// The frame's length, in bytes.
        bytes: usize,
        /// The longest frame that the lane carries, in bytes.
        limit: usize,
    },
    /// The operating system refused a socket operation.
    #[error("{doing}: {source}{}", hint(.source))]
    Io {
        /// What this PE was doing, and with which address.
        doing: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// This process may not open as many files as it must.
    #[error(
        "out of file descriptors: RLIMIT_NOFILE is {limit}, which leaves {left}, and at least \
         {needed} are needed. Raise it with `ulimit -n {enough}` (or more) before the start"
    )]
    Descriptors {
        /// The number of descriptors that the process may have.
        limit: u64,
        /// The number of them that are free.
        left: u64,
        /// The number that must be free.
        needed: u64,
        /// The limit that would be enough.
        enough: u64,
    },
    /// Every port of the range is in use.
    #[error(
        "no port to listen for PEs on: all from {first} to {last} are taken on {ip}; \
         give a wider range, as in --ports 40000-40100: each process takes two ports"
    )]
    NoPort {
        /// The address to listen on.
        ip: std::net::IpAddr,
        /// The first port of the range.
        first: u16,
        /// The last port of the range.
        last: u16,
    },
    /// MPI returned an error code.
    #[error("{call} failed: {message}")]
    Mpi {
        /// The MPI function.
        call: &'static str,
        /// What `MPI_Error_string` says about the code.
        message: String,
    },
}

/// What to do about a lack of file descriptors, which the system's error does not say.
pub(super) fn hint(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => {
            let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            format!(
                ": out of file descriptors (RLIMIT_NOFILE is {limit}). Raise the limit with \
                 `ulimit -n` before the start, or open fewer files at a time"
            )
        }
        Some(Errno::NFILE) => {
            ": the host is out of file descriptors (fs.file-max limits them). Run \
                               fewer processes on it, or ask its administrator for more"
                .to_owned()
        }
        _ => String::new(),
    }
}
