//! Latencies by distance, of jobs whose PEs are threads and of one in which a process dies.

use ultramarine::latency::{self, PAIRS_MAX, ROUND_TRIPS_MAX};
use ultramarine::{Context, Options, Place};
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
                    let counts = row.pairs..=row.pairs * ROUND_TRIPS_MAX;
                    assert!(counts.contains(&row.count()), "{row:?}");
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
    use crate::common::{job, launcher::launched};
    use ultramarine::prelude::*;
    let main = async |cx: Context| {
        let victim = Pe::new(1);
        job::kill(&cx, victim).await;
        let error = latency::by_distance(&cx).await.expect_err("it was to be asked");
        assert_eq!(error, TaskError::Lost { pe: victim });
        Ok(())
    };
    let Some(ended) = launched(3, "mpi", || job::run(main)) else { return };
    ended.is_well();
}
