//! Four hosts on this machine (`slurm/testcluster`, without Slurm), whose network can be spoilt.

use std::process::{ChildStdin, Command, Output, Stdio};

use super::deed::Answer;
use crate::mpi::{Family, Mpi};
use crate::process::{self, Failure, Result, cannot_start};

/// In the order of the PEs of a job that has one on each.
const NAMES: [&str; 4] = ["r1n1", "r1n2", "r2n1", "r2n2"];

/// How many there are.
pub(crate) const COUNT: u32 = NAMES.len() as u32;

/// What the script ends with where there can be no hosts.
const NOT_HERE: i32 = 77;

/// Prints the files that a job has left on a host, and removes them.
const CLEAR: &str = r#"find /dev/shm "$TMPDIR" -xdev -mindepth 1 ! -type d -print -delete"#;

/// They end with this value, or with this program.
pub(crate) struct Hosts {
    name: String,
    /// What they wait for the end of.
    _life: Option<ChildStdin>,
}

impl Hosts {
    /// Or, in words, why there can be none on this machine.
    pub(crate) fn up() -> Result<std::result::Result<Self, String>> {
        let name = format!("chaos-{}", std::process::id());
        let mut up = script(&name, &["up", "--no-slurm", "--until-eof"]);
        up.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = up.spawn().map_err(|error| cannot_start(&up, &error))?;
        let hosts = Hosts { name, _life: child.stdin.take() };
        let output = child.wait_with_output().map_err(|error| cannot_start(&up, &error))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        match output.status.code() {
            Some(0) => Ok(Ok(hosts)),
            Some(NOT_HERE) => Ok(Err(said)),
            _ => Err(Failure(format!("no hosts: {said}"))),
        }
    }

    /// The launcher of this MPI, told to start a process on each of them.
    pub(crate) fn mpiexec(&self, mpi: &Mpi) -> Command {
        let mut command = script(&self.name, &["exec", "login", &mpi.mpiexec]);
        match mpi.family {
            Family::Mpich => {
                command.args(["-hosts", &NAMES.join(","), "-ppn", "1", "-n", &COUNT.to_string()])
            }
            Family::OpenMpi => {
                command.args(["--host", &NAMES.map(|name| format!("{name}:1")).join(",")])
            }
        };
        command
    }

    /// Nothing that the first sends reaches the second.
    pub(crate) fn cut(&self, from: u32, to: u32, answer: Answer) -> Result<()> {
        let answer = match answer {
            Answer::Nothing => "silent",
            Answer::Refusal => "refuse",
            Answer::Reset => "reset",
        };
        self.tell(&["cut", name(from), name(to), answer]).map(drop)
    }

    /// Each loses this share of what it sends.
    pub(crate) fn lose(&self, percent: u32) -> Result<()> {
        let lose = |host| self.tell(&["lossy", host, &percent.to_string()]).map(drop);
        NAMES.into_iter().try_for_each(lose)
    }

    /// Makes the network whole again.
    pub(crate) fn heal(&self) -> Result<()> {
        NAMES.into_iter().try_for_each(|host| self.tell(&["heal", host]).map(drop))
    }

    /// The files that the last job has left on them, in words. They are removed.
    pub(crate) fn clear(&self) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for host in NAMES.into_iter().chain(["login"]) {
            let files = self.tell(&["exec", host, "sh", "-c", CLEAR])?;
            left.extend(files.lines().map(|file| format!("the file {file} on {host}")));
        }
        Ok(left)
    }

    /// What the script prints when it is told to do this.
    fn tell(&self, words: &[&str]) -> Result<String> {
        let mut command = script(&self.name, words);
        let output = command.stdin(Stdio::null()).output();
        let Output { status, stdout, stderr } =
            output.map_err(|error| cannot_start(&command, &error))?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).into_owned());
        }
        let (shown, said) = (process::shown(&command), String::from_utf8_lossy(&stderr));
        Err(Failure(format!("`{shown}` failed ({status}): {}", said.trim())))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // Without this they would end as well, but later.
        process::succeeds(&mut script(&self.name, &["down"]));
    }
}

/// The host of this PE.
fn name(pe: u32) -> &'static str {
    NAMES[pe as usize % NAMES.len()]
}

fn script(name: &str, words: &[&str]) -> Command {
    let mut command = Command::new(process::root().join("slurm/testcluster"));
    command.args(words).env("TESTCLUSTER", name);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Hosts {
        fn shell(&self, pe: u32, line: &str) -> String {
            self.tell(&["exec", name(pe), "bash", "-c", line]).expect("bash is there")
        }

        /// How many of 100 datagrams get from one host to another.
        fn arrive(&self, from: u32, to: u32) -> u32 {
            // At ports where no process listens.
            let unwanted = || {
                let udp = self.shell(to, "grep ^Udp: /proc/net/snmp | tail -n 1");
                let number = udp.split(' ').nth(2).and_then(|number| number.parse::<u32>().ok());
                number.expect("the third word is the number of those that no port took")
            };
            let before = unwanted();
            let to_host = name(to);
            self.shell(
                from,
                &format!("for i in {{1..100}}; do echo x >/dev/udp/{to_host}/9; done"),
            );
            unwanted() - before
        }
    }

    #[test]
    fn a_path_is_cut_and_packets_are_lost_until_the_network_is_whole_again() {
        let hosts = match Hosts::up().expect("the script works") {
            Ok(hosts) => hosts,
            Err(reason) => return println!("skipped: {reason}"),
        };
        assert_eq!(hosts.arrive(0, 3), 100);
        hosts.cut(0, 3, Answer::Nothing).expect("both are there");
        assert_eq!((hosts.arrive(0, 3), hosts.arrive(3, 0), hosts.arrive(0, 1)), (0, 100, 100));
        hosts.lose(50).expect("all are there");
        let arrived = hosts.arrive(1, 2);
        assert!((20..80).contains(&arrived), "{arrived}");
        hosts.shell(2, "touch /dev/shm/left");
        assert_eq!(hosts.clear().expect("all are there"), ["the file /dev/shm/left on r2n1"]);
        assert_eq!(hosts.clear().expect("all are there"), [""; 0]);
        hosts.heal().expect("all are there");
        let listen = "IO::Socket::INET->new(Listen => 9, LocalPort => 99) and sleep 600";
        hosts.shell(2, &format!("perl -MIO::Socket::INET -e '{listen}' >/dev/null 2>&1 &"));
        let call = || hosts.shell(0, "(: </dev/tcp/r2n1/99) 2>&1; :");
        let listens = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            call().is_empty()
        });
        assert!(listens, "perl is there");
        for answer in [Answer::Refusal, Answer::Reset] {
            hosts.cut(0, 2, answer).expect("both are there");
            assert!(call().contains("refused"), "{}", call());
            hosts.tell(&["heal", name(2)]).expect("it is there");
            assert_eq!(call(), "");
        }
        assert_eq!((hosts.arrive(0, 3), hosts.arrive(1, 2)), (100, 100));
    }
}
