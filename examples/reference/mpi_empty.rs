//! An MPI program that does nothing. The benchmark `startup` compares with it.

use ultramarine::{Error, Result};

fn main() -> Result<()> {
    mpi::initialize().map(drop).ok_or_else(|| Error::other("MPI was started before"))
}
