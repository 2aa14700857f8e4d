//! Notices ↔ sealed frames.
//!
//! A frame is its length as a little-endian `u32`, a notice, and a seal. The seal depends on the
//! notice, the connection's own key, and the notice's number in the conversation. So a frame that
//! is forged, recorded elsewhere, repeated, left out or reordered ends the connection, and has no
//! other effect.

use super::close_reason::CloseReason;
use crate::handshake::{SEAL_BYTES, Session};
use crate::protocol::Notice;
use crate::transport::frame_splitter::FrameSplitter;
use crate::wire;

/// The longest frame in a job of this many PEs, without its length field, in bytes. A list of all
/// PEs fits.
pub(super) fn frame_bytes_max(pes: u32) -> usize {
    32 + SEAL_BYTES + pes as usize * 6
}

/// The frame of a notice; `None` if the notice cannot be encoded, which does not happen.
pub(super) fn seal(session: &Session, number: u64, notice: &Notice) -> Option<Vec<u8>> {
    let text = wire::encode(notice).ok()?;
    let mut frame = Vec::with_capacity(4 + text.len() + SEAL_BYTES);
    frame.extend(((text.len() + SEAL_BYTES) as u32).to_le_bytes());
    frame.extend(&text);
    frame.extend(session.seal(number, &text));
    Some(frame)
}

/// Reads the frames that the other end of a connection sends.
pub(super) struct NoticeReader {
    incoming: FrameSplitter,
    bytes_max: usize,
    /// The number of frames that have arrived.
    number: u64,
}

impl NoticeReader {
    pub(super) fn new(pes: u32) -> Self {
        NoticeReader {
            incoming: FrameSplitter::default(),
            bytes_max: frame_bytes_max(pes),
            number: 0,
        }
    }

    /// Whether the bytes so far end with a whole frame.
    pub(super) fn is_at_boundary(&self) -> bool {
        self.incoming.is_at_boundary()
    }

    /// Takes the next bytes, and adds the notices that they complete to `notices`. After an error
    /// no more bytes may be taken.
    pub(super) fn take(
        &mut self,
        session: &Session,
        bytes: &[u8],
        notices: &mut Vec<Notice>,
    ) -> Result<(), CloseReason> {
        let (number, mut wrong) = (&mut self.number, None);
        let cut = self.incoming.split(bytes, self.bytes_max, &mut |frame| {
            if wrong.is_none() {
                match open(session, *number, frame) {
                    Ok(notice) => notices.push(notice),
                    Err(end) => wrong = Some(end),
                }
                *number += 1;
            }
        });
        match (wrong, cut) {
            (Some(end), _) => Err(end),
            (None, cut) => cut.map_err(|_| CloseReason::Oversized),
        }
    }
}

/// The notice of a frame (without its length field), if its seal is right.
fn open(session: &Session, number: u64, frame: &[u8]) -> Result<Notice, CloseReason> {
    let (text, seal) = frame.split_last_chunk::<SEAL_BYTES>().ok_or(CloseReason::Forged)?;
    if !session.holds(number, text, seal) {
        return Err(CloseReason::Forged);
    }
    wire::decode(text).map_err(|_| CloseReason::Garbled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::{Handshake, JobKey, Purpose};
    use crate::protocol::{Claim, Death, Evidence, Heading, Term};
    use proptest::prelude::*;
    use ultramarine_topology::Pe;

    const PES: u32 = 100;

    /// The two ends of a connection.
    fn sessions() -> [Session; 2] {
        let (key, one, two) = (JobKey::random().unwrap(), Pe::new(1), Pe::new(2));
        let (mut dialler, hello) = Handshake::dial(key, Purpose::Detector, one, two).unwrap();
        let mut acceptor = Handshake::accept(key, Purpose::Detector, two, PES);
        let (mut challenge, mut proof) = (Vec::new(), Vec::new());
        acceptor.read(&mut &hello[..], &mut challenge).unwrap();
        let called = dialler.read(&mut &challenge[..], &mut proof).unwrap().unwrap();
        let caller = acceptor.read(&mut &proof[..], &mut Vec::new()).unwrap().unwrap();
        [called.session, caller.session]
    }

    fn evidence() -> impl Strategy<Value = Evidence> {
        prop_oneof![Just(Evidence::Silent), Just(Evidence::Witnessed), Just(Evidence::Confirmed)]
    }

    fn notices() -> impl Strategy<Value = Notice> {
        let pe = (0..PES).prop_map(Pe::new);
        let any_pe = any::<u32>().prop_map(Pe::new);
        let term = (any::<u32>(), any_pe.clone()).prop_map(|(round, judge)| Term { round, judge });
        let heading = (term.clone(), any::<bool>(), any::<u32>(), any::<bool>()).prop_map(
            |(term, in_office, confirmed, ends)| Heading { term, in_office, confirmed, ends },
        );
        let death = (any_pe, evidence()).prop_map(|(pe, evidence)| Death { pe, evidence });
        let claim = prop_oneof![
            Just(Claim::Suspected),
            Just(Claim::Lost),
            Just(Claim::Gone),
            evidence().prop_map(Claim::Declared),
        ];
        prop_oneof![
            (heading.clone(), any::<u32>()).prop_map(|(of, dead)| Notice::Known { of, dead }),
            (pe.clone(), claim.clone()).prop_map(|(pe, claim)| Notice::Accuse { pe, claim }),
            (pe.clone(), any::<bool>()).prop_map(|(pe, anew)| Notice::Look { pe, anew }),
            (heading, any::<u32>(), prop::collection::vec(death, 0..PES as usize))
                .prop_map(|(of, after, dead)| Notice::Bulletin { of, after, dead }),
            (pe.clone(), term.clone(), claim.clone())
                .prop_map(|(herald, term, claim)| Notice::Orphaned { herald, term, claim }),
            (term.clone(), any::<u32>(), any::<u32>(), any::<bool>())
                .prop_map(|(term, dead, count, ends)| Notice::Follow { term, dead, count, ends }),
            term.prop_map(|term| Notice::InContact { term }),
            Just(Notice::Goodbye),
        ]
    }

    fn stream(session: &Session, notices: &[Notice]) -> Vec<u8> {
        (0..)
            .zip(notices)
            .flat_map(|(number, notice)| seal(session, number, notice).unwrap())
            .collect()
    }

    fn read(session: &Session, bytes: &[u8]) -> (Vec<Notice>, Result<(), CloseReason>) {
        let mut heard = Vec::new();
        let result = NoticeReader::new(PES).take(session, bytes, &mut heard);
        (heard, result)
    }

    proptest! {
        #[test]
        fn what_one_end_says_the_other_hears(
            said in prop::collection::vec(notices(), 0..20),
            cut in 1..100_usize,
        ) {
            let [mine, theirs] = sessions();
            let (mut reader, mut heard) = (NoticeReader::new(PES), Vec::new());
            for piece in stream(&mine, &said).chunks(cut) {
                prop_assert_eq!(reader.take(&theirs, piece, &mut heard), Ok(()));
            }
            prop_assert_eq!(heard, said);
            prop_assert!(reader.is_at_boundary());
        }

        #[test]
        fn of_what_was_changed_only_the_beginning_is_heard(
            said in prop::collection::vec(notices(), 1..6),
            at: prop::sample::Index,
            bit in 0..8,
        ) {
            let [mine, theirs] = sessions();
            let mut bytes = stream(&mine, &said);
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            let (heard, result) = read(&theirs, &bytes);
            prop_assert!(heard.len() < said.len() && said.starts_with(&heard));
            // A length that has become greater may wait for what never comes.
            let is_told = |end| matches!(end, CloseReason::Forged | CloseReason::Oversized);
            prop_assert!(result.err().is_none_or(is_told));
        }

        #[test]
        fn nothing_can_be_repeated_left_out_or_swapped(
            said in prop::collection::vec(notices(), 2..6),
        ) {
            let [mine, theirs] = sessions();
            let frames: Vec<_> = stream_by_frame(&mine, &said);
            for wrong in [
                [&frames[0][..], &frames[0]].concat(),
                frames[1].clone(),
                [&frames[1][..], &frames[0]].concat(),
            ] {
                let (heard, result) = read(&theirs, &wrong);
                prop_assert!(heard.len() <= 1);
                prop_assert_eq!(result, Err(CloseReason::Forged));
            }
            // Nor sent back, or sent to another PE.
            prop_assert_eq!(read(&mine, &frames[0]), (vec![], Err(CloseReason::Forged)));
            prop_assert_eq!(read(&sessions()[1], &frames[0]), (vec![], Err(CloseReason::Forged)));
        }

        #[test]
        fn garbage_is_never_heard(pieces: Vec<Vec<u8>>) {
            let [_, theirs] = sessions();
            let (mut reader, mut heard) = (NoticeReader::new(PES), Vec::new());
            for piece in pieces {
                if reader.take(&theirs, &piece, &mut heard).is_err() {
                    break;
                }
            }
            prop_assert_eq!(heard, []);
        }
    }

    fn stream_by_frame(session: &Session, notices: &[Notice]) -> Vec<Vec<u8>> {
        (0..).zip(notices).map(|(number, notice)| seal(session, number, notice).unwrap()).collect()
    }

    #[test]
    fn the_longest_list_fits_and_one_longer_does_not() {
        let [mine, theirs] = sessions();
        let all = |pes| {
            let dead = (0..pes).map(|n| Death::silent(Pe::new(u32::MAX - n))).collect();
            let term = Term { round: u32::MAX, judge: Pe::new(u32::MAX) };
            let of = Heading { term, in_office: true, confirmed: u32::MAX, ends: true };
            Notice::Bulletin { of, after: u32::MAX, dead }
        };
        assert_eq!(read(&theirs, &seal(&mine, 0, &all(PES)).unwrap()).1, Ok(()));
        let (heard, result) = read(&theirs, &seal(&mine, 0, &all(PES + 10)).unwrap());
        assert_eq!((heard, result), (vec![], Err(CloseReason::Oversized)));
    }

    #[test]
    fn what_is_sealed_but_cannot_be_read_is_garbled() {
        let [mine, theirs] = sessions();
        let text = [0xfe; 9];
        let mut frame = ((text.len() + SEAL_BYTES) as u32).to_le_bytes().to_vec();
        frame.extend(text);
        frame.extend(mine.seal(0, &text));
        assert_eq!(read(&theirs, &frame), (vec![], Err(CloseReason::Garbled)));
    }
}
