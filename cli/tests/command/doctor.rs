//! The doctor's findings, with good launchers and with bad ones.

mod with_mpi {
    use crate::harness::{MARK, Stage, is_there, nothing_is_left, run, ultramarine};
    use crate::real::launcher;
    use rustix::process::{Pid, Signal, kill_process};
    use serde_json::Value;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Stdio;

    const CHECKS: [&str; 15] = [
        "mpi", "launcher", "cores", "files", "threads", "memlock", "shm", "ports", "clock",
        "network", "name", "slurm", "world", "boards", "deaths",
    ];

    #[test]
    fn every_check_has_a_line_and_small_jobs_run() {
        let Some(launcher) = launcher() else { return };
        let mut command = ultramarine(&["doctor"]);
        let ended = run(command.env("MPIEXEC", launcher).env(MARK, "lines"));
        let checks: Vec<_> = ended.out.lines().map(verdict_and_name).collect();
        let names: Vec<_> = checks.iter().map(|(_, name)| *name).collect();
        assert_eq!(names, CHECKS, "{}", ended.out);
        for name in ["mpi", "launcher", "world", "boards", "deaths"] {
            assert!(checks.contains(&("ok", name)), "{}", ended.out);
        }
        // What else may be wrong depends on the machine.
        let is_wrong = checks.iter().any(|(verdict, _)| *verdict == "wrong");
        assert_eq!(ended.code, Some(i32::from(is_wrong)), "{}", ended.out);
        nothing_is_left("lines");
    }

    #[test]
    fn in_an_allocation_lines_name_the_host_that_they_are_about() {
        if launcher().is_none() {
            return;
        }
        let stage = Stage::new("named");
        let broken = stage.script("broken", "exit 1");
        let mut command = ultramarine(&["doctor"]);
        command.env("MPIEXEC", broken).env("PATH", stage.bin());
        let variables = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NUM_NODES", "2")];
        let ended = run(command.envs(variables));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("on Linux");
        for line in ended.out.lines() {
            let (_, name) = verdict_and_name(line);
            let found = line.get(19..).unwrap_or_default();
            let is_of_host = CHECKS[2..11].contains(&name);
            assert_eq!(found.starts_with(host.trim()), is_of_host, "{line}");
        }
        let room = "ok       slurm     one process per node, on 2 nodes; its variables agree";
        assert!(ended.out.lines().any(|line| line == room), "{}", ended.out);
    }

    fn verdict_and_name(line: &str) -> (&str, &str) {
        let mut words = line.split_whitespace();
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    #[test]
    fn faults_are_reported_with_their_remedy_and_the_code() {
        let Some(launcher) = launcher() else { return };
        let mut command = ultramarine(&["doctor", "--json", "-n", "2"]);
        let ended = run(command.env("MPIEXEC", launcher).env("ULTRAMARINE_PORTS", "65535"));
        assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
        let checks: Vec<Value> = serde_json::from_str(&ended.out).expect("an array");
        let check =
            |name: &str| checks.iter().find(|check| check["name"] == name).expect("it is there");
        let ports = check("ports");
        assert_eq!(ports["verdict"], "wrong");
        assert_eq!(
            ports["mend"],
            "2 processes on this host need 4; name a wider range, or one that no other program uses"
        );
        // Nor do the small jobs get their ports.
        assert_eq!(check("world")["verdict"], "wrong");
        assert_eq!(check("mpi")["verdict"], "ok");
        assert!(check("mpi").get("mend").is_none(), "all is well there");
    }

    /// Starts the program this many times, and connects none of them.
    const LONERS: &str = "[ \"$1\" = --version ] && exit\n\
        while [ \"$1\" != -n ]; do shift; done\n\
        left=$2\n\
        while [ \"${1##*/}\" != ultramarine-probe ]; do shift; done\n\
        while [ $left -gt 0 ]; do \"$@\" & left=$((left - 1)); done\n\
        wait";

    #[test]
    fn a_launcher_that_makes_worlds_of_one_is_found_out() {
        if launcher().is_none() {
            return;
        }
        let stage = Stage::new("loners");
        let loners = stage.script("loners", LONERS);
        let mut command = ultramarine(&["doctor"]);
        let ended = run(command.env("MPIEXEC", &loners).env(MARK, "loners"));
        assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
        let found =
            format!("wrong    world     {loners} makes 3 worlds of 3 processes: see whether ");
        assert!(ended.out.contains(&found), "{}", ended.out);
        assert!(ended.out.contains("wrong    deaths    "), "{}", ended.out);
        nothing_is_left("loners");
    }

    #[test]
    fn a_launcher_that_does_not_start_is_found_out() {
        if launcher().is_none() {
            return;
        }
        let stage = Stage::new("broken");
        let broken =
            stage.script("broken", "[ \"$1\" = --version ] || echo 'out of order' >&2; exit 1");
        let ended = run(ultramarine(&["doctor"]).env("MPIEXEC", &broken));
        assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
        let found = format!("wrong    world     {broken}: out of order: ");
        assert!(ended.out.contains(&found), "{}", ended.out);
    }

    #[test]
    fn ctrl_c_ends_the_small_job_too() {
        if launcher().is_none() {
            return;
        }
        for signal in [Signal::INT, Signal::TERM] {
            let stage = Stage::new("interrupted");
            let begun = stage.bin().join("begun");
            let text = "[ \"$1\" = --version ] && exit\n: > $BEGUN\nexec sleep 1000";
            let sleeper = stage.script("sleeper", text);
            let mut command = ultramarine(&["doctor"]);
            command.env("MPIEXEC", sleeper).env("BEGUN", &begun).env(MARK, "interrupted");
            let mut doctor = command.stdout(Stdio::null()).spawn().expect("it was built");
            is_there(&begun);
            kill_process(Pid::from_child(&doctor), signal).expect("it runs");
            let status = doctor.wait().expect("it is a child of ours");
            assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
            nothing_is_left("interrupted");
        }
    }
}

#[test]
fn without_mpi_no_job_can_be_started() {
    let mut command = crate::harness::ultramarine(&["doctor"]);
    let ended = crate::harness::run(command.env("ULTRAMARINE_PROBE", "/bin/sh"));
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
    assert!(
        ended.out.starts_with("wrong    mpi       `/bin/sh` is linked with no"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("wrong    world     no job can be started: "), "{}", ended.out);
}
