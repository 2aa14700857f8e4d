//! The private folder of a `ultramarine gap`: the pipes, and GAP's package.
//!
//! Once GAP has read the package and opened the pipes, the job removes the folder; so nothing is
//! left of it, whichever process is killed.

use rustix::fs::{CWD, Mode, mkfifoat};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The files of the package, so that nothing has to be installed.
const PACKAGE: [(&str, &str); 9] = [
    ("PackageInfo.g", include_str!("../../../gap/pkg/ultramarine/PackageInfo.g")),
    ("init.g", include_str!("../../../gap/pkg/ultramarine/init.g")),
    ("read.g", include_str!("../../../gap/pkg/ultramarine/read.g")),
    ("lib/values.g", include_str!("../../../gap/pkg/ultramarine/lib/values.g")),
    ("lib/worker.g", include_str!("../../../gap/pkg/ultramarine/lib/worker.g")),
    ("lib/link.g", include_str!("../../../gap/pkg/ultramarine/lib/link.g")),
    ("lib/functions.g", include_str!("../../../gap/pkg/ultramarine/lib/functions.g")),
    ("lib/coordinate.g", include_str!("../../../gap/pkg/ultramarine/lib/coordinate.g")),
    ("lib/images.g", include_str!("../../../gap/pkg/ultramarine/lib/images.g")),
];

/// The folder, which is removed in the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        let mut number = 0;
        let folder = loop {
            let name = format!("ultramarine-gap-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break Folder(path),
                // One of a process that had this number and was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        };
        let package = folder.0.join("pkg/ultramarine");
        std::fs::create_dir_all(package.join("lib"))?;
        for (name, text) in PACKAGE {
            std::fs::write(package.join(name), text)?;
        }
        for pipe in ["requests", "replies"] {
            mkfifoat(CWD, folder.0.join(pipe), Mode::RUSR | Mode::WUSR)?;
        }
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
