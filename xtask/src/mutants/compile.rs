//! Builds the tests with all mutants in them, without those that do not compile.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::catalogue::{self, Catalogue};
use super::site::{Change, Switched};
use super::tree::Tree;
use crate::mpi::Mpi;
use crate::process::{self, Failure, Result};

/// Errors of one kind hide others, so it takes some rounds.
const ROUNDS_MAX: u32 = 60;

/// What builds the mutants: a copy of the tree, the folder for what is built, and an MPI.
pub(crate) struct Builder<'a> {
    pub(crate) tree: Tree,
    pub(crate) target: PathBuf,
    pub(crate) mpi: Option<&'a Mpi>,
}

/// A program with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestProgram {
    pub(crate) file: PathBuf,
    /// The folder of its crate.
    pub(crate) folder: PathBuf,
}

impl Builder<'_> {
    /// Refuses the places whose mutants do not compile, and puts what stays into the copy. What was
    /// refused is kept in a file for the next time.
    ///
    /// # Errors
    /// The crates do not compile without mutants.
    pub(crate) fn settle(&self, catalogue: &mut Catalogue, kept: &Path) -> Result<()> {
        catalogue.remember(&fs::read_to_string(kept).unwrap_or_default());
        for _ in 0..ROUNDS_MAX {
            self.tree.rewrite(catalogue)?;
            let (is_done, messages) = self.cargo(&["check"])?;
            if is_done {
                return fs::write(kept, catalogue.refusals())
                    .map_err(|error| Failure(format!("{}: {error}", kept.display())));
            }
            let before = catalogue.refused.len();
            let errors: Vec<_> = messages.iter().filter_map(error_of).collect();
            let switched: Vec<_> =
                catalogue.files.iter().map(|file| catalogue.switched(file)).collect();
            let blamed: BTreeSet<u32> =
                errors.iter().flat_map(|error| blame(catalogue, &switched, error)).collect();
            catalogue.refused.extend(blamed);
            if catalogue.refused.len() == before {
                let shown: String =
                    errors.iter().filter_map(|error| error["rendered"].as_str()).collect();
                return Err(Failure(format!("the crates do not compile:\n{shown}")));
            }
            println!("{} mutants do not compile", catalogue.refused.len());
        }
        Err(Failure(format!("after {ROUNDS_MAX} rounds there are mutants that do not compile")))
    }

    /// Builds the tests.
    ///
    /// # Errors
    /// They do not compile.
    pub(crate) fn build(&self) -> Result<Vec<TestProgram>> {
        let (is_done, messages) = self.cargo(&["test", "--no-run", "--lib", "--tests"])?;
        if !is_done {
            let errors = messages.iter().filter_map(error_of);
            let shown: Vec<_> =
                errors.filter_map(|error| Some(error["rendered"].as_str()?.to_owned())).collect();
            return Err(Failure(format!("the tests do not compile:\n{}", shown.concat())));
        }
        let program = |message: &Value| {
            let is_test = message["profile"]["test"].as_bool()?;
            let file = message["executable"].as_str().filter(|_| is_test)?;
            let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
            Some(TestProgram { file: file.into(), folder: folder.to_owned() })
        };
        Ok(messages.iter().filter_map(program).collect())
    }

    /// Whether it succeeds, and what it says.
    fn cargo(&self, arguments: &[&str]) -> Result<(bool, Vec<Value>)> {
        let mut command = process::cargo();
        command.current_dir(&self.tree.folder).args(arguments);
        command.args(["--quiet", "--message-format", "json"]);
        for folder in catalogue::packages() {
            let ending = if folder == "launch" { String::new() } else { format!("-{folder}") };
            command.args(["--package", &format!("ultramarine{ending}")]);
        }
        self.apply_to(&mut command);
        command.stdin(Stdio::null());
        let output = command.output().map_err(|error| process::cannot_start(&command, &error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let messages: Vec<_> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if !output.status.success() && !messages.iter().any(|one| error_of(one).is_some()) {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure(format!("`{}` failed:\n{said}", process::shown(&command))));
        }
        Ok((output.status.success(), messages))
    }

    /// Makes the command build for, or run with, this MPI, in its own folder.
    pub(crate) fn apply_to(&self, command: &mut Command) {
        if let Some(mpi) = self.mpi {
            mpi.apply_to(command);
        }
        command.env("CARGO_TARGET_DIR", &self.target);
        // What the compiler warns of in mutants is no news.
        command.env("RUSTFLAGS", "--cap-lints=allow").env_remove("CARGO_ENCODED_RUSTFLAGS");
        command.env("CARGO_INCREMENTAL", "1");
    }
}

fn error_of(message: &Value) -> Option<&Value> {
    let is_one = message["reason"] == "compiler-message" && message["message"]["level"] == "error";
    Some(&message["message"]).filter(|_| is_one)
}

/// The places whose mutants are to blame for the error, most likely.
fn blame(catalogue: &Catalogue, switched: &[Switched], error: &Value) -> Vec<u32> {
    let spans = || error["spans"].as_array().into_iter().flatten();
    let primary = spans().filter(|span| span["is_primary"] == true);
    let others = spans().filter(|span| span["is_primary"] != true);
    let places: Vec<_> =
        primary.chain(others).filter_map(|span| place_of(catalogue, span)).collect();
    let Some((file, first)) = places.first() else { return Vec::new() };
    let (file, switched) = (&catalogue.files[*file], &switched[*file]);
    let code = error["code"]["code"].as_str().unwrap_or_default();
    let of_function = |changes: &[Change]| {
        let at = switched.origin(first.start);
        let accepted = file.sites().filter(|(number, _)| !catalogue.refused.contains(number));
        let in_it = accepted.filter(move |(_, site)| site.function.contains(&at));
        let found = in_it.filter(|(_, site)| changes.is_empty() || changes.contains(&site.change));
        found.map(|(number, _)| number).collect::<Vec<_>>()
    };
    // What is not set in one of the ways is used elsewhere.
    if code == "E0381" {
        let found = of_function(&[Change::Dropped]);
        if !found.is_empty() {
            return found;
        }
    }
    let number = |(_, number): &(Range<usize>, usize)| *number as u32;
    // The innermost place that the error is in, or else all places that are in it.
    let around =
        |one: &&(Range<usize>, usize)| one.0.start <= first.start && first.end <= one.0.end;
    if let Some(innermost) = switched.sites.iter().rfind(around) {
        return vec![number(innermost)];
    }
    let inside = |one: &&(Range<usize>, usize)| {
        places.iter().any(|(_, at)| at.start <= one.0.start && one.0.end <= at.end)
    };
    let found: Vec<_> = switched.sites.iter().filter(inside).map(number).collect();
    if !found.is_empty() {
        return found;
    }
    let exits = of_function(&[Change::ExitDropped]);
    if exits.is_empty() { of_function(&[]) } else { exits }
}

/// The index of the file that the span is in, and its bytes there.
fn place_of(catalogue: &Catalogue, span: &Value) -> Option<(usize, Range<usize>)> {
    let name = span["file_name"].as_str()?;
    if let Some(index) = catalogue.files.iter().position(|file| file.path == name) {
        let byte = |key: &str| span[key].as_u64().map(|byte| byte as usize);
        return Some((index, byte("byte_start")?..byte("byte_end")?));
    }
    // Within a macro: where that is called.
    place_of(catalogue, span.get("expansion")?.get("span")?)
}
