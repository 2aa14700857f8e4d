//! Values and messages that become bytes, and come back.

use super::codec::SHAPE_HINT;
use super::*;
use crate::array::Array;
use crate::protocol::message::{Bytes, Fish, Message, Need, Parcel, TaskId, Version};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use ultramarine_topology::{Distance, Pe};

fn messages() -> impl Strategy<Value = Message> {
    let fish = (any::<u32>(), any::<u64>(), any::<u8>(), any::<bool>()).prop_map(
        |(thief, serial, hops_left, starving)| {
            Message::Fish(Fish {
                thief: Pe::new(thief),
                serial,
                hops_left,
                need: if starving { Need::Idle } else { Need::Ahead },
                queued: serial,
                patience: Duration::from_nanos(serial),
            })
        },
    );
    let parcel = (any::<u32>(), any::<u64>(), any::<u8>(), any::<Vec<u8>>()).prop_map(
        |(home, future, radius, body)| Parcel {
            supervised: home % 2 == 0,
            version: Version { replica: home, age: future as u32 },
            task: TaskId { home: Pe::new(home), future },
            radius: Distance::from_exponent(radius),
            body: Bytes::from(body),
        },
    );
    prop_oneof![
        fish,
        parcel.clone().prop_map(Message::Place),
        (any::<u64>(), prop::collection::vec(parcel, 0..4))
            .prop_map(|(serial, tasks)| Message::Schedule { serial, tasks }),
        (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(future, replica, age)| {
            let (version, to) = (Version { replica, age }, Pe::new(age));
            Message::Notify { future, version, to }
        }),
        (any::<u64>(), any::<u32>()).prop_map(|(future, age)| {
            Message::Ack { future, version: Version { replica: 0, age } }
        }),
        (any::<u64>(), any::<Vec<u8>>())
            .prop_map(|(future, b)| Message::Result { future, outcome: Ok(Bytes::from(b)) }),
    ]
}

proptest! {
    #[test]
    fn what_was_encoded_decodes(message in messages()) {
        let bytes = encode(&message).unwrap();
        prop_assert_eq!(decode::<Message>(&bytes).unwrap(), message);
    }

    #[test]
    fn garbage_is_an_error_or_a_message_but_never_a_panic(bytes: Vec<u8>) {
        let _ = decode::<Message>(&bytes);
    }

    #[test]
    fn a_truncated_message_is_an_error(message in messages()) {
        let bytes = encode(&message).unwrap();
        prop_assert!(decode::<Message>(&bytes[..bytes.len() - 1]).is_err());
    }
}

/// A length in bytes or elements, and nothing behind it.
fn length(claimed: u64) -> Vec<u8> {
    [&[253][..], &claimed.to_le_bytes()].concat()
}

/// Decodes bytes in vain. Returns the most memory that this takes at a time, in bytes.
fn memory_of_failure<T: DeserializeOwned>(bytes: &[u8]) -> u64 {
    allocation_counter::measure(|| drop(decode::<T>(bytes).err().expect("it is too short")))
        .bytes_max
}

#[test]
fn a_length_without_its_bytes_allocates_next_to_nothing() {
    for claimed in [1 << 16, 1 << 33, 1 << 40, u64::MAX] {
        let bytes = length(claimed);
        for memory in [
            memory_of_failure::<String>(&bytes),
            memory_of_failure::<Box<str>>(&bytes),
            memory_of_failure::<serde_bytes::ByteBuf>(&bytes),
            memory_of_failure::<std::ffi::CString>(&bytes),
            memory_of_failure::<std::path::PathBuf>(&bytes),
            memory_of_failure::<Bytes>(&bytes),
            memory_of_failure::<Array>(&[&[1, 8], &bytes[..]].concat()),
            memory_of_failure::<Message>(&[&[6, 0, 0], &bytes[..]].concat()),
        ] {
            assert!(memory < 1000, "{claimed}: {memory}");
        }
        // Serde itself believes up to a mebibyte.
        for memory in [
            memory_of_failure::<Vec<u8>>(&bytes),
            memory_of_failure::<Vec<u128>>(&bytes),
            memory_of_failure::<Vec<Vec<String>>>(&bytes),
            memory_of_failure::<std::collections::VecDeque<u64>>(&bytes),
            memory_of_failure::<std::collections::HashMap<u64, String>>(&bytes),
            memory_of_failure::<std::collections::BTreeMap<String, u64>>(&bytes),
        ] {
            assert!(memory < 3 << 20, "{claimed}: {memory}");
        }
    }
    let text = decode::<String>(&length(1 << 33)).expect_err("it is too short").to_string();
    assert_eq!(text, "decoding failed: a length in it is more than its bytes can have");
}

/// Values that are as small as they can be on the wire, for what they are in memory.
#[test]
fn what_has_few_bytes_on_the_wire_is_within_the_limit() {
    #[derive(Serialize, serde::Deserialize, Clone, Copy, Debug, PartialEq)]
    enum Small {
        A(u128),
        B { duration: Duration, pe: Option<usize>, none: () },
    }
    let small = [Small::A(0), Small::B { duration: Duration::ZERO, pe: Some(0), none: () }];
    let value = (small.repeat(1000), vec![(); 1 << 20], vec![0_u64; 1000], vec![0_i128; 1000]);
    let value = (value, vec!['a'; 1000], vec![false; 1000], vec![0_f64; 1000]);
    assert_eq!(decode::<_>(&encode(&value).unwrap()).ok(), Some(value));
    assert_eq!(decode::<u128>(&[0]).ok(), Some(0));
    assert_eq!(decode::<()>(&[]).ok(), Some(()));
}

#[test]
fn bytes_are_decoded_one_value_after_the_other() {
    let bytes = [encode(&7_u64).unwrap(), encode(&"seven").unwrap(), vec![0; 9]].concat();
    let mut rest = &bytes[..];
    assert_eq!(decode_first::<u64>(&mut rest).ok(), Some(7));
    assert_eq!(decode_first::<String>(&mut rest).ok().as_deref(), Some("seven"));
    assert_eq!(rest, [0; 9]);
}

#[test]
fn errors_are_told_in_words() {
    let text = |error: WireError| error.to_string();
    let early = decode::<u64>(&[]).unwrap_err();
    assert_eq!(
        text(early),
        "decoding failed: the bytes end too early: at least 1 more are expected"
    );
    let boolean = decode::<bool>(&[7]).unwrap_err();
    assert_eq!(text(boolean), "decoding failed: 7 is not a boolean");
    let odd = decode::<std::num::NonZeroU8>(&[0]).unwrap_err();
    assert!(!text(odd).contains("OtherString"), "the program's own words");
}

#[test]
fn left_over_bytes_are_an_error() {
    assert!(matches!(decode::<u8>(&[1, 2]), Err(WireError::LeftOver(1))));
}

#[test]
fn the_hint_about_types_stands_only_where_it_fits() {
    struct Refusing;
    impl Serialize for Refusing {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("not today"))
        }
    }
    let refused = encode(&Refusing).expect_err("it refuses").of_a_value();
    assert_eq!(refused, "encoding failed: not today");
    for bytes in [&[1, 2, 3][..], &[]] {
        let error = decode::<u64>(bytes).expect_err("it is no number");
        assert!(error.of_a_value().ends_with(SHAPE_HINT), "{error}");
    }
}
