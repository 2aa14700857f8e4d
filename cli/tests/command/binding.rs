//! Jobs whose processes are to be bound, and whether they are: on the cores of this machine, under
//! the launcher that `MPIEXEC_FOR_TESTS` names (without it those tests say so and pass).

use crate::harness::Stage;
use ultramarine_testkit::{Ended, alone, launcher, run};

const ULTRAMARINE: &str = env!("CARGO_BIN_EXE_ultramarine");

/// A job of this many processes. The launcher binds them to `bound_to`; `ULTRAMARINE_BIND` asks for
/// `asked`.
fn job(processes: u32, bound_to: &str, asked: &str) -> Option<Ended> {
    let mut command = launcher()?;
    command.args(["-n", &processes.to_string(), "--bind-to", bound_to]);
    command.args([ULTRAMARINE, "topo", "--no-latency", "--threads", "1"]);
    Some(run(command.env("ULTRAMARINE_BIND", asked)))
}

/// Checks that the job did not start, said so once, and named this reason.
fn is_refused(ended: &Ended, reason: &str) {
    ended.fails_with(reason);
    assert_eq!(ended.err.matches("the job did not start").count(), 1, "{}", ended.err);
    assert_eq!(ended.out.matches("PE").count(), 0, "{}", ended.out);
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn unbound_processes_are_refused() {
    for (asked, reason) in
        [("core", "--bind core (ULTRAMARINE_BIND) "), ("numa", "--bind numa (ULTRAMARINE_BIND) ")]
    {
        let Some(ended) = job(2, "none", asked) else { return };
        is_refused(&ended, &format!(": {reason}"));
    }
    let Some(ended) = job(2, "none", "none") else { return };
    assert!(ended.succeeded().contains("2 PEs"), "{}", ended.out);
}

#[test]
fn processes_that_are_bound_run() {
    if cores() < 2 {
        return println!("skipped: there is one core");
    }
    let Some(ended) = job(2, "core", "core") else { return };
    assert!(ended.succeeded().contains("2 PEs"), "{}", ended.out);
}

#[test]
fn two_processes_in_the_same_part_are_refused() {
    // Each is in one NUMA node, and where there is one it is the same.
    let domains = ultramarine_topology::Domains::of_this_host();
    if !domains.is_ok_and(|domains| domains.numa_nodes == 1) {
        return println!("skipped: there is more than one NUMA node, or none is known");
    }
    let Some(alone) = job(1, "none", "numa") else { return };
    assert!(alone.succeeded().contains("1 PE"), "{}", alone.out);
    let Some(ended) = job(2, "none", "numa") else { return };
    is_refused(&ended, "rank 1 on ");
    is_refused(&ended, " has the same CPUs as rank 0 (");
    is_refused(&ended, "): ask for fewer processes on each host, or leave out --bind");
}

#[test]
fn a_word_that_is_no_binding_is_refused() {
    let Some(ended) = job(2, "none", "sofa") else { return };
    is_refused(&ended, "ULTRAMARINE_BIND = `sofa`: core, numa, package or none is expected");
}

/// `ultramarine run`, by a launcher that shows what it is told rather than start anything.
fn told(flags: &str) -> Option<Ended> {
    let real = launcher()?;
    let real = real.get_program().display();
    let text = format!(
        "[ \"$1\" = --version ] && exec '{real}' --version\necho \"bind=$ULTRAMARINE_BIND $*\""
    );
    let stand_in = Stage::new("binding").script("mpiexec", &text);
    let mut command = alone(ULTRAMARINE, &format!("run {flags}"));
    command.args([ULTRAMARINE, "topo"]);
    Some(run(command.env("MPIEXEC", stand_in)))
}

#[test]
fn run_tells_the_processes_what_they_are_to_be_bound_to() {
    for (flags, word) in
        [("-n 1 --bind core", "bind=core "), ("-n 9 --bind none", "bind=none "), ("-n 1", "bind= ")]
    {
        let Some(ended) = told(flags) else { return };
        assert!(ended.succeeded().starts_with(word), "{flags}: {}", ended.out);
    }
}

#[test]
fn named_hosts_that_are_this_one_cannot_give_more_than_they_have() {
    if !cfg!(feature = "hwloc") {
        return println!("skipped: built without hwloc");
    }
    let more = cores() + 1;
    let Some(ended) = told(&format!("--hosts localhost --per-host {more} --bind core")) else {
        return;
    };
    ended.fails_with(&format!("--bind core wants {more} cores on this host, one for each process"));
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
}
