//! Reading the value of one setting, and saying what is wrong with it.

use super::{PREFIX, SettingsError};
use std::str::FromStr;
use std::time::Duration;

/// What is wrong with a setting, before it is said by which name it was given.
pub(super) struct Refusal {
    pub(super) name: String,
    /// The value and what is wrong with it; `None` where there is no such setting.
    wrong: Option<(String, String)>,
}

impl Refusal {
    pub(super) fn unknown(name: &str) -> Self {
        Refusal { name: name.to_owned(), wrong: None }
    }

    pub(super) fn value(name: &str, value: &str, reason: &str) -> Self {
        Refusal { name: name.to_owned(), wrong: Some((value.to_owned(), reason.to_owned())) }
    }

    /// The error, with settings called so; these are the known ones.
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

/// A type that a setting can have.
pub(super) trait Value: Sized {
    fn parse(name: &str, text: &str) -> Result<Self, Refusal>;
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, Refusal> {
    let reason = "a whole number that is neither negative nor too large is expected";
    text.trim().parse().map_err(|_| Refusal::value(name, text, reason))
}

macro_rules! numbers {
    ($($type:ty),+) => { $(impl Value for $type {
        fn parse(name: &str, text: &str) -> Result<Self, Refusal> {
            number(name, text)
        }
    })+ };
}

numbers!(u8, u32, usize);

impl Value for bool {
    fn parse(name: &str, text: &str) -> Result<Self, Refusal> {
        let reason = "true or false is expected";
        text.trim().parse().map_err(|_| Refusal::value(name, text, reason))
    }
}

impl Value for Option<u64> {
    fn parse(name: &str, text: &str) -> Result<Self, Refusal> {
        number(name, text).map(Some)
    }
}

impl Value for Duration {
    fn parse(name: &str, text: &str) -> Result<Self, Refusal> {
        humantime::parse_duration(text).map_err(|error| {
            let reason = format!("a duration such as 50us, 10ms or 2s is expected ({error})");
            Refusal::value(name, text, &reason)
        })
    }
}
