//! What goes wrong on purpose.

use ultramarine_topology::Pe;

/// What goes wrong, at some moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum InjectedFault {
    /// A PE dies.
    Death(Pe),
    /// A PE is stopped for this time, in nanoseconds.
    Stop(Pe, u64),
    /// A PE dies with its host: nothing answers any more.
    SilentDeath(Pe),
    /// All these PEs die with their hosts: those of a host, or of a rack.
    HostDeaths {
        /// The first of the PEs,
        first: Pe,
        /// and the last.
        last: Pe,
    },
    /// A PE has no contact with another from now on, for no reason.
    Slander {
        /// The PE that sees nothing of the other.
        by: Pe,
        /// The other.
        whom: Pe,
    },
    /// Nothing gets through in one direction.
    Cut {
        /// What this PE sends
        from: Pe,
        /// does not arrive here,
        to: Pe,
        /// for this long, in nanoseconds.
        ns: u64,
    },
    /// Nothing gets through between these PEs and all others, in neither direction.
    Partition {
        /// The first of the PEs,
        first: Pe,
        /// and the last.
        last: Pe,
        /// For this long, in nanoseconds.
        ns: u64,
    },
    /// All messages are late, and PEs that live do not answer for a while; this long, in
    /// nanoseconds.
    Overload(u64),
}

impl InjectedFault {
    /// The PE that dies, if one does and no other.
    pub fn victim(&self) -> Option<Pe> {
        match self {
            InjectedFault::Death(pe) | InjectedFault::SilentDeath(pe) => Some(*pe),
            _ => None,
        }
    }
}
