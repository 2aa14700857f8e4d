//! What one PE has sent and what has not arrived: frames and notices arrive in the order in which
//! they were sent, between any two PEs and on each channel.

use ultramarine_topology::Pe;

/// What carries something from PE to PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The lane with this number: the first, or the fallback.
    Lane(u8),
    /// The connections of the failure detectors.
    Notices,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Transit {
    /// To which PE, on which channel, and when the last arrives.
    last: Vec<(Pe, Channel, u64)>,
    /// The sender's port is busy until then.
    pub(crate) sends_until: u64,
    /// The receiver's port is busy until then.
    pub(crate) receives_until: u64,
}

impl Transit {
    /// When the last thing arrives that is on its way to this PE; 0 if nothing is.
    pub(crate) fn last_arrival(&self, to: Pe, channel: Channel) -> u64 {
        let found = self.last.iter().find(|(pe, on, _)| *pe == to && *on == channel);
        found.map_or(0, |(_, _, at)| *at)
    }

    /// Something is sent at `now` that arrives at `at`.
    pub(crate) fn note(&mut self, now: u64, to: Pe, channel: Channel, at: u64) {
        self.last.retain(|(_, _, at)| *at >= now);
        match self.last.iter_mut().find(|(pe, on, _)| *pe == to && *on == channel) {
            Some((_, _, last)) => *last = at.max(*last),
            None => self.last.push((to, channel, at)),
        }
    }

    /// The PEs to which something is on its way in frames, and when the last of it arrives.
    pub(crate) fn frames_under_way(&self) -> impl Iterator<Item = (Pe, u64)> + '_ {
        let is_frame = |channel: &Channel| matches!(channel, Channel::Lane(_));
        self.last.iter().filter(move |(_, on, _)| is_frame(on)).map(|(pe, _, at)| (*pe, *at))
    }
}
