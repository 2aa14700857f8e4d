//! Checkpoints in a directory which all hosts see.
//!
//! ```text
//! DIR/lock                             held by the job that writes here
//! DIR/superstep-600.3/ranks-0-16       a checkpoint, of generation 3: the file of a PE
//! DIR/superstep-600.3/ranks-16-32
//! DIR/superstep-700.3/ranks-0-16.new   being written
//! ```
//!
//! A file is a journal (`ultramarine-journal`), whose items are the ranks. It gets its name when it
//! is whole and on the disk. A checkpoint is whole if there are files for all ranks.

use super::machine::{Copy, Key};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use ultramarine_journal::{Identity, OpenError, read_whole, write_whole};
use ultramarine_runtime::array::Encoded;

/// Of so many checkpoints, the last, it is looked whether they are intact.
const LOOKED_AT: usize = 2;

/// Copies of ranks.
pub(super) type Copies = BTreeMap<u32, Copy<Encoded, Encoded>>;

/// See the [module](self).
#[derive(Clone)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Of the program.
    pub(super) identity: Identity,
}

/// What is in a directory.
pub(super) struct Found {
    /// Nothing is of a later generation.
    pub(super) generation: u32,
    /// The checkpoints that are whole, and intact as far as it was looked.
    pub(super) keys: Vec<Key>,
}

/// The directory is this job's. It is unlocked when this is dropped.
pub(super) struct Lock(File);

impl Drop for Lock {
    /// Closing the file does not, while another thread starts a program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// A file of a checkpoint.
struct Part {
    ranks: Range<u32>,
    path: PathBuf,
}

impl Folder {
    /// Takes the directory for this job.
    pub(super) fn lock(&self) -> Result<Lock, String> {
        self.make()?;
        let path = self.path.join("lock");
        let file = File::options().create(true).append(true).open(path);
        let file = file.map_err(|error| self.unusable("written to", &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "the directory `{}` for checkpoints is in use by another job: wait until that \
                     has ended, or name another directory",
                    self.path.display()
                ));
            }
            Err(TryLockError::Error(error)) => tracing::warn!(
                "the directory `{}` for checkpoints cannot be locked ({error}): see that no other \
                 job writes there",
                self.path.display()
            ),
        }
        Ok(Lock(file))
    }

    /// Makes the directory, if need be.
    fn make(&self) -> Result<(), String> {
        fs::create_dir_all(&self.path).map_err(|error| self.unusable("made", &error))
    }

    /// Looks for checkpoints that are whole, and of which the copies of these ranks are intact.
    pub(super) fn look(&self, ranks: Range<u32>) -> Result<Found, String> {
        self.make()?;
        let keys = self.keys().map_err(|error| self.unusable("read", &error))?;
        let generation = keys.iter().map(|key| key.generation).max().unwrap_or(0);
        let mut found = Found { generation, keys: Vec::new() };
        for key in keys.into_iter().rev() {
            if found.keys.len() < LOOKED_AT && self.is_whole(key) && self.is_intact(key, &ranks)? {
                found.keys.push(key);
            }
        }
        Ok(found)
    }

    /// Reads copies of these ranks.
    pub(super) fn load(&self, key: Key, ranks: Range<u32>) -> Result<Copies, String> {
        let mut copies = Copies::new();
        for part in self.parts_with(key, &ranks).map_err(|error| self.unusable("read", &error))? {
            let read = read_whole(&part.path, &self.identity, |items, bytes| {
                let rank = items.start as u32;
                if ranks.contains(&rank) {
                    copies.insert(rank, copy_of(bytes).ok_or("it is no copy of a rank")?);
                }
                Ok(())
            });
            read.map_err(|error| error.to_string())?;
        }
        if copies.len() < ranks.len() {
            let name = self.of(key);
            return Err(format!("the checkpoint `{}` has lost some ranks", name.display()));
        }
        Ok(copies)
    }

    /// Writes copies of consecutive ranks.
    pub(super) fn store(&self, key: Key, copies: &Copies) -> Result<(), String> {
        let (Some(first), Some(last)) = (copies.keys().next(), copies.keys().next_back()) else {
            return Ok(());
        };
        let folder = self.of(key);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let records = copies.iter().map(|(rank, copy)| {
            let item = u64::from(*rank);
            (item..item + 1, bytes_of(copy))
        });
        let path = folder.join(format!("ranks-{first}-{}", last + 1));
        write_whole(path, &self.identity, records).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Removes what is before this checkpoint, if it is whole itself.
    pub(super) fn prune(&self, key: Key) {
        if !self.is_whole(key) {
            return tracing::warn!(
                "not all hosts see the directory `{}`, so that a job could not go on from there",
                self.path.display()
            );
        }
        for former in self.keys().into_iter().flatten().filter(|other| *other < key) {
            if let Err(error) = fs::remove_dir_all(self.of(former)) {
                tracing::warn!("`{}` cannot be removed: {error}", self.of(former).display());
            }
        }
    }

    fn of(&self, key: Key) -> PathBuf {
        self.path.join(name_of(key))
    }

    /// What there is, or has been begun, in order.
    fn keys(&self) -> io::Result<Vec<Key>> {
        let mut keys = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            keys.extend(entry?.file_name().to_str().and_then(key_of));
        }
        keys.sort_unstable();
        Ok(keys)
    }

    fn parts_with(&self, key: Key, ranks: &Range<u32>) -> io::Result<Vec<Part>> {
        let mut parts = parts(&self.of(key))?;
        parts.retain(|part| part.ranks.start < ranks.end && ranks.start < part.ranks.end);
        Ok(parts)
    }

    /// Whether there are files for all ranks.
    fn is_whole(&self, key: Key) -> bool {
        let parts = parts(&self.of(key)).unwrap_or_default();
        let reached = parts.iter().fold(0, |reached, Part { ranks, .. }| {
            if ranks.start <= reached { reached.max(ranks.end) } else { reached }
        });
        u64::from(reached) == self.identity.items
    }

    /// Whether what was written of these ranks can be read.
    ///
    /// An error: it belongs to something else.
    fn is_intact(&self, key: Key, ranks: &Range<u32>) -> Result<bool, String> {
        let mut missing = ranks.len();
        for part in self.parts_with(key, ranks).map_err(|error| self.unusable("read", &error))? {
            let read = read_whole(&part.path, &self.identity, |items, _| {
                missing -= usize::from(ranks.contains(&(items.start as u32)));
                Ok(())
            });
            match read {
                Ok(_) => {}
                Err(error @ (OpenError::Differs { .. } | OpenError::UnknownVersion { .. })) => {
                    return Err(error.to_string());
                }
                Err(error) => tracing::warn!("{error}"),
            }
        }
        if missing > 0 {
            tracing::warn!("the checkpoint `{}` is damaged, and not used", self.of(key).display());
        }
        Ok(missing == 0)
    }

    fn unusable(&self, action: &str, error: &io::Error) -> String {
        let path = self.path.display();
        format!("the directory `{path}` for checkpoints cannot be {action}: {error}")
    }
}

/// The name of a checkpoint's folder.
fn name_of(Key { generation, superstep }: Key) -> String {
    format!("superstep-{superstep}.{generation}")
}

fn key_of(name: &str) -> Option<Key> {
    let (superstep, generation) = name.strip_prefix("superstep-")?.split_once('.')?;
    Some(Key { generation: generation.parse().ok()?, superstep: superstep.parse().ok()? })
}

/// The files of a checkpoint, in the order of their ranks.
fn parts(folder: &Path) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    let entries = match fs::read_dir(folder) {
        // Another PE has just removed it.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(parts),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let ranks = entry.file_name().to_str().and_then(|name| {
            let (start, end) = name.strip_prefix("ranks-")?.split_once('-')?;
            Some(start.parse().ok()?..end.parse().ok()?)
        });
        parts.extend(ranks.map(|ranks| Part { ranks, path: entry.path() }));
    }
    parts.sort_unstable_by_key(|part| part.ranks.start);
    Ok(parts)
}

const ENDED: u8 = 0;
const ASLEEP: u8 = 1;
const AWAKE: u8 = 2;

/// A copy in a file.
fn bytes_of(copy: &Copy<Encoded, Encoded>) -> Vec<u8> {
    let (kind, encoded) = match copy {
        Copy::Ended(output) => (ENDED, output),
        Copy::Live(saved, false) => (ASLEEP, saved),
        Copy::Live(saved, true) => (AWAKE, saved),
    };
    let mut bytes = encoded.to_bytes();
    bytes.push(kind);
    bytes
}

fn copy_of(bytes: &[u8]) -> Option<Copy<Encoded, Encoded>> {
    let (kind, bytes) = bytes.split_last()?;
    let encoded = Encoded::from_bytes(bytes.to_vec());
    match *kind {
        ENDED => Some(Copy::Ended(encoded)),
        ASLEEP => Some(Copy::Live(encoded, false)),
        AWAKE => Some(Copy::Live(encoded, true)),
        _ => None,
    }
}
