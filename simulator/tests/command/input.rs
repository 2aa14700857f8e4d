//! Machines, networks and numbers from outside: what is taken, and what is refused.

use super::*;

#[test]
fn impossible_faults_are_refused() {
    let kinds = "known are death, host, rack, stop, cut, oneway, partition, overload";
    refuses("weak --fault fire:3@2s", 2, &["there is no fault `fire`", kinds]);
    let form = "`death:17` does not say when; write death:PE@WHEN, such as death:17@2s";
    refuses("weak --fault death:17", 2, &[form]);
    refuses("weak --cores 64 --fault death:4@1s", 2, &["is impossible on", "its PEs are 0 to 3"]);
    refuses("strong --cores 64 --fault rack:0@1s", 2, &["the root, PE 0, must live"]);
    let place = "--fault has no place in an experiment that has";
    refuses("deaths --fault death:1@1s", 2, &[place, "it goes with weak, strong, uts"]);
    refuses("supervision --fault death:1@1s", 2, &[place]);
}

#[test]
fn unknown_names_are_refused_with_those_that_are_known() {
    let known = "there is no experiment `token`; known are faults, weak, strong, uts, queens";
    refuses("token", 2, &[known]);
    assert!(refusal("", 2).contains("weak Sum Euler on 32 to 131,072 cores"), "it lists all");
    let networks =
        "there is no network `token-ring`; known are gemini, slingshot, hdr, ethernet, ideal";
    refuses("weak --network token-ring", 2, &[networks]);
    refuses("weak --skeleton map", 2, &["par_map_2level_relaxed"]);
    refuses("uts --tree T9", 2, &["t1xxl"]);
}

#[test]
fn impossible_machines_are_refused() {
    refuses(
        "weak --cores 33",
        2,
        &["33 cores do not make PEs of 16", "give a multiple of 16, or another number"],
    );
    refuses("weak --cores 24 --workers 16", 2, &["give a multiple of 16"]);
    refuses(
        "weak --cores 274877906944",
        2,
        &["cores` has 17179869184 PEs; at most 4194304 can be"],
    );
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
    refuses("weak --cores 64 --pes-per-host 2", 2, &["--pes-per-host", "cannot be used with"]);
    refuses("detector --fault death:1@1s", 2, &["--fault", "incidents of its own"]);
    refuses("map --task-time 2s..1s", 2, &["--task-time", "longer"]);
    refuses("weak --cores 64 --measured /dev/zero", 2, &["/dev/zero", "256 MiB"]);
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
