//! An MPI program that does nothing: what a job's start-up is measured against.

use ultramarine::{Error, Result};

fn main() -> Result<()> {
    mpi::initialize().map(drop).ok_or_else(|| Error::other("MPI was started before"))
}
