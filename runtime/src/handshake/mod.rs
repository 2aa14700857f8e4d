//! The handshake at the beginning of a connection: it proves that both ends are PEs of one job.
//!
//! ```text
//!  dialler                                              acceptor
//!    | HELLO magic, version, purpose, from, to, nonce ---->|
//!    |<------------------------- CHALLENGE nonce', proof' --|
//!    | PROOF proof ---------------------------------------->|
//! ```
//!
//! Each proof is a keyed hash (SipHash-2-4 with 128 bits) of the HELLO and the nonce', under the
//! job's key, so that
//!
//! - the key itself is never sent, and an eavesdropper learns nothing that opens another
//!   connection;
//! - both ends are known: the dialler, too, knows that it has not called a stranger that took over
//!   the port;
//! - a recorded conversation cannot be replayed to either end: each end has put its own random
//!   nonce into what the other must prove;
//! - a proof cannot be sent back to its sender, or be used for another purpose or PE: the proofs of
//!   the two ends differ, and the HELLO names the purpose, the caller and the called PE.
//!
//! Where the acceptor's process is gone, a *witness* may answer in its place, such as its guard:
//! its CHALLENGE carries another proof, which says so, and ends the handshake ([`testify`]).
//!
//! Both ends then share a [`Session`] key that no other connection has, with which they can seal
//! what follows. The detector does that. The TCP lane does not: its frames are only checked for
//! damage, so it has no defence against an attacker who can put bytes into an existing connection.
//! Nothing is encrypted.
//!
//! The handshake is a state machine: bytes in, bytes out. Its owner has the socket, and limits the
//! time.

mod key;
#[cfg(test)]
mod tests;

pub use key::{JobKey, SEAL_BYTES, Session};

use key::{SealDomain, random};
use ultramarine_topology::Pe;

/// Magic and version.
const GREETING: [u8; 8] = *b"ULTRAM\x00\x02";

const NONCE_BYTES: usize = 16;

/// The length of a HELLO, in bytes: greeting, purpose, caller, called PE, nonce. Numbers are little
/// endian.
pub const HELLO_BYTES: usize = 8 + 1 + 4 + 4 + NONCE_BYTES;

/// The length of a CHALLENGE, in bytes.
pub const CHALLENGE_BYTES: usize = NONCE_BYTES + SEAL_BYTES;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Frames of the TCP lane.
    Lane = 1,
    /// Heartbeats and notices of the detector.
    Detector = 2,
}

/// Why a connection must be closed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The first bytes are not a HELLO for this PE.
    #[error("it is not from a PE of this job")]
    Stranger,
    /// The proof is wrong.
    #[error("it does not know the job's key")]
    Forged,
    /// A witness answers in place of the PE that was called.
    #[error("its process is gone, as a witness on its host says")]
    Gone,
    /// The system gave no random numbers, or the owner of the connection could not go on.
    #[error("the connection was given up: {0}")]
    Io(#[from] std::io::Error),
}

/// One end's part in the handshake of a connection.
///
/// ```
/// use ultramarine_runtime::handshake::{Handshake, JobKey, Purpose};
/// use ultramarine_topology::Pe;
/// let (key, one, two) = (JobKey::random()?, Pe::new(1), Pe::new(2));
/// let (mut dialler, hello) = Handshake::dial(key, Purpose::Lane, one, two)?;
/// let mut acceptor = Handshake::accept(key, Purpose::Lane, two, 3);
///
/// let (mut challenge, mut proof) = (Vec::new(), Vec::new());
/// assert!(acceptor.read(&mut &hello[..], &mut challenge)?.is_none());
/// let called = dialler.read(&mut &challenge[..], &mut proof)?.expect("all has been said");
/// let caller = acceptor.read(&mut &proof[..], &mut Vec::new())?.expect("all has been said");
/// assert_eq!((called.pe, caller.pe), (two, one));
/// assert!(caller.session.holds(0, b"text", &called.session.seal(0, b"text")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Handshake {
    key: JobKey,
    awaited: Awaited,
    /// The beginning of the message that is awaited.
    received: Vec<u8>,
}

#[derive(Debug)]
enum Awaited {
    /// By an acceptor, PE `me` of `pes`.
    Hello { purpose: Purpose, me: Pe, pes: u32 },
    /// By the dialler, which has sent this HELLO.
    Challenge { hello: [u8; HELLO_BYTES], to: Pe },
    /// By the acceptor, which has answered this HELLO.
    Proof { hello: [u8; HELLO_BYTES], nonce: [u8; NONCE_BYTES], from: Pe },
    /// Nothing: the handshake is done.
    Nothing,
}

/// The other end of a connection, once its handshake is done.
#[derive(Clone, Copy, Debug)]
pub struct Authenticated {
    /// The PE at the other end.
    pub pe: Pe,
    /// Seals and checks what follows, with the connection's own key.
    pub session: Session,
}

impl Handshake {
    /// The dialler's part, and the HELLO that it must send first.
    ///
    /// # Errors
    ///
    /// The system gives no random numbers.
    pub fn dial(
        key: JobKey,
        purpose: Purpose,
        from: Pe,
        to: Pe,
    ) -> std::io::Result<(Handshake, [u8; HELLO_BYTES])> {
        let hello = encode_hello(purpose, from, to, random()?);
        let awaited = Awaited::Challenge { hello, to };
        Ok((Handshake { key, awaited, received: Vec::new() }, hello))
    }

    /// The part of PE `me`, in a job of `pes` PEs, which has been called.
    pub fn accept(key: JobKey, purpose: Purpose, me: Pe, pes: u32) -> Handshake {
        Handshake { key, awaited: Awaited::Hello { purpose, me, pes }, received: Vec::new() }
    }

    /// The number of bytes still to come before the next step; 0 once the handshake is done.
    pub fn wanted_bytes(&self) -> usize {
        let whole = match self.awaited {
            Awaited::Hello { .. } => HELLO_BYTES,
            Awaited::Challenge { .. } => CHALLENGE_BYTES,
            Awaited::Proof { .. } => SEAL_BYTES,
            Awaited::Nothing => 0,
        };
        whole - self.received.len()
    }

    /// Takes from the front of `bytes` what belongs to the handshake, appends to `answer` what is
    /// to be sent, and returns the other end once it has proved itself. Bytes that are left over
    /// follow the handshake.
    ///
    /// # Errors
    ///
    /// The other end is not the right PE of this job. The connection must be closed.
    pub fn read(
        &mut self,
        bytes: &mut &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<Option<Authenticated>, HandshakeError> {
        loop {
            let (more, rest) = bytes.split_at(bytes.len().min(self.wanted_bytes()));
            self.received.extend_from_slice(more);
            *bytes = rest;
            if self.wanted_bytes() > 0 || matches!(self.awaited, Awaited::Nothing) {
                return Ok(None);
            }
            let received = std::mem::take(&mut self.received);
            let peer = match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
                Awaited::Hello { purpose, me, pes } => {
                    self.answer_hello(&received, purpose, me, pes, answer)?;
                    None
                }
                Awaited::Challenge { hello, to } => {
                    Some(answer_challenge(self.key, &received, &hello, to, answer)?)
                }
                Awaited::Proof { hello, nonce, from } => {
                    let proof = received.first_chunk().ok_or(HandshakeError::Forged)?;
                    if !self.key.proves(SealDomain::DiallerProof, [&hello, &nonce], proof) {
                        return Err(HandshakeError::Forged);
                    }
                    Some(Authenticated {
                        pe: from,
                        session: self.key.session([&hello, &nonce], false),
                    })
                }
                Awaited::Nothing => None,
            };
            if peer.is_some() {
                return Ok(peer);
            }
        }
    }

    fn answer_hello(
        &mut self,
        received: &[u8],
        purpose: Purpose,
        me: Pe,
        pes: u32,
        answer: &mut Vec<u8>,
    ) -> Result<(), HandshakeError> {
        let hello = *received.first_chunk().ok_or(HandshakeError::Stranger)?;
        let from = caller(&hello, purpose, me, pes).ok_or(HandshakeError::Stranger)?;
        let nonce = challenge(self.key, SealDomain::AcceptorProof, &hello, answer)?;
        self.awaited = Awaited::Proof { hello, nonce, from };
        Ok(())
    }
}

/// What a witness, which knows that the process of PE `me` is gone, answers to a HELLO for that PE,
/// in a job of `pes` PEs. The caller gets [`HandshakeError::Gone`] from it.
///
/// # Errors
///
/// It is no such HELLO, or the system gives no random numbers.
pub fn testify(
    key: JobKey,
    purpose: Purpose,
    me: Pe,
    pes: u32,
    hello: &[u8; HELLO_BYTES],
) -> Result<Vec<u8>, HandshakeError> {
    caller(hello, purpose, me, pes).ok_or(HandshakeError::Stranger)?;
    let mut answer = Vec::with_capacity(CHALLENGE_BYTES);
    challenge(key, SealDomain::WitnessProof, hello, &mut answer)?;
    Ok(answer)
}

/// Appends a CHALLENGE with this kind of proof, and returns its nonce.
fn challenge(
    key: JobKey,
    proof: SealDomain,
    hello: &[u8; HELLO_BYTES],
    answer: &mut Vec<u8>,
) -> std::io::Result<[u8; NONCE_BYTES]> {
    let nonce = random()?;
    answer.extend(nonce);
    answer.extend(key.prove(proof, [hello, &nonce]));
    Ok(nonce)
}

fn answer_challenge(
    key: JobKey,
    received: &[u8],
    hello: &[u8; HELLO_BYTES],
    to: Pe,
    answer: &mut Vec<u8>,
) -> Result<Authenticated, HandshakeError> {
    let (nonce, rest) =
        received.split_first_chunk::<NONCE_BYTES>().ok_or(HandshakeError::Forged)?;
    let proof = rest.first_chunk().ok_or(HandshakeError::Forged)?;
    if key.proves(SealDomain::WitnessProof, [hello, nonce], proof) {
        return Err(HandshakeError::Gone);
    }
    if !key.proves(SealDomain::AcceptorProof, [hello, nonce], proof) {
        return Err(HandshakeError::Forged);
    }
    answer.extend(key.prove(SealDomain::DiallerProof, [hello, nonce]));
    Ok(Authenticated { pe: to, session: key.session([hello, nonce], true) })
}

fn encode_hello(purpose: Purpose, from: Pe, to: Pe, nonce: [u8; NONCE_BYTES]) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(&GREETING);
    bytes[8] = purpose as u8;
    bytes[9..13].copy_from_slice(&from.number().to_le_bytes());
    bytes[13..17].copy_from_slice(&to.number().to_le_bytes());
    bytes[17..].copy_from_slice(&nonce);
    bytes
}

/// The caller, if the bytes are a HELLO to `me` for this purpose. The HELLO names `me`, in case
/// that the caller's address of another PE is this PE's by now.
fn caller(hello: &[u8; HELLO_BYTES], purpose: Purpose, me: Pe, pes: u32) -> Option<Pe> {
    let (greeting, rest) = hello.split_first_chunk::<8>()?;
    let (for_what, rest) = rest.split_first()?;
    let (from, rest) = rest.split_first_chunk()?;
    let (to, _) = rest.split_first_chunk()?;
    let from = Pe::new(u32::from_le_bytes(*from));
    let is_for_me = *greeting == GREETING
        && *for_what == purpose as u8
        && u32::from_le_bytes(*to) == me.number()
        && from.number() < pes
        && from != me;
    is_for_me.then_some(from)
}
