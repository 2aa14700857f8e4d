//! Values go to a real GAP and come back.

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::sync::LazyLock;
use ultramarine_gap::{Permutation, Pool, Settings, Value};

static GAP: LazyLock<Pool> = LazyLock::new(|| Pool::new(Settings::default()));

/// What GAP makes of a value by returning it.
fn returned(value: &Value) -> Value {
    GAP.call("IdFunc", std::slice::from_ref(value)).expect("GAP returns its argument")
}

#[track_caller]
fn comes_back(value: impl Into<Value>) {
    let value = value.into();
    assert_eq!(returned(&value), value);
}

/// What GAP's own `String` says of a value.
fn string_of(value: impl Into<Value>) -> String {
    let string = GAP.call("String", &[value.into()]).expect("GAP can print it");
    string.try_into().expect("a string")
}

fn integers() -> impl Strategy<Value = BigInt> {
    prop_oneof![
        any::<i8>().prop_map(BigInt::from),
        any::<i64>().prop_map(BigInt::from),
        vec(any::<u8>(), 0..40).prop_map(|bytes| BigInt::from_signed_bytes_be(&bytes)),
    ]
}

fn permutations() -> impl Strategy<Value = Permutation> {
    let images = (0..20u32).prop_flat_map(|n| Just((1..=n).collect::<Vec<_>>()).prop_shuffle());
    images.prop_map(|images| Permutation::new(images).expect("each point once"))
}

fn values() -> impl Strategy<Value = Value> {
    let rationals = (integers(), 2..1_000_000u32).prop_map(|(numerator, denominator)| {
        // Whole numbers come back as integers.
        let whole = BigRational::from_integer(numerator);
        Value::from(whole + BigRational::new(1.into(), denominator.into()))
    });
    let leaves = prop_oneof![
        any::<bool>().prop_map(Value::from),
        Just(Value::Fail),
        integers().prop_map(Value::from),
        rationals.prop_filter("not whole", |value| {
            !matches!(value, Value::Rational(value) if value.is_integer())
        }),
        vec(any::<u8>(), 0..20).prop_map(Value::String),
        vec(prop_oneof![Just(0), Just(10), Just(27), Just(31), Just(34), Just(46)], 0..9)
            .prop_map(Value::String),
        permutations().prop_map(Value::from),
        vec(any::<i16>(), 0..20).prop_map(Value::from),
    ];
    leaves.prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            btree_map("[a-z][^\0]{0,8}", inner, 0..4).prop_map(Value::from),
        ]
    })
}

#[test]
fn any_value_comes_back_as_it_went() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(500)
    });
    let check = |value| {
        prop_assert_eq!(returned(&value), value);
        Ok(())
    };
    runner.run(&values(), check).expect("all come back");
}

#[test]
fn the_edges_come_back() {
    for power in [59_u32, 60, 61, 63, 64, 127, 4000] {
        let edge = BigInt::from(1) << power;
        for integer in [&edge - 1, edge.clone(), &edge + 1] {
            comes_back(-&integer);
            comes_back(integer);
        }
    }
    comes_back(Vec::<i64>::new());
    comes_back("");
    comes_back(vec![Vec::<Value>::new(), vec![Vec::<Value>::new().into()]]);
    comes_back("\"quotes\"\\ \n\r\0\x1b\x1fend.");
    comes_back(Value::String((0..=255).collect()));
    comes_back(Permutation::default());
    comes_back((0..100_000).map(|n| n * 7919 % 1_000_003).collect::<Vec<i64>>());
    comes_back("long line\n".repeat(100_000));
    let whole = BigRational::new(6.into(), 3.into());
    assert_eq!(returned(&whole.into()), Value::from(2));
}

#[test]
fn gap_sees_what_was_meant() {
    assert_eq!(string_of(vec![vec![1, 2], vec![3, 4]]), "[ [ 1, 2 ], [ 3, 4 ] ]");
    assert_eq!(string_of(BigRational::new((-4).into(), 6.into())), "-2/3");
    let cycle = Permutation::new(vec![2, 3, 1]).expect("each point once");
    assert_eq!(string_of(cycle), "(1,2,3)");
    assert_eq!(string_of(-(BigInt::from(1) << 64u32)), "-18446744073709551616");
    let order = "function(a) return Size(Group(a)); end";
    let cycle = Permutation::new(vec![2, 3, 4, 5, 1]).expect("each point once");
    let swap = Permutation::new(vec![2, 1]).expect("each point once");
    let order = GAP.call_source(order, &[vec![cycle, swap].into()]);
    assert_eq!(order, Ok(Value::from(120)));
}

#[test]
fn what_is_in_too_many_lists_is_an_error() {
    let nest = |depth| (0..depth).fold(Value::Fail, |value, _| vec![value].into());
    comes_back(nest(900));
    assert!(GAP.call("IdFunc", &[nest(1100)]).is_err());
    comes_back(1);
}
