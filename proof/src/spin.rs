//! Runs SPIN on [the model in Promela](../spin/supervision.pml).

use std::fmt::{self, Display};
use std::path::Path;
use std::process::{Command, Output};

/// The path of the model, wherever this program is started.
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/spin/supervision.pml");

/// The result of a run of SPIN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spin {
    /// The number of different states.
    pub states: u64,
    /// The number of transitions taken, including those of the claim.
    pub transitions: u64,
    /// The length of the longest path, in steps.
    pub depth: u64,
    /// How long the search took, in seconds.
    pub seconds: f64,
    /// Whether an execution was found in which the future stays empty.
    pub is_violated: bool,
}

impl Display for Spin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spin { states, transitions, depth, seconds, is_violated } = self;
        write!(f, "{states} states, {transitions} transitions, depth {depth}, {seconds:.1} s")?;
        if *is_violated { write!(f, ": THE FUTURE STAYS EMPTY") } else { Ok(()) }
    }
}

/// Why there is no result.
#[derive(Debug)]
pub enum SpinError {
    /// A program could not be started.
    Missing(&'static str, std::io::Error),
    /// A program failed, or its output cannot be read.
    Failed(&'static str, String),
}

impl Display for SpinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpinError::Missing(program, error) => write!(
                f,
                "cannot start `{program}` ({error}); `cargo xtask setup` installs what is missing, \
                 or on Debian: apt-get install -y spin gcc libc6-dev"
            ),
            SpinError::Failed(program, said) => write!(f, "`{program}` failed:\n{said}"),
        }
    }
}

impl std::error::Error for SpinError {}

/// Checks the claim of the model with these macros defined. SPIN works in this folder, which is
/// made if it does not exist.
///
/// # Errors
/// SPIN or the C compiler is missing or fails, or the search is not complete.
pub fn check(macros: &[&str], folder: &Path) -> Result<Spin, SpinError> {
    let failed = |error: std::io::Error| SpinError::Failed("mkdir", error.to_string());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let defines = macros.iter().map(|name| format!("-D{name}"));
    run("spin", Command::new("spin").current_dir(folder).args(defines).args(["-a", MODEL]))?;
    // Without code for weak fairness, since every execution ends.
    let compiler = ["-O2", "-w", "-DNOFAIR", "-DCOLLAPSE", "-DMEMLIM=12000", "-o", "pan", "pan.c"];
    run("cc", Command::new("cc").current_dir(folder).args(compiler))?;
    let search = ["-a", "-n", "-m100000"];
    let output = run("pan", Command::new(folder.join("pan")).current_dir(folder).args(search))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    read(&said).ok_or(SpinError::Failed("pan", said))
}

fn run(name: &'static str, command: &mut Command) -> Result<Output, SpinError> {
    let output = command.output().map_err(|error| SpinError::Missing(name, error))?;
    if output.status.success() {
        return Ok(output);
    }
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(SpinError::Failed(name, format!("{said}{complained}")))
}

/// Reads what the verifier prints. `None` if the search was not complete, or failed for any reason
/// but the claim.
fn read(said: &str) -> Option<Spin> {
    let number = |line: &str, before: &str| -> Option<f64> {
        let rest = line.split_once(before)?.1.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && !".e+".contains(c));
        rest[..end.unwrap_or(rest.len())].parse().ok()
    };
    let find =
        |mark: &str, before: &str| number(said.lines().find(|line| line.contains(mark))?, before);
    let errors = find("errors:", "errors:")?;
    let is_violated = said.contains("acceptance cycle (at depth");
    let is_complete = !said.contains("Search not completed") && !said.contains("max search depth");
    if (errors > 0.0) != is_violated || !is_violated && !is_complete {
        return None;
    }
    Some(Spin {
        states: find(" states, stored", "")? as u64,
        transitions: find(" transitions (=", "")? as u64,
        depth: find("depth reached", "depth reached")? as u64,
        seconds: find("elapsed time", "elapsed time")?,
        is_violated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "State-vector 392 byte, depth reached 95, errors: 0\n  \
        3235161 states, stored (6.47032e+06 visited)\n 69429049 states, matched\n \
        75899371 transitions (= visited+matched)\n\npan: elapsed time 87.8 seconds\n";

    #[test]
    fn a_report_is_read() {
        let (states, transitions, depth) = (3_235_161, 75_899_371, 95);
        let good = Spin { states, transitions, depth, seconds: 87.8, is_violated: false };
        assert_eq!(read(GOOD), Some(good.clone()));
        let bad = format!(
            "pan:1: acceptance cycle (at depth 68)\nWarning: Search not completed\n{}",
            GOOD.replace("errors: 0", "errors: 1")
        );
        assert_eq!(read(&bad), Some(Spin { is_violated: true, ..good }));
    }

    #[test]
    fn what_is_not_the_claims_fault_is_no_result() {
        assert_eq!(read(&GOOD.replace("errors: 0", "errors: 1")), None, "an assertion, say");
        assert_eq!(read(&format!("Warning: Search not completed\n{GOOD}")), None);
        assert_eq!(read(&format!("error: max search depth too small\n{GOOD}")), None);
        assert_eq!(read("pan: out of memory"), None);
    }
}
