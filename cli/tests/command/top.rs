//! `ultramarine top`, in front of a job that answers as one does.

use crate::harness::{run, ultramarine};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use ultramarine_status::server::{Server, Ways};
use ultramarine_status::{JobStatus, PeStatus, Stolen};
use ultramarine_testkit::eventually;

/// A job of two hosts, which starts more tasks each time that it is asked.
fn job(file: &Path) -> Server {
    let asked = AtomicU64::new(0);
    let look = move || {
        let times = 1 + asked.fetch_add(1, Ordering::Relaxed);
        let pe = |pe: u32, host: &str| PeStatus {
            pe,
            host: host.to_owned(),
            workers: 2,
            started: 10 * times,
            memory: 5 << 20,
            ..PeStatus::default()
        };
        Ok(JobStatus {
            program: "prover".to_owned(),
            seconds: times as f64,
            is_running: true,
            pes: vec![pe(0, "near"), pe(1, "near"), pe(2, "far")],
            ..JobStatus::default()
        })
    };
    let ways = Ways { contact: Some(file.to_owned()), ..Ways::default() };
    Server::start(&ways, Box::new(look)).expect("there is a port")
}

#[test]
fn what_a_job_does_is_printed_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("status");
    let _job = job(&file);
    let printed = run(ultramarine(&["top", "--once"]).arg(&file)).succeeded().to_owned();
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].ends_with("3 PEs on 2 hosts; 6 workers, 100 % busy"), "{printed}");
    assert!(lines[1].starts_with("tasks: 60 started, 30 a second"), "{printed}");
    assert!(lines[4].starts_with("near") && lines[4].contains("10.0 MiB"), "{printed}");
    assert!(lines[5].starts_with("far"), "{printed}");

    let printed = run(ultramarine(&["top", "--json"]).arg(&file)).succeeded().to_owned();
    let job: JobStatus = serde_json::from_str(&printed).expect("an object");
    assert_eq!(job.pes.len(), 3);
}

/// The guide names each field, and no other.
#[test]
fn the_fields_of_the_object_are_in_the_guide() {
    let pe = PeStatus { stolen: vec![Stolen::default()], ..PeStatus::default() };
    let job = JobStatus { pes: vec![pe], ..JobStatus::default() };
    let job = serde_json::to_value(&job).expect("it is plain");
    let mut fields = Vec::new();
    for object in [&job, &job["pes"][0], &job["pes"][0]["stolen"][0]] {
        fields.extend(object.as_object().expect("an object").keys().cloned());
    }
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/seeing.md");
    let guide = fs::read_to_string(guide).expect("it is there");
    let table = guide.split_once("| field | what |").expect("there is a table").1;
    let table = table.split("\n\n").next().expect("it has an end");
    let words = table.split('`').skip(1).step_by(2);
    let mut named: Vec<_> = words.filter(|word| !word.contains('"')).map(str::to_owned).collect();
    fields.sort();
    named.sort();
    assert_eq!(named, fields);
}

#[test]
fn what_cannot_be_asked_is_named() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("status");
    let refusal = |flag: &str| run(ultramarine(&["top", flag]).arg(&file)).refuses().clone();
    assert!(refusal("--once").contains("a job that is started with --status writes it"));
    for text in ["", "{}", "[1, 2", &"x".repeat(1 << 20)] {
        fs::write(&file, text).expect("there is room");
        assert!(refusal("--once").contains("it does not say where a job answers"), "{text:.9}");
    }
    assert!(
        run(&mut ultramarine(&["top", "--once", "/dev/null"]))
            .refuses()
            .contains("it does not say")
    );
    let job = job(&file);
    assert!(refusal("--every=1").contains("--once prints what there is"), "no terminal");
    let contact = fs::read_to_string(&file).expect("it was written");
    let at = contact.find("token ").expect("it has one") + 6;
    let stranger = format!("{}{}{}", &contact[..at], "0".repeat(32), &contact[at + 32..]);
    fs::write(&file, stranger).expect("there is room");
    assert!(refusal("--once").contains("wants another token"));
    drop(job);
    fs::write(&file, contact).expect("there is room");
    assert!(refusal("--once").contains("it has ended, or the process of its root has died"));
}

/// The front of a terminal of this size, and the command behind it.
fn behind_a_terminal(file: &Path, (columns, rows): (u16, u16)) -> (File, PathBuf, Command) {
    let front = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
    let front = front.expect("a terminal");
    unlockpt(&front).expect("it is ours");
    let name = ptsname(&front, Vec::new()).expect("it has a name");
    let name = PathBuf::from(name.into_string().expect("plain letters"));
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&front, size).expect("it is a terminal");
    let mut command = ultramarine(&["top", "--every", "0.2"]);
    command.arg(file).env("TERM", "xterm");
    command.stdin(back(&name)).stdout(back(&name)).stderr(back(&name));
    (File::from(front), name, command)
}

fn back(name: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(name).expect("the other end")
}

/// The command on a terminal of this size. Returns what it shows after these keys, until it ends.
fn on_a_terminal(file: &Path, size: (u16, u16), keys: &[u8], sees: &str) -> String {
    let (mut front, name, mut command) = behind_a_terminal(file, size);
    let keeps = back(&name);
    let mut child = command.spawn().expect("it is built");
    let mut reader = front.try_clone().expect("a descriptor");
    let shown = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let reads = shown.clone();
    let reading = thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut piece) {
            reads.lock().expect("no panic").extend_from_slice(&piece[..count]);
        }
    });
    let text = || String::from_utf8_lossy(&shown.lock().expect("no panic")).into_owned();
    eventually("it shows the job", || text().contains(sees));
    front.write_all(keys).expect("it reads");
    let mut status = None;
    eventually("it ends", || {
        status = child.try_wait().expect("it is a child");
        status.is_some()
    });
    assert!(status.expect("it has ended").success(), "{}", text());
    // With the last end of the terminal, reading ends.
    drop((keeps, command));
    reading.join().expect("no panic");
    text()
}

#[test]
fn on_a_terminal_keys_change_the_page_and_end_it() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("status");
    let _job = job(&file);
    for size in [(100, 30), (20, 8)] {
        let shown = on_a_terminal(&file, size, b"pjkq", "near");
        assert!(shown.contains("\x1b[?1049l"), "the terminal is as before");
        assert!(shown.trim_end().ends_with("MiB"), "it says the last: {shown:?}");
    }
}

#[test]
fn the_page_ends_with_the_job() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("status");
    let job = job(&file);
    let ends = file.clone();
    let page = thread::spawn(move || on_a_terminal(&ends, (80, 24), b"", "near"));
    // Whether it has seen the job or not.
    thread::sleep(std::time::Duration::from_millis(500));
    drop(job);
    let shown = page.join().expect("it ends");
    assert!(shown.contains("the job does not answer"), "{shown:?}");
}

#[test]
fn the_page_ends_with_its_terminal() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("status");
    let _job = job(&file);
    let (mut front, _, mut command) = behind_a_terminal(&file, (80, 24));
    let mut child = command.spawn().expect("it is built");
    drop(command);
    let (mut shown, mut piece) = (String::new(), [0; 4096]);
    while !shown.contains("near") {
        let count = front.read(&mut piece).expect("it shows something");
        shown += &String::from_utf8_lossy(&piece[..count]);
    }
    drop(front);
    eventually("it ends", || child.try_wait().expect("it is a child").is_some());
}
