//! What a detector tells its PE.

use ultramarine_topology::Pe;

/// What a detector has to say to its PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureEvent {
    /// These have died since the last such event. All PEs hear of all the dead, in the same
    /// order.
    Dead(Vec<Pe>),
    /// The others hold this PE for dead. It has to leave; nothing that it does counts any more.
    /// It is the last event.
    Expelled,
    /// The root is gone, and with it the job. It is the last event.
    RootLost {
        /// How this PE came to know.
        reason: String,
    },
    /// A PE said goodbye, so the job has ended, though this PE may have missed it. After it come
    /// only PEs that are gone: they have died, or left without being heard. Nobody agrees on that
    /// any more.
    JobOver {
        /// Who said it.
        by: Pe,
    },
}
