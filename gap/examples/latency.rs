//! How long a call takes, there and back:
//! `cargo run --release -p ultramarine-gap --example latency`.

use std::time::{Duration, Instant};
use ultramarine_gap::{GapError, Pool, Settings, Value};

fn main() -> ultramarine::Result<()> {
    let pool = Pool::new(Settings::default());
    let start = Instant::now();
    let version = pool.available()?;
    println!("GAP {version} starts in {:.2} s", start.elapsed().as_secs_f64());

    let numbers =
        |count: u32| Value::from((0..count).map(|n| n * 7919 % 1_000_003).collect::<Vec<_>>());
    let text = |bytes: usize| Value::from("a text\n".repeat(bytes / 7));
    print("an empty function", 5000, || pool.call("ReturnTrue", &[]))?;
    print("one by its source", 5000, || pool.call_source("x -> x", &[1.into()]))?;
    let (few, many, long) = (numbers(100), numbers(100_000), text(1_000_000));
    print("100 integers", 5000, || pool.call("IdFunc", std::slice::from_ref(&few)))?;
    print("100,000 integers", 50, || pool.call("IdFunc", std::slice::from_ref(&many)))?;
    print("the same, one way", 50, || pool.call("Length", std::slice::from_ref(&many)))?;
    print("1 MB of text", 50, || pool.call("IdFunc", std::slice::from_ref(&long)))?;
    Ok(())
}

/// The median and the 95th percentile of this number of calls.
fn print(
    what: &str,
    calls: usize,
    call: impl Fn() -> Result<Value, GapError>,
) -> Result<(), GapError> {
    let timed = || {
        let start = Instant::now();
        call().map(|_| start.elapsed())
    };
    let mut times = (0..calls).map(|_| timed()).collect::<Result<Vec<Duration>, _>>()?;
    times.sort();
    let micros = |part: usize| times[calls * part / 100].as_secs_f64() * 1e6;
    println!("{what:20} {:10.1} µs, 95 % below {:10.1} µs", micros(50), micros(95));
    Ok(())
}
