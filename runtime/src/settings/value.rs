//! Parses the value of one setting, and says what is wrong with it.

use super::error::SettingsError;
use std::str::FromStr;
use std::time::Duration;

/// What every setting's environment variable begins with.
pub const PREFIX: &str = "ULTRAMARINE_";

/// What is wrong with a setting, before the name by which the user gave it is known.
pub(super) struct SettingProblem {
    pub(super) name: String,
    /// The value and what is wrong with it; `None` where there is no such setting.
    wrong: Option<(String, String)>,
}

impl SettingProblem {
    pub(super) fn unknown(name: &str) -> Self {
        SettingProblem { name: name.to_owned(), wrong: None }
    }

    pub(super) fn value(name: &str, value: &str, reason: &str) -> Self {
        SettingProblem { name: name.to_owned(), wrong: Some((value.to_owned(), reason.to_owned())) }
    }

    /// The error, in which `call` makes the names of settings; `known` are all settings.
    pub(super) fn named(self, call: fn(&str) -> String, known: &[&str]) -> SettingsError {
        let name = call(&self.name);
        if let Some((value, reason)) = self.wrong {
            return SettingsError::Value { name, value, reason };
        }
        let known: Vec<_> = known.iter().map(|known| call(known)).collect();
        SettingsError::Unknown { name, known: known.join(", ") }
    }
}

/// The environment variable of a setting.
pub(super) fn variable_of(name: &str) -> String {
    format!("{PREFIX}{}", name.to_ascii_uppercase())
}

/// A type of settings.
pub(super) trait SettingValue: Sized {
    fn parse(name: &str, text: &str) -> Result<Self, SettingProblem>;
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, SettingProblem> {
    let reason = "a whole number that is neither negative nor too large is expected";
    text.trim().parse().map_err(|_| SettingProblem::value(name, text, reason))
}

/// What stands behind a size, and how many bytes that is.
const UNITS: [(&str, usize); 6] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// The bytes of a size: `100 MB` or so.
fn size(text: &str) -> Option<usize> {
    let of_unit = |(unit, bytes): &(&str, usize)| {
        text.trim().strip_suffix(unit)?.trim().parse::<usize>().ok()?.checked_mul(*bytes)
    };
    UNITS.iter().find_map(of_unit)
}

macro_rules! numbers {
    ($($type:ty),+) => { $(impl SettingValue for $type {
        fn parse(name: &str, text: &str) -> Result<Self, SettingProblem> {
            number(name, text)
        }
    })+ };
}

numbers!(u8, u32);

impl SettingValue for usize {
    fn parse(name: &str, text: &str) -> Result<Self, SettingProblem> {
        size(text).filter(|_| name.contains("bytes")).map_or_else(|| number(name, text), Ok)
    }
}

impl SettingValue for bool {
    fn parse(name: &str, text: &str) -> Result<Self, SettingProblem> {
        let reason = "true or false is expected";
        text.trim().parse().map_err(|_| SettingProblem::value(name, text, reason))
    }
}

impl SettingValue for Option<u64> {
    fn parse(name: &str, text: &str) -> Result<Self, SettingProblem> {
        number(name, text).map(Some)
    }
}

impl SettingValue for Duration {
    fn parse(name: &str, text: &str) -> Result<Self, SettingProblem> {
        humantime::parse_duration(text).map_err(|error| {
            let reason = format!("a duration such as 50us, 10ms or 2s is expected ({error})");
            SettingProblem::value(name, text, &reason)
        })
    }
}
