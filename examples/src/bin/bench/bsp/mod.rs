//! Programs in supersteps beside plain MPI: the least superstep beside `MPI_Barrier` on ever more
//! PEs, what a checkpoint costs beside a copy, and whole programs with checkpoints and deaths.

pub(crate) mod barrier;
pub(crate) mod checkpoint;
mod programs;

use crate::Report;
use crate::launch::Bench;
use ultramarine::Result;

const ROUNDS: usize = 5;
/// The number of PEs, unless it is what differs.
const PES: u32 = 2;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    barrier::measure(bench, report)?;
    checkpoint::measure(bench, report)?;
    programs::measure(bench, report)
}
