//! The flags that kill processes on purpose, to see that the job survives: `--kill-at` and
//! `--chaos-monkey` (the flags `killAt` and `chaosMonkey` of HdpH-RS §6.5.1 and §6.5.2).

use crate::variables::{self, Refused, Variable, complete};
use std::str::FromStr;
use std::time::Duration;

/// The faults that were asked for, as flags and variables say it.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct FaultFlags {
    /// For testing: at each of these moments, in seconds after the start of the job, one process
    /// other than the root's kills itself, as in `0.5,2,2`. Which ones is drawn; `--set seed=N`
    /// repeats the draw [env: `ULTRAMARINE_KILL_AT`].
    #[arg(long, value_name = "SECONDS,…", allow_hyphen_values = true)]
    pub kill_at: Option<KillTimes>,
    /// For testing: a random number of processes other than the root's kill themselves at random
    /// moments. The same seed repeats it [env: `ULTRAMARINE_CHAOS_MONKEY`, with a seed or
    /// `random`].
    #[arg(long, value_name = "SEED", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "random")]
    pub chaos_monkey: Option<ChaosSeed>,
    /// The random moments are within this time after the start of the job
    /// [env: `ULTRAMARINE_CHAOS_WITHIN`] [default: 10s].
    #[arg(long, value_name = "DURATION", value_parser = within)]
    pub chaos_within: Option<Duration>,
}

/// The longest that a fault can be put off: a day.
const MOMENT_MAX: Duration = Duration::from_hours(24);

/// Moments after the start of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillTimes(pub Vec<Duration>);

impl FromStr for KillTimes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let moment = |word: &str| {
            let seconds = word.trim().parse().ok().filter(|seconds: &f64| !seconds.is_nan());
            let seconds = seconds.ok_or_else(|| {
                format!("`{word}` is no number: seconds are expected, as in 0.5,2,2")
            })?;
            if seconds < 0.0 {
                return Err(format!("`{word}` is before the start of the job"));
            }
            let moment = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            if moment > MOMENT_MAX {
                return Err(format!("`{word}` is more than a day ({} s)", MOMENT_MAX.as_secs()));
            }
            Ok(moment)
        };
        Ok(KillTimes(text.split(',').map(moment).collect::<Result<_, _>>()?))
    }
}

/// What the chaos monkey begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChaosSeed {
    /// One that is drawn.
    Random,
    /// This one.
    Given(u64),
}

impl FromStr for ChaosSeed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seed = || text.parse().map(ChaosSeed::Given);
        if text.eq_ignore_ascii_case("random") {
            return Ok(ChaosSeed::Random);
        }
        seed().map_err(|_| "a seed (a whole number) or `random` is expected".to_owned())
    }
}

fn within(text: &str) -> Result<Duration, String> {
    let wrong = |error| format!("a duration such as 500ms, 10s or 2min is expected ({error})");
    match humantime::parse_duration(text).map_err(wrong)? {
        Duration::ZERO => Err("more than zero is expected".to_owned()),
        within if within <= MOMENT_MAX => Ok(within),
        _ => Err("at most a day (24h) is expected".to_owned()),
    }
}

impl FaultFlags {
    /// Takes what was not given from environment variables.
    pub fn complete(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), Refused> {
        let text = |of: Variable| (of.name, variable(of.name));
        complete(&mut self.kill_at, text(variables::KILL_AT), str::parse)?;
        complete(&mut self.chaos_monkey, text(variables::CHAOS_MONKEY), str::parse)?;
        complete(&mut self.chaos_within, text(variables::CHAOS_WITHIN), within)
    }

    /// Whether any fault is asked for.
    pub fn are_wanted(&self) -> bool {
        self.kill_at.is_some() || self.chaos_monkey.is_some()
    }

    /// An error if processes are to die where all PEs are threads of one process.
    pub fn refuse_among_threads(&self) -> Result<(), Refused> {
        if !self.are_wanted() {
            return Ok(());
        }
        let reason = "--kill-at and --chaos-monkey kill processes, and here all PEs are threads of \
                      one: start the program with mpiexec or srun";
        Err(Refused(reason.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<FaultFlags, String> {
        let mut faults = FaultFlags::default();
        let variable = |asked: &str| (asked == name).then(|| value.to_owned());
        faults.complete(variable).map_err(|error| error.to_string())?;
        Ok(faults)
    }

    #[test]
    fn variables_say_what_is_wanted() {
        let faults = read("ULTRAMARINE_KILL_AT", "1, 0.25,86400").expect("moments");
        let moments = [1000, 250, 86_400_000].map(Duration::from_millis).to_vec();
        assert_eq!(faults.kill_at, Some(KillTimes(moments)));
        assert!(faults.refuse_among_threads().is_err());
        let faults = read("ULTRAMARINE_CHAOS_MONKEY", "17").expect("a seed");
        assert_eq!(faults.chaos_monkey, Some(ChaosSeed::Given(17)));
        let faults = read("ULTRAMARINE_CHAOS_MONKEY", "random").expect("a word");
        assert_eq!(faults.chaos_monkey, Some(ChaosSeed::Random));
        let faults = read("ULTRAMARINE_CHAOS_WITHIN", "1500ms").expect("a duration");
        assert_eq!(faults.chaos_within, Some(Duration::from_millis(1500)));
        faults.refuse_among_threads().expect("a time alone kills no process");
        let faults = read("ULTRAMARINE_KILL_AT", "").expect("as if not set");
        assert!(!faults.are_wanted());
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (name, value, text) in [
            ("KILL_AT", "-1", "`-1` is before the start"),
            ("KILL_AT", "1,soon", "`soon` is no number"),
            ("KILL_AT", "1,,2", "`` is no number"),
            ("KILL_AT", "nan", "`nan` is no number"),
            ("KILL_AT", "inf", "`inf` is more than a day"),
            ("KILL_AT", "86400.1", "`86400.1` is more than a day"),
            ("CHAOS_MONKEY", "yes", "a seed (a whole number) or `random` is expected"),
            ("CHAOS_MONKEY", "-1", "a seed"),
            ("CHAOS_WITHIN", "0s", "more than zero"),
            ("CHAOS_WITHIN", "25h", "at most a day"),
            ("CHAOS_WITHIN", "5", "a duration such as"),
        ] {
            let name = format!("ULTRAMARINE_{name}");
            let error = read(&name, value).expect_err(value);
            assert!(error.starts_with(&format!("{name} = `{value}`: ")), "{error}");
            assert!(error.contains(text), "{error}");
        }
    }
}
