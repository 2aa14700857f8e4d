//! `ultramarine topo`: where the PEs of a job stand.

use ultramarine::{Options, Result};

/// Show the hierarchy of the machine as a job on it would see it. Under mpiexec or srun: of
/// this job.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    arguments.options.run(async |cx| {
        print!("{}", cx.topology());
        Ok(())
    })
}
