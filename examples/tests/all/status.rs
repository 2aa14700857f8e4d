//! `--status FILE` as its user sees it: a job says what it does while it runs, also when processes
//! have died.

use crate::common::NAPS;
use std::path::Path;
use std::process::Command;
use std::thread;
use ultramarine_status::JobStatus;
use ultramarine_status::client;
use ultramarine_status::contact::Contact;
use ultramarine_testkit::{Ended, alone, eventually, folder, run};

/// What a job has to say: in words, and as a condition.
type Says<'a> = (&'a str, &'a dyn Fn(&JobStatus) -> bool);

fn decode(body: &[u8]) -> std::io::Result<JobStatus> {
    Ok(serde_json::from_slice(body)?)
}

/// Runs a job until its end. Meanwhile it has to say each of these at some time, one after the
/// other.
fn while_it_runs(command: &mut Command, file: &Path, says: &[Says<'_>]) -> Ended {
    command.arg("--status").arg(file);
    let ended = thread::scope(|scope| {
        let job = scope.spawn(|| run(command));
        for (what, is_so) in says {
            eventually(what, || {
                let said =
                    Contact::read(file).ok().and_then(|contact| client::ask(&contact, decode).ok());
                said.is_some_and(|job| is_so(&job))
            });
        }
        job.join().expect("it ends")
    });
    assert!(!file.exists(), "it is removed at the end");
    ended
}

#[test]
fn a_job_says_what_it_does_while_all_its_workers_are_in_tasks() {
    let folder = folder!("threads");
    let metrics = folder.join("job.prom");
    let flags = "--tasks 12 --shortest 500000 --longest 500000 --pes 3 --threads 1 --json";
    let mut command = alone(NAPS, flags);
    let ended = while_it_runs(
        command.arg("--metrics").arg(&metrics),
        &folder.join("status"),
        &[
            ("it has tasks", &|job| job.pes.iter().all(|pe| pe.started > 0 && pe.idle == 0)),
            ("some have ended", &|job| job.pes.iter().map(|pe| pe.ended).sum::<u64>() > 3),
        ],
    );
    assert_eq!(ended.report()["result"], 6_000_000);
    let text = std::fs::read_to_string(metrics).expect("it stays");
    let started = text.lines().filter_map(|line| {
        let value = line.strip_prefix("ultramarine_tasks_started_total{")?.rsplit_once(' ')?.1;
        value.parse::<u64>().ok()
    });
    assert!(started.sum::<u64>() >= 12, "{text}");
    assert!(text.contains("\nultramarine_job_running 0\n"), "{text}");
}

#[test]
fn a_file_that_cannot_be_written_costs_the_status_alone() {
    let flags = "--tasks 5 --threads 1 --json --status /proc/none --metrics /proc/none/x";
    let ended = run(&mut alone(NAPS, flags));
    ended.report();
    for said in ["no status in `/proc/none`", "no metrics in `/proc/none/x`"] {
        assert_eq!(ended.err.matches(said).count(), 1, "{}", ended.err);
    }
}

#[cfg(feature = "mpi")]
mod launched {
    use super::*;
    use ultramarine_testkit::{kill, launcher};

    const NAPPING: &str = "--tasks 90 --shortest 200000 --longest 200000 --threads 1 --json";

    /// Of which PE each line is.
    fn pes(job: &JobStatus) -> Vec<u32> {
        job.pes.iter().map(|pe| pe.pe).collect()
    }

    #[test]
    fn a_death_is_seen_and_the_others_go_on() {
        let Some(mut command) = launcher() else { return };
        let folder = folder!("death");
        command.args(["-n", "3", NAPS.0]).args(NAPPING.split_whitespace());
        command.args(["--supervised", "--kill-at", "2"]);
        let ended = while_it_runs(
            &mut command,
            &folder.join("status"),
            &[
                ("all are there", &|job| pes(job) == [0, 1, 2] && job.dead.is_empty()),
                ("one has died", &|job| pes(job).len() == 2 && job.dead.len() == 1),
                ("its tasks run again", &|job| job.pes.iter().any(|pe| pe.again > 0)),
            ],
        );
        assert_eq!(ended.report()["dead"], 1);
    }

    #[test]
    fn a_new_root_says_where_it_answers() {
        let Some(mut command) = launcher() else { return };
        let folder = folder!("root");
        command.args(["-n", "3", NAPS.0]).args(NAPPING.split_whitespace());
        command.args(["--supervised", "--restartable"]);
        let ended = while_it_runs(
            &mut command,
            &folder.join("status"),
            &[
                ("the root answers, and is killed", &|job| {
                    let is_there = pes(job) == [0, 1, 2] && job.seconds > 1.0;
                    if is_there {
                        kill(job.process as i32);
                    }
                    is_there
                }),
                ("another has its place", &|job| pes(job) == [1, 2] && job.dead == [0]),
            ],
        );
        assert_eq!(ended.report()["dead"], 1);
    }
}
