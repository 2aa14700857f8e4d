//! `ultramarine topo` becomes the probe; and what is said where that is not there.

use crate::harness::{Stage, run};

#[test]
fn the_probe_gets_the_arguments_as_they_are() {
    let stage = Stage::new("topo-arguments");
    let probe = stage.script("probe", "printf '<%s>' \"$@\"");
    let mut command = stage.ultramarine("topo --hosts r1n[1-2] --per-host 2");
    let ended = run(command.env("ULTRAMARINE_PROBE", probe));
    assert_eq!(ended.succeeded().to_owned(), "<topo><--hosts><r1n[1-2]><--per-host><2>");
}

#[test]
fn flags_that_cannot_be_are_refused_before() {
    let stage = Stage::new("topo-flags");
    let ended = run(&mut stage.ultramarine("topo --per-host 2"));
    assert_eq!(ended.code, Some(2), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("--hosts <LIST>"), "{}", ended.err);
}

#[test]
fn a_probe_that_is_not_there_is_said_with_how_it_is_built() {
    let stage = Stage::new("topo-missing");
    let command = std::env::temp_dir().join(format!("ultramarine-{}", std::process::id()));
    std::fs::copy(env!("CARGO_BIN_EXE_ultramarine"), &command).expect("there is room");
    let mut alone = std::process::Command::new(&command);
    crate::harness::scrub(alone.arg("topo"));
    let text = run(&mut alone).refuses();
    std::fs::remove_file(&command).expect("it was made here");
    assert!(text.starts_with("there is no `"), "{text}");
    let hint = "(`MPICC=<its mpicc> cargo build --release -p ultramarine-probe`)";
    assert!(text.contains("/ultramarine-probe`, which") && text.contains(hint), "{text}");
    let mut named = stage.ultramarine("topo");
    let text = run(named.env("ULTRAMARINE_PROBE", "/no/such")).refuses();
    assert_eq!(text, "ULTRAMARINE_PROBE names `/no/such`, which is no program: mend or unset it");
}

/// One that no host has.
const LIBRARY: (&str, &str) = ("libmpi.so.4711", "stand_in");

#[test]
fn a_library_that_is_missing_is_named() {
    let stage = Stage::new("topo-library");
    let probe = stage.program("probe", &[LIBRARY]);
    std::fs::remove_file(stage.libraries().join(LIBRARY.0)).expect("it was made here");
    let text = run(stage.ultramarine("topo").env("ULTRAMARINE_PROBE", probe)).refuses();
    let end = " needs libmpi.so.4711, which is not found on this host: load the module that has \
               it, or add its folder to LD_LIBRARY_PATH";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn the_command_is_linked_with_no_mpi() {
    let listed = std::process::Command::new("ldd").arg(env!("CARGO_BIN_EXE_ultramarine")).output();
    let Ok(listed) = listed else { return println!("skipped: no ldd here") };
    let list = String::from_utf8_lossy(&listed.stdout);
    assert!(list.contains("libc.so") && !list.contains("libmpi"), "{list}");
}
