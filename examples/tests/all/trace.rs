//! `--trace FOLDER` as its user sees it: every run of a task is in the trace, also where a process
//! is killed.

use crate::common::SUM_EULER;
use std::fs;
use std::path::Path;
use ultramarine_testkit::{alone, folder, run};
use ultramarine_trace::{Noted, Packets, Reader, Slice, is_part};

/// What is in each part, by name.
pub(crate) fn recorded(folder: &Path) -> Vec<Vec<Noted>> {
    let files = fs::read_dir(folder).expect("it is there").map(|file| file.expect("a file").path());
    let mut parts: Vec<_> = files.filter(|file| is_part(file)).collect();
    parts.sort();
    let noted = |bytes: Vec<u8>| {
        let mut reader = Reader::default();
        Packets::of(&bytes).filter_map(|packet| reader.next(packet)).collect()
    };
    parts.into_iter().map(|part| noted(fs::read(part).expect("it is there"))).collect()
}

fn slices(part: &[Noted]) -> impl Iterator<Item = &Slice> {
    part.iter().filter_map(|noted| match noted {
        Noted::Slice(slice) => Some(slice),
        _ => None,
    })
}

fn sums(part: &[Noted]) -> u64 {
    let functions = slices(part).flat_map(|slice| &slice.functions);
    functions.filter(|of| of.name.ends_with("::sum_totient")).map(|of| of.runs).sum()
}

/// The number of spans whose names end so.
pub(crate) fn spans(part: &[Noted], name: &str) -> u64 {
    let alone = slices(part).filter(|slice| slice.is_span && slice.name.ends_with(name));
    let counted = slices(part).flat_map(|slice| &slice.spans);
    let counted = counted.filter(|of| of.name.ends_with(name)).map(|of| of.runs);
    alone.count() as u64 + counted.sum::<u64>()
}

/// The last value of a counter of the part's first PE.
fn counted(part: &[Noted], counter: &str) -> u64 {
    let value = part.iter().rev().find_map(|noted| match noted {
        Noted::Sample(sample) if sample.counter == counter => Some(sample.value),
        _ => None,
    });
    value.unwrap_or_else(|| panic!("`{counter}` is not in the trace"))
}

#[test]
fn each_task_is_in_the_trace() {
    let folder = folder!("whole");
    let other = folder.join("a video.part");
    fs::write(&other, "not ours").expect("there is room");
    for (upto, tasks) in [(900, 300), (500, 50)] {
        let flags = format!("--upto {upto} --tasks {tasks} --pes 3 --threads 1 --json");
        run(alone(SUM_EULER, &flags).arg("--trace").arg(&folder)).report();
        let parts = recorded(&folder);
        assert_eq!(parts.len(), 1, "one process");
        assert_eq!(sums(&parts[0]), tasks, "and nothing of the job before");
        let of_root = |noted: &Noted| !matches!(noted, Noted::Sample(of) if of.pe > 0);
        let of_root: Vec<_> = parts[0].iter().filter(|noted| of_root(noted)).cloned().collect();
        assert_eq!(counted(&of_root, "tasks ended"), tasks);
    }
    assert!(other.exists());
}

#[test]
fn a_folder_that_cannot_be_written_costs_the_trace_alone() {
    let flags = "--upto 500 --tasks 50 --threads 1 --json --trace /proc/no-such-folder";
    let ended = run(&mut alone(SUM_EULER, flags));
    assert_eq!(ended.report()["result"], 76_116);
    assert!(ended.err.contains("records no trace in `/proc/no-such-folder`"), "{}", ended.err);
}

#[cfg(feature = "mpi")]
mod launched {
    use super::*;
    use crate::common::NAPS;
    use ultramarine_testkit::{beside_the_tests, launcher};
    use ultramarine_trace::packet::DebugAnnotation;
    use ultramarine_trace::{DIED, TRUE_NS};

    #[test]
    fn a_process_that_is_killed_leaves_what_it_has_done() {
        let Some(mut command) = launcher() else { return };
        let folder = folder!("killed");
        let flags = "--upto 12000 --tasks 400 --threads 1 --kill-at 1 --supervised --json";
        command.args(["-n", "3", SUM_EULER.0]).args(flags.split_whitespace());
        let ended = run(command.arg("--trace").arg(&folder));
        assert_eq!(ended.report()["result"], 43_772_258);
        assert_eq!(ended.report()["dead"], 1);
        let parts = recorded(&folder);
        let done: Vec<u64> = parts.iter().map(|part| sums(part)).collect();
        assert!(done.len() == 3 && done.iter().all(|sums| *sums > 0), "{done:?}");
        // What it did in its last tenth of a second is not there, and was done again elsewhere.
        let all = done.iter().sum::<u64>();
        let again = ended.report()["replicas"].as_u64().expect("a number");
        assert!(all + 100 >= 400 && all <= 400 + again, "{done:?} and {again}");
        assert_eq!(counted(&parts[0], "tasks ended"), 400, "each once");
        assert_eq!(counted(&parts[0], "tasks run again"), again);
        // The other survivor may hear of it when the job is about to end.
        let died = |noted: &Noted| matches!(noted, Noted::Event(of) if of.text.contains(DIED));
        assert!(parts[0].iter().any(died), "the root has heard of it");
    }

    /// Each clock is wrong, and each slice says by how much.
    #[test]
    fn clocks_that_are_wrong_are_aligned() {
        let Some(mut command) = launcher() else { return };
        let folder = folder!("clocks");
        let flags = "--tasks 60 --shortest 100000 --longest 100000 --threads 1 --json";
        command.args(["-n", "4", NAPS.0]).args(flags.split_whitespace());
        command.arg("--trace").arg(&folder).env("ULTRAMARINE_CLOCK_SKEW", "3600,100");
        run(&mut command).report();
        let whole = folder.join("whole.pftrace");
        let mut merge = alone(beside_the_tests("ultramarine"), "trace merge");
        let merged = run(merge.arg(&folder).arg("-o").arg(&whole));
        assert!(merged.succeeded().contains("; clocks aligned within "), "{}", merged.out);
        let (mut slices, mut worst) = (0, 0);
        for packet in Packets::of(&fs::read(&whole).expect("it was written")) {
            let annotations = packet.track_event.iter().flat_map(|of| &of.debug_annotations);
            let right =
                annotations.filter(|of| of.name() == TRUE_NS).map(DebugAnnotation::uint_value);
            for right in right {
                slices += 1;
                worst = worst.max(packet.timestamp.expect("a slice has one").abs_diff(right));
            }
        }
        assert!(slices >= 60, "{slices}");
        eprintln!("{slices} slices begin within {worst} ns of the right time");
        // The goal is 50 µs. Here others use the cores.
        assert!(worst < 20_000_000, "a slice begins {worst} ns too early or too late");
    }
}
