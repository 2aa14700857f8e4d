//! `sum_euler` as its user sees it: results, reports, error texts, exit codes; alone and under the
//! launcher that `MPIEXEC_FOR_TESTS` names (without it those tests say so and pass).

use crate::common::{SKELETONS, SKELETONS_OF_ROOT, SUM_EULER};
use std::time::Duration;
use ultramarine_testkit::{alone, finish, folder, run};

#[test]
fn alone_and_sequentially_the_sum_is_right() {
    SUM_EULER.shows("--upto 10000 --skeleton sequential", &["sum_euler (sequential): 30397486"]);
    let small = SUM_EULER.report("--upto 1 --tasks 50");
    assert_eq!((&small["result"], &small["tasks"]), (&1.into(), &1.into()));
}

#[test]
fn every_skeleton_on_every_lane_gives_the_sum() {
    for how in ["--lane memory", "--lane tcp", "--supervised"] {
        for skeleton in SKELETONS.into_iter().chain(SKELETONS_OF_ROOT) {
            let flags = format!("--upto 3000 --tasks 60 --threads 1 --pes 3 {how}");
            let report = SUM_EULER.report(&format!("{flags} --skeleton {skeleton}"));
            assert_eq!(report["result"], 2_736_188, "{how} {skeleton}");
            assert_eq!(report["skeleton"], skeleton);
            assert_eq!(report["supervised"], how == "--supervised");
        }
    }
}

#[test]
fn gap_computes_the_sum() {
    let flags = "--upto 3000 --tasks 60 --pes 2 --threads 1 --phi gap";
    assert_eq!(SUM_EULER.result(flags), 2_736_188);
    let mut missing = SUM_EULER.command(flags);
    let ended = run(missing.env("ULTRAMARINE_GAP", "/no/such/gap"));
    ended.fails_with("there is no program `/no/such/gap`");
}

#[test]
fn the_sum_up_to_10000_on_four_pes() {
    let flags = "--upto 10000 --pes 4 --threads 1 --lane tcp --skeleton par-map-2level";
    assert_eq!(SUM_EULER.result(flags), 30_397_486);
}

#[test]
#[ignore = "takes minutes"]
fn the_sum_up_to_100000() {
    let mut command = SUM_EULER.command("--upto 100000 --tasks 2000 --json");
    let ended = finish(&mut command, Duration::from_mins(20));
    assert_eq!(ended.report()["result"], 3_039_650_754_u64);
}

#[test]
fn the_report_has_the_fields_that_scripts_read() {
    let flags = "--upto 4000 --tasks 123 --pes 2 --threads 1 --show-topology";
    let report = SUM_EULER.report(flags);
    assert_eq!(report["program"], "sum_euler");
    assert_eq!((&report["pes"], &report["threads"]), (&2.into(), &1.into()));
    assert_eq!(report["tasks"], 123);
    // The root takes tasks back from the other PE, which tells it so; no other PE gets any.
    assert!(report["notifies"].is_u64(), "{report}");
    assert_eq!((&report["acks"], &report["replicas"]), (&0.into(), &0.into()), "{report}");
    assert_eq!(report["supervised"], false);
    assert!(report["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{report}");
    let steals = report["steals"].as_object().expect("steals by distance");
    assert!(steals.iter().all(|(distance, n)| distance == "1" && n.as_u64() > Some(0)), "{report}");
}

#[test]
fn the_efficiency_is_shown() {
    let flags = "--upto 3000 --pes 2 --threads 1 --progress --efficiency";
    SUM_EULER.shows(flags, &["efficiency"]);
}

#[test]
fn who_is_asked_to_end_says_what_is_there() {
    // The whole would take days.
    let flags = "--upto 1000000 --tasks 100000 --pes 2 --threads 1 --partial --json";
    let mut command = alone("timeout", "--preserve-status --signal=TERM 2");
    let report = run(command.arg(SUM_EULER).args(flags.split(' '))).report();
    let (done, of) = (report["ranges"].as_u64(), report["of"].as_u64());
    assert!(done < of && of == Some(100_000), "{report}");
    let report = SUM_EULER.report("--upto 3000 --pes 2 --partial --supervised");
    assert_eq!((&report["result"], &report["ranges"]), (&2_736_188.into(), &400.into()));
}

#[test]
fn flags_that_cannot_be_are_refused() {
    SUM_EULER.refuses(&[
        ("--upto 0", "'--upto <N>': 0 is not in 1..=1000000000"),
        ("--upto -5", "'--upto <N>': -5 is not in 1..=1000000000"),
        ("--tasks 0", "'--tasks <K>': 0 is not in 1..=10000000"),
        ("--tasks -1", "'--tasks <K>': -1 is not in 1..=10000000"),
        ("--upto 1000000000 --tasks 10000001", "10000001 is not in 1..=10000000"),
        ("--skeleton fast", "'--skeleton <SKELETON>'"),
        ("--frobnicate", "unexpected argument '--frobnicate'"),
        ("--pes 0", "'--pes <P>'"),
        ("--threads 0", "a PE needs at least one worker thread"),
        ("--threads 1000000", "'--threads <T>'"),
        ("--lane pigeon", "'--lane <LANE>'"),
        ("--pes 2 --lane mpi", "needs a launcher"),
        ("--set max_hops", "NAME=VALUE"),
        ("--set max_hops=x", "max_hops = `x`"),
        ("--set max_hop=1", "max_hop is not a setting; the settings are max_fish,"),
        ("--topology /nowhere.toml", "cannot read the topology file /nowhere.toml"),
    ]);
}

#[test]
fn variables_that_cannot_be_are_refused() {
    for (name, value, text) in [
        ("ULTRAMARINE_THREADS", "0", "a PE needs at least one worker thread"),
        ("ULTRAMARINE_THREADS", "1000000", "ULTRAMARINE_THREADS = `1000000`"),
        ("ULTRAMARINE_PES", "few", "ULTRAMARINE_PES = `few`"),
        ("ULTRAMARINE_LANE", "pigeon", "ULTRAMARINE_LANE = `pigeon`"),
        ("ULTRAMARINE_LOG", "bogus=", "ULTRAMARINE_LOG = `bogus=`"),
        ("ULTRAMARINE_SHUTDOWN_GRACE", "500000000000years", "ULTRAMARINE_SHUTDOWN_GRACE"),
        ("ULTRAMARINE_MAX_HOPS", "x", "ULTRAMARINE_MAX_HOPS = `x`"),
        ("ULTRAMARINE_MAX_HOP", "1", "ULTRAMARINE_MAX_HOP is not a setting"),
        ("ULTRAMARINE_SPIN", "7", "ULTRAMARINE_SPIN = `7`"),
    ] {
        run(SUM_EULER.command("--upto 10").env(name, value)).fails_with(text);
    }
}

#[test]
fn topology_files_that_cannot_be_are_refused() {
    let folder = folder!("topology_files");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("on Linux");
    let host = host.trim();
    for (name, content, text) in [
        ("malformed", "[[hosts]".to_owned(), "is malformed"),
        ("stranger", "[[hosts]]\nnames = \"nobody\"\n".to_owned(), "names 1 hosts, but not `"),
        (
            "contradictory",
            format!(
                "[[hosts]]\nnames = \"{host}\"\nswitches = [\"a\"]\n\
                 [[hosts]]\nnames = \"{host}\"\nswitches = [\"b\"]\n"
            ),
            "twice",
        ),
    ] {
        let file = folder.join(name);
        std::fs::write(&file, content).expect("the folder is ours");
        run(SUM_EULER.command("--upto 10 --pes 2").env("ULTRAMARINE_TOPOLOGY", &file))
            .fails_with(text);
        run(SUM_EULER.command("--upto 10 --topology").arg(&file)).fails_with(text);
    }
}

/// As under `srun --mpi=none`: the environment says four, and each process is alone.
#[test]
fn a_world_of_one_is_an_error() {
    let mut command = SUM_EULER.command("--upto 10");
    command.env("SLURM_NTASKS", "4").env("SLURM_PROCID", "0").env("SLURM_STEP_ID", "0");
    if cfg!(feature = "mpi") {
        run(&mut command).fails_with("SLURM_NTASKS says that 4 processes were started, but MPI");
        run(command.args(["--pes", "2"])).fails_with("leave out one of the two");
        // The first may not be there, if these variables are those of another job.
        let other = command.env("SLURM_PROCID", "3");
        run(other).fails_with("of which this is number 3, but it is alone");
    } else {
        run(&mut command).fails_with("this program was built without MPI");
    }
}

/// In the script of a batch job Slurm's variables speak of the whole allocation.
#[test]
fn a_batch_script_starts_one_process() {
    let mut command = SUM_EULER.command("--upto 3000 --pes 2 --threads 1 --json");
    command.env("SLURM_NTASKS", "4").env("SLURM_PROCID", "0").env("SLURM_JOB_ID", "1");
    assert_eq!(run(&mut command).report()["pes"], 2);
}

#[cfg(feature = "mpi")]
mod mpi {
    use super::*;
    use crate::common::launcher;

    #[test]
    fn any_number_of_ranks_gives_the_sum() {
        SUM_EULER.on_ranks(4, "--upto 3000 --tasks 40", |report| {
            assert_eq!(report["result"], 2_736_188);
        });
    }

    /// The program's functions are compiled with the library, and its `main` apart from them. Other
    /// processes find the code of what they steal by its reference.
    #[test]
    fn functions_of_the_library_run_in_other_processes() {
        let flags = "--upto 6000 --tasks 100 --skeleton par-map --json";
        let Some(mut command) = SUM_EULER.launched(3, flags) else { return };
        let report = run(&mut command).report();
        assert_eq!(report["result"], 10_943_164, "{report}");
        assert!(report["steals"].as_object().is_some_and(|steals| !steals.is_empty()), "{report}");
    }

    #[test]
    fn every_skeleton_gives_the_sum() {
        for skeleton in SKELETONS {
            let flags = "--upto 3000 --tasks 40 --json --show-topology --skeleton";
            let Some(mut command) = SUM_EULER.launched(3, flags) else { return };
            let ended = run(command.arg(skeleton));
            assert_eq!(ended.report()["result"], 2_736_188, "{skeleton}");
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("on Linux");
            let host = host.trim().split('.').next().unwrap_or_default();
            assert!(ended.out.contains(host), "the hierarchy is shown: {}", ended.out);
        }
    }

    #[test]
    fn a_launcher_and_pes_inside_one_process_contradict_each_other() {
        for flags in ["--pes 2", "--lane memory"] {
            let Some(mut command) = SUM_EULER.launched(2, "--upto 10") else { return };
            run(command.args(flags.split_whitespace())).fails_with("leave out one of the two");
        }
    }

    #[test]
    fn different_programs_in_one_job_are_refused() {
        let Some(mut command) = launcher() else { return };
        let folder = folder!("mixed");
        let mut program = std::fs::read(SUM_EULER.0).expect("the program is there");
        program.push(0);
        let other = folder.join("sum_euler");
        std::fs::copy(SUM_EULER.0, &other).expect("the folder is ours");
        std::fs::write(&other, program).expect("the folder is ours");
        command.args(["-n", "1", SUM_EULER.0, "--upto", "10", ":", "-n", "1"]);
        command.arg(other).args(["--upto", "10"]);
        run(&mut command).fails_with("the processes run different programs: rank 0 build");
    }

    #[test]
    fn what_is_wrong_on_one_rank_ends_all_and_rank_0_says_it() {
        for (flags, text) in [
            ("--topology /nowhere.toml", "cannot read the topology file /nowhere.toml"),
            ("--set max_hops=x", "max_hops = `x`"),
            ("--lane tcp", "it was told to use another lane than rank 0"),
            ("--lane memory", "leave out one of the two"),
            ("--pes 2", "leave out one of the two"),
            ("--set message_bytes_max=5000", "its message_bytes_max is 5000"),
        ] {
            let Some(mut command) = launcher() else { return };
            command.args(["-n", "2", SUM_EULER.0, "--upto", "10", ":", "-n", "1", SUM_EULER.0]);
            command.args(["--upto", "10"]).args(flags.split_whitespace());
            let ended = run(&mut command);
            ended.fails_with(text);
            ended.fails_with("rank 2 on");
        }
    }

    #[test]
    fn a_bad_variable_of_one_rank_ends_all() {
        for (variable, text) in [
            ("ULTRAMARINE_PES=few", "ULTRAMARINE_PES = `few`"),
            ("ULTRAMARINE_LOG=bogus=", "ULTRAMARINE_LOG = `bogus=`"),
        ] {
            let Some(mut command) = launcher() else { return };
            command.args(["-n", "1", SUM_EULER.0, "--upto", "10", ":", "-n", "1", "env", variable]);
            let ended = run(command.args([SUM_EULER.0, "--upto", "10"]));
            ended.fails_with(text);
            ended.fails_with("rank 1 on");
        }
    }

    #[test]
    fn topology_files_that_contradict_each_other_are_refused() {
        let folder = folder!("topology_of_ranks");
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("on Linux");
        let file = |switch: &str| {
            let file = folder.join(switch);
            let name = host.trim();
            let content = format!("[[hosts]]\nnames = \"{name}\"\nswitches = [\"{switch}\"]\n");
            std::fs::write(&file, content).expect("the folder is ours");
            ["--topology".into(), file.into_os_string()]
        };
        for (other, text) in [
            (Some(file("b")), "and rank 0 on the same host at `switch a"),
            (None, "from the host name, and rank 0 from a topology file"),
        ] {
            let Some(mut command) = launcher() else { return };
            command.args(["-n", "1", SUM_EULER.0, "--upto", "10"]).args(file("a"));
            command
                .args([":", "-n", "1", SUM_EULER.0, "--upto", "10"])
                .args(other.iter().flatten());
            let ended = run(&mut command);
            ended.fails_with(text);
            ended.fails_with("rank 1 on");
        }
    }

    #[test]
    fn a_process_that_never_joins_is_not_waited_for_without_end() {
        let Some(mut command) = launcher() else { return };
        command.env("ULTRAMARINE_START_DEADLINE", "1s");
        command.args(["-n", "1", SUM_EULER.0, "--upto", "10", ":", "-n", "1", "sleep", "40"]);
        run(&mut command).fails_with("rank 0 has waited 1s for the other processes to start");
    }

    #[test]
    fn variables_that_cannot_be_are_refused() {
        for (name, value, text) in [
            ("ULTRAMARINE_THREADS", "0", "a PE needs at least one worker thread"),
            ("ULTRAMARINE_MAX_HOPS", "x", "ULTRAMARINE_MAX_HOPS = `x`"),
            ("ULTRAMARINE_MAX_HOP", "1", "ULTRAMARINE_MAX_HOP is not a setting"),
        ] {
            let Some(mut command) = SUM_EULER.launched(2, "--upto 10") else { return };
            run(command.env(name, value)).fails_with(text);
        }
    }
}
