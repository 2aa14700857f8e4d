//! `cargo xtask simulate NAME…`: the simulator, built for speed. It needs neither MPI nor hwloc.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::process::{self, Result};

const PACKAGE: &str = "ultramarine-simulator";

/// Builds the simulator, and hands it these arguments; it ends as the simulator does.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    process::run(&mut build())?;
    process::status_of(Command::new(program()).args(arguments)).map(process::exit_code)
}

/// Where the program is, once it is built.
pub(crate) fn program() -> PathBuf {
    process::target_root().join("release").join(PACKAGE)
}

/// What builds it.
pub(crate) fn build() -> Command {
    let mut build = process::cargo();
    build.args(["build", "--quiet", "--release", "--package", PACKAGE, "--no-default-features"]);
    build
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_built_alone_and_without_mpi() {
        let words = process::shown(&build());
        let words = words.split_once(' ').map(|(_, words)| words.to_owned());
        let expected = "build --quiet --release --package ultramarine-simulator \
                        --no-default-features";
        assert_eq!(words.as_deref(), Some(expected));
    }
}
