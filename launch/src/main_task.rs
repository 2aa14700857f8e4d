//! The main task of a program, as its processes run it.

use crate::error::Result;
use crate::status;
use crate::trace::with_clocks;
use ultramarine_runtime::executor::{BoxedMain, Context};
#[cfg(feature = "mpi")]
use ultramarine_runtime::executor::{Job, JobError, Parting, lead, serve, take_part};
use ultramarine_status::server::Ways;
#[cfg(feature = "mpi")]
use ultramarine_topology::Pe;

/// What became of a PE: what the main task returned if it ended there, or why it could not go on.
#[cfg(feature = "mpi")]
pub(crate) type Outcome = Result<Option<Result<()>>, JobError>;

/// The future of a main task.
pub(crate) type MainFuture = BoxedMain<Result<()>>;

/// A main task, boxed so that all that starts and ends a job is compiled once, not in each program.
pub(crate) enum MainTask<'a> {
    /// It can be started once.
    Once(Box<dyn FnOnce(Context) -> MainFuture + 'a>),
    /// It can be started again.
    Restartable(Box<dyn Fn(Context) -> MainFuture + Send + Sync>),
}

impl<'a> MainTask<'a> {
    /// A main task that can be started once.
    pub(crate) fn once<F, T>(main: F) -> Self
    where
        F: FnOnce(Context) -> T + 'a,
        T: Future<Output = Result<()>> + Send + 'static,
    {
        MainTask::Once(Box::new(move |cx| BoxedMain::new(main(cx))))
    }

    /// A main task that can be started again.
    pub(crate) fn restartable<F, T>(main: F) -> Self
    where
        F: Fn(Context) -> T + Send + Sync + 'static,
        T: Future<Output = Result<()>> + Send + 'static,
    {
        MainTask::Restartable(Box::new(move |cx| BoxedMain::new(main(cx))))
    }

    /// The same, seen by others in these ways, and in a trace if it has one.
    pub(crate) fn seen(self, ways: Option<Ways>, is_traced: bool) -> Self {
        if ways.is_none() && !is_traced {
            return self;
        }
        let seen = move |cx: Context, start: Box<dyn FnOnce(Context) -> MainFuture + '_>| {
            let server = ways.as_ref().and_then(|ways| status::serve(ways, cx.clone()));
            let main = start(cx.clone());
            BoxedMain::new(async move {
                let result = if is_traced { with_clocks(cx, main).await } else { main.await };
                drop(server);
                result
            })
        };
        match self {
            MainTask::Once(main) => MainTask::Once(Box::new(move |cx| seen(cx, main))),
            MainTask::Restartable(main) => {
                MainTask::Restartable(Box::new(move |cx| seen(cx, Box::new(&main))))
            }
        }
    }

    /// Runs a PE of a job of several processes to its end. `may_go_on` says whether the job may
    /// go on with that PE as its root; `ended_elsewhere` hears that it needs this one no more.
    #[cfg(feature = "mpi")]
    pub(crate) fn take_part(
        self,
        job: Job,
        may_go_on: impl Fn(Pe) -> bool + Send + Sync + 'static,
        ended_elsewhere: impl Fn() + Send + Sync + 'static,
    ) -> (Outcome, Parting) {
        match self {
            MainTask::Restartable(main) => take_part(job, main, may_go_on, ended_elsewhere),
            MainTask::Once(main) if job.me == Pe::ROOT => {
                let (result, parting) = lead(job, main);
                (result.map(Some), parting)
            }
            MainTask::Once(_) => {
                let (result, parting) = serve(job);
                (result.map(|()| None), parting)
            }
        }
    }

    /// Starts it, in a job inside one process, whose PEs end together.
    pub(crate) fn start(self, cx: Context) -> MainFuture {
        match self {
            MainTask::Once(main) => main(cx),
            MainTask::Restartable(main) => main(cx),
        }
    }
}
