//! `stencil` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it those tests say so and pass).

use crate::common::STENCIL;
use serde_json::Value;
#[cfg(feature = "mpi")]
use ultramarine_testkit::run;

/// Small plates: with less rows than PEs, with bands of one row, and with checkpoints at
/// several distances.
const PLATES: [&str; 4] = [
    "--rows 2 --columns 3 --steps 7",
    "--rows 3 --columns 40 --steps 50 --checkpoint-every 1",
    "--rows 50 --columns 60 --steps 100 --checkpoint-every 33 --seed 2",
    "--rows 61 --columns 512 --steps 200",
];

/// What comes out without parallelism.
fn sequential(plate: &str) -> Value {
    STENCIL.result(&format!("{plate} --skeleton sequential --pes 1 --threads 1"))
}

#[test]
fn bands_on_every_lane_come_to_the_same_bits() {
    for plate in PLATES {
        let expected = sequential(plate);
        for lane in ["memory", "tcp"] {
            for (pes, ranks) in (1..=4).flat_map(|pes| [(pes, ""), (pes, " --ranks 5")]) {
                let flags = format!("{plate}{ranks} --pes {pes} --threads 1 --lane {lane}");
                assert_eq!(STENCIL.result(&flags), expected, "{flags}");
            }
        }
    }
    let (one, other) = (sequential(PLATES[0]), sequential(&format!("{} --seed 2", PLATES[0])));
    assert_ne!(one, other);
}

#[test]
fn a_plate_is_what_its_neighbours_make_of_it() {
    // With a row of three points only one is not at an edge: all steps come to the same.
    let plate = "--rows 1 --columns 3";
    let after = |steps: u32| sequential(&format!("{plate} --steps {steps}"));
    assert_eq!(after(1), after(1000));
    // With two rows the points go on towards each other, until no bit changes any more.
    let after = |steps: u32| sequential(&format!("--rows 2 --columns 3 --steps {steps}"));
    assert_ne!(after(1), after(2));
    assert_eq!(after(100), after(101));
}

#[test]
fn flags_that_cannot_be_are_refused() {
    STENCIL.refuses(&[
        ("--rows 0", "'--rows <N>': 0 is not in 1..=20000"),
        ("--columns 2", "'--columns <N>': 2 is not in 3..=20000"),
        ("--columns 512.5", "'--columns <N>'"),
        ("--steps -1", "'--steps <N>'"),
        ("--checkpoint-every 0", "'--checkpoint-every <K>': 0 is not in 1..=1000000000"),
        ("--skeleton map", "'--skeleton <SKELETON>'"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn ranks_on_either_lane_come_to_the_same_as_by_mpi_alone() {
    let plate = PLATES[3];
    let expected = sequential(plate);
    STENCIL.on_ranks(4, plate, |report| assert_eq!(report["result"], expected, "{report}"));
    for ranks in 1..=4 {
        let twin = crate::common::launched(env!("CARGO_BIN_EXE_stencil_mpi"), ranks, plate);
        let Some(mut twin) = twin else { return };
        assert_eq!(run(&mut twin).report()["result"], expected, "{ranks}");
    }
}

#[cfg(feature = "mpi")]
#[test]
fn those_that_are_left_go_back_to_where_they_agreed() {
    goes_back("mpi", &["0.1", "0.1,0.2"]);
}

#[cfg(feature = "mpi")]
#[test]
fn the_last_that_is_left_goes_back_to_where_all_agreed() {
    goes_back("tcp", &["0.05,0.06,0.3"]);
}

/// Kills processes at these moments, in seconds, in each job.
#[cfg(feature = "mpi")]
fn goes_back(lane: &str, kills: &[&str]) {
    // It takes long enough for all to die in it.
    let plate = "--rows 512 --columns 512 --steps 2000 --checkpoint-every 100";
    let expected = sequential(plate);
    for moments in kills {
        STENCIL.survives(moments, &format!("{plate} --lane {lane}"), |report| {
            assert_eq!(report["result"], expected, "{lane} {moments}");
        });
    }
}
