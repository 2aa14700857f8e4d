//! Whether bindgen will find a libclang it can use.
//!
//! This looks where `clang-sys` looks, which does the finding for bindgen, so that "nothing is
//! missing" here means that the build will not stop there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// bindgen needs at least this version of libclang.
const MAJOR_MIN: u32 = 5;

/// Folders that are searched, each to the given depth below it.
const FOLDERS: [(&str, usize); 4] =
    [("/usr/local/lib", 2), ("/usr/lib", 2), ("/usr/lib64", 2), ("/usr/lib32", 2)];

/// Whether there is a usable libclang. `$LIBCLANG_PATH`, if set, is the only place that counts.
pub(crate) fn is_here() -> bool {
    if let Some(path) = env::var_os("LIBCLANG_PATH").map(PathBuf::from) {
        return path.file_name().is_some_and(is_usable_file_name) && path.is_file()
            || is_in(&path, 0);
    }
    let llvm_config = env::var_os("LLVM_CONFIG_PATH").unwrap_or_else(|| "llvm-config".into());
    let prefix = || process::output_of(Command::new(&llvm_config).arg("--prefix"));
    let listed = |name| {
        env::var_os(name)
            .is_some_and(|paths| env::split_paths(&paths).any(|folder| is_in(&folder, 0)))
    };
    FOLDERS.iter().any(|&(folder, depth)| is_in(Path::new(folder), depth))
        || listed("LD_LIBRARY_PATH")
        || listed("LIBRARY_PATH")
        || is_in_llvm_folder()
        || prefix().is_some_and(|prefix| {
            let prefix = Path::new(prefix.trim());
            ["lib", "lib64"].iter().any(|name| is_in(&prefix.join(name), 0))
        })
}

/// `/usr/local/llvm*/lib*`
fn is_in_llvm_folder() -> bool {
    let Ok(entries) = fs::read_dir("/usr/local") else { return false };
    entries.flatten().any(|entry| {
        entry.file_name().to_string_lossy().starts_with("llvm") && is_in(&entry.path(), 1)
    })
}

/// Whether `folder`, or a folder at most `depth` below it, holds a usable libclang.
fn is_in(folder: &Path, depth: usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        if is_usable_file_name(entry.file_name()) {
            // Through the link: a link to a removed library is no library.
            return entry.path().is_file();
        }
        depth > 0 && entry.path().is_dir() && is_in(&entry.path(), depth - 1)
    })
}

/// `libclang.so`, `libclang.so.13`, `libclang-14.so`, `libclang-14.so.14.0.6`, … but not
/// `libclang-cpp.so.14`, which is another library.
fn is_usable_file_name(name: impl AsRef<std::ffi::OsStr>) -> bool {
    let name = name.as_ref().to_string_lossy();
    let Some(rest) = name.strip_prefix("libclang") else { return false };
    let Some((version, soname)) = rest.split_once(".so") else { return false };
    if !(soname.is_empty() || soname.starts_with('.')) {
        return false;
    }
    let Some(version) = version.strip_prefix('-') else { return version.is_empty() };
    let major = version.split('.').next().unwrap_or_default();
    major.parse().is_ok_and(|major: u32| major >= MAJOR_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_of_usable_libraries() {
        for name in ["libclang.so", "libclang.so.1", "libclang.so.13", "libclang-14.so"] {
            assert!(is_usable_file_name(name), "{name}");
        }
        assert!(is_usable_file_name("libclang-14.so.14.0.6"));
        assert!(is_usable_file_name("libclang-14.0.6.so"));
    }

    #[test]
    fn file_names_of_others() {
        for name in ["libclang-cpp.so.14", "libclang-3.9.so", "libclang-4.0.so.1", "libclangAST.a"]
        {
            assert!(!is_usable_file_name(name), "{name}");
        }
        assert!(!is_usable_file_name("libclang.sources"));
        assert!(!is_usable_file_name("clang"));
    }

    #[test]
    fn folders_are_searched_to_their_depth_only() {
        let top = env::temp_dir().join(format!("xtask-libclang-{}", std::process::id()));
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("a/b/libclang-15.so"), "").unwrap();
        assert!(is_in(&top, 2));
        assert!(!is_in(&top, 1));
        fs::remove_dir_all(top).unwrap();
    }
}
