//! A file that keeps the results of a job's tasks as they come home. A job that is killed whole, by
//! `kill -9` or at the end of its time, and started again computes only what is missing.
//!
//! This crate knows positions, bytes and files. It must never know tasks, PEs or MPI, nor what the
//! bytes of a result mean.
//!
//! ```
//! use std::time::Duration;
//! use ultramarine_journal::{Builds, Digest, Identity, Journal, OnFailure, inspect};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("sums.journal");
//! let mut digest = Digest::default();
//! digest.add(b"1..5");
//! let identity = Identity {
//!     program: "sums".to_owned(),
//!     call: "sums::square".to_owned(),
//!     result: "u8".to_owned(),
//!     items: 4,
//!     digest: digest.finish(),
//! };
//! // The first start is killed after two of the four results.
//! let (builds, on_failure) = (Builds::default(), OnFailure::Warn);
//! let (journal, report) = Journal::open(&path, &identity, builds, on_failure, |_, _| Ok(()))?;
//! assert_eq!(report.done.count(), 0);
//! journal.append(2..3, &[9]);
//! journal.append(0..1, &[1]);
//! drop(journal);
//!
//! // The second one finds them, and knows what is left to do.
//! let mut results = [None; 4];
//! let on_failure = OnFailure::Warn;
//! let (journal, report) = Journal::open(&path, &identity, builds, on_failure, |items, bytes| {
//!     results[items.start as usize] = bytes.map(|bytes| bytes[0]);
//!     Ok(())
//! })?;
//! assert_eq!(report.done.gaps(4).collect::<Vec<_>>(), [1..2, 3..4]);
//! assert_eq!(results, [Some(1), None, Some(9), None]);
//! journal.append(1..2, &[4]);
//! journal.append(3..4, &[16]);
//! assert_eq!(journal.finish(Duration::from_mins(1))?.records_durable, 2);
//! assert_eq!(inspect(&path)?.report.records, 4);
//! # Ok(())
//! # }
//! ```
//!
//! | file | question it answers |
//! |---|---|
//! | `journal` | what does the owner of a journal call, and what does the writer's thread do? |
//! | `queue` | what waits in memory, and how much at the most? |
//! | `output` | what is in the file after an error? |
//! | `open` | which files are refused? |
//! | `read`, `window` | what is torn, what is damaged, and what comes after it? |
//! | `report` | what is said of it? |
//! | `header`, `record` | which bytes are in the file? |
//! | `positions` | which items are done? |
//! | `builds` | which build of the program has done them? |
//! | `process` | what if a signal ends the process? |
//! | `checkpoints` | what is in a directory of checkpoints? |
//! | `whole` | what if a file is to have all of its records, or not to be there? |
//! | `error` | what does the user read? |
//!
//! # The file
//!
//! All numbers are little-endian. Offsets and lengths are in bytes. Checksums are xxh3 of 64 bits:
//! they find accidents, and no attacks. The header:
//!
//! | offset | length | what |
//! |---|---|---|
//! | 0 | 8 | `8b 55 4d 4a 52 4e 4c 0a` |
//! | 8 | 4 | the version of the format, 2 |
//! | 12 | 4 | *h*, the length of the header |
//! | 16 | 8 | the checksum of bytes 0 to 15 |
//! | 24 | 8 | the *mark*, a random number |
//! | 32 | 8 | when the journal was begun, in seconds of Unix time |
//! | 40 | 8 | the number of items |
//! | 48 | 16 | the digest of the arguments |
//! | 64 | | the names of the program, of the function and of the result's type, in UTF-8, each after its length in 4 bytes |
//! | *h* − 8 | 8 | the checksum of all before |
//!
//! Then one record after the other, each for the items of some positions:
//!
//! | offset | length | what |
//! |---|---|---|
//! | 0 | 8 | the mark |
//! | 8 | 8 | the first position |
//! | 16 | 8 | the position after the last one |
//! | 24 | 8 | *n*, the length of the result |
//! | 32 | 8 | the checksum of the result, with the mark as seed |
//! | 40 | 8 | the checksum of bytes 0 to 39, with the mark plus the record's offset in the file as seed |
//! | 48 | *n* | the result |
//!
//! A *note* says which build has computed the results that follow. It is a record whose positions
//! are both 2⁶⁴ − 1. Instead of a result it has 9 bytes:
//!
//! | offset | length | what |
//! |---|---|---|
//! | 0 | 1 | 1 if the build is known; 2 more if the results of other builds before it do not count |
//! | 1 | 8 | the number of the build |
//!
//! An opening writes a note before its first record if the file says another build there, and one
//! more after each 4 KiB. Before the first note, and after a place where nothing can be read, the
//! build is not known up to the next note.
//!
//! Format 1 has no notes. Such a file keeps its header when it is gone on with; programs that know
//! format 1 alone take the notes in it for damage, and read the rest.
//!
//! # Why no durable record is lost
//!
//! - A crash: the file only grows. A record is called durable after `sync_data` has returned, which
//!   covers all bytes before its end. The name of the file and its header are durable before the
//!   first record is appended. So only what comes after the durable records may be torn, and an
//!   opening cuts off only bytes after the last whole record. A file that has only zeros, or a
//!   damaged header and nothing behind it, had no records: it is begun anew.
//! - A failed write: the writer cuts the file back to its last whole record, and writes no more.
//! - Damage elsewhere: it costs the records that it touches. If it is in a result, the checksum of
//!   the head vouches for the length, and the next record begins where it should. If it is in a
//!   head, the next intact head is searched for, from byte to byte. Where the mark stands, 48 bytes
//!   are looked at, so the search is linear in the length of the file. The bytes of a result cannot
//!   pass for a record: no head is intact at another offset or in another journal.
//! - A second writer: the file is locked as long as it is open for writing.
//! - A file that another program removes, moves, replaces, cuts or writes to: the writer looks once
//!   a second, and at the end, and then writes no more. Records are appended at the end of the
//!   file, wherever that is. So a file that was cut stays too short, and is noticed.
//! - Another owner: an opening that is refused changes nothing.
//!
//! Not covered: a damaged header. It is refused, and the file is left as it is.
#![forbid(unsafe_code)]

mod builds;
mod checkpoints;
mod error;
mod header;
mod journal;
mod open;
mod output;
mod positions;
mod process;
mod queue;
mod read;
mod record;
mod report;
mod whole;
mod window;

pub use builds::{BuildResults, Builds, OtherBuilds};
pub use checkpoints::{Checkpoint, Part};
pub use error::{OpenError, Refusal, WriteError};
pub use header::{Digest, Identity};
pub use journal::{Journal, WAITING_BYTES_MAX};
pub use open::{Inspection, inspect};
pub use positions::Positions;
pub use process::{close_all, when_opened};
pub use queue::{Figures, OnFailure};
pub use report::{DAMAGE_LISTED_MAX, Damage, DamageKind, Report};
pub use whole::{read_identity, read_whole, write_whole};
