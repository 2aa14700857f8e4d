//! Tasks that call GAP.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{LaneKind, Options};
use ultramarine_gap::{Function, GapError, Permutation, Pool, Settings, Value, elsewhere};

static GAP: LazyLock<Pool> = LazyLock::new(|| Pool::new(Settings::default().tries(1)));

fn returned(value: Value) -> Result<Value, GapError> {
    GAP.call("IdFunc", &[value])
}

#[test]
fn values_and_errors_travel_between_pes() {
    let swap = Permutation::new(vec![2, 1]).expect("each point once");
    let record = [("n".to_owned(), Value::from(-1_i128 << 90))].into();
    let values = vec![Value::Fail, true.into(), "text".into(), swap.into(), Value::Record(record)];
    let value = Value::from(values);
    let job = Options::default().pes(2).threads(1).lane(LaneKind::Tcp);
    let ended = job.run(async |cx| {
        let there = async |_: Context, value: Value| returned(value);
        assert_eq!(cx.spawn_at(Pe::new(1), there, value.clone()).await?, Ok(value));
        let error = cx.spawn_at(Pe::new(1), there, Value::Nothing).await?;
        let message = "Error, nothing cannot be an argument".to_owned();
        assert_eq!(error, Err(GapError::Said { message }));
        Ok(())
    });
    ended.expect("the job ends");
}

/// The one that computes for ever.
static BUSY: LazyLock<Pool> = LazyLock::new(|| Pool::new(Settings::default().tries(1)));
static IS_GIVEN_UP: AtomicBool = AtomicBool::new(false);

async fn compute_for_ever(cx: Context, (): ()) {
    let forever = Function::Source("function() while true do od; end");
    let result = BUSY.call_unless(|| cx.is_cancelled(), forever, &[]);
    IS_GIVEN_UP.store(result == Err(GapError::GivenUp), Ordering::Relaxed);
}

#[test]
fn a_task_that_is_cancelled_ends_its_gap() {
    BUSY.available().expect("GAP starts");
    let job = Options::default().pes(2).threads(1);
    let ended = job.run(async |cx| {
        let task = cx.spawn_at(Pe::new(1), compute_for_ever, ());
        cx.sleep(Duration::from_millis(100)).await;
        task.abort();
        while !IS_GIVEN_UP.load(Ordering::Relaxed) {
            cx.sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    });
    ended.expect("the job ends");
    assert!(format!("{BUSY:?}").contains("0 processes"), "{BUSY:?}");
}

static RUNS: AtomicU32 = AtomicU32::new(0);

/// Fails as if GAP were missing where it runs, this number of times.
fn fails(_: &Context, times: u32) -> Result<u32, GapError> {
    let runs = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
    if runs <= times { Err(GapError::NotFound { program: "gap".to_owned() }) } else { Ok(runs) }
}

fn refuses(_: &Context, message: String) -> Result<u32, GapError> {
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
