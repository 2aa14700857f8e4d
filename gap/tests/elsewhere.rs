//! A task whose GAP fails where it is runs again on another PE.

use std::sync::atomic::{AtomicU32, Ordering};
use ultramarine::Options;
use ultramarine::prelude::*;
use ultramarine_gap::{GapError, elsewhere};

static RUNS: AtomicU32 = AtomicU32::new(0);

/// Fails as if GAP were missing where it runs, so many times.
fn fails(times: u32) -> Result<u32, GapError> {
    let runs = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
    if runs <= times { Err(GapError::NotFound { program: "gap".to_owned() }) } else { Ok(runs) }
}

fn refuses(message: String) -> Result<u32, GapError> {
    RUNS.fetch_add(1, Ordering::Relaxed);
    Err(GapError::Said { message })
}

#[test]
fn other_pes_try_and_then_it_is_an_error() {
    let job = Options::default().pes(4).threads(1);
    let ended = job.run(async |cx| {
        assert_eq!(elsewhere(&cx, Distance::ONE, 4, fails, 2).await?, Ok(3));
        RUNS.store(0, Ordering::Relaxed);
        let missing = GapError::NotFound { program: "gap".to_owned() };
        assert_eq!(elsewhere(&cx, Distance::ONE, 3, fails, 9).await?, Err(missing));
        assert_eq!(RUNS.swap(0, Ordering::Relaxed), 3);
        let said = elsewhere(&cx, Distance::ONE, 3, refuses, "no".to_owned()).await?;
        assert_eq!(said, Err(GapError::Said { message: "no".to_owned() }));
        assert_eq!(RUNS.load(Ordering::Relaxed), 1);
        Ok(())
    });
    ended.expect("the job ends");
}
