//! `cholesky` as its user sees it: the factor is exact, wherever it is computed.

use ultramarine_testkit::{Ended, alone, run};

const CHOLESKY: &str = env!("CARGO_BIN_EXE_cholesky");

fn factor(flags: &str) -> Ended {
    run(&mut alone(CHOLESKY, &format!("{flags} --json")))
}

fn residual(ended: &Ended) -> f64 {
    ended.report()["result"].as_f64().expect("it is a number")
}

#[test]
fn the_factor_is_exact() {
    for matrix in ["--size 1 --tile 1", "--size 60 --tile 10", "--size 192 --tile 64 --seed 7"] {
        let expected = residual(&factor(&format!("{matrix} --pes 1")));
        assert!(expected < 1e-13, "{matrix}: {expected}");
        for flags in ["--pes 3 --threads 1", "--pes 4 --threads 1 --lane tcp", "--skeleton rayon"] {
            let found = residual(&factor(&format!("{matrix} {flags}")));
            assert!((found - expected).abs() < f64::EPSILON, "{matrix} {flags}: {found}");
        }
    }
}

#[test]
fn a_matrix_that_tiles_do_not_fill_is_refused() {
    factor("--size 100 --tile 64").fails_with("--size 100 is no multiple of --tile 64");
    factor("--tile 0").fails_with("0 is not in 1..=4096");
    factor("--size 0").fails_with("0 is not in 1..=100000");
}

#[cfg(feature = "mpi")]
mod mpi {
    use super::*;
    use crate::common::launched;

    #[test]
    fn the_factor_is_exact_though_processes_die() {
        for at in ["0.05", "0.05,0.2", "0.1,0.2,0.3"] {
            let flags = format!("--size 768 --tile 64 --threads 1 --json --kill-at {at}");
            let Some(mut command) = launched(CHOLESKY, 4, &flags) else { return };
            let found = residual(&run(&mut command));
            assert!(found < 1e-13, "{at}: {found}");
        }
    }
}
