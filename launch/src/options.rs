//! How a job is made up.

use crate::error::{Result, StartError};
use crate::faults::FaultOptions;
use crate::network::InterfaceChoice;
use clap::ValueEnum as _;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use ultramarine_runtime::protocol::FishingSettings;
use ultramarine_runtime::settings::{PREFIX, Settings, THREADS_MAX};
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
#[derive(Clone, Debug, Default, clap::Args)]
// A program without a description has none, rather than this one.
#[command(next_help_heading = "Job", about = None, long_about = None)]
pub struct Options {
    /// Run this many PEs as threads of this process, without a launcher [env: `ULTRAMARINE_PES`].
    #[arg(long, value_name = "P", value_parser = pe_count)]
    pes: Option<u32>,
    /// What carries messages between PEs [env: `ULTRAMARINE_LANE`].
    #[arg(long, value_enum)]
    lane: Option<LaneKind>,
    /// Worker threads of each PE [env: `ULTRAMARINE_THREADS`] [default: the cores, divided among
    /// the PEs that share them].
    #[arg(long, value_name = "T", value_parser = thread_count)]
    threads: Option<usize>,
    /// A topology file that says where each host stands [env: `ULTRAMARINE_TOPOLOGY`].
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// How to read the hierarchy from host names [env: `ULTRAMARINE_HOST_PATTERN`].
    #[arg(long, value_name = "PATTERN")]
    host_pattern: Option<String>,
    /// Measure how fast each process computes, and give the faster ones larger shares
    /// [env: `ULTRAMARINE_CALIBRATE`].
    #[arg(long)]
    calibrate: bool,
    /// Let a small parent stand between the launcher and each process, so that the job goes on when
    /// a process is killed [env: `ULTRAMARINE_GUARD`] [default: on].
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    guard: Option<bool>,
    /// Listen for other PEs on ports of this range only; each PE takes two [env:
    /// `ULTRAMARINE_PORTS`] [default: any that are free].
    #[arg(long, value_name = "LOW-HIGH", value_parser = port_range)]
    ports: Option<PortRange>,
    /// Call other hosts over this network interface, or that which has an address in this network;
    /// MPI's messages go where MPI sends them [env: `ULTRAMARINE_INTERFACE`] [default: the fastest
    /// network that all hosts are on].
    #[arg(long, value_name = "NAME|CIDR")]
    interface: Option<InterfaceChoice>,
    /// Change a setting of the runtime; may be given several times [env: `ULTRAMARINE_` and the
    /// setting's name in capitals].
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    settings: Vec<(String, String)>,
    #[command(flatten)]
    faults: FaultOptions,
    #[arg(skip)]
    places: Option<Vec<Place>>,
}

/// Ports, the first and the last.
type PortRange = RangeInclusive<u16>;

/// The most PEs that can be threads of one process. Each takes three threads; 2,000 start, work and
/// end within 20 s on two cores, and 4,096 did not within minutes.
pub(crate) const PES_MAX: u32 = 2048;

/// Up to this many PEs on a core ask for work as often as one alone would.
const PES_PER_CORE_FEW: u32 = 8;

/// Variables with the common prefix that are not settings of the runtime.
const NOT_SETTINGS: [&str; 12] = [
    "INTERFACE",
    "BIND",
    "PORTS",
    "PES",
    "LANE",
    "THREADS",
    "TOPOLOGY",
    "HOST_PATTERN",
    "CALIBRATE",
    "GUARD",
    "GUARDED",
    "LOG",
];

fn pe_count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a job needs at least one PE".to_owned()),
        Ok(number) if number <= PES_MAX => Ok(number),
        _ => Err(format!("a whole number from 1 to {PES_MAX} is expected")),
    }
}

fn thread_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a PE needs at least one worker thread".to_owned()),
        Ok(number) if number <= THREADS_MAX => Ok(number),
        _ => Err(format!("a whole number from 1 to {THREADS_MAX} is expected")),
    }
}

fn lane_kind(text: &str) -> Result<LaneKind, String> {
    LaneKind::from_str(text, true).map_err(|_| "mpi, tcp or memory is expected".to_owned())
}

fn port_range(text: &str) -> Result<PortRange, String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.trim().parse(), high.trim().parse()) {
        (Ok(low), Ok(high)) if (1..=high).contains(&low) => Ok(low..=high),
        _ => Err("two ports from 1 to 65535 are expected, as in 40000-40100".to_owned()),
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("true or false is expected".to_owned()),
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    yes_or_no(text).map_err(|_| "on or off is expected".to_owned())
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Gives an option the value of a variable, by name and text, unless it has one. An empty variable
/// says nothing.
pub(crate) fn complete<T>(
    option: &mut Option<T>,
    (name, text): (&str, Option<String>),
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<(), StartError> {
    if let (None, Some(text)) = (&option, text.filter(|text| !text.is_empty())) {
        let value = parse(text.trim());
        let named = |reason| StartError::Options(format!("{name} = `{text}`: {reason}"));
        *option = Some(value.map_err(named)?);
    }
    Ok(())
}

impl Options {
    /// What the environment says: `ULTRAMARINE_PES`, `ULTRAMARINE_LANE`, `ULTRAMARINE_THREADS`,
    /// `ULTRAMARINE_TOPOLOGY`, `ULTRAMARINE_HOST_PATTERN`, `ULTRAMARINE_CALIBRATE`,
    /// `ULTRAMARINE_PORTS`, `ULTRAMARINE_INTERFACE`, `ULTRAMARINE_GUARD`, `ULTRAMARINE_KILL_AT`,
    /// `ULTRAMARINE_CHAOS_MONKEY`, `ULTRAMARINE_CHAOS_WITHIN`. (A job asks the environment itself
    /// for whatever it was not given.)
    ///
    /// # Errors
    ///
    /// A variable has a value that cannot be.
    pub fn from_env() -> Result<Self> {
        Ok(Options::default().completed(utf8_variable)?)
    }

    /// The same, with what was not given as environment variables say.
    pub(crate) fn completed(
        mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, StartError> {
        let mut calibrate = self.calibrate.then_some(true);
        let text = |name| (name, variable(name));
        complete(&mut self.pes, text("ULTRAMARINE_PES"), pe_count)?;
        complete(&mut self.lane, text("ULTRAMARINE_LANE"), lane_kind)?;
        complete(&mut self.threads, text("ULTRAMARINE_THREADS"), thread_count)?;
        complete(&mut self.topology, text("ULTRAMARINE_TOPOLOGY"), |path| Ok(path.into()))?;
        let pattern = text("ULTRAMARINE_HOST_PATTERN");
        complete(&mut self.host_pattern, pattern, |text| Ok(text.to_owned()))?;
        complete(&mut calibrate, text("ULTRAMARINE_CALIBRATE"), yes_or_no)?;
        self.faults.complete(&variable)?;
        self.calibrate = calibrate.unwrap_or(false);
        complete(&mut self.ports, text("ULTRAMARINE_PORTS"), port_range)?;
        complete(&mut self.interface, text("ULTRAMARINE_INTERFACE"), str::parse)?;
        complete(&mut self.guard, text("ULTRAMARINE_GUARD"), on_or_off)?;
        Ok(self)
    }

    /// Run this many PEs as threads of this process, without a launcher.
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

    /// Whether a small parent stands between the launcher and each process. It waits, hands signals
    /// on, and exits as the process does; only when a process other than the root is killed, it
    /// tells the launcher that all is well, so that the job goes on. The launcher and its tools
    /// then know the guard's number, and not that of the program. The default is `true`.
    #[must_use]
    pub fn guard(mut self, on: bool) -> Self {
        self.guard = Some(on);
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

    pub(crate) fn faults(&self) -> &FaultOptions {
        &self.faults
    }

    /// The ports that PEs listen on, if they are confined to some.
    pub fn port_range(&self) -> Option<PortRange> {
        self.ports.clone()
    }

    /// Over which network interface other hosts are called, if that is chosen.
    #[doc(hidden)]
    pub fn interface(&self) -> Option<&InterfaceChoice> {
        self.interface.as_ref()
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn is_guarded(&self) -> bool {
        self.guard.unwrap_or(true)
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
        let changes = &self.settings;
        let mut variables: Vec<_> = utf8_variables().collect();
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
        let others = [&NOT_SETTINGS[..], &FaultOptions::VARIABLES].concat();
        let settings = Settings::from_texts(threads, variables, changes, &others)?;
        if settings.threads != threads {
            let reason = "worker threads are set by --threads or ULTRAMARINE_THREADS";
            return Err(StartError::Options(reason.to_owned()));
        }
        Ok(settings)
    }
}

/// The value of an environment variable. What is not UTF-8 is replaced, and so refused where it
/// matters.
pub(crate) fn utf8_variable(name: &str) -> Option<String> {
    Some(std::env::var_os(name)?.to_string_lossy().into_owned())
}

fn utf8_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(options: Options, name: &str, value: &str) -> Result<Options, String> {
        let variable = |asked: &str| (asked == name).then(|| value.to_owned());
        options.completed(variable).map_err(|error| error.to_string())
    }

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
    fn variables_say_what_was_not_given() {
        let read = with(Options::default(), "ULTRAMARINE_PES", "3").expect("a number");
        assert_eq!(read.pe_count(), Some(3));
        let given = with(Options::default().pes(2), "ULTRAMARINE_PES", "3").expect("a number");
        assert_eq!(given.pe_count(), Some(2));
        let empty = with(Options::default(), "ULTRAMARINE_LANE", "").expect("as if not set");
        assert_eq!(empty.lane_kind(), None);
        #[cfg(feature = "mpi")]
        for (text, is_guarded) in [("off", false), ("on", true), ("", true)] {
            let read = with(Options::default(), "ULTRAMARINE_GUARD", text).expect("a word");
            assert_eq!(read.is_guarded(), is_guarded, "{text}");
        }
        let yes = with(Options::default(), "ULTRAMARINE_CALIBRATE", "1").expect("a yes");
        assert!(yes.calibrate);
        assert!(with(yes, "ULTRAMARINE_CALIBRATE", "0").expect("given before").calibrate);
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

    #[test]
    fn a_bad_value_is_refused_by_the_name_of_its_variable() {
        for (name, value, text) in [
            ("ULTRAMARINE_PES", "few", "from 1 to 2048"),
            ("ULTRAMARINE_PES", "2049", "from 1 to 2048"),
            ("ULTRAMARINE_LANE", "pigeon", "mpi, tcp or memory"),
            ("ULTRAMARINE_THREADS", "1025", "from 1 to 1024"),
            ("ULTRAMARINE_CALIBRATE", "perhaps", "true or false"),
            ("ULTRAMARINE_GUARD", "dog", "on or off"),
        ] {
            let error = with(Options::default(), name, value).expect_err(name);
            assert!(error.starts_with(&format!("{name} = `{value}`: ")), "{error}");
            assert!(error.contains(text), "{error}");
        }
    }
}
