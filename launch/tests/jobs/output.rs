//! Jobs whose standard error cannot be written: they end as they would if it could.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use ultramarine_testkit::{Ended, alone, finish, folder, launcher, program, scrub};

const PATIENCE: Duration = Duration::from_secs(50);

/// What is wrong with standard error, as a shell brings it about.
const WRONG: [(&str, &str); 4] = [
    ("a full disk", "exec 2>/dev/full"),
    ("closed", "exec 2>&-"),
    ("a pipe whose reader is gone", "exec 3<>\"$FIFO\" 2>\"$FIFO\" 3>&-"),
    ("a full pipe that no process reads", "exec 2>\"$STUCK\""),
];

/// A pipe with a name.
fn fifo(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let made = alone("mkfifo", "").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    path
}

/// Opens a pipe for good, and fills it.
fn stuff(path: &Path) -> File {
    let non_blocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut pipe = OpenOptions::new();
    let mut pipe = pipe.read(true).write(true).custom_flags(non_blocking).open(path).expect("ours");
    loop {
        match pipe.write(&[b'.'; 512]) {
            Ok(_) => {}
            Err(full) if full.kind() == ErrorKind::WouldBlock => return pipe,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A program of this file behind a shell that first makes something wrong.
fn behind(shell: &str, program: &str) -> Vec<OsString> {
    let words = ["sh", "-c", &format!("{shell}; exec \"$@\""), "sh"].map(OsString::from);
    words.into_iter().chain(program!(program)).collect()
}

/// Runs a program with two PEs, as threads of a process, and as two processes where there is a
/// launcher. Returns how each ended.
fn run(test: &str, shell: &str, program: &str, level: &str) -> Vec<(&'static str, Ended)> {
    let folder = folder!(test);
    let (fifo, stuck) = (fifo(&folder, "fifo"), fifo(&folder, "stuck"));
    let _open = stuff(&stuck);
    let variables: [(&str, &OsStr); 5] = [
        ("FIFO", fifo.as_os_str()),
        ("STUCK", stuck.as_os_str()),
        ("ULTRAMARINE_LOG", level.as_ref()),
        ("ULTRAMARINE_THREADS", "1".as_ref()),
        ("ULTRAMARINE_LANE", "tcp".as_ref()),
    ];
    let words = behind(shell, program);
    let mut alone = Command::new(&words[0]);
    alone.args(&words[1..]);
    scrub(&mut alone);
    alone.envs(variables).env("ULTRAMARINE_PES", "2");
    let mut ended = vec![("threads", finish(&mut alone, PATIENCE))];
    if let Some(launcher) = launcher() {
        // Who is well and says little does it in the same way over either lane.
        let is_one_enough = program == "talks" && level.is_empty();
        let lanes = if is_one_enough { &["mpi"][..] } else { &["mpi", "tcp"] };
        for lane in lanes.iter().copied() {
            let mut command = Command::new(launcher.get_program());
            scrub(&mut command);
            command.args(["-n", "2"]).args(&words).envs(variables).env("ULTRAMARINE_LANE", lane);
            ended.push((lane, finish(&mut command, PATIENCE)));
        }
    }
    ended
}

fn goes_well(test: &str, which: usize, levels: &[&str]) {
    let (what, shell) = WRONG[which];
    for level in levels {
        for (how, ended) in run(test, shell, "talks", level) {
            println!("{what}, {how}, {level}");
            ended.is_well();
        }
    }
}

#[test]
fn a_job_goes_well_though_the_disk_of_standard_error_is_full() {
    goes_well("stderr-full", 0, &["debug", ""]);
}

#[test]
fn a_job_goes_well_though_standard_error_is_closed() {
    goes_well("stderr-closed", 1, &["debug", ""]);
}

#[test]
fn a_job_goes_well_though_the_reader_of_standard_error_is_gone() {
    goes_well("stderr-gone", 2, &["debug", ""]);
}

#[test]
fn a_job_goes_well_though_no_process_reads_standard_error() {
    goes_well("stderr-stuck", 3, &[""]);
}

#[test]
fn a_job_that_says_much_goes_well_though_no_process_reads_standard_error() {
    goes_well("stderr-stuck-much", 3, &["debug"]);
}

fn fails(which: usize) {
    let (what, shell) = WRONG[which];
    for (how, ended) in run(&format!("fails-{which}"), shell, "fails", "") {
        assert_eq!(ended.code, Some(7), "{what}, {how}");
    }
}

#[test]
fn a_job_that_fails_ends_with_its_code_though_it_cannot_say_why() {
    (0..3).for_each(fails);
}

#[test]
fn a_job_that_fails_ends_with_its_code_though_no_process_reads_standard_error() {
    fails(3);
}

#[test]
fn a_panic_that_becomes_an_error_is_one_line_with_the_name_of_its_function() {
    let words = program!("panics");
    for (backtrace, is_short) in [("0", true), ("1", true), ("full", false)] {
        let mut command = Command::new(&words[0]);
        scrub(&mut command);
        command.args(&words[1..]).env("ULTRAMARINE_PES", "2").env("RUST_BACKTRACE", backtrace);
        let ended = finish(&mut command, PATIENCE);
        ended.succeeded();
        let err = &ended.err;
        assert_eq!(err.contains("backtrace"), !is_short, "{err}");
        for (function, message) in [
            ("programs::task panicked at", "no task today"),
            ("programs::node panicked at", "no node today"),
            ("programs::build panicked at", "no graph today"),
            ("programs::Bad panicked at", "no drop today"),
            ("programs::Bad panicked at", "no bytes today"),
        ] {
            let is_it = |line: &&str| line.contains(function) && line.ends_with(message);
            let count = err.lines().filter(is_it).count();
            assert_eq!(count, usize::from(is_short), "{function}, {backtrace}: {err}");
        }
    }
}

/// Run by the tests above, in separate processes.
mod programs {
    use std::io::Write as _;
    use ultramarine::prelude::*;
    use ultramarine::skeletons::dag::{Builder, Node, dag};

    fn task(_: u32) -> u32 {
        panic!("no task today")
    }

    fn node(_: &String) -> Bad {
        panic!("no node today")
    }

    fn build(_: &mut Builder, _: &String) -> Node<u32> {
        panic!("no graph today")
    }

    /// Panics when it is encoded, and when it is dropped.
    struct Bad;

    impl serde::Serialize for Bad {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("no bytes today")
        }
    }

    impl<'de> serde::Deserialize<'de> for Bad {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            unreachable!("it has no bytes")
        }
    }

    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("no drop today")
        }
    }

    #[test]
    #[ignore = "a program, and no test"]
    fn panics() {
        end(ultramarine::run(async |cx| {
            assert!(cx.spawn_fn(Distance::ZERO, task, 1).await.is_err());
            let read = |g: &mut Builder, (): &()| -> Node<u32> {
                let bad = g.source(node, String::new());
                g.map(|(), _: &Bad| 1, (), bad)
            };
            assert!(dag(read, ()).run(&cx).await.is_err());
            assert!(dag(build, String::new()).run(&cx).await.is_err());
            // It is encoded, which it refuses, and dropped.
            assert!(cx.spawn_at(Pe::new(1), async |_: Context, _: Bad| (), Bad).await.is_err());
            Ok(())
        }));
    }

    /// Ends this process as a program's `main` does, but with a code that no test harness ends
    /// with.
    fn end(result: ultramarine::Result<()>) {
        if let Err(error) = result {
            // As std does it.
            let _ = writeln!(std::io::stderr(), "Error: {error:?}");
            std::process::exit(7);
        }
    }

    #[test]
    #[ignore = "a program, and no test"]
    fn talks() {
        end(ultramarine::run(async |cx| {
            let squares = par_map(&cx.supervised(), |n: u64| n * n, 0..100).await?;
            assert_eq!(squares.iter().sum::<u64>(), 328_350);
            for pe in (0..cx.pes()).map(Pe::new) {
                for _ in 0..3 {
                    let check = async |_: Context, good: bool| assert!(good, "as is meant to be");
                    let error =
                        cx.spawn_at(pe, check, false).await.expect_err("it panics").to_string();
                    assert!(error.contains("as is meant to be"), "{error}");
                }
            }
            println!("all is well");
            Ok(())
        }));
    }

    #[test]
    #[ignore = "a program, and no test"]
    fn fails() {
        end(ultramarine::run(async |_| {
            ultramarine::log_line("it fails");
            Err(ultramarine::Error::other("as is meant to be"))
        }));
    }
}
