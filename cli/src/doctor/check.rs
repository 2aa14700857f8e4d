//! What the doctor found, a line each.

use serde::Serialize;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Ok,
    /// Jobs run, but not as well as they could.
    Warning,
    /// Jobs do not run, or do not survive what they should.
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    #[serde(rename = "verdict")]
    pub(crate) severity: Severity,
    /// What is the case.
    pub(crate) found: String,
    /// What to do about it, unless all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mend: Option<String>,
}

impl Check {
    pub(crate) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Check { name, severity: Severity::Ok, found: found.into(), mend: None }
    }

    pub(crate) fn warning(
        name: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Check { severity: Severity::Warning, mend: Some(mend.into()), ..Check::ok(name, found) }
    }

    pub(crate) fn wrong(
        name: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Check { severity: Severity::Wrong, mend: Some(mend.into()), ..Check::ok(name, found) }
    }

    /// Names the host that the check is about.
    pub(crate) fn on(self, host: &str) -> Self {
        Check { found: format!("{host}: {}", self.found), ..self }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Wrong => "wrong",
        };
        write!(f, "{severity:<8} {:<9} {}", self.name, self.found)?;
        self.mend.iter().try_for_each(|mend| write!(f, ": {mend}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_a_line_and_an_object() {
        let fine = Check::ok("clock", "fine");
        assert_eq!(fine.to_string(), "ok       clock     fine");
        let bad = Check::wrong("launcher", "there is none", "install one");
        assert_eq!(bad.to_string(), "wrong    launcher  there is none: install one");
        let there = Check::ok("clock", "fine").on("n1");
        assert_eq!(there.to_string(), "ok       clock     n1: fine");
        let object = serde_json::to_string(&bad).expect("plain data");
        let text =
            r#"{"name":"launcher","verdict":"wrong","found":"there is none","mend":"install one"}"#;
        assert_eq!(object, text);
    }
}
