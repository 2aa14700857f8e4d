//! What is wrong with a setting, in words for the person who gave it.

/// A setting that does not exist, or that cannot have the value given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// There is no such setting.
    #[error("{name} is not a setting; the settings are {known}")]
    Unknown {
        /// The name given: a setting's, or an environment variable's.
        name: String,
        /// The names of all settings, or of their environment variables.
        known: String,
    },
    /// The value is not of the setting's type, or not in its range.
    #[error("{name} = `{value}`: {reason}")]
    Value {
        /// The setting, or its environment variable.
        name: String,
        /// The value given.
        value: String,
        /// What is wrong with it, or what is expected.
        reason: String,
    },
}
