//! How a job is made up.

use crate::error::{Result, StartError};
use crate::network;
use std::path::{Path, PathBuf};
use ultramarine_environment::faults::FaultFlags;
use ultramarine_environment::flags::{JobFlags, LaneKind, PortRange, THREADS_MAX};
use ultramarine_environment::interface::InterfaceChoice;
use ultramarine_environment::variables::{self, PREFIX};
use ultramarine_runtime::protocol::FishingSettings;
use ultramarine_runtime::settings::{self, Settings};
use ultramarine_status::server::{Metrics, Ways};
use ultramarine_topology::{Place, Sources};

/// How a job is made up: command-line flags that every program can take. What is not given is as
/// environment variables say.
///
/// ```
/// # fn main() -> ultramarine::Result<()> {
/// use ultramarine::{LaneKind, Options};
///
/// Options::default().pes(3).threads(1).lane(LaneKind::Tcp).run(async |cx| {
///     assert_eq!(cx.pes(), 3);
///     Ok(())
/// })
/// # }
/// ```
///
/// As flags: put it into the program's own `clap` arguments with `#[command(flatten)]`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    flags: JobFlags,
    places: Option<Vec<Place>>,
    /// Whether another PE takes the root's place when that dies.
    pub(crate) outlives_root: bool,
}

/// As those of its flags.
impl clap::Args for Options {
    fn group_id() -> Option<clap::Id> {
        JobFlags::group_id()
    }

    fn augment_args(command: clap::Command) -> clap::Command {
        JobFlags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        JobFlags::augment_args_for_update(command)
    }
}

impl clap::FromArgMatches for Options {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        JobFlags::from_arg_matches(matches).map(Options::from)
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        self.flags.update_from_arg_matches(matches)
    }
}

// The flag and the setting have one limit.
const _: () = assert!(THREADS_MAX == settings::THREADS_MAX);

/// Up to this many PEs on a core ask for work as often as one alone would.
const PES_PER_CORE_FEW: u32 = 8;

impl From<JobFlags> for Options {
    fn from(flags: JobFlags) -> Self {
        Options { flags, places: None, outlives_root: false }
    }
}

impl Options {
    /// The options that environment variables give (see
    /// [`variables::TABLE`](crate::variables::TABLE)): each flag has one. A job reads by itself
    /// those of options that it was not given.
    ///
    /// # Errors
    ///
    /// A variable has a value that cannot be.
    pub fn from_env() -> Result<Self> {
        Ok(Options::default().completed(variables::text)?)
    }

    /// Fills what was not given from environment variables.
    pub(crate) fn completed(
        self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, StartError> {
        Ok(Options { flags: self.flags.completed(variable)?, ..self })
    }

    /// Run this many PEs as threads of this process, without a launcher.
    #[must_use]
    pub fn pes(mut self, pes: u32) -> Self {
        self.flags.pes = Some(pes);
        self
    }

    /// What carries messages between PEs.
    #[must_use]
    pub fn lane(mut self, lane: LaneKind) -> Self {
        self.flags.lane = Some(lane);
        self
    }

    /// Worker threads of each PE.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.flags.threads = Some(threads);
        self
    }

    /// Measure how fast each process computes (20 ms at the start), and give the faster ones larger
    /// shares: the weights of equidistant bases are then threads times speed. PEs that are threads
    /// of one process are equal anyway.
    #[must_use]
    pub fn calibrate(mut self) -> Self {
        self.flags.calibrate = true;
        self
    }

    /// Records what all threads do, each process in a file of its own in this folder, which is made
    /// if it is not there, and whose former trace is removed. Where a file cannot be written, that
    /// is said, and the job goes on without it. `ultramarine trace` reads what was recorded.
    #[must_use]
    pub fn trace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.flags.trace = Some(folder.into());
        self
    }

    /// Answers `ultramarine top` while the main task runs. How to reach the job is written into
    /// this file, which only this user can read, and which is removed at the end. The thread that
    /// answers is one of the root's process, and costs nothing while no one asks. Where the root
    /// dies and another takes its place, that one writes the file anew. If the file cannot be
    /// written, that is said, and the job goes on without it.
    #[must_use]
    pub fn status(mut self, file: impl Into<PathBuf>) -> Self {
        self.flags.status = Some(file.into());
        self
    }

    /// Has metrics for Prometheus while the main task runs: at a port of the root's host, or in a
    /// file. If that cannot be, it is said, and the job goes on without it.
    #[must_use]
    pub fn metrics(mut self, place: Metrics) -> Self {
        self.flags.metrics = Some(place);
        self
    }

    /// Whether a small parent stands between the launcher and each process. It waits, hands signals
    /// on, and exits as the process does; only when a process other than the root is killed, it
    /// tells the launcher that all is well, so that the job goes on. The launcher and its tools
    /// then know the guard's number, and not that of the program. The default is `true`.
    #[must_use]
    pub fn guard(mut self, on: bool) -> Self {
        self.flags.guard = Some(on);
        self
    }

    /// Changes a setting of the runtime, named as in [`Settings`].
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "`set(\"seed\", 3)` reads better than `&3`")]
    pub fn set(mut self, name: &str, value: impl ToString) -> Self {
        self.flags.settings.push((name.to_owned(), value.to_string()));
        self
    }

    /// Says where PEs that are threads of this process stand, one place for each: for trying out
    /// a hierarchy without having it.
    #[must_use]
    pub fn places(mut self, places: Vec<Place>) -> Self {
        self.flags.pes = Some(places.len() as u32);
        self.places = Some(places);
        self
    }

    pub(crate) fn lane_kind(&self) -> Option<LaneKind> {
        self.flags.lane
    }

    pub(crate) fn thread_count(&self) -> Option<usize> {
        self.flags.threads
    }

    pub(crate) fn pe_count(&self) -> Option<u32> {
        self.flags.pes
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn calibrates(&self) -> bool {
        self.flags.calibrate
    }

    pub(crate) fn faults(&self) -> &FaultFlags {
        &self.flags.faults
    }

    /// The folder of the trace, if one is to be recorded.
    pub(crate) fn trace_folder(&self) -> Option<&Path> {
        self.flags.trace.as_deref()
    }

    /// How others can see what the job does, if they can.
    pub(crate) fn status_ways(&self) -> Option<Ways> {
        let (contact, metrics) = (self.flags.status.clone(), self.flags.metrics.clone());
        if contact.is_none() && metrics.is_none() {
            return None;
        }
        let interfaces = network::usable(self.interface()).unwrap_or_default();
        let addresses = interfaces.iter().map(|interface| interface.address.addr()).collect();
        Some(Ways { contact, metrics, addresses, ports: self.port_range() })
    }

    /// The ports that PEs listen on, if they are confined to some.
    pub fn port_range(&self) -> Option<PortRange> {
        self.flags.ports.clone()
    }

    /// Over which network interface other hosts are called, if that is chosen.
    #[doc(hidden)]
    pub fn interface(&self) -> Option<&InterfaceChoice> {
        self.flags.interface.as_ref()
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn is_guarded(&self) -> bool {
        self.flags.guard.unwrap_or(true)
    }

    pub(crate) fn given_places(&self) -> Option<&[Place]> {
        self.places.as_deref()
    }

    /// Where to look for this process's place.
    pub(crate) fn sources(&self) -> Result<Sources, StartError> {
        let (file, host_pattern) = (self.flags.topology.clone(), self.flags.host_pattern.clone());
        Ok(Sources { file, host_pattern, ..Sources::from_env()? })
    }

    /// The settings of a PE with this many worker threads.
    #[cfg(feature = "mpi")]
    pub(crate) fn settings(&self, threads: usize) -> Result<Settings, StartError> {
        self.settings_of_many(threads, 1)
    }

    /// The settings of a PE with this many worker threads that shares its core with others.
    ///
    /// Where there are many, each asks for work less often, unless one of these delays is set: a PE
    /// without work wakes about ten others with each FISH. 2,000 PEs on two cores, each of which
    /// had doubled its delay from 20 µs to 20 ms as usual, got nothing else done.
    pub(crate) fn settings_of_many(
        &self,
        threads: usize,
        pes_per_core: u32,
    ) -> Result<Settings, StartError> {
        let changes = &self.flags.settings;
        let mut variables: Vec<_> = variables::all_set().collect();
        let crowd = (pes_per_core / PES_PER_CORE_FEW).max(1);
        let usual = FishingSettings::for_threads(threads);
        let slowed = [
            ("MIN_FISH_DELAY", usual.min_fish_delay * crowd * crowd),
            ("MAX_FISH_DELAY", usual.max_fish_delay * crowd),
            ("FISH_DEADLINE", usual.fish_deadline * crowd),
        ];
        let is_slowed =
            |name: &str| slowed.iter().any(|(slowed, _)| slowed.eq_ignore_ascii_case(name));
        let is_variable = |name: &str| name.strip_prefix(PREFIX).is_some_and(is_slowed);
        if !changes.iter().any(|(name, _)| is_slowed(name))
            && !variables.iter().any(|(name, _)| is_variable(name))
        {
            variables.extend(slowed.map(|(name, delay)| {
                (format!("{PREFIX}{name}"), format!("{}us", delay.as_micros()))
            }));
        }
        let others: Vec<_> = variables::TABLE.iter().map(|of| of.short_name()).collect();
        let mut settings = Settings::from_texts(threads, variables, changes, &others)?;
        if settings.threads != threads {
            let reason = "worker threads are set by --threads or ULTRAMARINE_THREADS";
            return Err(StartError::Options(reason.to_owned()));
        }
        settings.detector.succession = self.outlives_root;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_environment::flags::PES_MAX;

    #[test]
    fn a_program_keeps_its_own_description_or_none() {
        use clap::CommandFactory as _;
        #[derive(clap::Parser)]
        struct Bare {
            #[command(flatten)]
            _options: Options,
        }
        /// Does things.
        #[derive(clap::Parser)]
        struct Described {
            #[command(flatten)]
            _options: Options,
        }
        assert!(Bare::command().get_about().is_none());
        assert!(Bare::command().get_long_about().is_none());
        let about = Described::command().get_about().map(ToString::to_string);
        assert_eq!(about.as_deref(), Some("Does things"));
    }

    #[test]
    fn a_program_may_call_its_own_flags_what_it_likes() {
        use clap::Parser as _;
        #[derive(clap::Args)]
        struct JobFlags {
            #[arg(long)]
            _upto: Option<u64>,
        }
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            _own: JobFlags,
            #[command(flatten)]
            options: Options,
        }
        let program = Program::parse_from(["program", "--pes", "3"]);
        assert_eq!(program.options.pe_count(), Some(3));
    }

    #[test]
    fn flags_and_settings_have_variables_of_one_prefix() {
        assert_eq!(PREFIX, settings::PREFIX);
    }

    #[test]
    fn pes_that_share_a_core_with_many_ask_for_work_less_often() {
        let delay = |options: &Options, pes_per_core| {
            let settings = options.settings_of_many(1, pes_per_core).expect("right");
            settings.fishing.max_fish_delay.as_millis()
        };
        let given = Options::default().set("max_fish_delay", "30ms");
        for (pes_per_core, usual) in [(1, 20), (8, 20), (15, 20), (16, 40), (1000, 2500)] {
            assert_eq!(delay(&Options::default(), pes_per_core), usual);
            assert_eq!(delay(&given, pes_per_core), 30);
        }
        // The most PEs, on one core: the delays make sense together.
        Options::default().settings_of_many(1, PES_MAX).expect("the shortest is not the longest");
    }
}
