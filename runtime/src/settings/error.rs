//! What is wrong with a setting, in words for the person who gave it.

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// There is no such setting.
    #[error("{name} is not a setting; the settings are {known}")]
    Unknown {
        /// What was taken for a setting, or for a setting's environment variable.
        name: String,
        /// The settings, or their environment variables.
        known: String,
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
