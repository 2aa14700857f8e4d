//! Jobs that are really started: by the launcher that `MPIEXEC_FOR_TESTS` names, and by one that
//! does not belong to this build.

use crate::harness::{run, scrub, ultramarine};
use std::process::Command;
use ultramarine_testkit::launcher_name;

/// The launcher that belongs to this build, if there is one.
pub(crate) fn launcher() -> Option<String> {
    Some(launcher_name()?.into_string().expect("its name is text"))
}

/// The command under test, starting jobs with this launcher.
fn with(launcher: &str, arguments: &str) -> Command {
    let arguments: Vec<_> = arguments.split_whitespace().collect();
    let mut command = ultramarine(&arguments);
    command.env("MPIEXEC", launcher).env("ULTRAMARINE_THREADS", "1");
    command
}

#[test]
fn a_program_beside_the_command_is_one_job() {
    let Some(launcher) = launcher() else { return };
    let out = run(&mut with(&launcher, "run -n 3 ultramarine topo")).succeeded().to_owned();
    assert!(out.contains("3 PEs"), "{out}");
    assert_eq!(out.matches("job at").count(), 1, "{out}");
}

#[test]
fn more_processes_than_cores_share_them() {
    let Some(launcher) = launcher() else { return };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let more = cores + 2;
    let mut command = with(&launcher, &format!("run -n {more} ultramarine topo"));
    // Only the command says so.
    command.env_remove("OMPI_MCA_rmaps_base_oversubscribe");
    let out = run(&mut command).succeeded().to_owned();
    assert!(out.contains(&format!("{more} PEs")), "{out}");
}

#[test]
fn a_killed_process_does_not_end_the_job() {
    let Some(launcher) = launcher() else { return };
    let program = "ultramarine-probe deaths --kill-at 0.1,0.3";
    let ended = run(&mut with(&launcher, &format!("run -n 4 {program}")));
    let out = ended.succeeded().to_owned();
    assert!(out.contains(r#""right":true"#), "{out}");
}

#[test]
fn the_programs_failure_is_the_commands() {
    let Some(launcher) = launcher() else { return };
    let ended = run(&mut with(&launcher, "run -n 2 ultramarine topo --topology /no/such/file"));
    assert!(ended.code != Some(0), "{}", ended.out);
    assert!(ended.err.contains("/no/such/file"), "{}", ended.err);
}

#[test]
fn the_launcher_is_found_without_being_named() {
    if launcher().is_none() {
        return;
    }
    let mut command = ultramarine(&["run", "-n", "2", "ultramarine", "topo"]);
    let out = run(&mut command).succeeded().to_owned();
    assert!(out.contains("2 PEs"), "{out}");
}

#[test]
fn worlds_of_one_are_noticed() {
    if launcher().is_none() {
        return;
    }
    let own = run(&mut ultramarine(&["run", "-n", "2", "--dry-run", "ultramarine"]))
        .succeeded()
        .to_owned();
    let (other, variable, plugin) = if own.contains("--bind-to none") {
        ("mpiexec.mpich", "PMI_SIZE", "pmix")
    } else {
        ("mpiexec.openmpi", "OMPI_COMM_WORLD_SIZE", "pmi2")
    };
    let mut launch = Command::new(other);
    scrub(launch.args(["-n", "2", env!("CARGO_BIN_EXE_ultramarine"), "topo"]));
    launch.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    if launch.output().is_err() {
        println!("skipped: there is no {other} to confuse this build with");
        return;
    }
    let ended = run(&mut launch);
    assert!(ended.code != Some(0), "{}", ended.out);
    let is_of_the_first = |line: &&str| !line.contains("see what number 0 says");
    let said = ended.err.lines().filter(|line| line.starts_with("Error: "));
    let said = said.filter(is_of_the_first);
    let said: Vec<_> = said.collect();
    let [said] = said[..] else { panic!("it is said once:\n{}", ended.err) };
    let start = format!(
        "Error: the job did not start: {variable} says that 2 processes were started, but MPI sees \
         only one: the launcher does not belong to the program's MPI library ("
    );
    let end = format!(
        "). Start it with `ultramarine run -n 2 PROGRAM`, with that library's own mpiexec, or with \
         `srun --mpi={plugin}`"
    );
    assert!(said.starts_with(&start) && said.ends_with(&end), "{said}");
}
