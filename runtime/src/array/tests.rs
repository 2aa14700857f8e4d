//! Values that become arrays, and come back.

use super::*;
use proptest::prelude::*;

/// As it would arrive in another process.
fn sent(array: &Array) -> Array {
    let mut incoming =
        IncomingArray::new(array.bytes().len(), array.alignment()).expect("it is one");
    for piece in array.bytes().chunks(7) {
        incoming.take(piece);
    }
    assert_eq!(incoming.missing(), 0);
    incoming.into_array().expect("it is whole")
}

fn travels<V: Clone + PartialEq + std::fmt::Debug + 'static>(value: V) {
    let array = from_value(value.clone()).expect("it is an array");
    assert!(is_plain::<V>());
    assert_eq!(into_value::<V>(sent(&array)).as_ref(), Some(&value), "to another process");
    assert_eq!(into_value::<V>(array.clone()).as_ref(), Some(&value), "a copy, as it is shared");
    assert_eq!(into_value::<V>(array), Some(value), "within the process");
}

proptest! {
    #[test]
    fn values_travel(
        bytes: Vec<u8>,
        shorts: Vec<i16>,
        words: Vec<u32>,
        floats in prop::collection::vec(-1e9..1e9, 0..9),
        wide: Vec<u128>,
        text: String,
    ) {
        travels(bytes);
        travels(shorts.into_boxed_slice());
        travels(words);
        travels::<Vec<f64>>(floats);
        travels(wide);
        travels(text);
    }
}

#[test]
fn nothing_is_copied_unless_it_is_shared() {
    let numbers = vec![1.5; 1000];
    let place = numbers.as_ptr();
    let array = Array::from(numbers);
    let copy: Vec<f64> = into_value(array.clone()).expect("the same type");
    assert_ne!(copy.as_ptr(), place);
    let same: Vec<f64> = into_value(array).expect("the same type");
    assert_eq!(same.as_ptr(), place);
    let arrived = sent(&same.into());
    let place = arrived.bytes().as_ptr();
    let numbers: Vec<f64> = into_value(arrived).expect("it is aligned alike");
    assert_eq!(numbers.as_ptr().cast(), place);
}

#[test]
fn other_values_and_other_bytes_are_no_arrays() {
    assert_eq!(from_value((1, vec![1u8])), Err((1, vec![1u8])));
    assert!(!is_plain::<Vec<Vec<u8>>>());
    assert_eq!(into_value::<(u8, u8)>(vec![1u8, 2].into()), None);
    assert_eq!(into_value::<Vec<u32>>(vec![1u8, 2, 3].into()), None);
    assert_eq!(into_value::<String>(vec![0xffu8].into()), None);
    assert_eq!(into_value::<Vec<u32>>(vec![7u8, 0, 0, 0].into()), Some(vec![7u32.to_le()]));
    assert!(IncomingArray::new(8, 8).expect("it is one").into_array().is_none());
    assert!(IncomingArray::new(8, 3).is_none() && IncomingArray::new(9, 8).is_none());
}

fn shape(bytes: u64, alignment: u8) -> BlockShape {
    BlockShape { bytes, alignment }
}

#[test]
fn blocks_arrive_one_after_the_other_whatever_the_pieces() {
    let blocks = vec![vec![1_u8, 2, 3].into(), vec![7_u16; 0].into(), vec![1.5, 2.5].into()];
    let array = Array::of_blocks(blocks);
    assert_eq!((array.size_bytes(), array.bytes().len()), (19, 0));
    let bytes = array.blocks().iter().flat_map(Array::bytes).copied().collect::<Vec<_>>();
    for piece_bytes in [1, 2, 3, 5, 19] {
        let shapes = array.blocks().iter().map(BlockShape::of).collect();
        let mut incoming = IncomingBlocks::new(shapes).expect("it is one");
        for piece in bytes.chunks(piece_bytes) {
            incoming.take(piece);
        }
        assert_eq!(incoming.missing(), 0);
        assert_eq!(incoming.into_array().as_ref(), Some(&array));
    }
    let encoded = crate::wire::encode(&array).expect("it is encoded");
    let overhead = array.blocks().len() * Array::BLOCK_OVERHEAD_BYTES + 1;
    assert!(encoded.len() <= array.size_bytes() + overhead);
    assert_eq!(crate::wire::decode::<Array>(&encoded).ok(), Some(array.clone()));
    assert!(array != Array::of_blocks(array.blocks()[1..].to_vec()));
    assert!(array != bytes.into());
    assert_eq!(into_value::<Vec<u8>>(array.clone()), None, "they are not one");
    assert_eq!(into_value::<String>(array), None);
}

#[test]
fn shapes_that_lie_are_no_array() {
    let is_one = |shapes: &[BlockShape]| IncomingBlocks::new(shapes.to_vec()).is_some();
    assert!(is_one(&[shape(1, 1); BLOCKS_MAX]) && is_one(&[shape(0, 16)]));
    assert!(!is_one(&[]) && !is_one(&[shape(1, 1); BLOCKS_MAX + 1]));
    assert!(!is_one(&[shape(8, 8), shape(8, 3)]) && !is_one(&[shape(8, 8), shape(8, 0)]));
    assert!(!is_one(&[shape(8, 8), shape(9, 8)]) && !is_one(&[shape(8, 8), shape(8, 32)]));
    assert!(!is_one(&[shape(8, 8), shape(u64::MAX, 1)]), "the sum overflows");
    let many = vec![(1_u8, vec![1_u8]); BLOCKS_MAX + 1];
    for (count, is_some) in [(0, false), (1, true), (BLOCKS_MAX, true), (BLOCKS_MAX + 1, false)] {
        let encoded = crate::wire::encode(&many[..count].to_vec()).expect("it is encoded");
        assert_eq!(crate::wire::decode::<Array>(&encoded).is_ok(), is_some, "{count}");
    }
    let taken = allocation_counter::measure(|| {
        assert!(is_one(&[&[shape(8, 8)][..], &[shape(1 << 40, 8); 63]].concat()));
    });
    assert!(taken.bytes_max < 4000, "memory for a block is taken when those before it are there");
}
