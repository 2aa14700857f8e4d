//! Small runs: what they print.

use super::*;

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
    let lazy = rows("fibonacci --n 25 --threshold 15 --cores 16 --workers 1 --lazy");
    check(&lazy[0]);
    let work_of_lazy = number(&lazy[0], "work_seconds");
    assert!((work_of_lazy - work).abs() < 1e-6, "{work_of_lazy} s");
    let few = number(&fibonacci[0], "tasks") / 2.0;
    assert!(number(&lazy[0], "tasks") < few, "{}", lazy[0]);
}

/// In simulated time, which is the same on any machine.
#[test]
fn what_must_not_take_long_does_not() {
    // Acknowledgements wait for company, but not when all PEs wait for them.
    let queens = rows("queens --board 12 --threshold 5 --cores 32");
    assert!(number(&queens[0], "gone_seconds") < 0.05, "{}", queens[0]);
    // Results go home level by level, mostly to PEs that have nothing else to do.
    let queens = rows("queens --board 14 --threshold 5 --cores 128");
    assert!(number(&queens[0], "efficiency") > 0.8, "{}", queens[0]);
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

/// Invitations, notices and messages overtake each other, and PEs die that should pass them on.
#[test]
fn groups_live_on_whatever_dies() {
    for seed in 1..=8 {
        let words = "groups --machine 2x4x8x1 --jitter 20 --deaths 6";
        // That a living PE has had no part, or does not hear of the end, is an error.
        let rows = rows(&format!("{words} --seed {seed}"));
        let deaths: Vec<_> = rows.iter().map(|row| number(row, "deaths") as u32).collect();
        assert_eq!(deaths, [0, 6, 1]);
        for row in rows {
            let [begun, closed] = ["begun_ms", "closed_ms"].map(|key| number(&row, key));
            assert!(0.0 < begun && begun < closed && closed < 300.0, "{row}");
            let limit = number(&row, "predicted_ms");
            assert!(begun < limit * if row["deaths"] == 0 { 1.0 } else { 10.0 }, "{row}");
        }
    }
}

/// The outputs are checked in each run.
#[test]
fn supersteps_take_few_messages_whatever_dies() {
    for seed in 1..=4 {
        let rows = rows(&format!("supersteps --machine 2x4x8x1 --supersteps 8 --seed {seed}"));
        let deaths: Vec<_> = rows.iter().map(|row| number(row, "deaths") as u32).collect();
        assert_eq!(deaths, [0, 0, 2]);
        let sent = number(&rows[0], "messages_per_pe_and_superstep");
        let most = number(&rows[0], "rounds") + 3.0;
        assert!(most - 1.0 < sent && sent <= most, "{}", rows[0]);
        assert!(number(&rows[0], "superstep_ms") > 1.0, "a step takes 1 ms: {}", rows[0]);
        assert!(number(&rows[2], "restored_per_pe") > 1.0, "{}", rows[2]);
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
fn rows_are_shown_as_they_come() {
    for words in ["", "--json"] {
        // The second run takes for ever.
        let mut child = start(&format!("weak --cores 32,4194304 --skeleton par_map {words}"));
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let first = lines.next().expect("a line").expect("text");
        let is_json = !words.is_empty();
        let row = if is_json { first } else { lines.next().expect("a line").expect("text") };
        child.kill().expect("it runs");
        child.wait().expect("an end");
        assert!(row.contains("par_map"), "{row}");
    }
}

/// As `… | head -1` does.
#[test]
fn a_reader_may_leave() {
    for words in ["faults --runs 300 --tell", "weak --cores 32,64,128,256 --json", "list"] {
        let mut child = start(words);
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::with_capacity(1, stdout).read_line(&mut line).expect("a line");
        let output = child.wait_with_output().expect("an end");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !errors.contains("panicked"), "{words}: {errors}");
        assert!(!line.is_empty() && !errors.contains("error"), "{words}: {errors}");
    }
}
