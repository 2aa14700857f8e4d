//! A board in a file without a name, which its owner makes and other processes of its host find
//! through the owner's open files. Nothing of it is left when the processes have ended.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};

use super::Board;
use crate::mapped::arena::map::Mapping;
use crate::memory::Memory;
use crate::sync::AtomicU64;

/// A file that is mapped, and cannot become shorter.
#[derive(Debug)]
pub struct SharedFile(Mapping);

impl Memory for SharedFile {
    #[inline]
    fn words(&self, offset: u64, count: usize) -> Option<&[AtomicU64]> {
        self.0.slice(offset, count)
    }
}

/// Where the board of a process is. It is a number for each, since it is sent to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The number of the process.
    pub process: u32,
    /// The number of its open file.
    pub descriptor: u32,
}

/// The board of this process.
#[derive(Debug)]
pub struct OwnBoard {
    board: Board<SharedFile>,
    /// Others find it there.
    file: File,
}

/// Why the board of another process cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Its owner has not announced it yet.
    #[error("it is not there yet")]
    NotYet,
    /// There is no such file, or it may not be opened.
    #[error("{0}")]
    Closed(#[from] io::Error),
    /// Another process has got the number of that one, or the file is damaged.
    #[error("what is there is another file")]
    Other,
}

impl OwnBoard {
    /// Makes an empty board.
    ///
    /// # Errors
    /// The system gives no memory, or has no files without names.
    pub fn create() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("ultramarine-board", flags)?);
        let bytes = Board::<SharedFile>::MEMORY_BYTES as u64;
        file.set_len(bytes)?;
        // A file that became shorter would end each process that looks at it.
        fcntl_add_seals(&file, SEALS)?;
        let board = Board::new(SharedFile(Mapping::new(&file, bytes)?));
        Ok(OwnBoard { board, file })
    }

    /// The board itself.
    pub fn board(&self) -> &Board<SharedFile> {
        &self.board
    }

    /// Where other processes find it.
    pub fn address(&self) -> Address {
        let descriptor = self.file.as_raw_fd().unsigned_abs();
        Address { process: std::process::id(), descriptor }
    }
}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

impl Board<SharedFile> {
    /// Opens the board of another process of this host.
    ///
    /// # Errors
    /// It cannot be used, now or at all.
    pub fn open(at: Address, identity: [u64; 2]) -> Result<Self, Refusal> {
        let path = format!("/proc/{}/fd/{}", at.process, at.descriptor);
        let bytes = Self::MEMORY_BYTES as u64;
        // To open a device or a pipe may have effects.
        let about = fs::metadata(&path)?;
        if !about.is_file() || about.size() != bytes {
            return Err(Refusal::Other);
        }
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        // Another file may be anything: it is not mapped unless it cannot become shorter.
        let is_sealed = fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS));
        if !is_sealed || file.metadata()?.size() != bytes {
            return Err(Refusal::Other);
        }
        let board = Board::new(SharedFile(Mapping::new(&file, bytes)?));
        match board.is_of(identity) {
            None => Err(Refusal::NotYet),
            Some(false) => Err(Refusal::Other),
            Some(true) => Ok(board),
        }
    }
}
