//! The main task of a program, as its processes run it.

use crate::error::Result;
use ultramarine_runtime::executor::Context;
#[cfg(feature = "mpi")]
use ultramarine_runtime::executor::{Job, JobError, Parting, lead, serve, take_part};
#[cfg(feature = "mpi")]
use ultramarine_topology::Pe;

/// What became of a PE: what the main task returned if it ended there, or why it could not go on.
#[cfg(feature = "mpi")]
pub(crate) type Outcome = Result<Option<Result<()>>, JobError>;

/// A main task.
pub(crate) trait MainTask {
    /// The future of the main task.
    type Future: Future<Output = Result<()>> + Send + 'static;

    /// Runs a PE of a job of several processes to its end. `may_go_on` says whether the job may
    /// go on with that PE as its root.
    #[cfg(feature = "mpi")]
    fn take_part(
        self,
        job: Job,
        may_go_on: impl Fn(Pe) -> bool + Send + Sync + 'static,
    ) -> (Outcome, Parting);

    /// The main task for a job inside one process, whose PEs end together.
    fn once(self) -> impl FnOnce(Context) -> Self::Future;
}

/// A main task that can be started once.
pub(crate) struct Once<F>(pub(crate) F);

impl<F, T> MainTask for Once<F>
where
    F: FnOnce(Context) -> T,
    T: Future<Output = Result<()>> + Send + 'static,
{
    type Future = T;

    #[cfg(feature = "mpi")]
    fn take_part(
        self,
        job: Job,
        _: impl Fn(Pe) -> bool + Send + Sync + 'static,
    ) -> (Outcome, Parting) {
        if job.me == Pe::ROOT {
            let (result, parting) = lead(job, self.0);
            (result.map(Some), parting)
        } else {
            let (result, parting) = serve(job);
            (result.map(|()| None), parting)
        }
    }

    fn once(self) -> impl FnOnce(Context) -> T {
        self.0
    }
}

/// A main task that can be started again.
pub(crate) struct Restartable<F>(pub(crate) F);

impl<F, T> MainTask for Restartable<F>
where
    F: Fn(Context) -> T + Send + Sync + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    type Future = T;

    #[cfg(feature = "mpi")]
    fn take_part(
        self,
        job: Job,
        may_go_on: impl Fn(Pe) -> bool + Send + Sync + 'static,
    ) -> (Outcome, Parting) {
        take_part(job, self.0, may_go_on)
    }

    fn once(self) -> impl FnOnce(Context) -> T {
        self.0
    }
}
