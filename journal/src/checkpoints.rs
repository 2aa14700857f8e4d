//! A directory of checkpoints: each is a folder with [whole files](crate::write_whole), whose items
//! are parts of a state.
//!
//! ```text
//! DIR/superstep-600.3/ranks-0-16    items 0 to 15 of a checkpoint of generation 3
//! DIR/superstep-600.3/ranks-16-32
//! ```

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A checkpoint. Later ones are greater: the generation grows whenever a run goes on from a
/// checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Checkpoint {
    /// How often the run had gone on from a checkpoint before, or more.
    pub generation: u32,
    /// The superstep at whose beginning it was taken.
    pub superstep: u64,
}

/// A file of a checkpoint.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its items.
    pub items: Range<u64>,
    /// Its path.
    pub path: PathBuf,
}

impl Checkpoint {
    /// The checkpoints in a directory that are there or have been begun, in order.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn all_in(directory: &Path) -> io::Result<Vec<Checkpoint>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(directory)? {
            all.extend(entry?.file_name().to_str().and_then(Checkpoint::named));
        }
        all.sort_unstable();
        Ok(all)
    }

    fn named(name: &str) -> Option<Checkpoint> {
        let (superstep, generation) = name.strip_prefix("superstep-")?.split_once('.')?;
        let generation = generation.parse().ok()?;
        Some(Checkpoint { generation, superstep: superstep.parse().ok()? })
    }

    /// Its folder.
    pub fn folder(self, directory: &Path) -> PathBuf {
        let Checkpoint { generation, superstep } = self;
        directory.join(format!("superstep-{superstep}.{generation}"))
    }

    /// Its file for these items.
    pub fn file(self, directory: &Path, items: Range<u64>) -> PathBuf {
        self.folder(directory).join(format!("ranks-{}-{}", items.start, items.end))
    }

    /// The [`result`](crate::Identity::result) of its files, which say so of which checkpoint they
    /// are: what is moved elsewhere does not count there.
    pub fn result(self) -> String {
        let Checkpoint { generation, superstep } = self;
        format!("ranks as superstep {superstep} began, in generation {generation}")
    }

    /// Its files, in the order of their first items. There are none if it has been removed.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn parts(self, directory: &Path) -> io::Result<Vec<Part>> {
        let entries = match fs::read_dir(self.folder(directory)) {
            Err(error)
                if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) =>
            {
                return Ok(Vec::new());
            }
            entries => entries?,
        };
        let mut parts = Vec::new();
        for entry in entries {
            let entry = entry?;
            let items = entry.file_name().to_str().and_then(|name| {
                let (start, end) = name.strip_prefix("ranks-")?.split_once('-')?;
                let items: Range<u64> = start.parse().ok()?..end.parse().ok()?;
                (items.start <= items.end).then_some(items)
            });
            parts.extend(items.map(|items| Part { items, path: entry.path() }));
        }
        parts.sort_unstable_by_key(|part| part.items.start);
        Ok(parts)
    }

    /// Whether it has files for all items, of which this is the number.
    pub fn is_whole(self, directory: &Path, items: u64) -> bool {
        let parts = self.parts(directory).unwrap_or_default();
        let reached = parts.iter().fold(0, |reached, part| {
            if part.items.start <= reached { reached.max(part.items.end) } else { reached }
        });
        reached == items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_whole_once_all_items_have_files() {
        let directory = tempfile::tempdir().expect("there is room");
        let directory = directory.path();
        let checkpoint = Checkpoint { generation: 2, superstep: 10 };
        fs::create_dir(checkpoint.folder(directory)).expect("there is room");
        for name in ["other", "superstep-3", "superstep-3.x"] {
            fs::write(directory.join(name), "").expect("there is room");
        }
        assert_eq!(Checkpoint::all_in(directory).expect("it is there"), [checkpoint]);
        assert!(!checkpoint.is_whole(directory, 8) && checkpoint.is_whole(directory, 0));
        let write = |items| fs::write(checkpoint.file(directory, items), "").expect("room");
        write(4..8);
        assert!(!checkpoint.is_whole(directory, 8));
        fs::write(checkpoint.folder(directory).join("ranks-0-4.new"), "").expect("room");
        assert!(!checkpoint.is_whole(directory, 8), "it is being written");
        write(0..5);
        assert!(checkpoint.is_whole(directory, 8) && !checkpoint.is_whole(directory, 9));
        let former = Checkpoint { generation: 1, superstep: 11 };
        assert!(former < checkpoint && !former.is_whole(directory, 8));
    }
}
