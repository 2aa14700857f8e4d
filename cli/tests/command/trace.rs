//! `ultramarine trace`: what it makes of parts that are whole, cut off or none.

use crate::harness::{run, ultramarine};
use serde_json::Value;
use std::fs;
use std::path::Path;
use ultramarine_trace::packet::{
    EventName, InternedData, Kind, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use ultramarine_trace::{Packets, RUN, append};

/// A part of a PE whose one thread ran a function some times, for 1 ms each.
pub(crate) fn part(pe: u32, runs: u64) -> Vec<u8> {
    let number = 100 * (pe + 1);
    let packet =
        || TracePacket { trusted_packet_sequence_id: Some(number), ..TracePacket::default() };
    let thread = ThreadDescriptor {
        pid: Some(pe as i32 + 1),
        tid: Some(number as i32),
        thread_name: Some("worker 0".to_owned()),
    };
    let name = EventName { iid: Some(1), name: Some("prove".to_owned()) };
    let mut part = Vec::new();
    let described = TrackDescriptor {
        uuid: Some(number.into()),
        thread: Some(thread),
        ..TrackDescriptor::default()
    };
    let interned_data = Some(InternedData { event_names: vec![name] });
    append(
        &TracePacket { track_descriptor: Some(described), interned_data, ..packet() },
        &mut part,
    );
    for run in 0..runs {
        for (kind, at) in [(Kind::SliceBegin, 4 * run), (Kind::SliceEnd, 4 * run + 1)] {
            let event = TrackEvent {
                r#type: Some(kind as i32),
                name_iid: Some(1),
                categories: vec![RUN.to_owned()],
                track_uuid: Some(number.into()),
                ..TrackEvent::default()
            };
            let timestamp = Some(1_000_000 * at);
            append(&TracePacket { timestamp, track_event: Some(event), ..packet() }, &mut part);
        }
    }
    part
}

/// A trace of two PEs, of which the second was killed.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    let killed = part(1, 3);
    for (name, bytes) in
        [("pe000000.part", &part(0, 5)[..]), ("pe000001.part", &killed[..killed.len() - 3])]
    {
        fs::write(folder.path().join(name), bytes).expect("there is room");
    }
    folder
}

fn show(trace: &Path) -> Value {
    let arguments = ["trace".as_ref(), "show".as_ref(), trace.as_os_str(), "--json".as_ref()];
    serde_json::from_str(run(&mut ultramarine(&arguments)).succeeded()).expect("an object")
}

#[test]
fn parts_are_joined_up_to_where_they_are_cut_off() {
    let folder = folder();
    let file = folder.path().join("all.pftrace");
    let path = folder.path().as_os_str();
    let arguments = ["trace".as_ref(), "merge".as_ref(), path, "-o".as_ref(), file.as_os_str()];
    let ended = run(&mut ultramarine(&arguments));
    assert!(ended.succeeded().starts_with("2 parts, "), "{}", ended.out);
    assert!(ended.err.contains("pe000001.part` is cut off"), "{}", ended.err);
    let bytes = fs::read(&file).expect("it was written");
    let mut packets = Packets::of(&bytes);
    assert_eq!(packets.by_ref().count(), 1 + 10 + 1 + 5);
    assert!(packets.rest().is_empty());
    assert_eq!(show(folder.path()), show(&file));
}

#[test]
fn sums_are_by_function_and_by_pe() {
    let page = show(folder().path());
    let functions = serde_json::json!([
        { "name": "prove", "runs": 7, "busy_ns": 7_000_000, "longest_ns": 1_000_000 },
    ]);
    assert_eq!(page["functions"], functions);
    assert_eq!(page["took_s"], 0.017);
    let busy = |pe: usize| page["pes"][pe]["busy"].as_f64().expect("a share");
    assert!((busy(0) - 5.0 / 17.0).abs() < 1e-9 && (busy(1) - 2.0 / 17.0).abs() < 1e-9, "{page}");
    let text =
        run(&mut ultramarine(&["trace".as_ref(), "show".as_ref(), folder().path().as_os_str()]));
    for row in ["took 0.017 s on 2 PEs", "prove", "29.4 %"] {
        assert!(text.succeeded().contains(row), "{}", text.out);
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let show = |path: &Path| {
        run(&mut ultramarine(&["trace".as_ref(), "show".as_ref(), path.as_os_str()])).refuses()
    };
    assert!(show(&folder.path().join("none")).contains("none` cannot be read: No such file"));
    assert!(show(folder.path()).contains("no part of a trace in"));
    let file = folder.path().join("text");
    fs::write(&file, "a text").expect("there is room");
    assert!(show(&file).contains("is no trace"));
    let merge = ["trace", "merge", "/tmp", "-o", "/tmp/pe000000.part"];
    assert!(run(&mut ultramarine(&merge)).refuses().contains("would be taken for a part"));
    let file = folder.path().join("pe000000.part");
    // A process that was killed at once.
    fs::write(&file, "").expect("there is room");
    let arguments = ["trace".as_ref(), "show".as_ref(), folder.path().as_os_str()];
    let ended = run(&mut ultramarine(&arguments));
    assert!(ended.succeeded().starts_with("took 0.000 s on 0 PEs"), "{}", ended.out);
    assert!(ended.err.contains("is empty"), "{}", ended.err);
}
