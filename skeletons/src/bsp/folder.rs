//! Checkpoints in a directory which all hosts see: [`Checkpoint`] says how they are called. A file
//! gets its name when it is whole and on the disk. The job that writes there holds `DIR/lock`.

use super::kind::Left;
use super::machine::{Copy, Key};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use ultramarine_journal::{
    Builds, Checkpoint, Identity, OpenError, OtherBuilds, Part, Report, read_identity, read_whole,
    write_whole,
};
use ultramarine_runtime::array::Encoded;

/// How long a job waits for the lock.
const LOCKED_WITHIN: Duration = Duration::from_secs(3);

/// Copies of ranks.
pub(super) type Copies = BTreeMap<u32, Copy<Encoded, Left>>;

/// See the [module](self).
#[derive(Clone)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Of the program.
    pub(super) identity: Identity,
    pub(super) builds: Builds,
    /// Whether the last checkpoint could not be written.
    pub(super) is_failing: Arc<AtomicBool>,
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

impl Folder {
    /// Takes the directory for this job.
    pub(super) fn lock(&self) -> Result<Lock, String> {
        self.make()?;
        let path = self.path.join("lock");
        // To open a FIFO would wait for its reader.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(format!("`{}` is no file: remove it", path.display()));
        }
        let file = File::options().create(true).append(true).open(path);
        let file = file.map_err(|error| self.unusable("written to", &error))?;
        // A process that is held for dead may take a while to end.
        let until = Instant::now() + LOCKED_WITHIN;
        let mut locked = file.try_lock();
        while matches!(locked, Err(TryLockError::WouldBlock)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
            locked = file.try_lock();
        }
        match locked {
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
        let all = Checkpoint::all_in(&self.path).map_err(|error| self.unusable("read", &error))?;
        let generation = all.iter().map(|one| one.generation).max().unwrap_or(0);
        for one in &all {
            self.check_owner(*one)?;
        }
        let mut found = Found { generation, keys: Vec::new() };
        for one in all.into_iter().rev() {
            if self.is_whole(one) && self.is_intact(one, &ranks)? {
                let Checkpoint { generation, superstep } = one;
                found.keys.push(Key { generation, superstep });
            }
        }
        Ok(found)
    }

    /// The identity of the files of a checkpoint.
    fn identity_of(&self, one: Checkpoint) -> Identity {
        Identity { result: one.result(), ..self.identity.clone() }
    }

    /// Reads copies of these ranks.
    pub(super) fn load(&self, key: Key, ranks: Range<u32>) -> Result<Copies, String> {
        let mut copies = Copies::new();
        let one = checkpoint(key);
        for part in self.parts_with(one, &ranks).map_err(|error| self.unusable("read", &error))? {
            let read = read_whole(&part.path, &self.identity_of(one), |items, bytes| {
                let rank = items.start as u32;
                if ranks.contains(&rank) {
                    copies.insert(rank, copy_of(bytes).ok_or("it is no copy of a rank")?);
                }
                Ok(())
            });
            if let Err(error) = read {
                tracing::warn!("{error}");
            }
        }
        if copies.len() < ranks.len() {
            let folder = one.folder(&self.path);
            return Err(format!("the checkpoint `{}` has lost some ranks", folder.display()));
        }
        Ok(copies)
    }

    /// Writes copies of consecutive ranks.
    pub(super) fn store(&self, key: Key, copies: &Copies) -> Result<(), String> {
        let (Some(first), Some(last)) = (copies.keys().next(), copies.keys().next_back()) else {
            return Ok(());
        };
        let one = checkpoint(key);
        let made = fs::create_dir_all(one.folder(&self.path));
        // Its name is to be on the disk, too.
        let made = made.and_then(|()| File::open(&self.path)?.sync_all());
        made.map_err(|error| error.to_string())?;
        let records = copies.iter().map(|(rank, copy)| {
            let item = u64::from(*rank);
            (item..item + 1, bytes_of(copy))
        });
        let path = one.file(&self.path, u64::from(*first)..u64::from(*last) + 1);
        write_whole(path, &self.identity_of(one), self.builds.this, records)
            .map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Removes what is before this checkpoint, which is whole, but for the last one that is; and
    /// what is after it, but of an earlier generation than this.
    pub(super) fn prune(&self, key: Key, generation: u32) {
        let last = checkpoint(key);
        if !self.is_whole(last) {
            return tracing::warn!(
                "not all hosts see the directory `{}`, so that a job could not go on from there",
                self.path.display()
            );
        }
        let all = Checkpoint::all_in(&self.path).unwrap_or_default();
        let of_no_use = |one: &Checkpoint| *one > last && one.generation < generation;
        let of_no_use: Vec<_> = all.iter().copied().filter(of_no_use).collect();
        let before = all.into_iter().filter(|one| *one < last).rev();
        let (mut whole, others): (Vec<_>, Vec<_>) = before.partition(|one| self.is_whole(*one));
        let former = whole.split_off(whole.len().min(1));
        former.into_iter().chain(others).chain(of_no_use).for_each(|one| self.remove(one));
    }

    fn parts_with(&self, one: Checkpoint, ranks: &Range<u32>) -> io::Result<Vec<Part>> {
        let mut parts = one.parts(&self.path)?;
        let (start, end) = (u64::from(ranks.start), u64::from(ranks.end));
        parts.retain(|part| part.items.start < end && start < part.items.end);
        Ok(parts)
    }

    fn is_whole(&self, one: Checkpoint) -> bool {
        one.is_whole(&self.path, self.identity.items)
    }

    /// An error: the checkpoint belongs to something else.
    fn check_owner(&self, one: Checkpoint) -> Result<(), String> {
        for part in one.parts(&self.path).map_err(|error| self.unusable("read", &error))? {
            match read_identity(&part.path) {
                Ok(found) => {
                    return self.check_identity(&found).map_err(|how| {
                        let path = self.path.display();
                        format!(
                            "the directory `{path}` has checkpoints of something else, and is left \
                             as it is: {how}: name another directory"
                        )
                    });
                }
                Err(error @ OpenError::UnknownVersion { .. }) => return Err(error.to_string()),
                // What is damaged does not say whose it is.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// An error: in what it differs from what this run would write.
    fn check_identity(&self, found: &Identity) -> Result<(), String> {
        let Identity { program, call, items, digest, result: _ } = &self.identity;
        if (&found.program, &found.call) != (program, call) {
            let (found, its) = (&found.program, &found.call);
            return Err(format!("they are of `{its}` in `{found}`, and not of `{call}`"));
        }
        if found.items != *items {
            return Err(format!("they are of {} ranks, and not of {items}", found.items));
        }
        if found.digest != *digest {
            return Err("the program's argument was another".to_owned());
        }
        Ok(())
    }

    /// Removes what there is of a checkpoint that could not be written whole.
    pub(super) fn discard(&self, key: Key) {
        let one = checkpoint(key);
        // After a death it may have been whole before, and be written again.
        if !self.is_whole(one) {
            self.remove(one);
        }
    }

    /// Removes the files of a checkpoint which this run, or one like it, has written; and its
    /// folder, if nothing else is there.
    fn remove(&self, one: Checkpoint) {
        let folder = one.folder(&self.path);
        let is_own = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_own = |found: &Identity| self.check_identity(found).is_ok();
            name.starts_with("ranks-")
                && (name.ends_with(".new") || read_identity(path).as_ref().is_ok_and(is_own))
        };
        let entries = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries.filter(|path| is_own(path)) {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!("`{}` cannot be removed: {error}", path.display());
            }
        }
        let _ = fs::remove_dir(folder);
    }

    /// Whether what was written of these ranks can be read.
    ///
    /// An error: the folder cannot be read, or is refused.
    fn is_intact(&self, one: Checkpoint, ranks: &Range<u32>) -> Result<bool, String> {
        // After a recovery some may be in two files.
        let mut missing: BTreeSet<u64> = ranks.clone().map(u64::from).collect();
        for part in self.parts_with(one, ranks).map_err(|error| self.unusable("read", &error))? {
            let read = read_whole(&part.path, &self.identity_of(one), |items, _| {
                missing.remove(&items.start);
                Ok(())
            });
            match read {
                Ok(read) if !self.may_use(one, &read.report)? => return Ok(false),
                Ok(_) => {}
                Err(OpenError::Differs { path, .. }) => tracing::warn!(
                    "`{}` is of another checkpoint than its folder, and not used",
                    path.display()
                ),
                Err(error) => tracing::warn!("{error}"),
            }
        }
        if !missing.is_empty() {
            let folder = one.folder(&self.path);
            tracing::warn!("the checkpoint `{}` is damaged, and not used", folder.display());
        }
        Ok(missing.is_empty())
    }

    /// Whether what has been read counts, although another build may have written it.
    fn may_use(&self, one: Checkpoint, report: &Report) -> Result<bool, String> {
        let is_other = |build: Option<u64>| self.builds.this.is_none() || build != self.builds.this;
        if !report.builds.iter().any(|of| is_other(of.build)) {
            return Ok(true);
        }
        let folder = one.folder(&self.path);
        let what = format!(
            "another build of the program has written the checkpoint `{}`, and what it has saved \
             may mean something else to this one",
            folder.display()
        );
        match self.builds.others {
            OtherBuilds::Refuse => Err(format!(
                "{what}: start that build, name another directory, or say whether such checkpoints \
                 are used (`other_builds`)"
            )),
            OtherBuilds::Keep => {
                tracing::warn!("{what}: it is used all the same, as `other_builds` says");
                Ok(true)
            }
            OtherBuilds::Anew => Ok(false),
        }
    }

    fn unusable(&self, action: &str, error: &io::Error) -> String {
        let path = self.path.display();
        format!("the directory `{path}` for checkpoints cannot be {action}: {error}")
    }
}

fn checkpoint(Key { generation, superstep }: Key) -> Checkpoint {
    Checkpoint { generation, superstep }
}

const ENDED: u8 = 0;
const ASLEEP: u8 = 1;
const AWAKE: u8 = 2;

/// A copy in a file.
fn bytes_of(copy: &Copy<Encoded, Left>) -> Vec<u8> {
    let (kind, encoded) = match copy {
        Copy::Ended(left) => (ENDED, &left.output),
        Copy::Live(saved, false) => (ASLEEP, saved),
        Copy::Live(saved, true) => (AWAKE, saved),
    };
    let mut bytes = encoded.to_bytes();
    bytes.push(kind);
    bytes
}

fn copy_of(bytes: &[u8]) -> Option<Copy<Encoded, Left>> {
    let (kind, bytes) = bytes.split_last()?;
    let encoded = Encoded::from_bytes(bytes.to_vec());
    match *kind {
        ENDED => Some(Copy::Ended(Left { output: encoded, unread: BTreeSet::new() })),
        ASLEEP => Some(Copy::Live(encoded, false)),
        AWAKE => Some(Copy::Live(encoded, true)),
        _ => None,
    }
}
