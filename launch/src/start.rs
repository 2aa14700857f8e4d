//! Starting a job: as one of a launcher's processes, or as threads of this one.

use crate::error::{Result, StartError};
use crate::log;
use crate::main_task::MainTask;
use crate::options::Options;
use crate::request;
use crate::stdout;
use crate::threads;
use crate::trace::TraceSpans;
use std::io::IsTerminal as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use ultramarine_environment::flags::LaneKind;
use ultramarine_environment::launcher::{Launched, launched};
use ultramarine_environment::variables;
use ultramarine_runtime::executor::Context;
use ultramarine_runtime::transport::{descriptors, tcp};

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
        self.run_main(MainTask::once(main))
    }

    /// Runs the program's main task, which may be started again on another PE; see
    /// [`run_restartable`](crate::run_restartable).
    ///
    /// # Errors
    ///
    /// As for [`run_restartable`](crate::run_restartable).
    pub fn run_restartable<F, T>(mut self, main: F) -> Result<()>
    where
        F: Fn(Context) -> T + Send + Sync + 'static,
        T: Future<Output = Result<()>> + Send + 'static,
    {
        self.outlives_root = true;
        self.run_main(MainTask::restartable(main))
    }

    fn run_main(self, main: MainTask<'_>) -> Result<()> {
        log::report_panics();
        ultramarine_journal::when_opened(request::let_journals_be_written);
        let result = self.start(main);
        let written = stdout::flush();
        log::end();
        result.and(written)
    }

    fn start(self, main: MainTask<'_>) -> Result<()> {
        let launched = launched(variables::text);
        let options = log_to_stderr(self.records())
            .and_then(|()| self.completed(variables::text))
            .and_then(|options| options.check_launcher(launched));
        let is_traced = options.iter().any(|options| options.trace_folder().is_some());
        let main = main.seen(options.iter().find_map(Options::status_ways), is_traced);
        match (launched, &options) {
            // A process with wrong options tells the others, which would wait for it if it just
            // ended.
            #[cfg(feature = "mpi")]
            (Some(launched), _) if launched.processes > 1 => {
                crate::world::run(options, launched, main)
            }
            #[cfg(feature = "mpi")]
            (Some(launched), Ok(plain)) if !plain.stays_inside() => {
                crate::world::run(options, launched, main)
            }
            _ => threads::run(&options?, main),
        }
    }

    /// Whether a trace is to be recorded.
    fn records(&self) -> bool {
        let is_named = |text: String| !text.is_empty();
        self.trace_folder().is_some() || variables::TRACE.value().is_some_and(is_named)
    }

    /// Whether all PEs are to be inside this process.
    #[cfg(feature = "mpi")]
    fn stays_inside(&self) -> bool {
        self.pe_count().is_some() || self.lane_kind() == Some(LaneKind::Memory)
    }

    /// Raises the soft limit on open files to the hard one if it may be too low for a connection
    /// with each PE, and says so if that is not enough: MPI may fail for it before the job begins.
    pub(crate) fn raise_descriptor_limit(&self, launched: Option<Launched>) {
        let inside = self.pe_count().filter(|_| self.lane_kind() == Some(LaneKind::Tcp));
        let connections = match (inside.map(u64::from), launched) {
            (Some(pes), _) => pes * (pes + tcp::DESCRIPTORS),
            (None, Some(launched)) if launched.processes > 1 => launched.processes.into(),
            _ => return,
        };
        let needed = connections + descriptors::APART;
        let limit = descriptors::raise(needed).unwrap_or(needed);
        if limit < needed && launched.is_none_or(|launched| launched.rank == 0) {
            tracing::warn!(
                "a process may have {limit} files open (RLIMIT_NOFILE), and this job may need \
                 {needed}: TCP connections will be closed and dialled again, which takes time. \
                 Raise the limit with `ulimit -n {needed}` before the start"
            );
        }
    }

    /// Returns the options, or an error if they contradict the launcher.
    fn check_launcher(self, launched: Option<Launched>) -> Result<Self, StartError> {
        let Some(launched) = launched.filter(|launched| launched.processes > 1) else {
            return Ok(self);
        };
        let inside = match (self.pe_count(), self.lane_kind()) {
            (Some(pes), _) => format!("{pes} PEs are to run inside one process"),
            (None, Some(LaneKind::Memory)) => {
                "the lane `memory` connects PEs inside one process".to_owned()
            }
            _ if cfg!(feature = "mpi") => return Ok(self),
            _ => {
                let Launched { variable, processes: expected, .. } = launched;
                let why = "this program was built without MPI: build it with its default \
                           features, or start one process with --pes";
                return Err(StartError::Unconnected { variable, expected, why: why.to_owned() });
            }
        };
        Err(StartError::Options(format!(
            "{inside}, but {} says that a launcher started {}: leave out one of the two",
            launched.variable, launched.processes
        )))
    }
}

/// Shows the runtime's log on standard error. `ULTRAMARINE_LOG` chooses how much, as
/// in `ULTRAMARINE_LOG=debug`. If the process `records` a trace, spans are in it.
fn log_to_stderr(records: bool) -> Result<(), StartError> {
    let filter = log_filter(&variables::LOG.value().unwrap_or_default())?;
    // A file of a batch job's output shows no colours.
    let is_allowed = variables::text(variables::NO_COLOR).is_none_or(|text| text.is_empty());
    let has_colours = is_allowed && std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_ansi(has_colours).with_writer(log::writer);
    let spans =
        records.then(|| TraceSpans.with_filter(filter_fn(is_recorded).with_max_level_hint(SPANS)));
    let all = tracing_subscriber::registry().with(lines.with_filter(filter)).with(spans);
    // A program that has installed a subscriber keeps it.
    let _ = all.try_init();
    Ok(())
}

/// Spans of this level and above are in a trace.
const SPANS: LevelFilter = LevelFilter::DEBUG;

fn is_recorded(of: &tracing::Metadata<'_>) -> bool {
    of.is_span() && *of.level() <= SPANS
}

/// What to show. (`EnvFilter` would also choose by spans, of which the runtime has none, for half a
/// megabyte of regular expressions.)
fn log_filter(text: &str) -> Result<Targets, StartError> {
    let refuse = || {
        let hint = "a level such as `debug`, or `module=level`, is expected";
        StartError::Options(format!("ULTRAMARINE_LOG = `{text}`: {hint}"))
    };
    let mut parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).peekable();
    let mut filter = Targets::new();
    if parts.peek().is_none() {
        filter = filter.with_default(LevelFilter::WARN);
    }
    for part in parts {
        let (module, level) = part.rsplit_once('=').unwrap_or(("", part));
        // An empty level would be parsed as one.
        let level = Some(level.trim()).filter(|level| !level.is_empty()).ok_or_else(refuse)?;
        let level: LevelFilter = level.parse().map_err(|_| refuse())?;
        filter = match module.trim() {
            "" => filter.with_default(level),
            module if module.contains(['[', '{']) => return Err(refuse()),
            module => filter.with_target(module, level),
        };
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_log_is_a_level_or_one_for_a_module() {
        for right in ["", "debug", "INFO", "off", "warn,ultramarine_runtime=trace"] {
            log_filter(right).expect(right);
        }
        for wrong in ["bogus=", "loud", "debug,runtime=", "ultramarine=loud", "[span]=info"] {
            let error = log_filter(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("ULTRAMARINE_LOG = `{wrong}`: ")), "{error}");
        }
    }
}
