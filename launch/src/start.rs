//! Starting a job: as one of a launcher's processes, or as threads of this one.

use crate::error::{Error, Result, StartError};
use crate::launcher::{Launched, launched};
use crate::options::{LaneKind, Options};
use crate::threads;
use ultramarine_runtime::executor::Context;

impl Options {
    /// Runs the program's main task; see [`run`](crate::run).
    ///
    /// # Errors
    ///
    /// As for [`run`](crate::run).
    pub fn run<F, T>(self, main: F) -> Result<()>
    where
        F: FnOnce(Context) -> T,
        T: Future<Output = Result<()>> + Send + 'static,
    {
        log_to_stderr();
        let launched = launched(|name| std::env::var(name).ok());
        let several = launched.filter(|launched| launched.processes > 1);
        match (self.pe_count(), several, launched) {
            (Some(pes), Some(launched), _) => Err(Error::Start(StartError::Options(format!(
                "{pes} PEs are to run inside one process, but {} says that a launcher started {}: \
                 leave out one of the two",
                launched.variable, launched.processes
            )))),
            (None, _, Some(launched)) if self.lane_kind() != Some(LaneKind::Memory) => {
                start_launched(&self, launched, main)
            }
            _ => threads::run(&self, main),
        }
    }
}

#[cfg(feature = "mpi")]
fn start_launched<F, T>(options: &Options, launched: Launched, main: F) -> Result<()>
where
    F: FnOnce(Context) -> T,
    T: Future<Output = Result<()>> + Send + 'static,
{
    crate::world::run(options, launched, main)
}

#[cfg(not(feature = "mpi"))]
fn start_launched<F, T>(options: &Options, launched: Launched, main: F) -> Result<()>
where
    F: FnOnce(Context) -> T,
    T: Future<Output = Result<()>> + Send + 'static,
{
    if launched.processes > 1 {
        let (variable, expected) = (launched.variable, launched.processes);
        let why = "this program was built without MPI: build it with its default features, or \
                   start one process with --pes";
        return Err(StartError::Unconnected { variable, expected, why: why.to_owned() }.into());
    }
    threads::run(options, main)
}

/// Shows what the runtime has to say, on standard error. `ULTRAMARINE_LOG` chooses how much, as
/// in `ULTRAMARINE_LOG=debug`.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing_subscriber::filter::LevelFilter::WARN.into())
        .with_env_var("ULTRAMARINE_LOG")
        .from_env_lossy();
    // A program that has a subscriber of its own keeps it.
    let _ =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
