//! `ultramarine report`: what the page says of jobs of each kind.

use crate::harness::{run, ultramarine};
use crate::trace::part;
use std::fs;
use std::path::Path;
use ultramarine_trace::packet::{
    CounterDescriptor, EventName, InternedData, Kind, ProcessDescriptor, ThreadDescriptor,
    TracePacket, TrackDescriptor, TrackEvent,
};
use ultramarine_trace::{MOVED_BYTES, RUN, append};

/// What the worker of a PE ran, from when until when, in microseconds.
pub(crate) type Runs<'a> = &'a [(&'a str, u64, u64)];

/// What a PE has counted.
type Counters<'a> = &'a [(&'a str, u64)];

/// The part of a PE on this host. It has counted this, and has seen another PE die.
fn part_of(pe: u32, host: &str, runs: Runs<'_>, counters: Counters<'_>) -> Vec<u8> {
    let (process, worker) = (u64::from(3 * pe + 1), 3 * pe + 3);
    let counter = |at: usize| 1000 + 100 * u64::from(pe) + at as u64;
    let packet =
        || TracePacket { trusted_packet_sequence_id: Some(worker), ..TracePacket::default() };
    let described = |uuid, of: TrackDescriptor| TracePacket {
        track_descriptor: Some(TrackDescriptor { uuid: Some(uuid), ..of }),
        ..packet()
    };
    let pid = Some(pe as i32 + 1);
    let happens = |us: u64, track: u64, kind: Kind, event: TrackEvent| TracePacket {
        timestamp: Some(1000 * us),
        track_event: Some(TrackEvent {
            r#type: Some(kind as i32),
            track_uuid: Some(track),
            ..event
        }),
        ..packet()
    };
    let mut names: Vec<&str> = runs.iter().map(|(name, ..)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let iid = |name: &str| names.iter().position(|known| *known == name).map(|at| at as u64 + 1);
    let event_names =
        names.iter().map(|name| EventName { iid: iid(name), name: Some((*name).to_owned()) });
    let mut packets = vec![
        described(
            process,
            TrackDescriptor {
                process: Some(ProcessDescriptor {
                    pid,
                    cmdline: vec!["/opt/prover".to_owned(), "--fast".to_owned()],
                    process_name: Some(format!("PE {pe} on {host}")),
                }),
                ..TrackDescriptor::default()
            },
        ),
        described(
            worker.into(),
            TrackDescriptor {
                thread: Some(ThreadDescriptor {
                    pid,
                    tid: Some(worker as i32),
                    thread_name: Some("worker 0".to_owned()),
                }),
                ..TrackDescriptor::default()
            },
        ),
        TracePacket {
            interned_data: Some(InternedData { event_names: event_names.collect() }),
            ..packet()
        },
        happens(
            5,
            process,
            Kind::Instant,
            TrackEvent { name: Some("PE 9 has died".to_owned()), ..TrackEvent::default() },
        ),
    ];
    for (at, (name, value)) in counters.iter().enumerate() {
        packets.push(described(
            counter(at),
            TrackDescriptor {
                parent_uuid: Some(process),
                name: Some((*name).to_owned()),
                counter: Some(CounterDescriptor {}),
                ..TrackDescriptor::default()
            },
        ));
        let counts = TrackEvent { counter_value: Some(*value as i64), ..TrackEvent::default() };
        packets.push(happens(0, counter(at), Kind::Counter, counts));
    }
    for (name, begin, end) in runs {
        let begins = TrackEvent {
            name_iid: iid(name),
            categories: vec![RUN.to_owned()],
            ..TrackEvent::default()
        };
        packets.push(happens(*begin, worker.into(), Kind::SliceBegin, begins));
        packets.push(happens(*end, worker.into(), Kind::SliceEnd, TrackEvent::default()));
    }
    let mut part = Vec::new();
    packets.iter().for_each(|packet| append(packet, &mut part));
    part
}

/// The page of a job whose PEs ran this, each on its host, and started `tasks` tasks each.
pub(crate) fn page_of(pes: &[(&str, Runs<'_>)], tasks: u64) -> String {
    page_with(pes, &[("tasks started", tasks)])
}

/// The same, where each PE has counted this.
fn page_with(pes: &[(&str, Runs<'_>)], counters: Counters<'_>) -> String {
    let folder = tempfile::tempdir().expect("there is room");
    for (pe, (host, runs)) in (0..).zip(pes) {
        let path = folder.path().join(ultramarine_trace::part_name(pe));
        fs::write(path, part_of(pe, host, runs, counters)).expect("there is room");
    }
    report(folder.path())
}

fn report(trace: &Path) -> String {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("page.html");
    let arguments = ["report".as_ref(), trace.as_os_str(), "-o".as_ref(), file.as_os_str()];
    run(&mut ultramarine(&arguments)).succeeded();
    fs::read_to_string(file).expect("it was written")
}

/// `runs` of a function, one after the other, each of this length.
pub(crate) fn row(name: &str, runs: u64, us: u64) -> Vec<(&str, u64, u64)> {
    (0..runs).map(|run| (name, run * us, (run + 1) * us)).collect()
}

fn says(page: &str, texts: &[&str]) {
    for text in texts {
        assert!(page.contains(text), "`{text}` is not in\n{page}");
    }
}

#[test]
fn a_page_says_what_the_job_was_and_needs_nothing_else() {
    let row = row("prove<T> & \"co\"", 100, 50);
    let page = page_of(&[("one", &row), ("other", &row)], 100);
    says(
        &page,
        &[
            "<title>Report of prover</title>",
            "/opt/prover --fast",
            "one, other",
            "prove&lt;T&gt; &amp; &quot;co&quot;",
            "PE 9 has died",
            "The workers computed for 100.0 % of the time. Nothing stands out.",
            "<th scope=\"row\">tasks started</th><td class=\"n\">200</td>",
            "data:image/png;base64,",
        ],
    );
    for outside in ["<script", "<link", "src=\"http", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<svg").count(), 2, "over time, and for the one function");
}

#[test]
fn a_long_task_at_the_end_is_named() {
    let (short, mut long) = (row("map", 10, 1000), row("map", 10, 1000));
    long.push(("fold", 10_000, 30_000));
    let page = page_of(&[("one", &short), ("one", &long)], 1000);
    says(&page, &["of the waiting is at the end. A run of `fold` takes 20.0ms there"]);
}

#[test]
fn a_slow_host_is_named() {
    let page = page_of(&[("fast", &row("map", 100, 1000)), ("slow", &row("map", 50, 2000))], 1000);
    says(&page, &["A run of `map` takes 2.0 times as long on slow as on fast"]);
}

#[test]
fn tasks_that_are_too_few_or_too_small_are_counted() {
    let page = page_of(&[("one", &row("map", 1, 900)), ("one", &row("map", 1, 500))], 1);
    says(&page, &["There are 2 tasks for 2 workers."]);
    let tiny: Vec<_> = (0..2000).map(|run| ("map", 3 * run, 3 * run + 1)).collect();
    let page = page_of(&[("one", &tiny), ("one", &tiny)], 2000);
    says(&page, &["4000 runs of `map` take 1.0µs on average."]);
}

#[test]
fn waiting_while_much_data_moves_is_said() {
    let gaps: Vec<_> = (0..100).map(|run| ("solve", 200 * run, 200 * run + 100)).collect();
    let pes = [("one", gaps.as_slice()), ("one", &gaps)];
    let page = page_with(&pes, &[("tasks started", 100), (MOVED_BYTES, 5_000_000)]);
    says(&page, &["wait between two tasks, and meanwhile 10 MB move between PEs."]);
    let page = page_with(&pes, &[("tasks started", 100), (MOVED_BYTES, 5_000)]);
    says(&page, &["the workers wait between two tasks, for work, for values"]);
}

#[test]
fn a_pe_that_has_died_does_not_wait_at_the_end() {
    let whole = row("map", 100, 1000);
    let pes: Vec<(&str, Runs<'_>)> = vec![("one", &whole); 9];
    // The part of PE 9 ends when it has died, after 5 µs.
    let all = [pes.as_slice(), &[("one", &[("map", 0, 5)])]].concat();
    let page = page_of(&all, 1000);
    says(&page, &["Nothing stands out.", "PE 9 has died"]);
    assert!(!page.contains("is at the end"), "{page}");
}

#[test]
fn the_last_of_equal_tasks_is_seen() {
    let pes: Vec<_> = (0..4).map(|_| row("map", 12, 1000)).collect();
    let mut last = row("map", 13, 1000);
    last.push(("map", 13_000, 16_000));
    let mut all: Vec<(&str, Runs<'_>)> = pes.iter().map(|pe| ("one", pe.as_slice())).collect();
    all.push(("one", &last));
    says(&page_of(&all, 1000), &["A run of `map` takes 3.0ms there"]);
}

#[test]
fn a_job_that_did_nothing_and_one_that_was_cut_off_have_pages() {
    says(&page_of(&[("one", &[])], 0), &["No task has run", "<td>1</td>"]);
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("pe000000.part");
    fs::write(&file, "").expect("there is room");
    says(&report(folder.path()), &["No task has run"]);
    let whole = part(0, 5);
    fs::write(&file, &whole[..whole.len() - 3]).expect("there is room");
    says(&report(folder.path()), &["prove", "<td>1</td>"]);
}

#[test]
fn what_cannot_be_read_or_written_is_named() {
    let refusal = |trace: &Path, output: &Path| {
        let arguments = ["report".as_ref(), trace.as_os_str(), "-o".as_ref(), output.as_os_str()];
        run(&mut ultramarine(&arguments)).refuses().clone()
    };
    let folder = tempfile::tempdir().expect("there is room");
    let page = folder.path().join("page.html");
    assert!(refusal(&folder.path().join("none"), &page).contains("none` cannot be read"));
    fs::write(folder.path().join("text"), "a text").expect("there is room");
    assert!(refusal(&folder.path().join("text"), &page).contains("is no trace"));
    fs::write(folder.path().join("pe000000.part"), part(0, 1)).expect("there is room");
    let nowhere = folder.path().join("none/page.html");
    assert!(refusal(folder.path(), &nowhere).contains("page.html` cannot be written"));
    assert!(!page.exists());
    assert!(refusal(folder.path(), &folder.path().join("pe000001.part")).contains("for a part"));
}
