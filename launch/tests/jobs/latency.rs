//! Latencies by distance, of jobs whose PEs are threads and of one in which a process dies.

use ultramarine::latency::{self, PAIRS_MAX, ROUND_TRIPS_MAX};
use ultramarine::{Context, Options, Place};
#[cfg(feature = "mpi")]
use ultramarine_testkit::program;
use ultramarine_testkit::{bounded, racks};

#[test]
fn every_distance_that_occurs_is_measured_and_no_other() {
    let flat = (1..=3).map(|pes| vec![Place::default(); pes]);
    for places in flat.chain([racks(&[2, 2], 1), racks(&[2, 2], 2)]) {
        let job = Options::default().places(places).threads(1);
        let ended = bounded(move || {
            job.run(async |cx: Context| {
                let table = latency::by_distance(&cx).await?;
                let distances: Vec<_> = table.iter().map(|row| row.distance).collect();
                assert_eq!(distances, cx.topology().radii()[1..]);
                for row in table {
                    assert!((1..=PAIRS_MAX).contains(&row.pairs), "{row:?}");
                    assert!(
                        (row.pairs..=row.pairs * ROUND_TRIPS_MAX).contains(&row.count()),
                        "{row:?}"
                    );
                    assert!(row.quantile(0.5) <= row.quantile(0.99), "{row:?}");
                }
                Ok(())
            })
        });
        ended.expect("the job is well");
    }
}

#[cfg(feature = "mpi")]
#[test]
fn a_dead_pe_is_an_error_and_no_hang() {
    let program = program!("measure_after_a_death");
    let Some(ended) = crate::common::launcher::launched(3, program, "mpi") else { return };
    assert!(ended.out.contains("all is well"), "{}\n{}", ended.out, ended.err);
}

/// The program, as a test that is run under a launcher only.
#[cfg(feature = "mpi")]
mod programs {
    use super::latency;
    use crate::common::job::run;
    use ultramarine::prelude::*;

    #[test]
    #[ignore = "runs under a launcher"]
    fn measure_after_a_death() {
        run(async |cx| {
            let victim = Pe::new(1);
            let killed = cx.spawn_at(victim, async |_, ()| -> () { std::process::abort() }, ());
            assert_eq!(killed.await, Err(TaskError::Lost { pe: victim }));
            let error = latency::by_distance(&cx).await.expect_err("it was to be asked");
            assert_eq!(error, TaskError::Lost { pe: victim });
            Ok(())
        });
    }
}
