//! Values that are kept while their arrays are sent.

use super::*;

/// Encodes a value as one that is sent. Returns its encoding and what is beside it.
fn kept<T: Serialize + Send + 'static>(value: T) -> (Vec<u8>, Option<Array>) {
    let (mut bytes, mut beside) = (Vec::new(), Beside::default());
    let ((), kept) = encode_and_keep(value, |value, root| {
        beside = Beside::of(Some(root));
        let encoded = encode_with(usize::MAX, value, &mut bytes, &mut beside);
        (assert!(encoded.expect("it is encoded")), beside.take_blocks())
    });
    let array = match kept {
        Kept::Array(array) => Some(array),
        Kept::Value(_) => beside.into_array(),
        Kept::Changed(_) => panic!("nothing changes it"),
    };
    (bytes, array)
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Large([[[u64; 32]; 32]; 2], Vec<f64>);

#[test]
fn the_only_array_of_a_value_stays_where_it_is() {
    let array: Vec<f64> = (0..10_000).map(f64::from).collect();
    let bytes = bytemuck::cast_slice(&array).to_vec();
    macro_rules! check {
        ($stays:literal: $value:expr) => {
            let array = array.clone();
            let place = array.as_ptr().cast::<u8>();
            let value = $value(array);
            let copy = value.clone();
            let (encoded, beside) = kept(value);
            let beside = beside.expect("it is long");
            let stays = beside.bytes().as_ptr() == place;
            assert_eq!((stays, beside.bytes()), ($stays, &bytes[..]), "{copy:?}");
            assert_eq!(decode_with(&encoded, Some(beside)).ok(), Some(copy));
        };
    }
    check!(true: |array| (7_u8, array));
    check!(true: |array| Some(Some(array)));
    check!(true: |array| [("a".to_owned(), array)]);
    check!(true: |array| Tile {
        place: (1, 2),
        values: array,
        corners: Vec::new(),
        name: String::new(),
        kind: Kind::None,
    });
    check!(false: |array| vec![array]);
    check!(false: |array| Box::new((array, 1)));
    check!(false: |array: Vec<f64>| (1_u8, array.into_boxed_slice()));
    // In a value that is too large to be noted twice.
    check!(false: |array| Large([[[3; 32]; 32]; 2], array));
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Several {
    first: Vec<f64>,
    short: Vec<u64>,
    text: Option<String>,
    inner: Vec<Vec<u32>>,
    last: Vec<u16>,
}

#[test]
fn each_long_array_of_a_value_stays_or_has_a_block_of_its_own() {
    let value = Several {
        first: vec![0.5; 10_000],
        short: vec![1; 1000],
        text: Some("x".repeat(40_000)),
        inner: vec![vec![2; 10_000], vec![3; 20_000], vec![4; 2000], vec![5; 3000]],
        last: vec![6; 20_000],
    };
    let copy = value.clone();
    let stay = [value.first.as_ptr().cast(), value.last.as_ptr().cast()];
    let (encoded, array) = kept(value);
    let array = array.expect("they are long");
    let lengths: Vec<_> = array.blocks().iter().map(|block| block.bytes().len()).collect();
    assert_eq!(lengths, [80_000, 8000, 40_000, 40_000, 80_000, 20_000, 40_000]);
    let places = [0, 6].map(|number| array.blocks()[number].bytes().as_ptr());
    assert_eq!(places, stay, "they stay");
    let far = arrived(&array);
    let of_block = |number: usize| far.blocks()[number].bytes().as_ptr();
    let places = [0, 2, 3, 4, 6].map(of_block);
    assert_eq!(decode_with::<Several>(&encoded, Some(array)).ok(), Some(copy.clone()), "as it is");
    assert_eq!(
        decode_with::<Several>(&encoded, Some(far.clone())).ok(),
        Some(copy.clone()),
        "shared"
    );
    let read = decode_with::<Several>(&encoded, Some(far)).expect("it is whole");
    let text = read.text.as_ref().expect("it has some").as_ptr();
    let [second, third] = [0, 1].map(|number: usize| read.inner[number].as_ptr().cast());
    let made = [read.first.as_ptr().cast(), text, second, third, read.last.as_ptr().cast()];
    assert_eq!((made, &read), (places, &copy), "without a copy");
    travels(&copy);
}

#[test]
fn many_arrays_share_few_blocks() {
    for (arrays, bytes) in [(8000, 4096), (200, 40_000), (3, 1 << 20)] {
        let value: Vec<Vec<u8>> = (0..arrays).map(|number| vec![number as u8; bytes]).collect();
        let (encoded, array) = kept(value.clone());
        let array = array.expect("they are long");
        assert_eq!(array.size_bytes(), arrays * bytes);
        assert!(array.blocks().len() <= BLOCKS_MAX.min(arrays), "{arrays}");
        let read = decode_with::<Vec<Vec<u8>>>(&encoded, Some(arrived(&array)));
        assert!(read.ok() == Some(value), "{arrays}");
        let cut = Array::of_blocks(array.blocks()[1..].to_vec());
        assert!(decode_with::<Vec<Vec<u8>>>(&encoded, Some(cut)).is_err());
        let more = [array.blocks(), &[vec![1_u8, 2, 3].into()]].concat();
        let left = decode_with::<Vec<Vec<u8>>>(&encoded, Some(Array::of_blocks(more)));
        assert!(matches!(left, Err(WireError::LeftOver(3))));
    }
}

#[test]
fn plain_elements_stay_where_they_are() {
    let corners = vec![[0.5_f32; 3]; 10_000];
    let place = corners.as_ptr().cast::<u8>();
    let tile =
        Tile { place: (1, 2), values: Vec::new(), corners, name: String::new(), kind: Kind::None };
    let copy = tile.clone();
    let (encoded, beside) = kept(tile);
    let beside = beside.expect("it is long");
    assert_eq!(beside.bytes().as_ptr(), place);
    assert_eq!(decode_with(&encoded, Some(beside)).ok(), Some(copy));
}

#[test]
fn a_value_that_is_kept_is_dropped_by_those_who_ask() {
    #[derive(Serialize)]
    struct Noted(
        Vec<u8>,
        #[serde(skip)]
        #[expect(dead_code, reason = "it counts")]
        Arc<()>,
    );
    let alive = Arc::new(());
    let (_, array) = kept((Noted(vec![7; 100_000], alive.clone()), vec![8; 100_000]));
    assert!(Arc::strong_count(&alive) == 2);
    let last = array.expect("they are long").blocks()[1].clone();
    drop(take_left());
    assert_eq!(Arc::strong_count(&alive), 2, "another block of it is still there");
    drop(last);
    assert_eq!(Arc::strong_count(&alive), 2, "user code may not run here");
    // Other tests may take it, too.
    while Arc::strong_count(&alive) > 1 {
        drop(take_left());
    }
}

/// Code that changes the value while it is encoded would make the noted array wrong.
#[test]
fn a_value_that_its_own_serialize_changes_is_noticed() {
    struct Emptied(RefCell<Vec<u64>>);
    impl Serialize for Emptied {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let done = self.0.serialize(to)?;
            self.0.take();
            Ok(done)
        }
    }
    let noted = |value: &_, root| {
        let (mut bytes, mut beside) = (Vec::new(), Beside::of(Some(root)));
        let encoded = encode_with(usize::MAX, value, &mut bytes, &mut beside);
        (encoded.is_ok(), beside.take_blocks())
    };
    let (encoded, kept) = encode_and_keep(Emptied(RefCell::new(vec![7; 100_000])), noted);
    assert!(encoded && matches!(kept, Kept::Changed(_)));
    // By the time that another array comes, the first is gone.
    let two = (Emptied(RefCell::new(vec![7; 100_000])), vec![8_u64; 100_000]);
    let (encoded, kept) = encode_and_keep(two, |value: &_, root| {
        let (mut bytes, mut beside) = (Vec::new(), Beside::of(Some(root)));
        (encode_with(usize::MAX, value, &mut bytes, &mut beside), beside.take_blocks())
    });
    assert!(encoded.is_err_and(|error| error.to_string().contains(CHANGED)));
    assert!(matches!(kept, Kept::Changed(_)));
}
