//! `karatsuba` as its user sees it: its products are those of a library.

use crate::common::KARATSUBA;
use num_bigint::BigUint;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use ultramarine_testkit::{Ended, alone, eventually, folder, run};

/// A number of this many digits, all different from the last.
fn number(digits: u64) -> String {
    (0..digits).map(|n| char::from(b'1' + (n * n % 7) as u8)).collect()
}

fn multiply(a: &str, b: &str, flags: &str) -> Ended {
    run(alone(KARATSUBA, flags).args([a, b]))
}

fn expected(a: &str, b: &str) -> String {
    let number = |text: &str| text.parse::<BigUint>().expect("it is a number");
    (number(a) * number(b)).to_string()
}

#[test]
fn products_are_right() {
    for (a, b) in [("0", "0"), ("0", "12345678901234567890"), ("7", "6"), ("001", "2")] {
        let report = multiply(a, b, "--threshold 8 --json").report();
        assert_eq!(report["result"], expected(a, b));
    }
    let (long, longer) = (number(1000), number(3000));
    for lane in ["memory", "tcp"] {
        for (pes, threshold) in [(1, 64), (3, 64), (4, 1000), (2, 100_000)] {
            let flags =
                format!("--pes {pes} --threads 1 --threshold {threshold} --lane {lane} --json");
            let report = multiply(&long, &longer, &flags).report();
            assert_eq!(report["result"], expected(&long, &longer), "{flags}");
            assert_eq!(report["skeleton"], "dag");
        }
    }
}

/// The process is killed, and not asked to end.
#[test]
fn a_product_that_is_killed_goes_on_where_it_was() {
    let file = folder!("killed").join("product");
    let factor = number(30_000);
    let multiply = || {
        let mut command = alone(KARATSUBA, "--threshold 64 --pes 2 --threads 1 --json --journal");
        command.arg(&file).args([&factor, &factor]);
        command
    };
    let mut job = multiply().stdout(Stdio::null()).spawn().expect("it can be started");
    let length = || file.metadata().map_or(0, |metadata| metadata.len());
    eventually("there are some products", || length() > 20_000);
    job.kill().expect("it is a child");
    let status = job.wait().expect("it is a child");
    assert_eq!(status.code(), None, "it was killed before its end");
    let found = length();
    let report = run(multiply().arg("--journal-required")).report();
    assert_eq!(report["result"], expected(&factor, &factor));
    assert!(length() > found, "it goes on in the same file");
    let mut other = alone(KARATSUBA, "--threshold 128 --journal");
    let ended = run(other.arg(&file).args([&factor, &factor]));
    ended.fails_with("belongs to something else");
}

/// A command line does not take that many digits.
#[test]
fn long_factors_come_from_files() {
    let folder = folder!("files");
    let factor = number(200_000);
    let path = folder.join("factor");
    fs::write(&path, format!("{factor}\n")).expect("the folder can be written");
    let at = |path: &Path| format!("@{}", path.display());
    assert_eq!(multiply("3", &at(&path), "--json").report()["result"], expected("3", &factor));
    fs::write(&path, "12a").expect("the folder can be written");
    multiply("3", &at(&path), "").fails_with("factor: decimal digits are expected");
    multiply("3", &at(&folder), "").fails_with("it is not a regular file");
    multiply("3", "@", "").fails_with("cannot read the number");
}

#[test]
fn what_is_no_number_is_refused() {
    for bad in ["", "12a", "+5", "1.5", "1_000", "0x10"] {
        multiply("12", bad, "").fails_with("decimal digits are expected");
    }
    multiply("1", "2", "--threshold 7").fails_with("7 is not in 8..");
}

#[cfg(feature = "mpi")]
mod mpi {
    use super::*;

    #[test]
    fn the_product_comes_though_processes_die() {
        let (a, b) = (number(40_000), number(40_000));
        for at in ["0.05", "0.1,0.2", "0.05,0.05,0.3"] {
            let flags = format!("--threshold 512 --json --kill-at {at}");
            let Some(mut command) = KARATSUBA.launched(4, &flags) else { return };
            let report = run(command.args([&a, &b])).report();
            assert_eq!(report["result"], expected(&a, &b), "{at}");
        }
    }
}
