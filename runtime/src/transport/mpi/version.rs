//! Whether rsmpi's bindings are for the MPI that the environment names: else the build fails.
//!
//! rsmpi looks at `MPICC` only once for each build folder. Built with another one later, a program
//! would silently be linked with the first.

include!(concat!(env!("OUT_DIR"), "/mpi_version.rs"));

/// What an `mpi.h` that does not define a number counts as.
#[allow(dead_code, reason = "each MPI defines its own")]
mod undefined {
    pub(super) const MPICH_NUMVERSION: u32 = 0;
    pub(super) const OMPI_MAJOR_VERSION: u32 = 0;
    pub(super) const OMPI_MINOR_VERSION: u32 = 0;
    pub(super) const OMPI_RELEASE_VERSION: u32 = 0;
}

/// The MPI that the bindings are for.
const BOUND: [u32; 4] = {
    #[allow(clippy::wildcard_imports, reason = "the names that are missing below")]
    use undefined::*;
    {
        #[allow(clippy::wildcard_imports, reason = "its names come before those above")]
        use mpi::ffi::*;
        [MPICH_NUMVERSION, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION]
    }
};

const _: () = {
    let mut number = 0;
    while number < BOUND.len() {
        assert!(WANTED[number] == BOUND[number], "{}", REFUSAL);
        number += 1;
    }
};
