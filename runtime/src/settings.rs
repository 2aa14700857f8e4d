//! Everything about the runtime that a user may set, with its default.

use crate::protocol::FishingSettings;
use crate::transport::PortSettings;
use std::str::FromStr;
use std::time::Duration;

/// The settings of one PE.
///
/// Each field can be set in the program, or by an environment variable: `ULTRAMARINE_` and the
/// field's name in capitals, such as `ULTRAMARINE_MAX_HOPS=3` or `ULTRAMARINE_SPIN=100us`.
/// Durations take a unit (`ns`, `us`, `ms`, `s`), sizes are bytes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Worker threads of this PE, at least 1. Default: the cores that the PE may use.
    pub threads: usize,
    /// How work is asked for and given away.
    pub fishing: FishingSettings,
    /// How messages are carried.
    pub port: PortSettings,
    /// How long a worker without work looks for some, polling hard, before it sleeps. Default
    /// 100 µs: a few steals' time.
    pub spin: Duration,
    /// How long messages may lie while all workers are inside long tasks and nothing has come for
    /// a while. Default 5 ms. (Waking costs a worker that shares its core about 8 µs: every
    /// millisecond took 0.8 % of SumEuler's time, every 5 ms takes 0.2 %.)
    pub poll_interval_max: Duration,
    /// How long the end of a job waits for PEs to take leave and for tasks that still run.
    /// Default 2 s.
    pub shutdown_grace: Duration,
    /// Seed of this PE's random choices; `None` (the default): a different one each time.
    pub seed: Option<u64>,
}

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// There is no such setting.
    #[error("{variable} is not a setting; the settings are {}", known())]
    Unknown {
        /// The environment variable.
        variable: String,
    },
    /// The value is not of the setting's type.
    #[error("{name} = `{value}`: {reason}")]
    Value {
        /// The setting, or the environment variable.
        name: String,
        /// What it was to be.
        value: String,
        /// What it should look like.
        reason: String,
    },
}

/// Names each setting once: how it is called, and which field it is.
macro_rules! settings {
    ($($name:literal => $($field:ident).+),+ $(,)?) => {
        const NAMES: &[&str] = &[$($name),+];

        impl Settings {
            fn assign(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
                match name.to_ascii_lowercase().as_str() {
                    $($name => self.$($field).+ = Value::parse(name, value)?,)+
                    _ => return Err(SettingsError::Unknown { variable: name.to_owned() }),
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
    "message_bytes_max" => port.message_bytes_max,
    "window_frames" => port.window_frames,
    "backlog_bytes_max" => port.backlog_bytes_max,
    "resend_after" => port.resend_after,
    "resends_max" => port.resends_max,
    "spin" => spin,
    "poll_interval_max" => poll_interval_max,
    "shutdown_grace" => shutdown_grace,
    "seed" => seed,
}

/// What every setting's environment variable begins with.
pub const PREFIX: &str = "ULTRAMARINE_";

impl Settings {
    /// The defaults for a PE of `threads` worker threads.
    pub fn for_threads(threads: usize) -> Self {
        Settings {
            threads,
            fishing: FishingSettings::for_threads(threads),
            port: PortSettings::default(),
            spin: Duration::from_micros(100),
            poll_interval_max: Duration::from_millis(5),
            shutdown_grace: Duration::from_secs(2),
            seed: None,
        }
    }

    /// The defaults for `threads` worker threads (or `ULTRAMARINE_THREADS`), changed by those of
    /// `variables` that begin with [`PREFIX`]. Those that `others` names belong to somebody else.
    pub fn from_variables(
        threads: usize,
        variables: impl IntoIterator<Item = (String, String)>,
        others: &[&str],
    ) -> Result<Self, SettingsError> {
        let ours: Vec<_> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?.to_owned(), value)))
            .filter(|(name, _)| !others.contains(&name.as_str()))
            .collect();
        let mut settings = Settings::for_threads(threads);
        if let Some((name, value)) = ours.iter().find(|(name, _)| name == "THREADS") {
            settings.assign(name, value).map_err(prefixed)?;
            settings.fishing = FishingSettings::for_threads(settings.threads);
        }
        for (name, value) in &ours {
            settings.assign(name, value).map_err(prefixed)?;
        }
        settings.check().map_err(prefixed)?;
        Ok(settings)
    }

    /// Sets the setting with this name, as a text.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
        self.assign(name, value)?;
        self.check()
    }

    /// Whether the settings make sense.
    pub fn check(&self) -> Result<(), SettingsError> {
        let refuse = |name: &str, value: String, reason: &str| {
            Err(SettingsError::Value { name: name.into(), value, reason: reason.into() })
        };
        if self.threads == 0 {
            return refuse("threads", "0".into(), "a PE needs at least one worker thread");
        }
        if self.fishing.schedule_tasks_max == 0 {
            return refuse(
                "schedule_tasks_max",
                "0".into(),
                "a SCHEDULE carries at least one task",
            );
        }
        if self.fishing.min_fish_delay > self.fishing.max_fish_delay {
            let value = format!("{:?}", self.fishing.min_fish_delay);
            return refuse("min_fish_delay", value, "it is longer than max_fish_delay");
        }
        if self.port.window_frames == 0 {
            return refuse("window_frames", "0".into(), "without a window nothing can be sent");
        }
        Ok(())
    }
}

fn prefixed(error: SettingsError) -> SettingsError {
    match error {
        SettingsError::Unknown { variable } => {
            SettingsError::Unknown { variable: format!("{PREFIX}{variable}") }
        }
        SettingsError::Value { name, value, reason } => {
            let name = format!("{PREFIX}{}", name.to_ascii_uppercase());
            SettingsError::Value { name, value, reason }
        }
    }
}

fn known() -> String {
    NAMES
        .iter()
        .map(|n| format!("{PREFIX}{}", n.to_ascii_uppercase()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A type that a setting can have.
trait Value: Sized {
    fn parse(name: &str, text: &str) -> Result<Self, SettingsError>;
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, SettingsError> {
    let reason = || "a whole number that is neither negative nor too large is expected".to_owned();
    let error =
        |_| SettingsError::Value { name: name.into(), value: text.into(), reason: reason() };
    text.trim().parse().map_err(error)
}

macro_rules! numbers {
    ($($type:ty),+) => { $(impl Value for $type {
        fn parse(name: &str, text: &str) -> Result<Self, SettingsError> {
            number(name, text)
        }
    })+ };
}

numbers!(u8, u32, usize);

impl Value for Option<u64> {
    fn parse(name: &str, text: &str) -> Result<Self, SettingsError> {
        number(name, text).map(Some)
    }
}

impl Value for Duration {
    fn parse(name: &str, text: &str) -> Result<Self, SettingsError> {
        humantime::parse_duration(text).map_err(|error| SettingsError::Value {
            name: name.into(),
            value: text.into(),
            reason: format!("a duration such as 50us, 10ms or 2s is expected ({error})"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let owned = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Settings::from_variables(4, owned, &["PES"])
    }

    #[test]
    fn variables_set_what_they_name() {
        let settings = from(&[
            ("ULTRAMARINE_MAX_HOPS", "3"),
            ("ULTRAMARINE_SPIN", "70us"),
            ("ULTRAMARINE_SEED", "11"),
            ("ULTRAMARINE_PES", "not ours"),
            ("PATH", "/bin"),
        ])
        .expect("all are right");
        assert_eq!(settings.fishing.max_hops, 3);
        assert_eq!(settings.spin, Duration::from_micros(70));
        assert_eq!((settings.seed, settings.threads), (Some(11), 4));
    }

    #[test]
    fn threads_from_the_environment_move_the_watermarks() {
        let settings =
            from(&[("ULTRAMARINE_MIN_SCHED", "1"), ("ULTRAMARINE_THREADS", "9")]).expect("right");
        assert_eq!((settings.fishing.max_fish, settings.fishing.min_sched), (9, 1));
    }

    #[test]
    fn wrong_values_and_names_are_refused_by_name() {
        let text = |variable, value| from(&[(variable, value)]).expect_err("wrong").to_string();
        assert_eq!(
            text("ULTRAMARINE_THREADS", "0"),
            "ULTRAMARINE_THREADS = `0`: a PE needs at least one worker thread"
        );
        assert!(text("ULTRAMARINE_MAX_HOPS", "256").contains("ULTRAMARINE_MAX_HOPS = `256`"));
        assert!(text("ULTRAMARINE_SPIN", "soon").contains("50us"));
        assert!(text("ULTRAMARINE_MAX_HOP", "3").contains("ULTRAMARINE_MAX_HOPS"));
        assert!(text("ULTRAMARINE_MIN_FISH_DELAY", "1s").contains("longer than max_fish_delay"));
    }
}
