//! Keys, proofs and seals.

use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hash128, SipHasher24};
use std::fmt;
use std::io::{self, ErrorKind};

/// The length of a seal, and of a proof, in bytes.
pub const SEAL_BYTES: usize = 16;

/// Random bytes from the operating system. They take no file descriptor.
pub(super) fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let filled = getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    if filled == BYTES { Ok(bytes) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// What a hash is for (domain separation): a hash for one use is never valid for another.
#[derive(Clone, Copy)]
pub(super) enum SealDomain {
    AcceptorProof = 1,
    DiallerProof = 2,
    SessionKey = 3,
    FromDialler = 4,
    FromAcceptor = 5,
    WitnessProof = 6,
    Boards = 7,
}

/// The keyed hash of these texts. The length of the first must follow from `domain`.
fn keyed_hash(key: &[u8; 16], domain: SealDomain, texts: [&[u8]; 2]) -> Hash128 {
    use siphasher::sip128::Hasher128 as _;
    use std::hash::Hasher as _;
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(&[domain as u8]);
    texts.into_iter().for_each(|text| hasher.write(text));
    hasher.finish128()
}

/// A job's secret. A process that knows it can join the job. So it is handed out at start-up only,
/// never printed, and never sent over a connection that it protects.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct JobKey([u8; 16]);

impl JobKey {
    /// A new key, from the operating system's random numbers.
    ///
    /// # Errors
    ///
    /// The system gives none.
    pub fn random() -> io::Result<JobKey> {
        random().map(JobKey)
    }

    /// The key as a number, for a process to which it is handed over in text.
    pub(crate) fn number(&self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    /// The key of this number.
    pub(crate) fn of_number(number: u128) -> JobKey {
        JobKey(number.to_le_bytes())
    }

    /// What the boards of the job say of themselves, so that no other is taken for one of them.
    pub(crate) fn token_of_boards(&self) -> u64 {
        keyed_hash(&self.0, SealDomain::Boards, [&[], &[]]).h1
    }

    pub(super) fn prove(&self, domain: SealDomain, texts: [&[u8]; 2]) -> [u8; SEAL_BYTES] {
        keyed_hash(&self.0, domain, texts).as_bytes()
    }

    /// Whether the proof is right. The time that this takes does not depend on where it differs.
    pub(super) fn proves(
        &self,
        domain: SealDomain,
        texts: [&[u8]; 2],
        proof: &[u8; SEAL_BYTES],
    ) -> bool {
        keyed_hash(&self.0, domain, texts) == Hash128::from(u128::from_le_bytes(*proof))
    }

    pub(super) fn session(&self, texts: [&[u8]; 2], is_dialler: bool) -> Session {
        Session { key: self.prove(SealDomain::SessionKey, texts), is_dialler }
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobKey(..)")
    }
}

/// One end of a connection after its handshake: seals what it sends, and checks what it receives. A
/// seal is valid only on its connection, at its place in it, and from its end.
#[derive(Clone, Copy)]
pub struct Session {
    key: [u8; 16],
    is_dialler: bool,
}

impl Session {
    /// The seal of the `number`-th text that this end sends.
    pub fn seal(&self, number: u64, text: &[u8]) -> [u8; SEAL_BYTES] {
        keyed_hash(&self.key, domain_of(self.is_dialler), [&number.to_le_bytes(), text]).as_bytes()
    }

    /// Whether the other end has sealed this text as the `number`-th that it sent.
    pub fn holds(&self, number: u64, text: &[u8], seal: &[u8; SEAL_BYTES]) -> bool {
        let own = keyed_hash(&self.key, domain_of(!self.is_dialler), [&number.to_le_bytes(), text]);
        own == Hash128::from(u128::from_le_bytes(*seal))
    }
}

fn domain_of(dialler: bool) -> SealDomain {
    if dialler { SealDomain::FromDialler } else { SealDomain::FromAcceptor }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("is_dialler", &self.is_dialler).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_are_not_printed() {
        let (one, other) = (JobKey::random().unwrap(), JobKey::random().unwrap());
        let texts: [&[u8]; 2] = [b"some", b"thing"];
        let proof = one.prove(SealDomain::DiallerProof, texts);
        assert!(one.proves(SealDomain::DiallerProof, texts, &proof));
        assert!(!other.proves(SealDomain::DiallerProof, texts, &proof));
        assert!(!one.proves(SealDomain::AcceptorProof, texts, &proof));
        assert_eq!(format!("{one:?}"), "JobKey(..)");
        let session = one.session(texts, true);
        assert_eq!(format!("{session:?}"), "Session { is_dialler: true, .. }");
    }

    #[test]
    fn a_seal_holds_in_one_place_only() {
        let key = JobKey::random().unwrap();
        let [dialler, acceptor] = [true, false].map(|end| key.session([b"one", b"call"], end));
        let seal = dialler.seal(7, b"text");
        assert!(acceptor.holds(7, b"text", &seal));
        assert!(!acceptor.holds(8, b"text", &seal), "another number");
        assert!(!acceptor.holds(7, b"texts", &seal), "another text");
        assert!(!dialler.holds(7, b"text", &seal), "sent back");
        let later = key.session([b"two", b"call"], false);
        assert!(!later.holds(7, b"text", &seal), "another connection");
        for at in 0..SEAL_BYTES {
            let mut seal = seal;
            seal[at] ^= 0x10;
            assert!(!acceptor.holds(7, b"text", &seal), "byte {at}");
        }
    }
}
