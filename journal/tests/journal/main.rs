//! Journals in real files.
//!
//! | file | what |
//! |---|---|
//! | `reopening` | what a second start finds, and which files it refuses |
//! | `builds` | whose results are whose, and which count |
//! | `killed` | writers that are killed |
//! | `disk` | disks and files that take no more |

mod builds;
mod disk;
mod killed;
mod reopening;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use ultramarine_journal::{Builds, Identity, Journal, OnFailure, OpenError, Report, WriteError};

const ITEMS: u64 = 1_000_000;

fn identity() -> Identity {
    let [program, call, result] = ["sums", "sums::f", "u64"].map(str::to_owned);
    Identity { program, call, result, items: ITEMS, digest: 4711 }
}

/// A folder that is removed in the end, and the path of a journal in it.
fn scratch() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("a.journal");
    (folder, path)
}

/// A result that says whose it is. A few are long.
fn result_of(item: u64) -> Vec<u8> {
    let copies = if item % 199 == 3 { 5000 } else { item % 4 };
    item.to_le_bytes().repeat(copies as usize)
}

/// Opens a journal, in which each result must be that of its item.
fn open(path: &Path, on_failure: OnFailure) -> Result<(Journal, Report), OpenError> {
    Journal::open(path, &identity(), Builds::default(), on_failure, |items, result| {
        assert_eq!(items.end, items.start + 1);
        assert_eq!(result, Some(&*result_of(items.start)), "{items:?}");
        Ok(())
    })
}

/// What an owner was told.
type Told = Arc<Mutex<Vec<WriteError>>>;

fn listener() -> (Told, OnFailure) {
    let told = Told::default();
    let tellers = Arc::clone(&told);
    let call = move |error: &WriteError| {
        tellers.lock().expect("no thread panics").push(error.clone());
    };
    (told, OnFailure::Call(Box::new(call)))
}
