//! `cargo xtask bench [--lto] NAME…`: the benchmark program and those it measures against, built
//! for speed, with an MPI to launch under; with `--lto` linked as a whole, which takes many
//! minutes.
//!
//! The program starts its own processes: `MPIEXEC_FOR_TESTS` names the launcher, as for the tests.
//! The comparison with mpi4py needs a Python with mpi4py built for the same MPI. It is made in the
//! build folder; where that fails, the comparison is left out.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::mpi::Mpi;
use crate::process::{self, Failure, Result};
use crate::setup;

/// The program, and the feature with which it is built.
const PROGRAM: &str = "bench";
/// The benchmarks that compare with mpi4py.
const WITH_PYTHON: [&str; 2] = ["noop", "bulk"];

/// Where it names its benchmarks.
const SOURCE: &str = "examples/src/bin/bench/main.rs";
/// Its options that have a value.
const WITH_VALUE: [&str; 3] = ["--python", "--plots", "--minutes"];

/// With `lto` the whole program is optimised when it is linked.
pub(crate) fn run(lto: bool, arguments: &[String]) -> Result<ExitCode> {
    let source = fs::read_to_string(process::root().join(SOURCE));
    source.map_or(Ok(()), |source| check_names(&source, arguments))?;
    let mpi = setup::one_mpi()?;

    let profile = if lto { "lto" } else { "release" };
    let package = ["--package", "ultramarine-examples", "--bins", "--features", PROGRAM];
    mpi.build(&[&["--profile", profile], &package[..]].concat())?;

    let mut bench = Command::new(mpi.target_dir().join(profile).join(PROGRAM));
    bench.args(arguments);
    if wants_python(arguments) {
        match python_with_mpi4py(&mpi) {
            Ok(python) => drop(bench.arg("--python").arg(python)),
            Err(failure) => eprintln!("xtask: no comparison with mpi4py: {failure}"),
        }
    }
    mpi.apply_to(&mut bench);
    process::status_of(&mut bench).map(process::exit_code)
}

/// Refuses a name that the program does not know, before it is built for minutes.
fn check_names(source: &str, arguments: &[String]) -> Result<()> {
    let list = source.split_once("const BENCHMARKS").map_or("", |(_, list)| list);
    let list = list.split_once("];").map_or("", |(list, _)| list);
    // Each has two texts, the first of which is its name.
    let known: Vec<_> = list.split('"').skip(1).step_by(4).collect();
    let mut before = "";
    for argument in arguments {
        let is_value = argument.starts_with('-') || WITH_VALUE.contains(&before);
        if !is_value && !known.is_empty() && !known.contains(&argument.as_str()) {
            let known = known.join(", ");
            return Err(Failure(format!("there is no benchmark `{argument}`; there are {known}")));
        }
        before = argument;
    }
    Ok(())
}

/// Whether a benchmark that compares with mpi4py will run.
fn wants_python(arguments: &[String]) -> bool {
    let only_asks = ["--list", "--help", "-h", "--version", "-V", "--python"];
    let names: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let asks = arguments.iter().any(|argument| only_asks.contains(&argument.as_str()));
    !asks && (names.is_empty() || names.iter().any(|name| WITH_PYTHON.contains(&name.as_str())))
}

/// A separate Python in the build folder, with mpi4py for this MPI. Made once.
fn python_with_mpi4py(mpi: &Mpi) -> Result<PathBuf> {
    let folder = mpi.target_dir().join("python");
    let python = folder.join("bin").join("python");
    let has_mpi4py =
        || process::succeeds(Command::new(&python).args(["-c", "import mpi4py, numpy"]));
    if has_mpi4py() {
        return Ok(python);
    }
    println!("Building mpi4py for {} …", mpi.mpicc);
    process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut install = Command::new(&python);
    // A ready-made one might be for another MPI.
    install.args(["-m", "pip", "install", "--quiet", "--no-binary", "mpi4py", "mpi4py", "numpy"]);
    mpi.apply_to(&mut install);
    process::run(&mut install)?;
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_at_before_the_build() {
        let source = fs::read_to_string(process::root().join(SOURCE)).expect("it is there");
        let check = |words: &str| {
            let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
            check_names(&source, &words).map_err(|failure| failure.to_string())
        };
        for right in ["", "--list", "spawn noop --quick", "--plots here spawn", "--python p"] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        let refused = check("spawn nop").expect_err("a misspelt name");
        assert!(refused.starts_with("there is no benchmark `nop`; there are sum-euler, "));
        assert!(refused.contains(", recovery"), "{refused}");
    }

    #[test]
    fn python_is_looked_for_only_if_it_will_be_used() {
        let wants = |arguments: &[&str]| {
            wants_python(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert!(wants(&[]));
        assert!(wants(&["--quick"]));
        assert!(wants(&["steal", "noop", "--quick"]));
        assert!(!wants(&["steal", "--quick"]));
        assert!(!wants(&["--list"]));
        assert!(!wants(&["noop", "--python", "/usr/bin/python3"]));
    }
}
