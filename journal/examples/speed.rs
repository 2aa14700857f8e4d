//! How fast a journal is written and read. `speed FOLDER [RECORDS [BYTES]]` writes a journal in
//! FOLDER with records of that many bytes, times each step, and removes it.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use ultramarine_journal::{Builds, Identity, Journal, OnFailure, WAITING_BYTES_MAX};

/// The time of every 64th append is taken by itself.
const SAMPLE_EVERY: u64 = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map(PathBuf::from).ok_or("say in which folder")?;
    let records = arguments.next().map_or(Ok(1_000_000), |text| text.parse::<u64>())?;
    let bytes = arguments.next().map_or(Ok(16), |text| text.parse::<usize>())?;
    let path = folder.join(format!("speed-{}.journal", std::process::id()));
    let name = |text: &str| text.to_owned();
    let (program, call, result) = (name("speed"), name("write"), name("bytes"));
    let identity = Identity { program, call, result, items: records, digest: 0 };

    let (journal, _) =
        Journal::open(&path, &identity, Builds::default(), OnFailure::Warn, |_, _| Ok(()))?;
    let payload = vec![7; bytes];
    let (start, mut waited, mut longest) = (Instant::now(), Duration::ZERO, Duration::ZERO);
    for position in 0..records {
        if position % SAMPLE_EVERY == 0 {
            let pause = Instant::now();
            // So that no record is dropped if the disk is slow.
            while journal.figures().waiting_bytes > WAITING_BYTES_MAX / 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let append = Instant::now();
            waited += append - pause;
            journal.append(position..position + 1, &payload);
            longest = longest.max(append.elapsed());
        } else {
            journal.append(position..position + 1, &payload);
        }
    }
    let appended = start.elapsed().saturating_sub(waited);
    let figures = journal.finish(Duration::from_mins(10))?;
    let durable = start.elapsed();
    let size = figures.durable_bytes;
    println!("{records} records of {bytes} bytes, a file of {size} bytes");
    let each = appended.as_nanos() / u128::from(records.max(1));
    println!("append: {each} ns each; of every {SAMPLE_EVERY}th, the longest {longest:?}");
    let rate = records as f64 / durable.as_secs_f64();
    println!(
        "append to durable: {durable:?}, {rate:.0} records/s; dropped: {}",
        figures.records_dropped
    );

    let start = Instant::now();
    let (journal, report) =
        Journal::open(&path, &identity, Builds::default(), OnFailure::Warn, |_, _| Ok(()))?;
    let rate = report.records as f64 / start.elapsed().as_secs_f64();
    println!("open and read: {:?}, {rate:.0} records/s", start.elapsed());
    drop(journal);
    std::fs::remove_file(path)?;
    Ok(())
}
