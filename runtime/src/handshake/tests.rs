//! Every conversation but the right one must be refused.

use super::*;
use proptest::prelude::*;

const ONE: Pe = Pe::new(1);
const TWO: Pe = Pe::new(2);

/// The bytes of each end in a conversation that succeeded.
struct Conversation {
    hello: Vec<u8>,
    challenge: Vec<u8>,
    proof: Vec<u8>,
}

fn key() -> JobKey {
    JobKey::random().unwrap()
}

fn dial(key: JobKey) -> (Handshake, [u8; HELLO_BYTES]) {
    Handshake::dial(key, Purpose::Detector, ONE, TWO).unwrap()
}

fn accept(key: JobKey) -> Handshake {
    Handshake::accept(key, Purpose::Detector, TWO, 3)
}

fn read(
    end: &mut Handshake,
    mut bytes: &[u8],
) -> (Result<Option<Authenticated>, HandshakeError>, Vec<u8>) {
    let mut answer = Vec::new();
    let result = end.read(&mut bytes, &mut answer);
    assert!(result.is_err() || bytes.is_empty());
    (result, answer)
}

fn converse(key: JobKey) -> Conversation {
    let (mut dialler, hello) = dial(key);
    let mut acceptor = accept(key);
    let (peer, challenge) = read(&mut acceptor, &hello);
    assert!(peer.unwrap().is_none());
    let (called, proof) = read(&mut dialler, &challenge);
    assert_eq!(called.unwrap().unwrap().pe, TWO);
    let (caller, nothing) = read(&mut acceptor, &proof);
    assert_eq!(caller.unwrap().unwrap().pe, ONE);
    assert!(nothing.is_empty());
    Conversation { hello: hello.to_vec(), challenge, proof }
}

#[test]
fn a_replayed_conversation_is_refused_by_both_ends() {
    let key = key();
    let recorded = converse(key);
    let mut acceptor = accept(key);
    assert!(read(&mut acceptor, &recorded.hello).0.unwrap().is_none());
    assert!(matches!(read(&mut acceptor, &recorded.proof).0, Err(HandshakeError::Forged)));
    let (mut dialler, _) = dial(key);
    assert!(matches!(read(&mut dialler, &recorded.challenge).0, Err(HandshakeError::Forged)));
}

#[test]
fn only_a_witness_with_the_key_ends_the_handshake_with_a_death() {
    let key = key();
    let testify = |key, hello: &_| testify(key, Purpose::Detector, TWO, 3, hello);
    let (mut dialler, hello) = dial(key);
    let (recorded, foreign) =
        (testify(key, &hello).unwrap(), testify(self::key(), &hello).unwrap());
    let (result, answer) = read(&mut dialler, &recorded);
    assert!(matches!(result, Err(HandshakeError::Gone)) && answer.is_empty());
    let (mut dialler, _) = dial(key);
    assert!(matches!(read(&mut dialler, &recorded).0, Err(HandshakeError::Forged)), "replayed");
    let (mut dialler, hello) = dial(self::key());
    assert!(matches!(read(&mut dialler, &foreign).0, Err(HandshakeError::Forged)), "another key");
    let to_another = self::testify(key, Purpose::Detector, ONE, 3, &hello);
    assert!(matches!(to_another, Err(HandshakeError::Stranger)));
}

#[test]
fn what_is_sent_back_is_refused() {
    let key = key();
    let (mut dialler, hello) = dial(key);
    let mut acceptor = accept(key);
    let (_, challenge) = read(&mut acceptor, &hello);
    let proof = &challenge[NONCE_BYTES..];
    assert!(matches!(read(&mut acceptor, proof).0, Err(HandshakeError::Forged)));
    assert!(read(&mut dialler, &challenge).0.is_ok());
}

#[test]
fn other_keys_are_refused_by_both_ends() {
    let (mut dialler, hello) = dial(key());
    let mut acceptor = accept(key());
    let (_, challenge) = read(&mut acceptor, &hello);
    assert!(matches!(read(&mut dialler, &challenge).0, Err(HandshakeError::Forged)));
    assert!(matches!(read(&mut acceptor, &[7; SEAL_BYTES]).0, Err(HandshakeError::Forged)));
}

#[test]
fn a_hello_for_another_pe_or_purpose_is_refused() {
    let key = key();
    for (purpose, from, to) in [
        (Purpose::Lane, 1, 2),
        (Purpose::Detector, 1, 1),
        (Purpose::Detector, 2, 2),
        (Purpose::Detector, 3, 2),
        (Purpose::Detector, u32::MAX, 2),
    ] {
        let (_, hello) = Handshake::dial(key, purpose, Pe::new(from), Pe::new(to)).unwrap();
        let (result, answer) = read(&mut accept(key), &hello);
        assert!(matches!(result, Err(HandshakeError::Stranger)), "{purpose:?} {from} {to}");
        assert!(answer.is_empty(), "a stranger gets no answer");
    }
}

#[test]
fn any_changed_bit_is_refused() {
    let key = key();
    for at in 0..HELLO_BYTES {
        let (mut dialler, mut hello) = dial(key);
        hello[at] ^= 1;
        let mut acceptor = accept(key);
        // A nonce, or the caller's number, is any; but then the dialler said something else.
        let (result, challenge) = read(&mut acceptor, &hello);
        if result.is_ok() {
            assert!(
                matches!(read(&mut dialler, &challenge).0, Err(HandshakeError::Forged)),
                "{at}"
            );
        }
    }
    for at in 0..CHALLENGE_BYTES {
        let (mut dialler, hello) = dial(key);
        let (_, mut challenge) = read(&mut accept(key), &hello);
        challenge[at] ^= 0x80;
        assert!(matches!(read(&mut dialler, &challenge).0, Err(HandshakeError::Forged)), "{at}");
    }
}

#[test]
fn what_follows_is_left_for_the_owner() {
    let key = key();
    let (mut dialler, hello) = dial(key);
    let mut acceptor = accept(key);
    let (_, challenge) = read(&mut acceptor, &hello);
    let (_, mut proof) = read(&mut dialler, &challenge);
    proof.extend(b"frames");
    let mut bytes = &proof[..];
    assert!(acceptor.read(&mut bytes, &mut Vec::new()).unwrap().is_some());
    assert_eq!(bytes, b"frames");
    assert!(acceptor.read(&mut bytes, &mut Vec::new()).unwrap().is_none(), "all has been said");
    assert_eq!(bytes, b"frames");
}

proptest! {
    #[test]
    fn it_does_not_matter_how_the_bytes_are_cut(cut in 1..20_usize) {
        let key = key();
        let (mut dialler, hello) = dial(key);
        let mut acceptor = accept(key);
        let (mut challenge, mut proof) = (Vec::new(), Vec::new());
        for mut piece in hello.chunks(cut) {
            prop_assert!(acceptor.read(&mut piece, &mut challenge).unwrap().is_none());
        }
        let called = challenge.chunks(cut).filter_map(|mut piece| {
            dialler.read(&mut piece, &mut proof).unwrap()
        });
        prop_assert_eq!(called.count(), 1);
        let callers = proof.chunks(cut).filter_map(|mut piece| {
            acceptor.read(&mut piece, &mut Vec::new()).unwrap()
        });
        prop_assert_eq!(callers.count(), 1);
    }

    #[test]
    fn garbage_opens_nothing(bytes: Vec<Vec<u8>>) {
        let key = key();
        let (mut dialler, _) = dial(key);
        let mut acceptor = accept(key);
        for end in [&mut dialler, &mut acceptor] {
            for mut piece in bytes.iter().map(Vec::as_slice) {
                match end.read(&mut piece, &mut Vec::new()) {
                    Ok(peer) => prop_assert!(peer.is_none()),
                    Err(_) => break,
                }
            }
        }
    }
}
