//! What the processes of a job say of themselves and of each other.

use std::collections::{BTreeMap, BTreeSet};

/// What has been heard.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Every line.
    pub(crate) lines: Vec<String>,
    /// The processes, by PE.
    pub(crate) processes: BTreeMap<u32, u32>,
    /// PEs that others have declared dead, or that have left because others have.
    pub(crate) lost: BTreeSet<u32>,
    /// The object that the program prints at its end.
    pub(crate) report: Option<serde_json::Value>,
}

impl Log {
    /// A line of standard output.
    pub(crate) fn hear_out(&mut self, line: String) {
        if line.starts_with('{') {
            self.report = serde_json::from_str(&line).ok().or(self.report.take());
        }
        self.lines.push(line);
    }

    /// A line of standard error.
    pub(crate) fn hear_err(&mut self, line: String) {
        self.processes.extend(begins(&line));
        self.lost.extend(died(&line));
        self.lines.push(line);
    }

    /// A number of the report.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.report.as_ref().and_then(|report| report[name].as_u64())
    }
}

/// The PE and its process, if the line says that a PE begins.
fn begins(line: &str) -> Option<(u32, u32)> {
    let (_, rest) = line.split_once("the job begins: PE ")?;
    let (pe, rest) = rest.split_once(" of ")?;
    let (_, process) = rest.split_once(" is process ")?;
    Some((pe.parse().ok()?, process.trim().parse().ok()?))
}

/// The PE, if the line says that one has died, or leaves.
fn died(line: &str) -> Option<u32> {
    let (before, _) = line.split_once(" has died").or_else(|| line.split_once(" leaves: "))?;
    before.rsplit_once("PE ")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_which_process_is_which_pe() {
        let line = "2026-01-01T00:00:00Z  INFO x: the job begins: PE 3 of 8 is process 4711";
        assert_eq!(begins(line), Some((3, 4711)));
        assert_eq!(begins("the job begins: PE x of 8 is process 4711"), None);
        assert_eq!(begins("something else"), None);
    }

    #[test]
    fn a_line_says_who_is_lost() {
        assert_eq!(died("2026 INFO ultramarine::executor: PE 3 has died pe=0"), Some(3));
        assert_eq!(died("Error: PE 12 leaves: the others hold it for dead"), Some(12));
        assert_eq!(died("its host has died"), None);
    }
}
