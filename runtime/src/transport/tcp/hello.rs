//! The first bytes on a connection, by which a PE of the same job is told from anything else.

use super::LaneError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::Read;
use ultramarine_topology::Pe;

/// A job's secret. Whoever knows it can join in; so it is handed out at bootstrap only, and never
/// printed.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct JobKey([u8; 16]);

impl JobKey {
    /// A new key, from the operating system's random numbers (`/dev/urandom`).
    ///
    /// # Errors
    ///
    /// If the system has none to give.
    pub fn random() -> Result<JobKey, LaneError> {
        const SOURCE: &str = "/dev/urandom";
        let mut key = [0; 16];
        File::open(SOURCE).and_then(|mut source| source.read_exact(&mut key)).map_err(
            |source| LaneError::Io { doing: format!("reading a job key from {SOURCE}"), source },
        )?;
        Ok(JobKey(key))
    }

    /// Whether the keys are the same, in a time that does not tell where they differ.
    fn matches(self, other: JobKey) -> bool {
        self.0.iter().zip(other.0).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobKey(..)")
    }
}

/// Magic and version.
const GREETING: [u8; 8] = *b"ULTRAM\x00\x01";

/// The length of a hello.
pub(super) const HELLO_BYTES: usize = 32;

/// Who calls whom: greeting, key, caller, called; the numbers are little endian.
#[derive(Clone, Copy)]
pub(super) struct Hello {
    pub(super) key: JobKey,
    pub(super) from: Pe,
    pub(super) to: Pe,
}

impl Hello {
    pub(super) fn encode(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&GREETING);
        bytes[8..24].copy_from_slice(&self.key.0);
        bytes[24..28].copy_from_slice(&self.from.number().to_le_bytes());
        bytes[28..].copy_from_slice(&self.to.number().to_le_bytes());
        bytes
    }

    /// The caller, if the bytes are a hello of a job with this key and this many PEs to `me`. That
    /// `me` is named keeps out a caller whose address for somebody else has come to be ours.
    pub(super) fn caller(bytes: &[u8; HELLO_BYTES], key: JobKey, me: Pe, pes: usize) -> Option<Pe> {
        let (greeting, rest) = bytes.split_first_chunk::<8>()?;
        let (their_key, rest) = rest.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (to, _) = rest.split_first_chunk()?;
        let from = Pe::new(u32::from_le_bytes(*from));
        let is_ours = *greeting == GREETING
            && JobKey(*their_key).matches(key)
            && u32::from_le_bytes(*to) == me.number()
            && from.index() < pes;
        is_ours.then_some(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_names_its_caller() {
        let key = JobKey([7; 16]);
        let bytes = Hello { key, from: Pe::new(3), to: Pe::new(1) }.encode();
        assert_eq!(Hello::caller(&bytes, key, Pe::new(1), 4), Some(Pe::new(3)));
        assert_eq!(Hello::caller(&bytes, key, Pe::new(2), 4), None, "for somebody else");
        assert_eq!(Hello::caller(&bytes, key, Pe::new(1), 3), None, "from nobody");
        for at in 0..24 {
            let mut bytes = bytes;
            bytes[at] ^= 1;
            assert_eq!(Hello::caller(&bytes, key, Pe::new(1), 4), None, "byte {at}");
        }
    }

    #[test]
    fn keys_differ_and_are_not_printed() {
        let (one, other) = (JobKey::random().unwrap(), JobKey::random().unwrap());
        assert!(one.matches(one) && !one.matches(other));
        assert_eq!(format!("{one:?}"), "JobKey(..)");
    }
}
