//! The program to start: found as a shell finds it, or beside this command.

use super::error::RunError;
use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The file that `name` stands for. A name with a slash is a path; any other is looked for on
/// `PATH`, and then beside the `ultramarine` command, where cargo puts programs that were built
/// with it.
pub(crate) fn find(
    name: &OsStr,
    path: Option<&OsStr>,
    beside: Option<&Path>,
) -> Result<PathBuf, RunError> {
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return match &file {
            file if !file.exists() => Err(RunError::NoFile(file.clone())),
            file if !is_program(file) => Err(RunError::NotExecutable(file.clone())),
            _ => Ok(file),
        };
    }
    let folders =
        path.into_iter().flat_map(std::env::split_paths).chain(beside.map(Path::to_owned));
    // An empty name, as in `run ""`, would stand for the folder itself.
    let files = folders.map(|folder| folder.join(name));
    files.filter(|_| !name.is_empty()).find(|file| is_program(file)).ok_or_else(|| {
        let shown = name.to_string_lossy().into_owned();
        let here = is_program(&Path::new(".").join(name));
        let hint = if here { format!(": write `./{shown}`") } else { ": give its path".to_owned() };
        RunError::NoProgram { name: shown, hint }
    })
}

/// The first of these names that is a program in one of the folders of `PATH`.
pub(crate) fn on_path(names: &[&str], path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let folders: Vec<_> = path.into_iter().flat_map(std::env::split_paths).collect();
    let files = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.filter(|file| is_program(file)).collect::<Vec<_>>().into_iter()
}

/// Whether this user may execute it.
pub(crate) fn is_program(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_on_the_path_and_then_beside() {
        let find = |name: &str| find(name.as_ref(), Some("/nowhere:/bin".as_ref()), None);
        assert_eq!(find("sh").expect("a shell"), Path::new("/bin/sh"));
        assert_eq!(find("/bin/sh").expect("a shell"), Path::new("/bin/sh"));
        let beside = super::find("sh".as_ref(), None, Some(Path::new("/bin")));
        assert_eq!(beside.expect("a shell"), Path::new("/bin/sh"));
    }

    #[test]
    fn what_is_no_program_is_named() {
        let error = |name: &str| {
            find(name.as_ref(), Some("/bin".as_ref()), None).expect_err(name).to_string()
        };
        assert!(error("").starts_with("there is no program ``"));
        assert!(error("/etc/").starts_with("`/etc/` cannot be executed"));
    }
}
