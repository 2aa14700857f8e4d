//! `ultramarine topo`, as the probe does it: text, pictures, topology files, JSON and error texts;
//! alone and under the launcher that `MPIEXEC_FOR_TESTS` names (without it those tests say so and
//! pass).

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use ultramarine_testkit::{Ended, alone, folder, run};

const PROBE: &str = env!("CARGO_BIN_EXE_ultramarine-probe");

/// `ultramarine topo` with these flags, in an environment without launchers and settings.
fn topo(flags: &str) -> Command {
    let mut command = alone(PROBE, "topo");
    command.args(flags.split_whitespace());
    command
}

fn describe(flags: &str) -> Ended {
    run(&mut topo(flags))
}

/// The same under the launcher, on this many processes of one worker.
#[cfg(feature = "mpi")]
fn launched(processes: u32, flags: &str) -> Option<Ended> {
    let mut command = ultramarine_testkit::launcher()?;
    command.args(["-n", &processes.to_string(), PROBE, "topo", "--threads", "1"]);
    Some(run(command.args(flags.split_whitespace())))
}

const RACKS: &str = "--hosts r1n[1-2],r2n[1-2] --per-host 2";

#[test]
fn a_described_job_is_drawn_without_being_started() {
    let described = describe(&format!("{RACKS} --threads 8"));
    assert_eq!(
        described.succeeded(),
        "\
job: 8 PEs, power 64, distance 1
├─ switch r1: 4 PEs, power 32, distance 1/2
│  ├─ host r1n1: 2 PEs, power 16, distance 1/4
│  │  ├─ PE 0: rank 0, power 8
│  │  └─ PE 1: rank 1, power 8
│  └─ host r1n2: 2 PEs, power 16, distance 1/4
│     ├─ PE 2: rank 2, power 8
│     └─ PE 3: rank 3, power 8
└─ switch r2: 4 PEs, power 32, distance 1/2
   ├─ host r2n1: 2 PEs, power 16, distance 1/4
   │  ├─ PE 4: rank 4, power 8
   │  └─ PE 5: rank 5, power 8
   └─ host r2n2: 2 PEs, power 16, distance 1/4
      ├─ PE 6: rank 6, power 8
      └─ PE 7: rank 7, power 8
"
    );
    let by_pattern = describe("--hosts nid000[100-101],nid000200 --host-pattern nid(%%%%)%%");
    assert!(by_pattern.succeeded().contains("├─ switch 0001: 2 PEs"), "{}", by_pattern.out);
}

#[test]
fn what_is_written_describes_the_same_job() {
    let path = folder!("round_trip").join("machine.toml");
    let file = path.to_str().expect("UTF-8");
    let pattern = "--hosts nid000[098-101],login,x1c1s2b0n[1-3] --host-pattern";
    let drawn = describe(&format!("{pattern} * --write {file}"));
    let by_pattern =
        describe(&format!("--hosts r1n[01-16],r3n[01-16],login --write {file} --force"));
    let read = describe(&format!("--hosts r1n[01-16],r3n[01-16],login --topology {file}"));
    assert!(drawn.succeeded().contains("8 PEs"));
    assert_eq!(by_pattern.succeeded(), read.succeeded());
    let text = fs::read_to_string(&path).expect("it was written");
    assert!(text.starts_with("# Where the hosts of a job stand, for --topology"), "{text}");
    assert!(text.contains("names = \"r1n[01-16]\"\nswitches = [\"r1\"]"), "{text}");
    assert!(text.contains("Levels below a host (packages, NUMA nodes) are not listed"));
    // The same on standard output, and nothing else.
    let printed = describe("--hosts r1n[01-16],r3n[01-16],login --write -");
    assert_eq!(printed.succeeded(), text);
    assert_eq!(files_in(path.parent().expect("a folder")), ["machine.toml"]);
}

#[test]
fn a_job_of_threads_writes_where_it_is() {
    let path = folder!("own_place").join("own.toml");
    let file = path.to_str().expect("UTF-8");
    let first = describe(&format!("--pes 2 --threads 1 --no-latency --write {file}"));
    let again = describe(&format!("--pes 2 --threads 1 --no-latency --topology {file}"));
    assert_eq!(first.succeeded(), again.succeeded());
}

#[test]
fn a_file_that_is_there_is_kept_unless_forced() {
    let path = folder!("kept").join("machine.toml");
    fs::write(&path, "mine").expect("a file");
    let flags = format!("--hosts n[1-2] --write {}", path.display());
    describe(&flags).fails_with("machine.toml exists already: give another name, or --force");
    assert_eq!(fs::read_to_string(&path).expect("still there"), "mine");
    describe(&format!("{flags} --force")).succeeded();
    assert!(fs::read_to_string(&path).expect("still there").contains("n[1-2]"));
    assert_eq!(files_in(path.parent().expect("a folder")), ["machine.toml"]);
}

#[test]
fn the_picture_names_everything_and_escapes_it() {
    let folder = folder!("picture");
    let (file, svg) = (folder.join("machine.toml"), folder.join("job.svg"));
    fs::write(
        &file,
        "[[hosts]]\nnames = \"n[1-2]\"\nswitches = [\"<a> & \\\"b\\\"\"]\n\
                      [[hosts]]\nnames = \"m\"\n",
    )
    .expect("a file");
    let flags = format!(
        "--hosts n[1-2],m --per-host 2 --topology {} --svg {}",
        file.display(),
        svg.display()
    );
    describe(&flags).succeeded();
    let picture = fs::read_to_string(&svg).expect("it was drawn");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    for text in ["&lt;a&gt; &amp; ", "\nhost n2\n", "\ndistance 1/4\n", "PE 5, rank 5, power 1"] {
        assert!(picture.contains(text), "`{text}` is not in {picture}");
    }
    assert!(!picture.contains("<a>"), "{picture}");
    // Alone on standard output it is the same.
    let printed = describe(&flags.replace(svg.to_str().expect("UTF-8"), "-"));
    assert_eq!(printed.succeeded(), picture);
}

#[test]
fn a_picture_of_very_many_pes_is_small() {
    let racks: Vec<String> = (1..=50).map(|rack| format!("r{rack}n[01-20]")).collect();
    let alike = describe(&format!("--hosts {} --per-host 10 --svg -", racks.join(",")));
    let alike = alike.succeeded();
    assert!(alike.contains("10000 PEs") && alike.contains("… 49 more like it, to switch r50"));
    assert!(alike.len() < 8_000, "{} bytes", alike.len());
    // No two racks have the same number of hosts.
    let racks: Vec<String> = (1..=100).map(|rack| format!("r{rack}n[1-{rack}]")).collect();
    let unlike = describe(&format!("--hosts {} --per-host 2 --svg -", racks.join(",")));
    assert!(unlike.succeeded().contains("others, to switch r100"), "{}", unlike.out);
    assert!(unlike.out.len() < 60_000, "{} bytes", unlike.out.len());
}

#[test]
fn latencies_are_measured_between_the_pes_of_a_job() {
    let ended = describe("--pes 3 --threads 1");
    let table = ended.succeeded().split_once("\n\n").expect("a table below the hierarchy").1;
    let mut lines = table.lines();
    let header = "distance  share    pairs  round trips    p50 µs    p99 µs";
    assert_eq!(lines.next(), Some(header));
    let row: Vec<&str> = lines.next().expect("one distance").split_whitespace().collect();
    assert_eq!((row[0], row[2], row.len()), ("1", "3", 6), "{table}");
    assert!((1..=600).contains(&row[3].parse::<u32>().expect("a number")), "{table}");
    for flags in ["--pes 3 --threads 1 --no-latency", "--pes 1 --threads 1", "--hosts n[1-2]"] {
        assert!(!describe(flags).succeeded().contains("p50"), "{flags}");
    }
}

#[test]
fn machines_read_json() {
    let report = describe("--pes 2 --threads 1 --lane tcp --json").report();
    assert_eq!(report["pes"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["pes"][1]["rank"], 1);
    assert_eq!(report["distances"], serde_json::json!(["1"]));
    let row = &report["latency"][0];
    assert_eq!((&row["distance"], &row["pairs"]), (&"1".into(), &2.into()));
    assert!(row["p50_us"].as_f64() <= row["p99_us"].as_f64(), "{row}");
    // Each of the two has called the other.
    let most = &report["upkeep"]["most"];
    assert_eq!(
        (&most["connections_opened"], &most["connections_accepted"]),
        (&1.into(), &1.into())
    );
    assert_eq!(most["bootstrap_received_bytes"], 0);
    let described = describe(&format!("{RACKS} --json")).report();
    assert_eq!(
        described["pes"][3]["place"],
        serde_json::json!([["switch", "r1"], ["host", "r1n2"]])
    );
    assert_eq!(
        (&described["latency"], &described["upkeep"]),
        (&serde_json::json!([]), &Value::Null)
    );
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let folder = folder!("refused");
    let file = folder.join("machine.toml");
    fs::write(&file, "[[hosts]]\nnames = \"n[1-2]\"\n").expect("a file");
    let many = format!("{}x[1-1048577]", "n1,");
    for (flags, text) in [
        ("--hosts n[1-2", "hosts cannot be read: `n[1-2` has a bracket without its partner; write"),
        ("--hosts n[3-1]", "the span `3-1` in `n[3-1]` ends before it begins"),
        ("--hosts n1,,n2", "has an empty name in it"),
        (&format!("--hosts {many}"), "stands for more than 1048576 hosts"),
        ("--hosts n[1-1048576] --per-host 2", "from 1 to 1048576 can be described"),
        ("--hosts n1,n[1-2]", "the host `n1` is named twice: name each once"),
        ("--hosts n1 --host-pattern (r#)n#", "does not match the host name `n1`; in a pattern, #"),
        (
            &format!("--hosts n[1-3] --topology {}", file.display()),
            "machine.toml names 2 hosts, but not `n3`; add it to the `names`",
        ),
        ("--hosts n1 --topology /nowhere.toml", "cannot read the topology file /nowhere.toml"),
        ("--hosts n1 --pes 2", "'--pes <P>'"),
        ("--hosts n1 --per-host 0", "'--per-host <P>'"),
        ("--per-host 2", "--hosts <LIST>"),
        ("--force --pes 2", "--write <FILE>"),
        ("--hosts n1 --json --svg -", "--json, --svg - and --write - all need standard output"),
        (
            "--hosts n1 --svg /nowhere/a.svg",
            "a.svg: No such file or directory (os error 2); give a file in a folder that exists",
        ),
        (
            "--pes 2 --write /nowhere/a.toml",
            "cannot write /nowhere/a.toml: No such file or directory",
        ),
        (
            "--hosts n1 --svg /",
            "/ is not a plain file: give another name, or - for standard output",
        ),
        ("--hosts n1 --svg /dev/null", "/dev/null is not a plain file"),
    ] {
        let ended = describe(flags);
        ended.fails_with(text);
        assert_eq!(ended.out, "", "{flags}");
    }
    let ended = run(topo("--hosts").arg(""));
    ended.fails_with("no hosts are named: give some, as in r1n[01-16],login");
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert_eq!(files_in(&folder), ["machine.toml"]);
}

#[test]
fn a_described_job_takes_no_launcher() {
    let mut command = topo("--hosts n1");
    command.env("PMI_SIZE", "2").env("PMI_RANK", "0");
    run(&mut command).fails_with("PMI_SIZE says that a launcher started 2 processes: leave out");
}

#[cfg(feature = "mpi")]
#[test]
fn processes_measure_and_write_like_threads() {
    let path = folder!("processes").join("machine.toml");
    let flags = format!("--json --write {}", path.display());
    let Some(ended) = launched(4, &flags) else { return };
    let report = ended.report();
    assert_eq!(report["pes"].as_array().map(Vec::len), Some(4));
    assert_eq!(report["latency"][0]["pairs"], 4);
    let text = fs::read_to_string(&path).expect("it was written");
    assert!(text.contains("[[hosts]]"), "{text}");
    let again = launched(4, &flags).expect("as before");
    again.fails_with("machine.toml exists already");
}

#[cfg(feature = "mpi")]
#[test]
fn a_few_bytes_for_each_process_are_told_to_all_and_connections_grow_with_the_logarithm() {
    let upkeep = |processes: u32| {
        // At 16 the detector may still be starting; it is given the time that the latencies take.
        let report = launched(processes, "--json")?.report();
        let figure = |of: &str, name: &str| report["upkeep"][of][name].as_u64().expect("a number");
        // Rank 0 hears of all others what they have; they hear from it what has become of that.
        let [all, first] = ["sum", "most"].map(|of| figure(of, "bootstrap_received_bytes"));
        let connections =
            figure("most", "connections_opened") + figure("most", "connections_accepted");
        Some((first, (all - first) / u64::from(processes - 1), connections))
    };
    let Some((first, other, _)) = upkeep(4) else { return };
    let (first_of_16, other_of_16, connections) = upkeep(16).expect("as before");
    assert!((first * 3..=first * 5).contains(&first_of_16), "{first}, {first_of_16}");
    let for_each = (other_of_16 - other).div_ceil(12);
    assert!((1..=16).contains(&for_each), "{other}, {other_of_16}");
    // 2 log2 n + 4
    assert!((1..=12).contains(&connections), "{connections} connections");
}

#[cfg(feature = "mpi")]
/// Programs refuse their flags before they take part in a job, when the others wait for them
/// already.
#[test]
#[cfg(feature = "mpi")]
fn a_wrong_flag_of_one_process_ends_all_at_once() {
    for wrong_first in [true, false] {
        let Some(mut command) = ultramarine_testkit::launcher() else { return };
        let mut parts = [("3", "--json"), ("1", "--no-such-flag")];
        if wrong_first {
            parts.reverse();
        }
        for (number, (processes, flag)) in parts.into_iter().enumerate() {
            command.args((number > 0).then_some(":"));
            command.args(["-n", processes, PROBE, "topo", "--threads", "1", flag]);
        }
        // Far more than a test may take.
        command.env("ULTRAMARINE_START_DEADLINE", "10min");
        let ended = run(&mut command);
        ended.fails_with("unexpected argument '--no-such-flag'");
        let rank = if wrong_first { 0 } else { 3 };
        ended.fails_with(&format!("the job did not start: rank {rank} on "));
        ended.fails_with("it has ended with code 2 before it joined the job: see what it says");
    }
}

#[cfg(feature = "mpi")]
#[test]
fn a_job_is_described_by_no_process_of_a_launcher() {
    let Some(ended) = launched(2, "--hosts n1") else { return };
    ended.fails_with("leave out the launcher");
}

/// The names of all files in a folder.
fn files_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    entries.map(name).collect()
}
