//! Streams cut anywhere, and streams of nonsense.

use super::*;
use proptest::prelude::*;

/// A message, and the bytes of its array if it has one.
type Sent = (Vec<u8>, Option<Vec<u8>>);

fn messages() -> impl Strategy<Value = Vec<Sent>> {
    let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
    prop::collection::vec((bytes(50), prop::option::of(bytes(200))), 0..20)
}

proptest! {
    #[test]
    fn any_cutting_yields_the_messages(
        messages in messages(),
        piece_bytes in 1..100_usize,
        cuts in prop::collection::vec(1..80_usize, 1..50),
    ) {
        let mut stream = Vec::new();
        for (message, array) in &messages {
            let Some(array) = array else {
                write_message(&mut stream, message);
                continue;
            };
            write_announcement(&mut stream, message, &array.clone().into());
            for piece in array.chunks(piece_bytes) {
                stream.extend(piece_prefix(piece.len()));
                stream.extend(piece);
            }
        }
        let (mut rest, mut records, mut delivered) = (&stream[..], Records::default(), Vec::new());
        for &bytes in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at(bytes.min(rest.len()));
            let taken = records.cut(now, 200, &mut |message, array| {
                delivered.push((message.to_vec(), array.map(|array| array.bytes().to_vec())));
            });
            prop_assert_eq!(taken, Ok(()));
            rest = later;
        }
        prop_assert_eq!(delivered, messages);
        prop_assert!(records.is_between());
    }

    #[test]
    fn random_bytes_do_no_harm(inputs: Vec<Vec<u8>>) {
        let mut records = Records::default();
        for bytes in inputs {
            let deliver = &mut |message: &[u8], array: Option<Array>| {
                assert!(message.len() <= 1000);
                assert!(array.is_none_or(|array| array.bytes().len() <= 1000));
            };
            if records.cut(&bytes, 1000, deliver).is_err() {
                break;
            }
            prop_assert!(records.partial.len() < PREFIX_BYTES + ARRAY_HEAD_BYTES + 1000);
        }
    }
}

fn none(_: &[u8], _: Option<Array>) {
    panic!("nothing is delivered");
}

#[test]
fn an_over_long_message_reserves_nothing() {
    let mut records = Records::default();
    assert_eq!(records.cut(&[0xff; 3], 1 << 28, &mut none), Ok(()));
    let taken = records.cut(&[0x1f], 1 << 28, &mut none);
    assert_eq!(taken, Err(Malformed::TooLong(RECORD_BYTES_MAX)));
    assert!(records.partial.capacity() < 100);
}

#[test]
fn a_message_overtakes_an_array() {
    let mut stream = Vec::new();
    write_announcement(&mut stream, b"large", &vec![1u16, 2].into());
    stream.extend(piece_prefix(2).into_iter().chain([1, 0]));
    write_message(&mut stream, b"small");
    stream.extend(piece_prefix(2).into_iter().chain([2, 0]));
    let (mut records, mut delivered) = (Records::default(), Vec::new());
    let taken = records.cut(&stream, 100, &mut |message, array| {
        delivered.push((message.to_vec(), array.map(|array| array.bytes().to_vec())));
    });
    assert_eq!(taken, Ok(()));
    assert_eq!(delivered, [(b"small".to_vec(), None), (b"large".to_vec(), Some(vec![1, 0, 2, 0]))]);
}

#[test]
fn what_no_port_writes_is_refused() {
    let announcement = |array: Array| {
        let mut stream = Vec::new();
        write_announcement(&mut stream, b"", &array);
        stream
    };
    let two = announcement(vec![1u16, 2].into());
    let mut odd = announcement(vec![1u8, 2, 3].into());
    odd[PREFIX_BYTES + 8] = 2;
    let cut = |stream: &[u8]| Records::default().cut(stream, 100, &mut none);
    assert_eq!(cut(&piece_prefix(1)), Err(Malformed::Nonsense), "a piece of nothing");
    assert_eq!(cut(&[&two[..], &piece_prefix(5)].concat()), Err(Malformed::Nonsense), "too much");
    assert_eq!(cut(&[&two[..], &two].concat()), Err(Malformed::Nonsense), "two at once");
    assert_eq!(cut(&odd), Err(Malformed::Nonsense), "no such array");
    let mut handed_over = Vec::new();
    write_handed_over(&mut handed_over, b"", 1);
    assert_eq!(cut(&handed_over), Err(Malformed::Nonsense), "there is no handoff");
    assert_eq!(cut(&prefix(ANNOUNCEMENT, 3)), Ok(()));
    assert_eq!(cut(&announcement(vec![0u8; 101].into())), Err(Malformed::TooLong(101)));
}
