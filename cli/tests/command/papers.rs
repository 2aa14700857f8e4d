//! Completions and manual pages.

use crate::harness::{Stage, run, ultramarine};
use std::path::Path;
use std::process::Command;

const SUBCOMMANDS: [&str; 11] = [
    "run",
    "gap",
    "doctor",
    "topo",
    "journal",
    "checkpoint",
    "trace",
    "report",
    "top",
    "completions",
    "man",
];

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&mut ultramarine(&["completions", shell])).succeeded().to_owned();
        for word in SUBCOMMANDS.into_iter().chain(["per-host", "dry-run"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("probe"), "{shell}: it is not for users");
    }
    let refused = run(&mut ultramarine(&["completions", "cmd"]));
    assert!(refused.code == Some(2) && refused.err.contains("possible values: bash"));
}

#[test]
fn bash_accepts_its_completions() {
    let stage = Stage::new("completions");
    let script = run(&mut ultramarine(&["completions", "bash"])).succeeded().to_owned();
    let file = stage.bin().join("script");
    std::fs::write(&file, script).expect("the folder is our own");
    match Command::new("bash").arg("-n").arg(&file).output() {
        Err(error) => println!("skipped: no bash here ({error})"),
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn there_is_a_page_for_the_command_and_each_subcommand() {
    let page = run(&mut ultramarine(&["man"])).succeeded().to_owned();
    assert!(title(&page).starts_with(".TH ultramarine 1"), "{page}");
    let stage = Stage::new("man");
    let folder = stage.bin().join("new/man1");
    run(&mut ultramarine(&["man".as_ref(), "--dir".as_ref(), folder.as_os_str()])).succeeded();
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect("it was made").filter_map(Result::ok).collect();
    files.sort_by_key(std::fs::DirEntry::path);
    let names: Vec<_> =
        files.iter().map(|file| file.file_name().into_string().expect("text")).collect();
    let mut expected = SUBCOMMANDS.map(|name| format!("ultramarine-{name}.1")).to_vec();
    let further = ["ultramarine", "ultramarine-trace-merge", "ultramarine-trace-show"];
    expected.extend(further.map(|name| format!("{name}.1")));
    expected.sort_unstable();
    assert_eq!(names, expected);
    for file in files {
        let page = std::fs::read_to_string(file.path()).expect("text");
        assert!(title(&page).starts_with(".TH ultramarine"), "{page}");
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{page}");
    }
}

/// The line that every manual page begins with, but for definitions.
fn title(page: &str) -> &str {
    page.lines()
        .find(|line| !line.starts_with(".ie") && !line.starts_with(".el"))
        .unwrap_or_default()
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let path = Path::new("/proc/nowhere");
    let line =
        run(&mut ultramarine(&["man".as_ref(), "--dir".as_ref(), path.as_os_str()])).refuses();
    assert!(line.starts_with("/proc/nowhere: "), "{line}");
}
