//! The limits of a port.

use std::time::Duration;

/// The limits of a [`Port`](super::Port). All PEs of a job use the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortSettings {
    /// The longest message, in bytes; at most `u32::MAX`. Default 256 MiB.
    pub message_bytes_max: usize,
    /// How much may be in flight towards a peer without being acknowledged, in frames of full
    /// length; at least 1. Default 1024.
    pub window_frames: u32,
    /// How much may wait for one peer, sent or not, until it is acknowledged, in bytes. Default
    /// 1 GiB.
    pub backlog_bytes_max: usize,
    /// How long to wait for an acknowledgement before sending again. Default 1 s.
    pub resend_after: Duration,
    /// How many times to send again before giving the peer up. Default 30.
    pub resends_max: u32,
}

impl Default for PortSettings {
    fn default() -> Self {
        PortSettings {
            message_bytes_max: 256 << 20,
            window_frames: 1024,
            backlog_bytes_max: 1 << 30,
            resend_after: Duration::from_secs(1),
            resends_max: 30,
        }
    }
}

impl PortSettings {
    /// The same, where each value outside its range becomes the nearest one within.
    pub(super) fn within_range(self) -> Self {
        PortSettings {
            message_bytes_max: self.message_bytes_max.min(u32::MAX as usize),
            window_frames: self.window_frames.max(1),
            ..self
        }
    }
}
