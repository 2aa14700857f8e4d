//! Values that hold arrays become bytes, and come back.

mod kept;

use super::*;
use crate::array::held::{Kept, encode_and_keep, take_left};
use crate::array::{BLOCKS_MAX, BlockShape, IncomingBlocks};
use crate::wire::{self, WireError};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

/// An array as it arrives in another process.
fn arrived(array: &Array) -> Array {
    let shapes = array.blocks().iter().map(BlockShape::of).collect();
    let mut incoming = IncomingBlocks::new(shapes).expect("it is one");
    incoming.take(&bytes_of(array));
    incoming.into_array().expect("it is whole")
}

fn bytes_of(array: &Array) -> Vec<u8> {
    array.blocks().iter().flat_map(|block| block.bytes().to_vec()).collect()
}

/// The encoding of a value, and what is beside it, as that arrives in another process.
fn sent<T: Serialize>(value: &T) -> (Vec<u8>, Option<Array>) {
    let (mut bytes, mut beside) = (Vec::new(), Beside::default());
    assert!(encode_with(usize::MAX, value, &mut bytes, &mut beside).expect("it is encoded"));
    (bytes, beside.into_array().as_ref().map(arrived))
}

/// A value comes back as another type that has the same encoding, in each way.
fn read<T: Serialize, U: DeserializeOwned>(value: &T) -> [Result<U, WireError>; 2] {
    let (bytes, array) = sent(value);
    [decode_with(&bytes, array), decode_with(&encode(value).expect("it is encoded"), None)]
}

fn travels<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    for read in read::<T, T>(value) {
        assert_eq!(&read.expect("it is decoded"), value);
    }
}

/// How many bytes go beside a value.
fn beside(value: &impl Serialize) -> usize {
    sent(value).1.map_or(0, |array| array.size_bytes())
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Tile {
    place: (u32, i64),
    values: Vec<f64>,
    #[serde(with = "crate::plain")]
    corners: Vec<[f32; 3]>,
    name: String,
    kind: Kind,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Kind {
    None,
    Dense(Box<[u16]>),
    Mixed(Option<Vec<i8>>, char),
    Sparse { columns: Vec<Vec<usize>>, by_row: BTreeMap<u8, Vec<u128>>, queue: VecDeque<f32> },
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![0..3_usize, 500..530_usize, 4000..5000_usize]
}

fn tiles() -> impl Strategy<Value = Tile> {
    let kind = prop_oneof![
        Just(Kind::None),
        lengths().prop_map(|length| Kind::Dense(vec![7; length].into())),
        (proptest::option::of(lengths()), any::<char>())
            .prop_map(|(length, c)| Kind::Mixed(length.map(|length| vec![-1; length]), c)),
        (lengths(), lengths(), lengths()).prop_map(|(one, two, three)| Kind::Sparse {
            columns: vec![vec![one; one], Vec::new(), vec![two; two]],
            by_row: BTreeMap::from([(1, vec![u128::MAX; three]), (2, vec![3; one])]),
            queue: (0..three).map(|n| n as f32).collect(),
        }),
    ];
    let parts = (any::<(u32, i64)>(), lengths(), lengths(), lengths(), kind);
    parts.prop_map(|(place, values, corners, name, kind)| Tile {
        place,
        values: (0..values).map(|n| n as f64 / 3.0).collect(),
        corners: vec![[0.5, f32::MIN, -0.0]; corners],
        name: "ä".repeat(name),
        kind,
    })
}

proptest! {
    #[test]
    fn values_travel(tiles in prop::collection::vec(tiles(), 0..3), text: String) {
        travels(&tiles);
        travels(&(text, tiles));
    }

    #[test]
    fn bytes_that_are_cut_or_damaged_are_an_error_or_a_value(
        tile in tiles(),
        cut: prop::sample::Index,
        damaged: prop::sample::Index,
        bit in 0..8_u8,
    ) {
        let (mut bytes, array) = sent(&tile);
        let begun = &bytes[..cut.index(bytes.len())];
        prop_assert!(decode_with::<Tile>(begun, array.clone()).is_err());
        let place = damaged.index(bytes.len());
        bytes[place] ^= 1_u8 << bit;
        let _ = decode_with::<Tile>(&bytes, array);
        let mut bytes = encode(&tile).expect("it is encoded");
        let place = damaged.index(bytes.len());
        bytes[place] ^= 1_u8 << bit;
        let _ = decode_with::<Tile>(&bytes, None);
    }
}

#[test]
fn long_arrays_go_beside_and_all_else_does_not() {
    assert_eq!(beside(&(1, vec![0.5; 511])), 0);
    assert_eq!(beside(&(1, vec![0.5; 512])), 4096);
    assert_eq!(beside(&Some(vec![1_u8; 4096])), 4096);
    assert_eq!(beside(&vec![vec![1_u32; 1024], vec![2; 1023], vec![3; 2048]]), 12 << 10);
    assert_eq!(beside(&("x".repeat(5000), 'x')), 5000);
    assert_eq!(beside(&(vec![1_u64; 512], &vec![1_u64; 512], Box::<[u8]>::from([7; 4096]))), 12288);
    assert_eq!(beside(&VecDeque::from(vec![0.5; 5000])), 0);
    assert_eq!(beside(&vec![(1_u8, 0.5); 5000]), 0);
    assert_eq!(beside(&vec![(); 1 << 20]), 0);
    assert_eq!(sent(&(1_u8, vec![0.5; 512])).0.len(), 1 + 3 + 1);
}

#[test]
fn one_array_is_taken_without_a_copy() {
    let (bytes, array) = sent(&(7, Some(vec![0.5; 1000]), "x"));
    let place = array.as_ref().expect("it is long").bytes().as_ptr();
    let (_, values, _): (i32, Option<Vec<f64>>, String) =
        decode_with(&bytes, array).expect("it is decoded");
    assert_eq!(values.as_ref().expect("it has some").as_ptr().cast(), place);
    let tile = Tile {
        place: (1, 2),
        values: vec![],
        corners: vec![[1.0; 3]; 1000],
        name: "plain".to_owned(),
        kind: Kind::None,
    };
    let (bytes, array) = sent(&tile);
    let place = array.as_ref().expect("it is long").bytes().as_ptr();
    let tile: Tile = decode_with(&bytes, array).expect("it is decoded");
    assert_eq!(tile.corners.as_ptr().cast(), place);
}

/// A `Vec` whose elements are looked at, and may be refused.
#[derive(Deserialize, PartialEq, Debug)]
struct Sorted(#[serde(deserialize_with = "sorted")] Vec<u32>);

fn sorted<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Vec<u32>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("sorted numbers")
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut of: A) -> Result<Vec<u32>, A::Error> {
            let mut all = Vec::new();
            while let Some(next) = of.next_element()? {
                if all.last().is_some_and(|last| next < *last) {
                    return Err(serde::de::Error::custom("they are not sorted"));
                }
                all.push(next);
            }
            Ok(all)
        }
    }
    from.deserialize_seq(Visitor)
}

#[test]
fn code_that_reads_or_writes_sequences_of_its_own_goes_on_doing_so() {
    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone, Copy)]
    struct Metres(f64);
    for length in [3, 3000] {
        let up: Vec<u32> = (0..length).collect();
        for read in read::<_, Sorted>(&up) {
            assert_eq!(read.expect("they are sorted").0, up);
        }
        let down: Vec<u32> = up.iter().rev().copied().collect();
        for read in read::<_, (Sorted,)>(&(down,)) {
            let error = read.expect_err("they are not").to_string();
            assert_eq!(error, "decoding failed: they are not sorted");
        }
        let numbers = vec![1.5; length as usize];
        for read in read::<_, Vec<Metres>>(&numbers) {
            assert_eq!(read.expect("they are alike"), vec![Metres(1.5); length as usize]);
        }
        for read in read::<_, Vec<f64>>(&vec![Metres(1.5); length as usize]) {
            assert_eq!(read.expect("they are alike"), numbers);
        }
        for read in read::<_, VecDeque<f64>>(&numbers) {
            assert_eq!(read.expect("they are alike"), numbers);
        }
        let bytes = vec![7; length as usize];
        for read in read::<Vec<u8>, serde_bytes::ByteBuf>(&bytes) {
            assert_eq!(read.expect("they are alike"), bytes);
        }
        for read in read::<_, Vec<u8>>(&serde_bytes::Bytes::new(&bytes)) {
            assert_eq!(read.expect("they are alike"), bytes);
        }
    }
}

#[test]
fn an_array_of_other_numbers_is_read_as_such_or_refused() {
    let [beside, _] = read::<_, (u8, Vec<u64>)>(&(1_u8, vec![7_u32; 2000]));
    assert_eq!(beside.expect("they fit").1, vec![7; 2000]);
    for read in read::<_, (u8, Vec<u8>)>(&(1_u8, vec![700_u32; 2000])) {
        assert!(read.is_err());
    }
    for read in read::<_, (u8, String)>(&(1_u8, vec![0xff_u8; 5000])) {
        assert!(read.expect_err("it is no text").to_string().contains("not UTF-8"));
    }
    for read in read::<_, (u8, String)>(&(1_u8, vec![0.5; 5000])) {
        assert!(read.expect_err("it is no text").to_string().contains("is no text"));
    }
}

#[test]
fn lengths_that_lie_are_errors_and_take_no_memory() {
    let (bytes, array) = sent(&(vec![1_u64; 1000], vec![2_u64; 1000]));
    let array = Array::from(bytes_of(&array.expect("they are long")));
    for shorter in [0, 8, 8000, 15_992] {
        let cut = Some(Array::from(array.bytes()[..shorter].to_vec()));
        assert!(decode_with::<(Vec<u64>, Vec<u64>)>(&bytes, cut).is_err());
    }
    let longer = Some(Array::from(vec![0_u8; 16_001]));
    let left = decode_with::<(Vec<u64>, Vec<u64>)>(&bytes, longer);
    assert!(matches!(left, Err(WireError::LeftOver(1))));
    for length in [1 << 33, u64::MAX / 16, u64::MAX / 2] {
        // Beside, in 64-bit words; then as text.
        let claim = [&[253][..], &(length * 2 + 1).to_le_bytes(), &[6]].concat();
        let read = allocation_counter::measure(|| {
            assert!(decode_with::<Vec<u64>>(&claim, Some(array.clone())).is_err());
            assert!(decode_with::<String>(&claim, None).is_err());
        });
        assert!(read.bytes_max < 4000, "{length}: {}", read.bytes_max);
    }
}

#[test]
fn there_may_be_too_little_room() {
    let value = (vec![1_u8; 5000], vec![2_u8; 5000]);
    for (room, fits) in [(0, false), (5, false), (5100, false), (10_100, true)] {
        let (mut bytes, mut beside) = (Vec::new(), Beside::default());
        let encoded = encode_with(room, &value, &mut bytes, &mut beside);
        assert_eq!(encoded.expect("it can be encoded"), fits, "{room}");
    }
}

#[test]
fn depth_costs_no_more_than_in_the_other_encoding() {
    #[derive(Serialize, Deserialize)]
    struct Nested(u8, Option<Box<Nested>>);
    let mut nested = Nested(0, None);
    for _ in 0..1000 {
        nested = Nested(1, Some(Box::new(nested)));
    }
    assert_eq!(encode(&nested).expect("it is encoded"), wire::encode(&nested).expect("as well"));
}

#[test]
fn elements_that_are_aligned_to_more_are_only_bytes() {
    struct Lines([u8; 6400]);
    impl Serialize for Lines {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let (holder, shared) = (None, None);
            let elements = PlainElements { bytes: &self.0, alignment: 64, holder, shared };
            to.serialize_newtype_struct(PLAIN_NAME, &elements)
        }
    }
    let (bytes, array) = sent(&Lines([7; 6400]));
    assert_eq!(array.as_ref().map(Array::alignment), Some(16));
    let read: serde_bytes::ByteBuf = decode_with(&bytes, array).expect("it is whole");
    assert_eq!(&read[..], [7; 6400]);
}
