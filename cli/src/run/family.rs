//! The families of MPI libraries.

use std::fmt;

/// The two families of MPI, which differ in their launchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// MPICH and what descends from it: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    OpenMpi,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Mpich => "MPICH",
            Family::OpenMpi => "Open MPI",
        })
    }
}
