//! What a program may set.

use std::path::{Path, PathBuf};
use std::time::Duration;
use ultramarine_environment::variables;

/// How GAP is started, and what its calls may take.
///
/// ```
/// use std::time::Duration;
/// use ultramarine_gap::Settings;
///
/// let settings = Settings::default()
///     .library("Order := g -> Size(Group(g));")
///     .limit(Duration::from_secs(60))
///     .memory(1 << 30);
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) program: PathBuf,
    pub(crate) libraries: Vec<Library>,
    pub(crate) loads_packages: bool,
    pub(crate) memory: Option<u64>,
    pub(crate) limit: Option<Duration>,
    pub(crate) start_limit: Duration,
    pub(crate) tries: u32,
    pub(crate) processes: usize,
    pub(crate) reply_bytes_max: usize,
}

/// What each GAP reads at its start.
#[derive(Clone, Debug)]
pub(crate) enum Library {
    Text(String),
    File(PathBuf),
}

impl Default for Settings {
    fn default() -> Self {
        let program = variables::GAP.value().filter(|program| !program.is_empty());
        Settings {
            program: program.unwrap_or_else(|| "gap".to_owned()).into(),
            libraries: Vec::new(),
            loads_packages: false,
            memory: None,
            limit: None,
            start_limit: Duration::from_mins(2),
            tries: 2,
            processes: usize::MAX,
            reply_bytes_max: 1 << 30,
        }
    }
}

impl Settings {
    /// The program, by name or path; default: `ULTRAMARINE_GAP`, or else `gap`.
    #[must_use]
    pub fn program(mut self, program: impl AsRef<Path>) -> Self {
        self.program = program.as_ref().into();
        self
    }

    /// Each GAP reads this source text when it starts. Libraries are read in the order in which
    /// they are given.
    #[must_use]
    pub fn library(mut self, source: impl Into<String>) -> Self {
        self.libraries.push(Library::Text(source.into()));
        self
    }

    /// Each GAP reads this file when it starts. It must be there on each host.
    #[must_use]
    pub fn library_file(mut self, path: impl AsRef<Path>) -> Self {
        self.libraries.push(Library::File(path.as_ref().into()));
        self
    }

    /// Whether GAP loads the packages that it suggests, which takes seconds where many are
    /// installed. Default: no; a library loads what it needs, with `LoadPackage`.
    #[must_use]
    pub fn loads_packages(mut self, loads: bool) -> Self {
        self.loads_packages = loads;
        self
    }

    /// The most memory that each GAP may have, in bytes. A call that needs more ends with that GAP.
    /// Default: GAP's own.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// The longest that a call may take: its GAP is killed then. Default: no limit.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The longest that a GAP may take to start, and to read its libraries. Default: two minutes.
    #[must_use]
    pub fn start_limit(mut self, limit: Duration) -> Self {
        self.start_limit = limit;
        self
    }

    /// The number of processes that a call may kill before it ends with an error. Default: 2. (A
    /// call that takes too long is not tried again, nor one that needs too much memory in a GAP
    /// that was new.)
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[must_use]
    pub fn tries(mut self, tries: u32) -> Self {
        assert!(tries > 0, "a call is tried at least once");
        self.tries = tries;
        self
    }

    /// The most processes of a pool. Further calls wait. Default: as many as there are calls at
    /// once, which in tasks is one for each worker thread.
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[must_use]
    pub fn processes(mut self, most: usize) -> Self {
        assert!(most > 0, "a pool has at least one process");
        self.processes = most;
        self
    }

    /// The longest reply, in bytes as it is encoded. A GAP that sends more is killed. Default:
    /// 1 GiB.
    #[must_use]
    pub fn reply_bytes_max(mut self, bytes: usize) -> Self {
        self.reply_bytes_max = bytes;
        self
    }
}
