//! Jobs on a cluster with Slurm: four hosts in two racks, on this machine. Each test makes its
//! own cluster (`slurm/testcluster`). Where that is not possible, it says so and passes.
#![cfg(feature = "mpi")]

mod deaths;
mod programs;
mod scripts;

use crate::common::cluster::{Cluster, begin, run, run_program};
use programs::{
    compare_maps, scan, share_between_racks, stay_in_racks, work_until_asked, work_until_told,
};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::thread::JoinHandle;
use tempfile::TempDir;
use ultramarine_testkit::{Ended, beside_the_tests, eventually, itself};

/// The command `ultramarine`, which another package has beside this one's tests.
fn the_command() -> &'static str {
    static FILE: OnceLock<String> = OnceLock::new();
    FILE.get_or_init(|| beside_the_tests("ultramarine").display().to_string())
}

/// The variable that names a folder which the processes of a job, and the test, share.
const FOLDER: &str = "CLUSTER_FOLDER";

/// The ports that some jobs are told to use. No other process listens there.
const OWN_PORTS: RangeInclusive<u16> = 20_000..=20_099;

/// A folder for one test, which is removed in the end.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().expect("there is room"))
    }

    /// A path in it.
    fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a file, for which the processes of a job wait.
    fn mark(&self, name: &str) {
        std::fs::write(self.join(name), "").expect("the folder is ours");
    }

    /// Starts a program, and waits until it says that it runs.
    fn begin(&self, mut launch: Command, program: &[OsString]) -> JoinHandle<Ended> {
        launch.env(FOLDER, self.0.path());
        let job = begin(launch, program);
        self.await_file("begun");
        job
    }

    /// Waits until a process of the job has made this file.
    fn await_file(&self, name: &str) {
        eventually(name, || self.join(name).exists());
    }
}

/// The lines below the first, which also says how the whole is called where that is known.
fn tree(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.starts_with("job")).skip(1);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn slurm_host_names_and_a_file_give_the_same_hierarchy() {
    let Some(cluster) = Cluster::up() else { return };
    let folder = Folder::new();
    let file = folder.join("machine.toml");
    let racks = [("r1", "r1n[1-2]"), ("r2", "r2n[1-2]")];
    let groups = racks.map(|(switch, names)| {
        format!("[[hosts]]\nnames = \"{names}\"\nswitches = [\"core\", \"{switch}\"]\n")
    });
    std::fs::write(&file, groups.concat()).expect("the folder is ours");

    let mut by_slurm = cluster.srun(2);
    let mut by_name = cluster.mpiexec(2);
    let mut by_pattern = cluster.srun(2);
    by_pattern.env("ULTRAMARINE_HOST_PATTERN", "(r#)n#");
    let mut by_file = cluster.srun(2);
    by_file.env("ULTRAMARINE_TOPOLOGY", &file);
    let texts = [&mut by_slurm, &mut by_name, &mut by_pattern, &mut by_file].map(|command| {
        command.args([the_command(), "topo", "--no-latency"]);
        run(std::mem::replace(command, Command::new("true"))).succeeded().to_owned()
    });
    let [slurm, others @ ..] = &texts;
    assert!(slurm.starts_with("job at switch core: 8 PEs"), "{slurm}");
    let hosts: Vec<&str> = tree(slurm).into_iter().filter(|line| line.contains("n1")).collect();
    assert_eq!(hosts.len(), 2, "{slurm}");
    for expected in ["├─ switch r1: 4 PEs, power 4, distance 1/2", "└─ switch r2: 4 PEs, power 4"]
    {
        assert!(slurm.contains(expected), "{slurm}");
    }
    for other in others {
        assert_eq!(tree(other), tree(slurm), "{other}");
    }
}

#[test]
fn tasks_stay_in_their_rack_if_they_are_told_to() {
    let program = itself(stay_in_racks);
    let Some(cluster) = Cluster::up() else { return };
    run_program(cluster.srun(2), &program).is_well();
    run_program(cluster.mpiexec(2), &program).is_well();
}

#[test]
fn each_rack_gets_its_share() {
    let program = itself(share_between_racks);
    let Some(cluster) = Cluster::up() else { return };
    run_program(cluster.srun(2), &program).is_well();
}

/// Not a test of time: the table is to be read.
#[test]
fn a_slow_network_between_racks_is_spared_by_two_levels() {
    let program = itself(compare_maps);
    let Some(cluster) = Cluster::up() else { return };
    for cable in ["rack1-core", "rack2-core", "core-rack1", "core-rack2"] {
        // With half of that, heartbeats and the pings of Slurm wait behind tasks for too long.
        let slow = "rate 512kbit burst 2kb latency 500ms";
        on_login(&cluster, &format!("tc qdisc add dev {cable} root tbf {slow}")).succeeded();
    }
    let ended = run_program(cluster.srun(2), &program);
    ended.is_well();
    print!("{}", ended.out);
}

#[test]
fn strangers_on_the_network_have_no_effect() {
    /// The variable that is set for the stranger.
    const SCANS: &str = "CLUSTER_SCANS";
    let program =
        itself(|| if std::env::var_os(SCANS).is_some() { scan() } else { work_until_told() });
    let Some(cluster) = Cluster::up() else { return };
    let folder = Folder::new();
    let mut srun = cluster.srun(1);
    let (first, last) = OWN_PORTS.into_inner();
    srun.env("ULTRAMARINE_PORTS", format!("{first}-{last}"));
    let job = folder.begin(srun, &program);
    let mut scan = cluster.on("r2n2");
    scan.env(SCANS, "1");
    let scan = run_program(scan, &program);
    folder.mark("enough");
    let ended = job.join().expect("it is awaited");
    scan.is_well();
    ended.is_well();
    assert!(!ended.err.contains("leaves"), "{}", ended.err);
}

/// Runs these words on the login host; in them, `ultramarine` is the command's file.
fn on_login(cluster: &Cluster, words: &str) -> Ended {
    let file = |word| if word == "ultramarine" { the_command() } else { word };
    cluster.run_on("login", &words.split_whitespace().map(file).collect::<Vec<_>>())
}

#[test]
fn the_command_uses_the_allocation() {
    let Some(cluster) = Cluster::up() else { return };
    let allocated = |flags: &str, words: &str| {
        on_login(&cluster, &format!("salloc {flags} ultramarine {words}"))
    };
    let ended = allocated("--nodes=4 --ntasks-per-node=2", "run ultramarine topo");
    assert!(ended.succeeded().contains("job at switch core: 8 PEs"), "{}", ended.out);
    for (flags, words, said) in [
        ("--nodes=2", "-n 64", "64 processes are asked for, but allocation"),
        ("--nodes=2", "--bind numa", "does not bind (TaskPlugin = task/none)"),
        ("--nodelist=r1n1", "--hosts r2n1", "--hosts names `r2n1`, and allocation 4 has r1n1 ("),
    ] {
        allocated(flags, &format!("run {words} ultramarine topo")).fails_with(said);
    }
    // It kills a process, and checks that the job survives.
    allocated("--nodes=4 --ntasks-per-node=1", "doctor").succeeded();
}

#[test]
fn a_process_takes_the_cores_that_slurm_gave_it() {
    let Some(cluster) = Cluster::up() else { return };
    let there = std::thread::available_parallelism().map_or(1, usize::from);
    for cores in [1, 4] {
        let mut srun = cluster.on("login");
        srun.env_remove("ULTRAMARINE_THREADS");
        srun.args(["srun", "--mpi", cluster.pmi, "--ntasks=1"]);
        srun.args([&format!("--cpus-per-task={cores}"), the_command(), "topo"]);
        let ended = run(srun);
        // Slurm believes that each host has four; of course they share those of the machine.
        let expected = format!("PE 0: rank 0, power {}\n", cores.min(there));
        assert!(ended.is_success && ended.out.contains(&expected), "{}{}", ended.out, ended.err);
    }
}

#[test]
fn mpiexec_reaches_the_hosts_too() {
    let Some(cluster) = Cluster::up() else { return };
    let hosts = "--hosts r1n1,r2n1,r2n2 --per-host 2";
    let ended = on_login(&cluster, &format!("ultramarine run {hosts} ultramarine topo"));
    ended.succeeded();
    assert!(ended.out.contains("6 PEs") && ended.out.contains("host r2n2"), "{}", ended.out);
}

#[test]
fn hosts_call_each_other_over_the_network_that_was_chosen() {
    let Some(cluster) = Cluster::up() else { return };
    if cluster.pmi != "pmi2" {
        return println!("skipped: Open MPI takes a host's second address for an intruder's");
    }
    for (host, address) in [("r1n1", "1.1"), ("r1n2", "1.2"), ("r2n1", "2.1"), ("r2n2", "2.2")] {
        let address = format!("10.88.{address}/16");
        cluster.run_on(host, &["ip", "address", "add", &address, "dev", "eth0"]).succeeded();
    }
    let probe = beside_the_tests("ultramarine-probe");
    let start = |choice: &str, words: &[&str]| {
        let mut srun = cluster.srun(1);
        srun.env("ULTRAMARINE_INTERFACE", choice).arg(&probe).args(words);
        run(srun)
    };
    let chosen = "10.88.0.0/16";
    for (choice, address) in [("", "10.77.1.1"), ("eth0", "10.77.1.1"), (chosen, "10.88.1.1")] {
        let ended = start(choice, &["topo", "--no-latency"]);
        let line = format!("TCP connections: over eth0 {address}/16");
        assert!(ended.succeeded().contains(&line), "`{choice}`: {}", ended.out);
    }
    let ended = start(chosen, &["deaths", "--kill-at", "0.2"]);
    assert!(ended.succeeded().contains(r#"{"dead":1,"right":true}"#), "{}", ended.out);
    // Only one host has it.
    let said = "no network interface of this host is `10.77.1.0/31`, as --interface or \
                ULTRAMARINE_INTERFACE has it; there is lo 127.0.0.1/8, eth0 10.77.1.2/16";
    start("10.77.1.0/31", &["topo"]).fails_with(said);
}

#[test]
fn a_host_that_is_down_is_said_before_hydra_waits_for_it() {
    let Some(cluster) = Cluster::up() else { return };
    if cluster.pmi != "pmi2" {
        return println!("skipped: only hydra waits for ever");
    }
    cluster.tell(&["kill-host", "r2n1"]);
    let ended = on_login(&cluster, "ultramarine run --hosts r1n1,r2n1 ultramarine topo");
    let said = "Error: `r2n1` cannot be reached (ssh: testcluster: r2n1 is not running";
    assert!(!ended.is_success && ended.err.starts_with(said), "{}{}", ended.out, ended.err);
}

#[test]
fn a_job_ends_in_order_when_slurm_asks_it_to() {
    let program = itself(work_until_asked);
    let Some(cluster) = Cluster::up() else { return };
    // All processes get it, guards included. Of the cluster's first two jobs the second is asked by
    // Ctrl-C.
    for ask in ["scancel --signal=TERM 1", "kill -INT $(pgrep -x srun)"] {
        let folder = Folder::new();
        let job = folder.begin(cluster.srun(2), &program);
        cluster.run_on("login", &["sh", "-c", ask]).succeeded();
        let ended = job.join().expect("it is awaited");
        ended.is_well();
        assert!(!ended.err.contains("goes on without"), "{ask}: {}", ended.err);
    }
}

#[test]
fn a_command_dies_with_its_caller() {
    let Some(cluster) = Cluster::up() else { return };
    let mut sleep = cluster.on("r2n2");
    // No other process sleeps for this time.
    let (words, pattern) = (["sleep", "98765"], "[s]leep 98765");
    let mut caller = sleep.args(words).spawn().expect("the script is there");
    let is_there = || cluster.run_on("r2n2", &["pgrep", "-f", pattern]).is_success;
    eventually("the command has begun", is_there);
    caller.kill().expect("it is ours");
    caller.wait().expect("it is ours");
    eventually("the command is gone", || !is_there());
}
