//! The `ultramarine` command.

use clap::Parser;
use ultramarine::Options;

/// Irregular task parallelism on supercomputers.
#[derive(Parser)]
#[command(version)]
enum Command {
    /// Show the hierarchy of the machine as a job on it would see it. Under mpiexec or srun: of
    /// this job.
    Topo {
        #[command(flatten)]
        options: Options,
    },
}

fn main() -> ultramarine::Result<()> {
    match Command::parse() {
        Command::Topo { options } => options.run(async |cx| {
            print!("{}", cx.topology());
            Ok(())
        }),
    }
}
