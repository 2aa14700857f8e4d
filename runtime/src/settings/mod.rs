//! All settings of the runtime, with their defaults.

mod error;
mod value;

pub use crate::detector::DetectorSettings;
pub use crate::protocol::FishingSettings;
pub use crate::protocol::settings::MAX_REPLICAS;
use crate::transport::descriptors::ConnectionShares;
pub use crate::transport::{CONNECTIONS_MIN, PortSettings};
pub use error::SettingsError;
use std::ops::RangeInclusive;
use std::time::Duration;
pub use value::PREFIX;
use value::{SettingProblem, SettingValue, variable_of};

/// The settings of one PE.
///
/// Each field can be set in the program, or by an environment variable: `ULTRAMARINE_` and the
/// field's name in capitals, such as `ULTRAMARINE_MAX_HOPS=3` or `ULTRAMARINE_SPIN=100us`.
/// Durations take a unit (`ns`, `us`, `ms`, `s`) and are at most a day, but for `host_mtbf`. Sizes
/// are in bytes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of worker threads, from 1 to 1024. Default: the cores that the PE may use.
    pub threads: usize,
    /// How a PE asks for work and gives it away.
    pub fishing: FishingSettings,
    /// The number of times that a lost supervised task is run again before it is given up. Default
    /// 5.
    pub max_replicas: u32,
    /// Whether PEs of one host take tasks from each other's memory, without a message. Where the
    /// host does not allow that, tasks come by message. Default true.
    pub steal_in_memory: bool,
    /// How messages are carried.
    pub port: PortSettings,
    /// The most TCP connections that a PE has with others at the same time; at least 2. To make
    /// another, the PE closes the one that it used least recently, and dials again when it needs
    /// it. `None` (the default): the number of files that the process may still open
    /// (`RLIMIT_NOFILE`) when the job begins, less a quarter, or at least 10, for the program and
    /// the detector.
    pub connections_max: Option<u64>,
    /// How fast a dead PE is noticed.
    pub detector: DetectorSettings,
    /// How long a worker without work polls for some, without a pause, before it sleeps; and how
    /// long a PE polls for the rest of a long message, over MPI. Default 100 µs, the time of a few
    /// steals.
    pub spin: Duration,
    /// The longest that a message waits while all workers are inside long tasks and nothing has
    /// arrived for a while. Default 5 ms; on the root at most 2 ms. (Waking costs a worker that
    /// shares its core about 8 µs: every millisecond took 0.8 % of SumEuler's time, every 5 ms
    /// takes 0.2 %.)
    pub poll_interval_max: Duration,
    /// How long a task may block its thread, waiting inside a call without computing, before that
    /// is reported, once. More than zero; default 10 s.
    pub blocked_after: Duration,
    /// How long the end of a job waits for PEs to leave, and at most 2 s of that for tasks that
    /// still run. Default 60 s, longer than it takes to find out that a PE is dead or stalled.
    /// (Where 250 other programs share two cores, twelve PEs take up to 40 s.)
    pub shutdown_grace: Duration,
    /// How long a process waits for the other processes of its job to start, before it reports
    /// that and ends. More than zero; default 60 s.
    pub start_deadline: Duration,
    /// The mean time between failures of one host, from which the best interval between checkpoints
    /// follows. More than zero, and at most 100 years; default a year, `1year`.
    pub host_mtbf: Duration,
    /// The seed of this PE's random choices. `None` (the default): a different one each time.
    pub seed: Option<u64>,
}

/// Lists each setting once: its name and its field.
macro_rules! settings {
    ($($name:literal => $($field:ident).+),+ $(,)?) => {
        /// The names of all settings. Each has an environment variable: [`PREFIX`] and the name in
        /// capitals.
        pub const NAMES: &[&str] = &[$($name),+];

        impl Settings {
            fn assign(&mut self, name: &str, value: &str) -> Result<(), SettingProblem> {
                match name.to_ascii_lowercase().as_str() {
                    $($name => self.$($field).+ = SettingValue::parse(name, value)?,)+
                    _ => return Err(SettingProblem::unknown(name)),
                }
                Ok(())
            }
        }
    };
}

settings! {
    "threads" => threads,
    "max_fish" => fishing.max_fish,
    "min_sched" => fishing.min_sched,
    "min_fish_delay" => fishing.min_fish_delay,
    "max_fish_delay" => fishing.max_fish_delay,
    "fish_deadline" => fishing.fish_deadline,
    "max_hops" => fishing.max_hops,
    "schedule_tasks_max" => fishing.schedule_tasks_max,
    "schedule_bytes_max" => fishing.schedule_bytes_max,
    "steal_in_memory" => steal_in_memory,
    "max_replicas" => max_replicas,
    "message_bytes_max" => port.message_bytes_max,
    "window_frames" => port.window_frames,
    "credit_bytes_max" => port.credit_bytes_max,
    "backlog_bytes_max" => port.backlog_bytes_max,
    "single_copy" => port.single_copy,
    "resend_after" => port.resend_after,
    "resends_max" => port.resends_max,
    "connections_max" => connections_max,
    "heartbeat" => detector.heartbeat,
    "dead_after" => detector.dead_after,
    "stalled_after" => detector.stalled_after,
    "root_after" => detector.root_after,
    "spin" => spin,
    "poll_interval_max" => poll_interval_max,
    "blocked_after" => blocked_after,
    "shutdown_grace" => shutdown_grace,
    "start_deadline" => start_deadline,
    "host_mtbf" => host_mtbf,
    "seed" => seed,
}

/// The most worker threads of a PE: far more than a host has cores, and few enough to start.
pub const THREADS_MAX: usize = 1024;

/// The longest duration of any setting: a day.
pub const DURATION_MAX: Duration = Duration::from_hours(24);

/// A year of 365.25 days.
const YEAR: Duration = Duration::from_hours(8766);

/// The longest mean time between failures.
pub const HOST_MTBF_MAX: Duration = Duration::from_hours(100 * 8766);

/// How long the end of a job waits at most for tasks that still run.
pub const STRAGGLERS_MAX: Duration = Duration::from_secs(2);

/// The least `message_bytes_max`, in bytes: the runtime's own messages fit, and a task of some
/// size.
pub const MESSAGE_BYTES_MIN: usize = 4 << 10;

/// The number of messages of the greatest length that fit into the backlog, unless that is set.
const BACKLOG_MESSAGES: usize = 4;

/// The shortest `fish_deadline`. A thief that gives up each FISH before its answer can come casts
/// the next at once: with 1 ns, queens on 4 PEs took 25 times as long.
const FISH_DEADLINE_MIN: Duration = Duration::from_micros(100);

/// The greatest `message_bytes_max`, in bytes: lengths are sent as 32-bit numbers.
pub const MESSAGE_BYTES_MAX: usize = u32::MAX as usize;

impl Settings {
    /// The defaults for a PE of `threads` worker threads.
    pub fn for_threads(threads: usize) -> Self {
        Settings {
            threads,
            fishing: FishingSettings::for_threads(threads),
            max_replicas: MAX_REPLICAS,
            steal_in_memory: true,
            port: PortSettings::default(),
            connections_max: None,
            detector: DetectorSettings::default(),
            spin: Duration::from_micros(100),
            poll_interval_max: Duration::from_millis(5),
            blocked_after: Duration::from_secs(10),
            shutdown_grace: Duration::from_mins(1),
            start_deadline: Duration::from_mins(1),
            host_mtbf: YEAR,
            seed: None,
        }
    }

    /// The defaults for `threads` worker threads (or `ULTRAMARINE_THREADS`), changed first by the
    /// environment `variables` that begin with [`PREFIX`], then by `changes`, whose names are those
    /// of the fields. Variables named in `others` (in capitals, without the prefix) are not
    /// settings of the runtime and are skipped.
    ///
    /// # Errors
    ///
    /// A name is not a setting, a value does not fit its setting, or the settings contradict each
    /// other. Their order does not matter.
    pub fn from_texts(
        threads: usize,
        variables: impl IntoIterator<Item = (String, String)>,
        changes: &[(String, String)],
        others: &[&str],
    ) -> Result<Self, SettingsError> {
        let ours: Vec<_> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?.to_owned(), value)))
            .filter(|(name, _)| !others.contains(&name.as_str()))
            .collect();
        let is_ours = |name: &&&str| !others.iter().any(|other| other.eq_ignore_ascii_case(name));
        let names: Vec<_> = NAMES.iter().filter(is_ours).copied().collect();
        let by_variable =
            |problem: SettingProblem| problem.named(variable_of, &[others, &names[..]].concat());
        let plain = |problem: SettingProblem| problem.named(str::to_owned, &names);
        let mut settings = Settings::for_threads(threads);
        if let Some((name, value)) = ours.iter().find(|(name, _)| name == "THREADS") {
            settings.assign(name, value).map_err(by_variable)?;
            settings.fishing = FishingSettings::for_threads(settings.threads);
        }
        for (name, value) in &ours {
            settings.assign(name, value).map_err(by_variable)?;
        }
        for (name, value) in changes {
            settings.assign(name, value).map_err(plain)?;
        }
        let is_in = |texts: &[(String, String)], setting: &str| {
            texts.iter().any(|(name, _)| name.eq_ignore_ascii_case(setting))
        };
        if !is_in(&ours, "backlog_bytes_max") && !is_in(changes, "backlog_bytes_max") {
            let port = &mut settings.port;
            let messages = port.message_bytes_max.saturating_mul(BACKLOG_MESSAGES);
            port.backlog_bytes_max = port.backlog_bytes_max.max(messages);
        }
        settings.check().map_err(|problem| {
            // The error names the setting as the user did.
            let from_variable = is_in(&ours, &problem.name) && !is_in(changes, &problem.name);
            if from_variable { by_variable(problem) } else { plain(problem) }
        })?;
        Ok(settings)
    }

    /// The most connections of each of the `lanes` over TCP in this process, and of its detector.
    pub fn connection_shares(&self, lanes: u64) -> ConnectionShares {
        let shares = ConnectionShares::of_remaining(lanes);
        ConnectionShares {
            lane: self.connections_max.map_or(shares.lane, |given| given as usize),
            ..shares
        }
    }

    /// The settings of the link between two PEs. It must not give up a PE sooner than the detector
    /// does.
    pub(crate) fn patient_port(&self) -> PortSettings {
        let least =
            2 * self.detector.dead_after.as_nanos() / self.port.resend_after.as_nanos().max(1);
        let resends_max = self.port.resends_max.max(u32::try_from(least).unwrap_or(u32::MAX));
        PortSettings { resends_max, ..self.port }
    }

    /// Checks that each setting is in its range, and that they do not contradict each other.
    fn check(&self) -> Result<(), SettingProblem> {
        let Settings { threads, fishing, port, detector, .. } = self;
        let demand = |holds: bool, name: &str, value: String, reason: &str| {
            if holds { Ok(()) } else { Err(SettingProblem::value(name, &value, reason)) }
        };
        let count = |name, value: usize, range: RangeInclusive<usize>, reason| {
            demand(range.contains(&value), name, value.to_string(), reason)
        };
        let is_some_time = !self.host_mtbf.is_zero() && self.host_mtbf <= HOST_MTBF_MAX;
        let shown = format!("{:?}", self.host_mtbf);
        demand(
            is_some_time,
            "host_mtbf",
            shown,
            "it must be more than zero, and at most 100 years",
        )?;
        count("threads", *threads, 1..=usize::MAX, "a PE needs at least one worker thread")?;
        let reason = format!("a PE has at most {THREADS_MAX} worker threads");
        count("threads", *threads, 0..=THREADS_MAX, &reason)?;
        let reason = "a SCHEDULE carries at least one task";
        count("schedule_tasks_max", fishing.schedule_tasks_max, 1..=usize::MAX, reason)?;
        let reason = "without a window nothing can be sent";
        count("window_frames", port.window_frames as usize, 1..=usize::MAX, reason)?;
        let range = MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX;
        let reason = format!("from {} to {} bytes are expected", range.start(), range.end());
        count("message_bytes_max", port.message_bytes_max, range, &reason)?;

        let connections = self.connections_max.map_or(usize::MAX, |given| given as usize);
        let reason =
            format!("at least {CONNECTIONS_MIN} are expected: one to dial, one to take a call");
        count("connections_max", connections, CONNECTIONS_MIN..=usize::MAX, &reason)?;

        for (name, value, shortest) in self.durations() {
            let shown = format!("{value:?}");
            demand(value >= shortest, name, shown.clone(), "more than zero is expected")?;
            demand(value <= DURATION_MAX, name, shown, "at most a day (24h) is expected")?;
        }
        let shown = format!("{:?}", detector.dead_after);
        let holds = detector.dead_after / 2 >= detector.heartbeat;
        let reason = format!(
            "at least two heartbeats, of {:?} each, are expected: raise dead_after, or lower \
             heartbeat",
            detector.heartbeat
        );
        demand(holds, "dead_after", shown, &reason)?;
        let shown = format!("{:?}", fishing.fish_deadline);
        let holds = fishing.fish_deadline >= FISH_DEADLINE_MIN;
        let reason = format!("a network may take longer than that: at least {FISH_DEADLINE_MIN:?}");
        demand(holds, "fish_deadline", shown, &reason)?;
        let shown = format!("{:?}", fishing.min_fish_delay);
        let holds = fishing.min_fish_delay <= fishing.max_fish_delay;
        demand(holds, "min_fish_delay", shown, "it is longer than max_fish_delay")
    }

    /// All durations, and how short they may be.
    fn durations(&self) -> [(&'static str, Duration, Duration); 13] {
        let Settings { fishing, detector, .. } = self;
        let (zero, moment) = (Duration::ZERO, Duration::from_nanos(1));
        [
            ("min_fish_delay", fishing.min_fish_delay, zero),
            ("max_fish_delay", fishing.max_fish_delay, zero),
            ("fish_deadline", fishing.fish_deadline, moment),
            ("resend_after", self.port.resend_after, moment),
            ("heartbeat", detector.heartbeat, moment),
            ("dead_after", detector.dead_after, moment),
            ("stalled_after", detector.stalled_after, moment),
            ("root_after", detector.root_after, moment),
            ("spin", self.spin, zero),
            ("poll_interval_max", self.poll_interval_max, zero),
            ("blocked_after", self.blocked_after, moment),
            ("shutdown_grace", self.shutdown_grace, zero),
            ("start_deadline", self.start_deadline, moment),
        ]
    }
}

#[cfg(test)]
mod tests;
