//! The limits of a port.

use std::time::Duration;

/// The limits of a [`Port`](super::Port). All PEs of a job use the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortSettings {
    /// The longest message, and the longest array that belongs to one, in bytes. (A message alone
    /// is never longer than 512 MiB.) Default 256 MiB.
    pub message_bytes_max: usize,
    /// How much may be in flight towards a peer without being acknowledged, in frames of full
    /// length; at least 1. Default 1024.
    pub window_frames: u32,
    /// How much all peers together may have in flight towards this PE, in bytes, apart from one
    /// frame of each (4 KiB over MPI, else 64 KiB). Default 64 MiB.
    pub credit_bytes_max: usize,
    /// How much may wait for one peer in the port, sent or not, until it is acknowledged, in bytes;
    /// a message that is longer waits there alone. What does not fit waits in the order in which it
    /// was sent, so a program that sends more than the network takes needs the memory for it.
    /// Default 1 GiB, or four times `message_bytes_max` if that is more.
    pub backlog_bytes_max: usize,
    /// Whether PEs of one host copy large arrays straight from each other's memory, where the host
    /// lets them: they try, and else send them like everything else. (The system call is
    /// `process_vm_readv`, which MPI libraries call CMA.) Default true.
    pub single_copy: bool,
    /// How long to wait for an acknowledgement before sending again, and asking the watch to look
    /// at the peer. Lanes that lose nothing (`memory`) do neither. Default 1 s.
    pub resend_after: Duration,
    /// How many times to send again before the lane is held for stuck, if nobody has found the peer
    /// dead by then: the job goes over to the fallback lane, if it has one. Default 30.
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
    /// The same, where each value outside its range becomes the nearest one within.
    pub(super) fn within_range(self) -> Self {
        PortSettings { window_frames: self.window_frames.max(1), ..self }
    }

    /// How long a lane may take nothing, or a peer be silent, before the lane is held for stuck.
    pub(crate) fn patience(&self) -> Duration {
        self.resend_after.saturating_mul(self.resends_max)
    }
}
