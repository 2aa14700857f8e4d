//! How a job is made up.

use crate::error::{Result, StartError};
use clap::Parser as _;
use std::path::PathBuf;
use ultramarine_runtime::settings::{PREFIX, Settings};
use ultramarine_topology::{Place, Sources};

/// What carries messages between PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LaneKind {
    /// MPI messages. The default under a launcher.
    Mpi,
    /// TCP connections.
    Tcp,
    /// Queues in memory, between PEs of one process. The default without a launcher.
    Memory,
}

/// How a job is made up: command-line flags that every program can take, or environment variables.
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
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Job")]
pub struct Options {
    /// Run so many PEs as threads of this process, without a launcher.
    #[arg(long, value_name = "P", env = "ULTRAMARINE_PES", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pes: Option<u32>,
    /// What carries messages between PEs.
    #[arg(long, value_enum, env = "ULTRAMARINE_LANE")]
    lane: Option<LaneKind>,
    /// Worker threads of each PE [default: the cores, divided among the PEs that share them].
    #[arg(long, value_name = "T", env = "ULTRAMARINE_THREADS", value_parser = positive)]
    threads: Option<usize>,
    /// A topology file that says where each host stands.
    #[arg(long, value_name = "FILE", env = "ULTRAMARINE_TOPOLOGY")]
    topology: Option<PathBuf>,
    /// How to read the hierarchy from host names.
    #[arg(long, value_name = "PATTERN", env = "ULTRAMARINE_HOST_PATTERN")]
    host_pattern: Option<String>,
    /// Measure how fast each process computes, and give the faster ones larger shares.
    #[arg(long, env = "ULTRAMARINE_CALIBRATE")]
    calibrate: bool,
    /// Change a setting of the runtime; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    settings: Vec<(String, String)>,
    #[arg(skip)]
    places: Option<Vec<Place>>,
}

/// Variables with the common prefix that are not settings of the runtime.
const NOT_SETTINGS: &[&str] =
    &["PES", "LANE", "THREADS", "TOPOLOGY", "HOST_PATTERN", "CALIBRATE", "LOG", "TEST_MPIEXEC"];

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a PE needs at least one worker thread".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("a whole number of at least 1 is expected".to_owned()),
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Options {
    /// What the environment says: `ULTRAMARINE_PES`, `ULTRAMARINE_LANE`, `ULTRAMARINE_THREADS`,
    /// `ULTRAMARINE_TOPOLOGY`, `ULTRAMARINE_HOST_PATTERN`.
    ///
    /// # Errors
    ///
    /// A variable has a value that cannot be.
    pub fn from_env() -> Result<Self> {
        #[derive(clap::Parser)]
        struct Environment {
            #[command(flatten)]
            options: Options,
        }
        let read = Environment::try_parse_from(["environment"]);
        let first_line = |text: String| {
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        };
        let read = read.map_err(|error| StartError::Options(first_line(error.to_string())))?;
        Ok(read.options)
    }

    /// Run so many PEs as threads of this process, without a launcher.
    #[must_use]
    pub fn pes(mut self, pes: u32) -> Self {
        self.pes = Some(pes);
        self
    }

    /// What carries messages between PEs.
    #[must_use]
    pub fn lane(mut self, lane: LaneKind) -> Self {
        self.lane = Some(lane);
        self
    }

    /// Worker threads of each PE.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Measure how fast each process computes (20 ms at the start), and give the faster ones larger
    /// shares: the weights of equidistant bases are then threads times speed. PEs that are threads
    /// of one process are equal anyway.
    #[must_use]
    pub fn calibrate(mut self) -> Self {
        self.calibrate = true;
        self
    }

    /// Changes a setting of the runtime, named as in [`Settings`].
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "`set(\"seed\", 3)` reads better than `&3`")]
    pub fn set(mut self, name: &str, value: impl ToString) -> Self {
        self.settings.push((name.to_owned(), value.to_string()));
        self
    }

    /// Says where PEs that are threads of this process stand, one place for each: for trying out
    /// a hierarchy without having it.
    #[must_use]
    pub fn places(mut self, places: Vec<Place>) -> Self {
        self.pes = Some(places.len() as u32);
        self.places = Some(places);
        self
    }

    pub(crate) fn lane_kind(&self) -> Option<LaneKind> {
        self.lane
    }

    pub(crate) fn thread_count(&self) -> Option<usize> {
        self.threads
    }

    pub(crate) fn pe_count(&self) -> Option<u32> {
        self.pes
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn calibrates(&self) -> bool {
        self.calibrate
    }

    pub(crate) fn given_places(&self) -> Option<&[Place]> {
        self.places.as_deref()
    }

    /// Where to look for this process's place.
    pub(crate) fn sources(&self) -> Result<Sources, StartError> {
        let mut sources = Sources::from_env()?;
        sources.file = self.topology.clone().or(sources.file);
        sources.host_pattern = self.host_pattern.clone().or(sources.host_pattern);
        Ok(sources)
    }

    /// The settings of a PE with so many worker threads.
    pub(crate) fn settings(&self, threads: usize) -> Result<Settings, StartError> {
        let mut settings = Settings::from_variables(threads, utf8_variables(), NOT_SETTINGS)?;
        for (name, value) in &self.settings {
            settings.set(name, value)?;
        }
        if settings.threads != threads {
            let reason = "worker threads are set by --threads or ULTRAMARINE_THREADS";
            return Err(StartError::Options(reason.to_owned()));
        }
        Ok(settings)
    }
}

fn utf8_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    })
}
