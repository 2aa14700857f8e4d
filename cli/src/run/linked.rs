//! Which MPI a program is linked with.
//!
//! The program's file names its dynamic loader, and the loader says which libraries it would load:
//! those of the file itself and of its libraries, from wherever `LD_LIBRARY_PATH`, run paths and
//! the system's list say. A library's *name* says that it is an MPI; what is *in* it says which,
//! since several MPIs have called theirs `libmpi.so.12`.

use super::error::RunError;
use super::family::Family;
use crate::subprocess;
use goblin::elf::Elf;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A program and its MPI library.
#[derive(Clone, Debug)]
pub(crate) struct Linked {
    pub(crate) program: PathBuf,
    pub(crate) family: Family,
    /// As the program names it, such as `libmpich.so.12`.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) library: PathBuf,
}

/// A symbol that every Open MPI library has, and no other.
const OPEN_MPI_SYMBOL: &str = "ompi_mpi_comm_world";

/// The loader answers within milliseconds, unless a file system hangs.
const LOADER_WITHIN: Duration = Duration::from_secs(20);

/// Which MPI the program would load here.
///
/// # Errors
///
/// It is no binary; it needs no MPI, two of them, or one that is not found.
pub(crate) fn examine(program: &Path) -> Result<Linked, RunError> {
    let not_elf = |reason: String| RunError::NotElf { program: program.to_owned(), reason };
    let bytes = read(program)?;
    if bytes.starts_with(b"#!") {
        return Err(not_elf("a script".to_owned()));
    }
    let elf = Elf::parse(&bytes).map_err(|error| not_elf(error.to_string()))?;
    // A static binary has no loader, and no MPI that could be seen.
    let Some(loader) = elf.interpreter else { return Err(RunError::NoMpi(program.to_owned())) };
    let absolute = std::path::absolute(program);
    let absolute = absolute.map_err(|source| RunError::Io { path: program.to_owned(), source })?;
    let listed = subprocess::run(Command::new(loader).arg("--list").arg(absolute), LOADER_WITHIN)
        .map_err(|source| RunError::Io { path: loader.into(), source })?;
    if !listed.succeeded() {
        let said = listed.last_line();
        return Err(match missing(said) {
            Some(library) => {
                let (program, library) = (program.to_owned(), library.to_owned());
                RunError::LibraryMissing { program, library }
            }
            None => not_elf(format!("{loader}: {said}")),
        });
    }
    let mut found: Option<Linked> = None;
    for (name, library) in loaded(&listed.out).filter(|(name, _)| is_mpi(name)) {
        // Where it really is, its launcher may be as well.
        let library = library.canonicalize().unwrap_or(library);
        let family = family_of(&library)?;
        match &found {
            Some(first) if first.family != family => {
                let said = |name: &str, family| format!("{name} ({family})");
                return Err(RunError::TwoMpis {
                    program: program.to_owned(),
                    first: said(&first.name, first.family),
                    second: said(name, family),
                });
            }
            Some(_) => {}
            None => {
                let (program, name) = (program.to_owned(), name.to_owned());
                found = Some(Linked { program, family, name, library });
            }
        }
    }
    found.ok_or_else(|| RunError::NoMpi(program.to_owned()))
}

fn read(path: &Path) -> Result<Vec<u8>, RunError> {
    fs::read(path).map_err(|source| RunError::Io { path: path.to_owned(), source })
}

/// The libraries in a loader's list, each with its file.
fn loaded(list: &str) -> impl Iterator<Item = (&str, PathBuf)> {
    list.lines().filter_map(|line| {
        let (name, file) = line.trim().split_once(" => ")?;
        // An address follows in parentheses.
        let file = file.rsplit_once(" (0x").map_or(file, |(file, _)| file);
        Some((name, PathBuf::from(file)))
    })
}

/// The library that a loader complains about, if it misses one. (glibc's words, and musl's.)
fn missing(complaint: &str) -> Option<&str> {
    let starts = ["error while loading shared libraries: ", "Error loading shared library "];
    let rest = starts.iter().find_map(|start| Some(complaint.split_once(start)?.1))?;
    Some(rest.split_once(": ")?.0)
}

/// Whether a library is an MPI by its name, and not only a binding to one for another language.
fn is_mpi(name: &str) -> bool {
    let stem = name.split(".so").next().unwrap_or_default();
    matches!(stem, "libmpi" | "libmpich" | "libmpi_abi")
        || ["libmpi_cray", "libmpi_gnu", "libmpi_intel", "libmpi_nvidia", "libmpi_amd"]
            .iter()
            .any(|cray| stem.starts_with(cray))
}

fn family_of(library: &Path) -> Result<Family, RunError> {
    let bytes = read(library)?;
    let elf = Elf::parse(&bytes).map_err(|error| {
        let source = std::io::Error::other(error.to_string());
        RunError::Io { path: library.to_owned(), source }
    })?;
    let mut names = elf.dynsyms.iter().filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name));
    let is_open_mpi = names.any(|name| name == OPEN_MPI_SYMBOL);
    Ok(if is_open_mpi { Family::OpenMpi } else { Family::Mpich })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaders_list_is_read() {
        let list = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibmpich.so.12 => /usr/lib/libmpich.so.12 (0x00007f00)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f04)\n";
        let found: Vec<_> = loaded(list).collect();
        assert_eq!(found, [("libmpich.so.12", PathBuf::from("/usr/lib/libmpich.so.12"))]);
    }

    #[test]
    fn a_loaders_complaint_names_what_is_missing() {
        let glibc = "p: error while loading shared libraries: libmpi.so.40: cannot open shared \
                     object file: No such file or directory";
        assert_eq!(missing(glibc), Some("libmpi.so.40"));
        let musl = "Error loading shared library libmpi.so.40: No such file (needed by p)";
        assert_eq!(missing(musl), Some("libmpi.so.40"));
        assert_eq!(missing("p: invalid ELF header"), None);
    }

    #[test]
    fn an_mpi_is_known_by_its_name() {
        for name in ["libmpich.so.12", "libmpi.so.40", "libmpi.so.12", "libmpi_gnu_91.so.12"] {
            assert!(is_mpi(name), "{name}");
        }
        for name in ["libmpi_cxx.so.40", "libmpi_mpifh.so.40", "libmpifort.so.12", "libc.so.6"] {
            assert!(!is_mpi(name), "{name}");
        }
    }

    #[test]
    fn a_text_is_no_binary() {
        let text = examine(Path::new("/etc/passwd")).expect_err("a text").to_string();
        assert!(text.starts_with("`/etc/passwd` is no binary ("), "{text}");
    }
}
