//! `quadrature` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it those tests say so and pass).

use crate::common::{DIVISIONS, QUADRATURE};
use serde_json::Value;
use std::f64::consts::PI;

/// Each is divided some hundred times.
const INTEGRALS: [&str; 3] = [
    "--function peak --tolerance 1e-3",
    "--function poles --from=-1 --tolerance 1e-7",
    "--function dome --from 0.1 --to 1.1 --tolerance 1e-12",
];

/// The integral without parallelism, which is printed with all its digits.
fn sequential(integral: &str) -> Value {
    QUADRATURE.result(&format!("{integral} --skeleton sequential --pes 1 --threads 1"))
}

#[test]
fn every_division_on_every_lane_comes_to_the_same_bits() {
    for integral in INTEGRALS {
        let expected = sequential(integral);
        assert!(expected.is_f64(), "{integral}: {expected}");
        for (lane, skeleton) in
            ["memory", "tcp"].into_iter().flat_map(|lane| DIVISIONS.map(|by| (lane, by)))
        {
            let flags = format!("{integral} --pes 3 --threads 1 --supervised");
            let flags = format!("{flags} --lane {lane} --skeleton {skeleton}");
            assert_eq!(QUADRATURE.result(&flags), expected, "{flags}");
        }
    }
}

#[test]
fn integrals_are_those_of_the_antiderivatives() {
    let peak = (1e3 * (0.7e3_f64.atan() + 0.3e3_f64.atan())).powi(2);
    let poles = (2.0 * (0.7_f64.sqrt() + 0.3_f64.sqrt())).powi(2);
    for (flags, exact, error) in [
        ("--function peak --tolerance 1e-6", peak, 1e-5),
        ("--function poles --tolerance 1e-9", poles, 1e-6),
        ("--function dome --tolerance 1e-12", PI / 6.0, 1e-9),
    ] {
        let found = sequential(flags).as_f64().expect("a number");
        assert!((found - exact).abs() < error, "{flags}: {found} is not {exact}");
    }
}

#[test]
fn flags_that_cannot_be_are_refused() {
    QUADRATURE.refuses(&[
        ("--from 1 --to 1", "--from must be less than --to, not 1 and 1"),
        ("--from nan", "nan is not from"),
        ("--to inf", "inf is not from -1e6 to 1e6"),
        ("--from x", "invalid float literal"),
        ("--tolerance 0", "0 is not from 1e-15 to 1e0"),
        ("--tolerance -1", "-1 is not from"),
        ("--function sine", "'--function <FUNCTION>'"),
        ("--skeleton par-map", "'--skeleton <SKELETON>'"),
        (
            "--function poles --from 0.3",
            "from 0.3 to 1 the integral of poles is NaN: is the function",
        ),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_comes_to_the_same_bits() {
    let expected = sequential(INTEGRALS[0]);
    QUADRATURE.on_ranks(4, INTEGRALS[0], |report| assert_eq!(report["result"], expected));
}

#[cfg(feature = "mpi")]
#[test]
fn the_bits_are_the_same_though_two_die() {
    let integral = "--function peak --tolerance 1e-7";
    let expected = sequential(integral);
    for skeleton in ["par-divide-and-conquer", "push-divide-and-conquer"] {
        QUADRATURE.survives("0.05,0.1", &format!("{integral} --skeleton {skeleton}"), |report| {
            assert_eq!(report["result"], expected, "{skeleton}");
        });
    }
}
