//! What one PE has sent and what has not arrived: frames arrive in the order in which they were
//! sent, between any two PEs and on each lane.

use ultramarine_topology::Pe;

/// See the [module](self). In a modelled network a frame is noted only if it is late: the others
/// come in order by themselves.
#[derive(Debug, Default)]
pub(crate) struct Transit {
    /// To which PE, on which lane, and when the last arrives.
    last: Vec<(Pe, u8, u64)>,
    /// The sender's port is busy until then.
    pub(crate) sends_until: u64,
    /// The receiver's port is busy until then.
    pub(crate) receives_until: u64,
}

impl Transit {
    /// When the last frame arrives that is on its way to this PE, if one was noted.
    pub(crate) fn last_arrival(&self, to: Pe, lane: u8) -> Option<u64> {
        let found = self.last.iter().find(|(pe, on, _)| *pe == to && *on == lane);
        found.map(|(_, _, at)| *at)
    }

    /// A frame is sent at `now` that arrives at `at`. Those that have arrived before are forgotten.
    pub(crate) fn note(&mut self, now: u64, to: Pe, lane: u8, at: u64) {
        self.last.retain(|(_, _, at)| *at >= now);
        match self.last.iter_mut().find(|(pe, on, _)| *pe == to && *on == lane) {
            Some((_, _, last)) => *last = at.max(*last),
            None => self.last.push((to, lane, at)),
        }
    }

    /// The PEs to which frames are on their way, and when the last of them arrives.
    pub(crate) fn frames_under_way(&self) -> impl Iterator<Item = (Pe, u64)> + '_ {
        self.last.iter().map(|(pe, _, at)| (*pe, *at))
    }
}
