//! What the user sees of the simulator's command line: results of small runs, and refusals.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn simulate(words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ultramarine-simulator"));
    command.args(words.split_whitespace()).output().expect("the simulator starts")
}

/// The rows that an experiment prints as JSON.
#[track_caller]
fn rows(words: &str) -> Vec<Value> {
    let output = simulate(&format!("{words} --json"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn number(row: &Value, key: &str) -> f64 {
    row.get(key).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number `{key}` in {row}"))
}

/// What holds for all runs: an efficiency from 0 to 1, a time, and what it cost to simulate.
#[track_caller]
fn check(row: &Value) {
    let efficiency = number(row, "efficiency");
    assert!(efficiency > 0.0 && efficiency <= 1.0, "{row}");
    for key in ["cores", "pes", "seconds", "tasks", "events", "rss_bytes", "work_seconds"] {
        assert!(number(row, key) > 0.0, "`{key}` in {row}");
    }
    assert!(number(row, "wall_seconds") >= 0.0 && number(row, "gone_seconds") >= 0.0, "{row}");
}

/// The text of a refusal, with this exit code.
#[track_caller]
fn refusal(words: &str, code: i32) -> String {
    let output = simulate(words);
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{words}: {errors}");
    assert!(output.stdout.is_empty(), "{words}");
    errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn refuses(words: &str, code: i32, parts: &[&str]) {
    let text = refusal(words, code);
    assert!(text.starts_with("error: "), "{words}: {text}");
    for part in parts {
        assert!(text.contains(part), "{words}: `{part}` is not in `{text}`");
    }
}

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It is not there the first time.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder");
    path
}

#[test]
fn weak_scaling_prints_an_object_a_line() {
    let rows = rows("weak --most-cores 64 --tasks-per-core 20");
    let series: Vec<_> = rows.iter().map(|row| (&row["skeleton"], number(row, "cores"))).collect();
    let (two, relaxed) = ("par_map_2level".into(), "par_map_2level_relaxed".into());
    assert_eq!(series, [(&two, 32.0), (&relaxed, 32.0), (&two, 64.0), (&relaxed, 64.0)]);
    for row in &rows {
        check(row);
        assert!(number(row, "efficiency") > 0.8, "{row}");
        assert_eq!((&row["network"], &row["seed"]), (&"gemini".into(), &1.into()));
        let work = number(row, "efficiency") * number(row, "seconds") * number(row, "cores");
        assert!((work / number(row, "work_seconds") - 1.0).abs() < 1e-6, "{row}");
    }
}

#[test]
fn a_seed_is_a_run() {
    let run = |seed: u32| {
        let rows = rows(&format!("weak --cores 128 --tasks-per-core 10 --seed {seed}"));
        rows.iter().map(|row| row["seconds"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn strong_scaling_has_a_speedup() {
    let rows = rows("strong --cores 32 --chunk 100");
    assert_eq!(rows.len(), 8, "four skeletons on two machines");
    for row in &rows {
        check(row);
        let speedup = number(row, "speedup");
        assert!(speedup > 20.0 && speedup <= 32.0, "{row}");
        let work = number(row, "work_seconds");
        let expected = if row["platform"] == "HECToR" { 780.2 } else { 941.7 };
        assert!((work - expected).abs() < 0.1, "the sequential time of the paper: {row}");
    }
    let pes: Vec<_> = rows.iter().map(|row| number(row, "pes")).collect();
    assert_eq!(pes, [4.0; 8], "PEs of 8 cores on both");
}

#[test]
fn trees_are_searched_whole() {
    let rows = rows("uts --tree T1 --cores 16 --node-ns 127");
    check(&rows[0]);
    let work = number(&rows[0], "work_seconds");
    assert!((work - 4_130_071.0 * 127e-9).abs() < 1e-6, "each node once: {work} s");
}

#[test]
fn tasks_spawn_tasks() {
    let queens = rows("queens --board 8 --threshold 3 --cores 16");
    check(&queens[0]);
    // 1 + 8 + 42 + 140 boards with at most three queens.
    assert_eq!(queens[0]["tasks"], 191);
    let fibonacci = rows("fibonacci --n 25 --threshold 15 --cores 16");
    check(&fibonacci[0]);
    // 2 F(26) - 1 calls of 3 ns.
    let work = number(&fibonacci[0], "work_seconds");
    assert!((work - 242_785.0 * 3e-9).abs() < 1e-6, "{work} s");
}

#[test]
fn flat_tasks_have_a_rate() {
    for row in rows("noop --tasks 2000 --cores 32") {
        assert!(number(&row, "tasks_per_second") > 1e5, "{row}");
        assert!(number(&row, "tasks") >= 2000.0 && row.get("efficiency").is_none(), "{row}");
    }
    for row in rows("liouville --limit 100000000 --chunk 1000000 --cores 32") {
        check(&row);
        assert_eq!(row["tasks"], 100);
    }
}

#[test]
fn supervision_is_on_and_off() {
    let rows = rows("supervision --cores 64 --tasks-per-core 10 --repeats 1");
    assert_eq!(rows.len(), 4);
    for row in &rows {
        check(row);
        assert!(number(row, "overhead_percent").abs() < 10.0, "{row}");
        assert!(number(row, "messages_per_migration") <= 2.0, "{row}");
        assert!(number(row, "unsupervised_seconds") > 0.0, "{row}");
    }
}

#[test]
fn jobs_survive_deaths() {
    let rows = rows("deaths --cores 256 --workers 4 --percent 20 --tasks-per-core 10");
    assert_eq!(rows.len(), 2, "two skeletons");
    check(&rows[0]);
    assert_eq!(rows[0]["deaths"], 13);
    assert!(number(&rows[0], "replicas") > 0.0, "{}", rows[0]);
    assert!(number(&rows[0], "overhead_percent") > -20.0, "{}", rows[0]);
}

#[test]
fn jobs_survive_the_death_of_a_rack() {
    let rows = rows("rack --machine 2x4x1x4 --tasks-per-core 10 --at 50");
    check(&rows[0]);
    assert_eq!((number(&rows[0], "deaths"), number(&rows[0], "at_percent")), (4.0, 50.0));
    assert!((number(&rows[0], "at_best_percent") - 50.0).abs() < 1e-6, "{}", rows[0]);
    assert!(number(&rows[0], "overhead_percent") > 20.0, "{}", rows[0]);
}

/// Jobs of a second on 16 PEs, in which something goes wrong.
#[test]
fn jobs_survive_the_faults_of_the_command_line() {
    let words = "weak --machine 2x4x2x4 --tasks-per-core 20 --skeleton par_map_2level_relaxed";
    let run = |faults: &str| {
        let all = rows(&format!("{words} {faults}"));
        check(&all[0]);
        all.into_iter().next().expect("a row")
    };
    let undisturbed = run("");
    let seconds = |row: &Value| number(row, "seconds");
    for (faults, deaths) in [
        ("--fault death:3@100ms", 1.0),
        ("--fault host:3@100ms --fault death:9@0.2s", 3.0),
        ("--fault rack:1@500ms", 8.0),
        ("--fault partition:rack1@100ms+500ms", 0.0),
        ("--fault cut:3-9@100ms+500ms --fault oneway:0-5@0s+1s", 0.0),
        ("--fault stop:3@100ms+3s", 0.0),
        ("--fault overload@100ms+1s", 0.0),
    ] {
        let row = run(faults);
        assert!((number(&row, "deaths") - deaths).abs() < 0.5, "{faults}: {row}");
        assert_eq!(number(&row, "false_verdicts") as u32, 0, "{faults}: {row}");
        let copies = number(&row, "replicas");
        assert!(deaths < 0.5 || copies > 0.0, "lost tasks come again: {faults}: {row}");
    }
    assert!(seconds(&run("--fault stop:3@100ms+3s")) > 3.0, "its tasks are waited for");
    assert!(seconds(&run("--fault overload@100ms+1s")) > seconds(&undisturbed) + 0.5);
    let parted = run("--fault partition:rack1@100ms");
    assert!(number(&parted, "roots_lost") > 7.5, "the side without the root: {parted}");
    let beside = simulate(&format!("{words} --fault death:3@100ms"));
    let progress = String::from_utf8(beside.stderr).expect("text");
    assert!(progress.contains("; 1 died, 0 left early, "), "{progress}");
}

#[test]
fn trees_and_flat_tasks_survive_faults_as_well() {
    let faults = "--fault death:1@100us --fault stop:2@1ms+20ms";
    for words in ["queens --board 10 --threshold 3 --cores 64 --workers 4", "strong --cores 64"] {
        for row in rows(&format!("{words} {faults}")) {
            assert_eq!(number(&row, "deaths") as u32, 1, "{row}");
        }
    }
}

#[test]
fn impossible_faults_are_refused() {
    let kinds = "known are death, host, rack, stop, cut, oneway, partition, overload";
    refuses("weak --fault fire:3@2s", 2, &["there is no fault `fire`", kinds]);
    let form = "`death:17` does not say when; write death:PE@WHEN, such as death:17@2s";
    refuses("weak --fault death:17", 2, &[form]);
    refuses("weak --fault stop:17@1s", 2, &["does not say for how long, above 0 and up to 10s"]);
    refuses("weak --fault death:17@2h", 2, &["times are from 0s to 3600s, in s, ms or us"]);
    refuses("weak --cores 64 --fault death:4@1s", 1, &["is impossible on", "its PEs are 0 to 3"]);
    refuses("strong --cores 64 --fault rack:0@1s", 1, &["the root, PE 0, must live"]);
    let place = "--fault has no place in an experiment that has";
    refuses("deaths --fault death:1@1s", 1, &[place, "it goes with weak, strong, uts"]);
    refuses("supervision --fault death:1@1s", 1, &[place]);
}

#[test]
fn detectors_are_measured() {
    let rows = rows("detector --machine 3x4x2x1");
    let incidents = ["a PE dies", "a host dies", "a rack dies", "stops, late packets"];
    assert_eq!(rows.iter().map(|row| &row["incident"]).collect::<Vec<_>>(), incidents);
    assert_eq!(rows.iter().map(|row| number(row, "deaths")).collect::<Vec<_>>(), [1., 2., 8., 0.]);
    for row in &rows {
        assert_eq!(row["false_verdicts"], 0, "{row}");
        assert_eq!(row["known_seconds"].is_null(), number(row, "deaths") == 0.0, "{row}");
        // Two PEs a host: the other one, and one on each of two other hosts.
        assert_eq!(row["connections_per_pe"], 3.0, "{row}");
        assert!(number(row, "connections_max") > 3.0 && number(row, "dials") >= 36.0, "{row}");
        let (mean, most) = ("messages_per_pe_second", "messages_max_per_second");
        assert!(number(row, mean) > 5.0 && number(row, most) > number(row, mean), "{row}");
    }
    let one = simulate("detector --machine 3x4x2x1 --incident rack-dies");
    let text = String::from_utf8(one.stdout).expect("text");
    assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("a rack dies")), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
    refuses("detector --machine 1x4x2x1", 2, &["it needs two racks at least"]);
}

#[test]
fn jobs_start_and_end() {
    for row in rows("startup --cores 64 --task-ms 10") {
        check(&row);
        let [mean, most, root] =
            ["peers_mean", "peers_max", "peers_root"].map(|key| number(&row, key));
        assert!(mean > 0.0 && mean <= most && root <= most, "{row}");
        assert!(most < number(&row, "pes"), "{row}");
        let (full, gone) = (number(&row, "full_seconds"), number(&row, "gone_seconds"));
        assert!(full < 0.01 && gone > 0.0 && gone < 1.0, "{row}");
    }
}

#[test]
fn random_jobs_are_counted() {
    for threads in [1, 2] {
        let rows = rows(&format!("faults --runs 20 --threads {threads}"));
        assert_eq!([&rows[0]["jobs"], &rows[0]["wrong"], &rows[0]["hung"]], [20, 0, 0]);
        assert!(number(&rows[0], "deaths") > 0.0 && number(&rows[0], "wall_seconds") > 0.0);
    }
    let output = simulate("faults --runs 5");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("5 runs, 0 wrong, 0 hung, "), "{text}");
}

#[test]
fn results_are_a_table_with_progress_beside_it() {
    let output = simulate("weak --cores 32 --tasks-per-core 5 --skeleton par_map");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.starts_with("skeleton                 cores     PEs    time s  efficiency %"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2, "{text}");
    let progress = String::from_utf8(output.stderr).expect("text");
    assert!(progress.starts_with("par_map on 32 cores, 2 PEs … "), "{progress}");
}

#[test]
fn charts_are_written() {
    let folder = folder("charts");
    let path = folder.display();
    simulate(&format!("weak --most-cores 64 --tasks-per-core 5 --svg {path}/new/one"));
    simulate(&format!("strong --cores 8,16 --svg {path}"));
    simulate(&format!("startup --cores 32,64 --svg {path}"));
    simulate(&format!("rack --machine 2x4x1x4 --tasks-per-core 5 --at 50 --svg {path}"));
    simulate(&format!("detector --machine 2x2x2x1 --svg {path}"));
    let strong = ["strong-hector", "strong-beowulf"];
    let others = ["new/one/weak", "startup", "end", "rack", "detector", "detector-messages"];
    for name in strong.into_iter().chain(others) {
        let svg = std::fs::read_to_string(folder.join(format!("{name}.svg"))).expect(name);
        assert!(svg.starts_with("<svg"), "{name}");
    }
    let weak = std::fs::read_to_string(folder.join("new/one/weak.svg")).expect("a chart");
    assert!(weak.contains("SymGridPar2 fig. 12"), "the paper's figure stands beside ours");
}

#[test]
fn experiments_are_listed() {
    let text = String::from_utf8(simulate("list").stdout).expect("text");
    assert!(text.lines().count() >= 12 && text.contains("\nweak         Sum Euler"), "{text}");
}

#[test]
fn unknown_names_are_refused_with_those_that_are_known() {
    let known = "there is no experiment `token`; known are faults, weak, strong, uts, queens";
    refuses("token", 2, &[known]);
    assert!(refusal("", 2).contains("weak Sum Euler on 32 to 131,072 cores"), "it lists all");
    let networks = "there is no network `token-ring`; known are gemini, slingshot, hdr, ethernet";
    refuses("weak --network token-ring", 2, &[networks]);
    refuses("weak --skeleton map", 2, &["par_map_2level_relaxed"]);
    refuses("uts --tree T9", 2, &["t1xxl"]);
}

#[test]
fn impossible_machines_are_refused() {
    refuses("weak --cores 33", 2, &["33 cores do not make PEs of 16", "give a multiple of 16, or"]);
    refuses("weak --cores 24 --workers 16", 2, &["give a multiple of 16"]);
    refuses("weak --cores 274877906944", 2, &["at most 4194304 can be simulated"]);
    refuses("weak --machine 4x0", 2, &["each number is at least 1"]);
    refuses("weak --machine 99999999x2", 2, &["at most 4194304 can be simulated"]);
    refuses("weak --machine 2x2 --cores 32", 2, &["cannot be used with"]);
    refuses("weak --machine 2x2 --most-cores 32", 2, &["cannot be used with"]);
    refuses("weak --cores 64 --unequal 16,8", 2, &["cannot be used with"]);
    refuses("weak --unequal 16,8", 2, &["describe the hosts by --machine or --topology"]);
    refuses("weak --slow-hosts 2:2", 2, &["the fraction is above 0 and at most 1"]);
    refuses("rack --cores 64", 2, &["it needs two racks at least"]);
}

#[test]
fn impossible_numbers_are_refused() {
    let refuses_number = |words: &str, option: &str, least: &str, most: &str| {
        let range = format!(": expected a whole number from {least} to {most}");
        refuses(words, 2, &["invalid value '", &format!("' for '{option} <"), &range]);
    };
    for cores in ["0", "-5", "99999999999999999999", "32,x", "1e3", "32,"] {
        refuses_number(&format!("weak --cores {cores}"), "--cores", "1", "274877906944");
    }
    for most in ["0", "31", "-64"] {
        refuses_number(&format!("weak --most-cores {most}"), "--most-cores", "32", "274877906944");
    }
    for ns in ["-1", "0", "1e30"] {
        refuses_number(&format!("weak --division-ns {ns}"), "--division-ns", "1", "1000000");
    }
    let u64_max = "18446744073709551615";
    refuses_number("weak --cores 32 --workers 0", "--workers", "1", "65536");
    refuses_number("weak --seed -1", "--seed", "0", u64_max);
    refuses_number("faults --runs -1", "--runs", "1", u64_max);
    refuses_number("noop --tasks 0", "--tasks", "1", "1073741824");
    refuses_number("queens --board 17", "--board", "1", "16");
    refuses("fibonacci --n 80 --threshold 1", 2, &["at most 35 above --threshold"]);
    refuses("weak --latency-us -1", 2, &["expected a number from 0 to 60000000"]);
    refuses("weak --jitter -1", 2, &["expected a number from 0 to 1000"]);
    refuses("deaths --percent -1", 2, &["expected a number from 0 to 100"]);
    refuses("deaths --cores 32 --percent 100", 2, &["the root survives"]);
}

#[test]
fn seeds_that_do_not_exist_are_refused() {
    let largest = "--seed may be at most 18446744073709551612 with --runs 3";
    refuses("faults --seed 18446744073709551615 --runs 3", 2, &[largest]);
    refuses(
        "validate a.json --measured b.json --seed 18446744073709551613 --runs 3",
        2,
        &[largest],
    );
    let rows = rows("faults --seed 18446744073709551612 --runs 3");
    assert_eq!(rows[0]["jobs"], 3);
}

#[test]
fn events_are_not_mixed_with_json() {
    for experiment in ["weak", "faults"] {
        refuses(&format!("{experiment} --tell --json"), 2, &["cannot be used with"]);
    }
}

#[test]
fn a_topology_file_is_a_machine() {
    let path = folder("topology").join("machine.toml");
    let file = path.display();
    let text = "[[hosts]]\nnames = \"n[1-3]\"\nswitches = [\"a\"]\n\
                [[hosts]]\nnames = \"n4\"\nswitches = [\"b\"]\n";
    std::fs::write(&path, text).expect("a file");
    let sizes = |words: &str| {
        let words = format!("weak --topology {file} --tasks-per-core 5 {words}");
        let rows = rows(&words);
        (number(&rows[0], "pes"), number(&rows[0], "cores"))
    };
    assert_eq!(sizes(""), (4.0, 64.0));
    assert_eq!(sizes("--pes-per-host 2 --workers 3"), (8.0, 24.0));
    assert_eq!(sizes("--unequal 4,1"), (4.0, 10.0));
    refuses("weak --pes-per-host 2", 2, &["--topology <FILE>"]);
    refuses(&format!("weak --topology {file} --cores 32"), 2, &["cannot be used with"]);
    let many = format!("weak --topology {file} --pes-per-host 4194304");
    refuses(&many, 2, &["16777216 PEs; at most 4194304 can be simulated"]);
    refuses("weak --topology /nowhere.toml", 2, &["cannot read the topology file /nowhere.toml"]);
}

#[test]
fn measured_networks_are_read_or_refused() {
    let folder = folder("measured");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let whole = r#"{"latency":[{"share":null,"p50_us":20.0,"p99_us":40.0}]}"#;
    let rows = rows(&format!("weak --cores 32 --measured {}", file("whole.json", whole)));
    assert_eq!(rows[0]["network"], "measured");
    let refused = |name: &str, text: &str, part: &str| {
        let path = file(name, text);
        refuses(&format!("weak --cores 32 --measured {path}"), 2, &[&path, part]);
    };
    refused("truncated.json", &whole[..30], "is not JSON: EOF while parsing");
    refused("negative.json", &whole.replace("20.0", "-20.0"), "round trips take above 0");
    refused("empty.json", "{}", "run `ultramarine topo --json` in a job of two PEs or more");
    let nowhere = folder.join("nowhere").display().to_string();
    refuses(&format!("weak --measured {nowhere}"), 2, &["cannot read", "No such file"]);
}

#[test]
fn charts_without_a_place_are_refused_before_the_runs() {
    refuses("weak --svg /proc/nowhere", 2, &["cannot make the folder /proc/nowhere: "]);
    refuses("weak --svg /proc", 2, &["cannot write /proc/weak.svg: "]);
    let folder = folder("svg");
    std::fs::create_dir(folder.join("end.svg")).expect("a folder");
    let path = folder.display();
    refuses(&format!("startup --svg {path}"), 2, &[&format!("cannot write {path}/end.svg: ")]);
    assert!(!folder.join("startup.svg").exists(), "the check leaves nothing behind");
}

#[test]
fn rows_are_shown_as_they_come() {
    for words in ["", "--json"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ultramarine-simulator"));
        // The second run takes for ever.
        command.args("weak --cores 32,4194304 --skeleton par_map".split(' '));
        command.args(words.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the simulator starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let first = lines.next().expect("a line").expect("text");
        let row =
            if words.is_empty() { lines.next().expect("a line").expect("text") } else { first };
        child.kill().expect("it runs");
        child.wait().expect("an end");
        assert!(row.contains("par_map"), "{row}");
    }
}

/// As `… | head -1` does.
#[test]
fn a_reader_may_leave() {
    for words in ["faults --runs 300 --tell", "weak --cores 32,64,128,256 --json", "list"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ultramarine-simulator"));
        command.args(words.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the simulator starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::with_capacity(1, stdout).read_line(&mut line).expect("a line");
        let output = child.wait_with_output().expect("an end");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !errors.contains("panicked"), "{words}: {errors}");
        assert!(!line.is_empty() && !errors.contains("error"), "{words}: {errors}");
    }
}
