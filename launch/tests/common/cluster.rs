//! A cluster of four hosts in two racks on this machine (`slurm/testcluster`), for one test.

use std::ffi::OsString;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use ultramarine_testkit::{Ended, finish, launcher_name, scrub};

/// The longest that a job on the cluster takes. Slurm itself needs a while to see that a host is
/// dead.
const PATIENCE: Duration = Duration::from_mins(2);

/// The script's exit code where no cluster can be made.
const NOT_HERE: i32 = 77;

pub(crate) const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../slurm/testcluster");

/// A cluster. It ends when this value is dropped, or with the process that holds it.
pub(crate) struct Cluster {
    name: String,
    /// The PMI that Slurm has for the MPI of this build.
    pub(crate) pmi: &'static str,
    launcher: String,
    /// The cluster ends when this pipe closes.
    _life: ChildStdin,
}

impl Cluster {
    /// Makes a cluster. `None` where none can be made; it prints that.
    pub(crate) fn up() -> Option<Self> {
        static CLUSTERS: AtomicU32 = AtomicU32::new(0);
        let launcher = launcher_name()?.into_string().expect("its name is text");
        let number = CLUSTERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let mut up = script(&name, &["up", "--until-eof"]);
        let mut up = up.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it is there");
        let life = up.stdin.take().expect("it is piped");
        let output = up.wait_with_output().expect("it is our child");
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(NOT_HERE) {
            println!("skipped: {said}");
            return None;
        }
        assert!(output.status.success(), "{said}");
        let version = Command::new(&launcher).arg("--version").output().expect("it is there");
        let is_mpich = String::from_utf8_lossy(&version.stdout).contains("HYDRA");
        let pmi = if is_mpich { "pmi2" } else { "pmix" };
        Some(Cluster { name, pmi, launcher, _life: life })
    }

    /// A command on a host, or on `login`.
    pub(crate) fn on(&self, host: &str) -> Command {
        let mut command = script(&self.name, &["exec", host]);
        // As the tests that share the machine's cores do.
        command.env("ULTRAMARINE_THREADS", "1");
        command
    }

    /// Runs these words on a host, or on `login`.
    pub(crate) fn run_on(&self, host: &str, words: &[&str]) -> Ended {
        let mut command = self.on(host);
        command.args(words);
        run(command)
    }

    /// `srun`, for this many processes on each host.
    pub(crate) fn srun(&self, per_host: u32) -> Command {
        let mut command = self.on("login");
        command.args(["srun", "--mpi", self.pmi, "--no-kill", "--kill-on-bad-exit=0", "--wait=0"]);
        command.args(["--disable-status", "--nodes=4", &format!("--ntasks-per-node={per_host}")]);
        command
    }

    /// The launcher of the MPI itself, likewise.
    pub(crate) fn mpiexec(&self, per_host: u32) -> Command {
        let mut command = self.on("login");
        let hosts = ["r1n1", "r1n2", "r2n1", "r2n2"];
        if self.pmi == "pmix" {
            let slots = hosts.map(|host| format!("{host}:{per_host}")).join(",");
            command.args([&self.launcher, "--host", &slots]);
        } else {
            command.args([&self.launcher, "-hosts", &hosts.join(",")]);
            command.args(["-ppn", &per_host.to_string(), "-n", &(4 * per_host).to_string()]);
        }
        command
    }

    /// Does something to the cluster itself.
    pub(crate) fn tell(&self, words: &[&str]) {
        finish(&mut script(&self.name, words), PATIENCE).succeeded();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A host that is being switched off takes a while.
        let _ = script(&self.name, &["down"]).status();
    }
}

/// The script that makes clusters, for the one of this name.
fn script(name: &str, words: &[&str]) -> Command {
    let mut command = Command::new(SCRIPT);
    command.args(words);
    scrub(&mut command);
    command.env("TESTCLUSTER", name);
    command
}

/// Runs a command to its end, which has to come in time.
pub(crate) fn run(mut command: Command) -> Ended {
    finish(&mut command, PATIENCE)
}

/// Begins to run a program of the caller; the rest is up to the thread.
pub(crate) fn begin(mut command: Command, program: &[OsString]) -> JoinHandle<Ended> {
    command.args(program);
    std::thread::spawn(|| run(command))
}

/// Runs a program of the caller.
pub(crate) fn run_program(mut command: Command, program: &[OsString]) -> Ended {
    command.args(program);
    run(command)
}
