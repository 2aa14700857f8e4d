//! Killing processes on purpose, as the user of a program sees it: what is refused, and what the
//! root says beforehand.

use crate::common::LIOUVILLE;
use ultramarine_testkit::run;

#[test]
fn flags_that_cannot_be_are_refused() {
    for (flags, text) in [
        ("--kill-at -1", "`-1` is before the start of the job"),
        ("--kill-at 1,soon", "`soon` is no number"),
        ("--kill-at 86401", "`86401` is more than a day"),
        ("--kill-at", "a value is required for '--kill-at <SECONDS,…>'"),
        ("--chaos-monkey=maybe", "a seed (a whole number) or `random` is expected"),
        ("--chaos-within 0s", "more than zero"),
        ("--chaos-within 5", "a duration such as 500ms"),
    ] {
        LIOUVILLE.run(&format!("--upto 10 {flags}")).fails_with(text);
    }
}

#[test]
fn variables_that_cannot_be_are_refused() {
    for (name, value, text) in [
        ("ULTRAMARINE_KILL_AT", "soon", "ULTRAMARINE_KILL_AT = `soon`: `soon` is no number"),
        ("ULTRAMARINE_CHAOS_MONKEY", "yes", "ULTRAMARINE_CHAOS_MONKEY = `yes`: a seed"),
        ("ULTRAMARINE_CHAOS_WITHIN", "2days", "ULTRAMARINE_CHAOS_WITHIN = `2days`: at most a day"),
    ] {
        run(LIOUVILLE.command("--upto 10").env(name, value)).fails_with(text);
    }
}

#[test]
fn threads_are_not_killed() {
    for flags in ["--kill-at 1", "--chaos-monkey", "--chaos-monkey=3 --pes 4"] {
        let ended = LIOUVILLE.run(&format!("--upto 10 {flags}"));
        ended.fails_with("kill processes, and here all PEs are threads of one: start the program");
    }
    let mut by_variable = LIOUVILLE.command("--upto 10");
    run(by_variable.env("ULTRAMARINE_KILL_AT", "1")).fails_with("all PEs are threads of one");
}

#[cfg(feature = "mpi")]
mod mpi {
    use super::*;
    use crate::common::{FIBONACCI, MANDELBROT, Program, QUEENS, SUM_EULER, UTS, launcher};

    #[test]
    fn more_kills_than_mortals_are_refused() {
        for (ranks, flags, text) in [
            (2, "--kill-at 9,9", "names 2 moments, and the job has 2 PEs: at most 1 of them"),
            (1, "--kill-at 9", "and the job has 1 PEs: at most 0 of them"),
        ] {
            let Some(mut command) = LIOUVILLE.launched(ranks, flags) else { return };
            run(&mut command).fails_with(text);
        }
    }

    #[test]
    fn ranks_with_other_faults_are_refused() {
        for flags in ["--kill-at 9", "--chaos-monkey", "--chaos-monkey=3"] {
            let Some(mut command) = launcher() else { return };
            let first = "--upto 10 --chaos-monkey=4 : -n 1".split(' ');
            command.args(["-n", "1", LIOUVILLE.0]).args(first);
            command.args([LIOUVILLE.0, "--upto", "10"]).args(flags.split_whitespace());
            run(&mut command).fails_with("it was told to kill others than rank 0 was");
        }
    }

    /// The faults are still to come when these jobs have ended.
    #[test]
    fn the_root_says_once_who_is_to_be_killed() {
        for (flags, said) in [
            (
                "--kill-at 40000,50000.5 --set seed=7",
                "seed 7 (again by --set seed=7): to be killed",
            ),
            ("--chaos-monkey=7 --chaos-within 24h", "seed 7 (again by --chaos-monkey=7): to be"),
            ("--chaos-monkey --chaos-within 24h", "(again by --chaos-monkey="),
        ] {
            let flags = format!("--upto 1000 --json {flags}");
            let Some(mut command) = LIOUVILLE.launched(3, &flags) else { return };
            let ended = run(&mut command);
            assert_eq!(ended.report()["result"], -14);
            assert_eq!(ended.err.matches(said).count(), 1, "{}", ended.err);
        }
    }

    /// Long enough that they die in the middle of it.
    const LONG: &str = "--upto 100000000 --tasks 200";
    const RESULT: i64 = -3884;
    /// When they die, in seconds.
    const TWO: &str = "0.02,0.06";

    fn survives_two_deaths_on(lane: &str) {
        for skeleton in ["par-map", "push-map", "par-map-2level-relaxed"] {
            let flags = format!("{LONG} --lane {lane} --skeleton {skeleton}");
            LIOUVILLE.survives(TWO, &flags, |report| assert_eq!(report["result"], RESULT));
        }
    }

    #[test]
    fn a_supervised_job_survives_two_deaths() {
        survives_two_deaths_on("mpi");
    }

    #[test]
    fn a_supervised_job_survives_two_deaths_over_tcp() {
        survives_two_deaths_on("tcp");
    }

    /// Runs a program on four ranks of which two die.
    fn survives_two_deaths(program: Program, flags: &str, result: u64) {
        program.survives(TWO, flags, |report| assert_eq!(report["result"], result, "{flags}"));
    }

    #[test]
    fn divide_and_conquer_survives_two_deaths() {
        for skeleton in ["par-divide-and-conquer", "push-divide-and-conquer"] {
            survives_two_deaths(QUEENS, &format!("--board 14 --skeleton {skeleton}"), 365_596);
            let flags = format!("--n 40 --threshold 20 --skeleton {skeleton}");
            survives_two_deaths(FIBONACCI, &flags, 102_334_155);
        }
    }

    #[test]
    fn searches_survive_two_deaths() {
        for splitting in ["steal-driven", "budget:20000", "depth:4", "ordered"] {
            let flags = format!("-t 1 -a 3 -d 10 -b 4 -r 19 --splitting {splitting}");
            survives_two_deaths(UTS, &flags, 4_130_071);
        }
    }

    #[test]
    fn map_and_reduce_survives_two_deaths() {
        let flags = "--width 600 --height 450 --depth 1000";
        let checksum = MANDELBROT.result(&format!("{flags} --skeleton sequential"));
        let checksum = checksum.as_u64().expect("a checksum");
        for skeleton in ["par-map-reduce", "push-map-reduce"] {
            survives_two_deaths(MANDELBROT, &format!("{flags} --skeleton {skeleton}"), checksum);
        }
    }

    #[test]
    fn maps_in_groups_survive_two_deaths() {
        for skeleton in ["par-map-chunked", "par-map-sliced", "push-map-chunked", "push-map-sliced"]
        {
            let flags = format!("--upto 6000 --tasks 400 --skeleton {skeleton}");
            survives_two_deaths(SUM_EULER, &flags, 10_943_164);
        }
    }

    #[test]
    fn a_supervised_job_survives_the_chaos_monkey() {
        for _ in 0..3 {
            let flags = format!("{LONG} --json --supervised --chaos-monkey --chaos-within 100ms");
            let Some(mut command) = LIOUVILLE.launched(4, &flags) else { return };
            let ended = run(&mut command);
            assert_eq!(ended.report()["result"], RESULT, "{}", ended.err);
            assert!(ended.err.contains("kills itself"), "{}", ended.err);
        }
    }

    #[test]
    fn an_unsupervised_job_ends_with_the_death_that_it_lost_tasks_by() {
        let flags = format!("{LONG} --skeleton push-map --kill-at 0.05");
        let Some(mut command) = LIOUVILLE.launched(3, &flags) else { return };
        run(&mut command).fails_with("which died: spawn it with `cx.supervised()`");
    }
}
