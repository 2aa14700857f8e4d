//! How far the job is.

/// How far the job is, as this PE knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Tasks run.
    Running,
    /// The main task has ended; PEs leave.
    Ending,
    /// This PE may leave. All PEs have sent FAREWELL, so nothing will arrive any more; or a PE has
    /// died, and this one need not wait for others.
    Released,
}

/// Where the end of the job stands on this PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ending {
    pub(super) phase: Phase,
    /// The number of children in the tree that have not sent FAREWELL yet.
    pub(super) farewells_awaited: usize,
    pub(super) said_farewell: bool,
}

impl Ending {
    pub(super) const NOT_YET: Ending =
        Ending { phase: Phase::Running, farewells_awaited: 0, said_farewell: false };
}
