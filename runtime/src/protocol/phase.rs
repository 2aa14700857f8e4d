//! How far the job is.

/// How far the job is, as this PE knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Tasks run.
    Running,
    /// The main task has ended; PEs take leave.
    Ending,
    /// All PEs have taken leave: nothing will arrive any more. Or somebody has died, and this PE
    /// need not wait for others any more.
    Released,
}

/// Where the end of the job stands on this PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ending {
    pub(super) phase: Phase,
    /// Children in the tree of PEs that have not taken leave yet.
    pub(super) farewells_awaited: usize,
    pub(super) said_farewell: bool,
}

impl Ending {
    pub(super) const NOT_YET: Ending =
        Ending { phase: Phase::Running, farewells_awaited: 0, said_farewell: false };
}
