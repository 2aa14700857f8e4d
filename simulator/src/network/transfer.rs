//! `LogGP`: when the bytes of one message leave and arrive, and for how long both ends are busy.
//!
//! The model (Alexandrov, Ionescu, Schauser, Scheiman, *`LogGP`: Incorporating Long Messages into
//! the `LogP` Model*, SPAA 1995) has four costs of a message of k bytes: the latency L, the
//! overhead o of each end, the gap g between messages, and the gap G between bytes.
//!
//! ```text
//!            send overhead   (k-1)G
//! sender    ├──────────────┬────────────┤
//!           ├───────────────────────────────┤ port busy: until the next message may begin
//!                           ╲            ╲
//!                            ╲ L          ╲ L
//!                             ╲            ╲   receive overhead
//! receiver                     ├────────────┼──────────────────┤
//!                         first byte    last byte     the message is known
//!                              ├───────────────────────────────┤ port busy
//! time      0 ────────────────────────────────────────────────────────────────→
//! ```
//!
//! - The sender prepares the message for `send_overhead`. In the paper it computes nothing else
//!   meanwhile. Here that keeps its port busy and no worker: the overheads of a PE are time of its
//!   port alone.
//! - The next message may begin after `max(send_overhead, g + (k-1)G)`. So a PE sends at most one
//!   message in that time: its message rate.
//! - The last byte arrives at `send_overhead + L + (k-1)G`.
//! - The receiver takes the message in for `receive_overhead`, and takes in another one after
//!   `max(receive_overhead, g + (k-1)G)`.
//!
//! All times are whole nanoseconds, but for the gap per byte, which is in picoseconds: at 24 GB/s
//! a byte takes 42 ps.

/// What messages between two PEs cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCosts {
    /// L: from the sender's network interface to the receiver's, in nanoseconds.
    pub latency_ns: u64,
    /// o of the sender, in nanoseconds.
    pub send_overhead_ns: u64,
    /// o of the receiver, in nanoseconds.
    pub receive_overhead_ns: u64,
    /// g: between two messages of a PE, in nanoseconds.
    pub gap_ns: u64,
    /// G: between two bytes of a message, in picoseconds.
    pub gap_per_byte_ps: u64,
    /// How much later than `latency_ns` a message comes on average, in nanoseconds: the mean of an
    /// exponential distribution.
    pub jitter_ns: u64,
}

/// When what happens to one message. Times are nanoseconds since the sender began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// When the sender may begin with the next message.
    pub sender_port_ns: u64,
    /// When the first byte arrives, without jitter.
    pub first_byte_ns: u64,
    /// When the last byte arrives, without jitter.
    pub last_byte_ns: u64,
    /// How long the receiver takes the message in. No worker waits for it.
    pub receive_overhead_ns: u64,
    /// How long after the first byte the receiver takes in another message.
    pub receiver_port_ns: u64,
}

impl LinkCosts {
    /// Half of a round trip of messages of no length to speak of: what benchmarks of MPI call the
    /// latency.
    pub fn half_round_trip_ns(&self) -> u64 {
        self.send_overhead_ns + self.latency_ns + self.receive_overhead_ns
    }

    /// One message of this many bytes. A message of no bytes takes as long as one of one byte.
    #[inline]
    pub fn transfer(&self, bytes: u64) -> Transfer {
        let stretch_ns = bytes.saturating_sub(1).saturating_mul(self.gap_per_byte_ps) / 1000;
        let first_byte_ns = self.send_overhead_ns + self.latency_ns;
        let spacing_ns = self.gap_ns + stretch_ns;
        Transfer {
            sender_port_ns: self.send_overhead_ns.max(spacing_ns),
            first_byte_ns,
            last_byte_ns: first_byte_ns + stretch_ns,
            receive_overhead_ns: self.receive_overhead_ns,
            receiver_port_ns: self.receive_overhead_ns.max(spacing_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: LinkCosts = LinkCosts {
        latency_ns: 600,
        send_overhead_ns: 300,
        receive_overhead_ns: 500,
        gap_ns: 400,
        gap_per_byte_ps: 250,
        jitter_ns: 0,
    };

    #[test]
    fn a_message_of_one_byte_by_hand() {
        let expected = Transfer {
            sender_port_ns: 400,
            first_byte_ns: 900,
            last_byte_ns: 900,
            receive_overhead_ns: 500,
            receiver_port_ns: 500,
        };
        assert_eq!(COSTS.transfer(1), expected);
        assert_eq!(COSTS.transfer(0), expected);
        assert_eq!(COSTS.half_round_trip_ns(), 1_400);
    }

    #[test]
    fn a_long_message_by_hand() {
        // 4001 bytes: 4000 gaps of 250 ps are 1000 ns.
        let expected = Transfer {
            sender_port_ns: 1_400,
            first_byte_ns: 900,
            last_byte_ns: 1_900,
            receive_overhead_ns: 500,
            receiver_port_ns: 1_400,
        };
        assert_eq!(COSTS.transfer(4_001), expected);
    }

    #[test]
    fn the_longest_message_does_not_overflow() {
        assert!(COSTS.transfer(u64::MAX).last_byte_ns > 1 << 50);
    }

    #[test]
    fn what_costs_nothing_takes_no_time() {
        assert_eq!(LinkCosts::default().transfer(1 << 20).last_byte_ns, 0);
    }
}
