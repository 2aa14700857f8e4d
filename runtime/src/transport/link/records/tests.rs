//! Streams cut anywhere, and streams of nonsense.

use super::*;
use proptest::prelude::*;

/// A message, and the bytes of the blocks of its array if it has one.
type Sent = (Vec<u8>, Option<Vec<Vec<u8>>>);

fn messages() -> impl Strategy<Value = Vec<Sent>> {
    let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
    prop::collection::vec(
        (bytes(50), prop::option::of(prop::collection::vec(bytes(65), 1..4))),
        0..20,
    )
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
            let blocks = array.iter().map(|block| block.clone().into()).collect();
            write_announcement(&mut stream, message, &Array::of_blocks(blocks));
            for piece in array.concat().chunks(piece_bytes) {
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
                let bytes = |block: &Array| block.bytes().to_vec();
                let blocks = array.map(|array| array.blocks().iter().map(bytes).collect());
                delivered.push((message.to_vec(), blocks));
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
                assert!(array.is_none_or(|array| array.size_bytes() <= 1000));
            };
            if records.cut(&bytes, 1000, deliver).is_err() {
                break;
            }
            prop_assert!(records.partial.len() < PREFIX_BYTES + OFFER_BYTES_MAX + 1000);
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
    odd[PREFIX_BYTES + 9] = 2;
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

#[test]
fn lists_of_blocks_that_lie_are_refused() {
    let list = |kind, head: &[u8], blocks: &[(u64, u8)], count: u8, message_bytes: usize| {
        let mut record = [head, &[count]].concat();
        for (bytes, alignment) in blocks {
            record.extend(&[0; 8][..if kind == OFFER { 8 } else { 0 }]);
            write_shape(&mut record, BlockShape { bytes: *bytes, alignment: *alignment });
        }
        record.extend(vec![0; message_bytes]);
        [&prefix(kind, record.len())[..], &record].concat()
    };
    for (kind, head) in [(ANNOUNCEMENT, &[0; 0][..]), (OFFER, &[0; 20])] {
        let cut = |blocks: &[(u64, u8)], count, message_bytes| {
            let stream = list(kind, head, blocks, count, message_bytes);
            Records::default().cut(&stream, 100, &mut none)
        };
        assert_eq!(cut(&[(50, 1), (50, 2)], 2, 100), Ok(()));
        assert_eq!(cut(&[(1, 1); BLOCKS_MAX], BLOCKS_MAX as u8, 0), Ok(()));
        assert_eq!(cut(&[(0, 1); 65], 65, 0), Err(Malformed::Nonsense), "too many");
        assert_eq!(cut(&[(1, 1); 3], 4, 0), Err(Malformed::Nonsense), "cut");
        assert_eq!(cut(&[(u64::MAX, 1); 2], 2, 0), Err(Malformed::Nonsense), "overflow");
        assert_eq!(cut(&[(60, 1), (41, 1)], 2, 0), Err(Malformed::TooLong(101)));
        assert_eq!(cut(&[(50, 1), (50, 2)], 2, 101), Err(Malformed::TooLong(101)));
    }
    let odd = |blocks: &[(u64, u8)]| {
        let stream = list(ANNOUNCEMENT, &[], blocks, blocks.len() as u8, 0);
        Records::default().cut(&stream, 100, &mut none)
    };
    for blocks in [&[(8, 8), (8, 3)][..], &[(8, 8), (9, 8)], &[(8, 8), (8, 0)], &[]] {
        assert_eq!(odd(blocks), Err(Malformed::Nonsense), "{blocks:?}");
    }
}
