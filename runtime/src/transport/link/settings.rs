//! The limits of a port.

use std::time::Duration;

/// The limits of a [`Port`](super::Port). All PEs of a job use the same settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortSettings {
    /// The longest message, and the longest array that belongs to a message, in bytes; from 4 KiB
    /// to 4 GiB - 1. Default 256 MiB.
    pub message_bytes_max: usize,
    /// The most that may be in flight towards one peer without an acknowledgement, in frames of
    /// full length; at least 1. Default 1024.
    pub window_frames: u32,
    /// The most that all peers together may have in flight towards this PE, in bytes, apart from
    /// one frame of each (4 to 32 KiB over MPI, else 64 KiB). Default 64 MiB.
    pub credit_bytes_max: usize,
    /// The most that the port keeps for one peer until it is acknowledged, sent or not, in bytes. A
    /// longer message is kept there alone. Further messages wait outside of the port, in order, so
    /// a program that sends more than the network carries needs the memory for them. Default 1 GiB,
    /// or four times `message_bytes_max` if that is more.
    pub backlog_bytes_max: usize,
    /// Whether PEs of one host copy large arrays straight from each other's memory. Where the host
    /// does not allow that, arrays are sent in pieces. (The system call is `process_vm_readv`,
    /// which MPI libraries call CMA.) Default true.
    pub single_copy: bool,
    /// How long to wait for an acknowledgement before sending again, and asking the detector to
    /// look at the peer. Lanes that lose nothing (`memory`) do neither. More than zero; default
    /// 1 s.
    pub resend_after: Duration,
    /// The number of times to send again before the lane counts as stuck, if the peer has not been
    /// declared dead by then. The job then goes over to the fallback lane, if it has one. Default
    /// 30.
    pub resends_max: u32,
}

impl Default for PortSettings {
    fn default() -> Self {
        PortSettings {
            message_bytes_max: 256 << 20,
            window_frames: 1024,
            credit_bytes_max: 64 << 20,
            backlog_bytes_max: 1 << 30,
            single_copy: true,
            resend_after: Duration::from_secs(1),
            resends_max: 30,
        }
    }
}

impl PortSettings {
    /// The same settings, where each value outside its range becomes the nearest one within.
    pub(super) fn within_range(self) -> Self {
        PortSettings { window_frames: self.window_frames.max(1), ..self }
    }

    /// How long a lane may take nothing, or a peer be silent, before the lane counts as stuck.
    pub(crate) fn patience(&self) -> Duration {
        self.resend_after.saturating_mul(self.resends_max)
    }
}
