//! What a detector tells its PE.

use ultramarine_topology::Pe;

/// What a detector tells its PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureEvent {
    /// These PEs have died since the last event of this kind. All PEs hear of the same deaths, in
    /// the same order.
    Dead(Vec<Pe>),
    /// The other PEs have declared this PE dead. It must leave: nothing that it does counts any
    /// more. This is the last event.
    Expelled,
    /// This PE cannot watch the others any more, and to them it is as one that has died. So it must
    /// leave. This is the last event.
    Broken {
        /// What is wrong.
        reason: String,
    },
    /// Another PE has taken the place of the root, which is dead.
    Succession {
        /// The new root.
        judge: Pe,
    },
    /// This PE is the root, and has [asked](super::Detector::ask_end) whether the job ends: enough
    /// of the others have agreed, and no other PE takes its place.
    EndAgreed,
    /// The root is gone, and with it the job; or the job goes on without this PE. This is the last
    /// event.
    RootLost {
        /// How this PE found out.
        reason: String,
    },
    /// A PE said goodbye, so the job has ended, although this PE may not have heard of the end yet.
    /// After this event come only `Dead` events, for PEs that have died or have left unheard. PEs
    /// do not agree on those any more.
    JobOver {
        /// The PE that said goodbye.
        by: Pe,
    },
}
