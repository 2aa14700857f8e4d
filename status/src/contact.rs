//! The file that says where a job answers.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// How the first line begins. Each other one is an address.
const TOKEN: &str = "token ";

/// A file that is longer than this is no contact.
const BYTES_MAX: u64 = 64 << 10;

/// Where a job answers, and what it wants to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The addresses of its root's process.
    pub addresses: Vec<SocketAddr>,
    /// Who shows it gets an answer.
    pub token: String,
}

impl Contact {
    /// Reads it from its file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds something else.
    pub fn read(file: &Path) -> io::Result<Self> {
        let wrong = || io::Error::other("it does not say where a job answers");
        let found = fs::metadata(file)?;
        // Reading a pipe might never end.
        if !found.is_file() || found.len() > BYTES_MAX {
            return Err(wrong());
        }
        let text = fs::read_to_string(file).map_err(|_| wrong())?;
        let mut lines = text.lines();
        let token = lines.next().and_then(|line| line.strip_prefix(TOKEN)).ok_or_else(wrong)?;
        let addresses: Result<_, _> = lines.map(str::parse).collect();
        Ok(Contact { addresses: addresses.map_err(|_| wrong())?, token: token.to_owned() })
    }

    /// Writes it to a file that only this user can read, in place of what is there.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let lines = self.addresses.iter().map(|address| format!("{address}\n"));
        replace(file, 0o600, &format!("{TOKEN}{}\n{}", self.token, lines.collect::<String>()))
    }
}

/// A random token of 128 bits.
pub(crate) fn new_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    // A few bytes come at once, or not at all.
    if getrandom(&mut bytes, GetRandomFlags::empty())? < bytes.len() {
        return Err(io::Error::other("the system has no random bytes"));
    }
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Puts a text in place of a file, at once: who reads it gets the former or this.
pub(crate) fn replace(file: &Path, mode: u32, text: &str) -> io::Result<()> {
    let next = beside(file);
    let write = || {
        let is_file = |of: fs::Metadata| of.is_file() || of.is_symlink();
        if !fs::symlink_metadata(file).map_or(true, is_file) {
            return Err(io::Error::other("there is something else that is no file"));
        }
        let _ = fs::remove_file(&next);
        let mut options = OpenOptions::new();
        let mut opened = options.write(true).create_new(true).mode(mode).open(&next)?;
        opened.write_all(text.as_bytes())?;
        fs::rename(&next, file)
    };
    write().inspect_err(|_| drop(fs::remove_file(&next)))
}

/// The name of a file that becomes this one.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    name.into()
}
