//! The copy of the repository that the mutants are built in. Only what has changed is written, so
//! that cargo builds only that anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::catalogue::{AREAS, Catalogue};
use crate::process::{self, Failure, Result};
use crate::source;

/// The variable with the number of the mutant that is switched on. It is not one of the project's,
/// which the tests take out of the environments of their programs.
pub(crate) const MUTANT: &str = "XTASK_MUTANT";

/// The variable with the file that the number of each place is appended to when it is first
/// reached.
pub(crate) const REACHED: &str = "XTASK_MUTANTS_REACHED";

pub(crate) struct Tree {
    pub(crate) folder: PathBuf,
}

impl Tree {
    /// Copies all files that git knows, or would, into the folder, and removes all others there.
    ///
    /// # Errors
    /// Git does not run, or files cannot be copied.
    pub(crate) fn copy(catalogue: &Catalogue, folder: PathBuf) -> Result<Self> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = process::output_of(git.current_dir(process::root()))
            .ok_or_else(|| Failure("`git ls-files` failed: this needs a clone".to_owned()))?;
        let rewritten: BTreeSet<&str> = catalogue.files.iter().map(|file| &*file.path).collect();
        let is_there = |path: &&str| process::root().join(path).is_file();
        let listed: BTreeSet<&str> = listed.split_terminator('\0').filter(is_there).collect();
        let tree = Tree { folder };
        let copied = || -> io::Result<()> {
            fs::create_dir_all(&tree.folder)?;
            for path in source::paths(&tree.folder)? {
                if !listed.contains(&*path) {
                    fs::remove_file(tree.folder.join(path))?;
                }
            }
            for path in listed.iter().filter(|path| !rewritten.contains(*path)) {
                let mut bytes = fs::read(process::root().join(path))?;
                let crates = AREAS.iter().map(|area| area.package);
                if crates.into_iter().any(|name| **path == *format!("{name}/src/lib.rs")) {
                    bytes.extend(switches(catalogue.end()).as_bytes());
                }
                write(&tree.folder.join(path), &bytes)?;
            }
            Ok(())
        };
        copied().map_err(|error| Failure(format!("cannot copy the repository: {error}")))?;
        Ok(tree)
    }

    /// Writes the files that have switches.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn rewrite(&self, catalogue: &Catalogue) -> Result<()> {
        for file in &catalogue.files {
            let mut text = catalogue.switched(file).text;
            if file.path.ends_with("src/lib.rs") {
                text += &switches(catalogue.end());
            }
            let written = write(&self.folder.join(&file.path), text.as_bytes());
            written.map_err(|error| Failure(format!("{}: cannot write: {error}", file.path)))?;
        }
        Ok(())
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, bytes)
}

/// The module that each of the crates gets: which mutant is switched on is read once.
fn switches(end: u32) -> String {
    let words = end / 64 + 1;
    SWITCHES
        .replace("WORDS", &words.to_string())
        .replace("\"MUTANT\"", &format!("{MUTANT:?}"))
        .replace("\"REACHED\"", &format!("{REACHED:?}"))
}

const SWITCHES: &str = r#"
#[doc(hidden)]
pub mod mutants {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

    const NONE: u32 = 0;
    const NOTING: u32 = u32::MAX - 1;
    const UNREAD: u32 = u32::MAX;
    static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
    static NOTED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

    #[inline(always)]
    pub fn is(number: u32) -> bool {
        let active = ACTIVE.load(Relaxed);
        if active < NOTING { active == number } else { is_slowly(number) }
    }

    #[cold]
    #[inline(never)]
    fn is_slowly(number: u32) -> bool {
        if ACTIVE.load(Relaxed) == UNREAD {
            let number = std::env::var("MUTANT").ok().and_then(|number| number.parse().ok());
            let is_noting = std::env::var_os("REACHED").is_some();
            ACTIVE.store(number.unwrap_or(if is_noting { NOTING } else { NONE }), Relaxed);
        }
        let active = ACTIVE.load(Relaxed);
        if active == NOTING {
            note(number);
        }
        active == number
    }

    fn note(number: u32) {
        let bit = 1 << (number % 64);
        if NOTED[number as usize / 64].fetch_or(bit, Relaxed) & bit != 0 {
            return;
        }
        let Some(path) = std::env::var_os("REACHED") else { return };
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
    }
}
"#;
