//! What `/proc` says of the processes of a job. They are found by the job's mark in the environment
//! that they were started with: their parents may be others by now.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The variable that marks the processes of a job.
pub(crate) const MARK: &str = "CHAOS_JOB";

/// The variables by which launchers tell a process its rank.
const RANKS: [&str; 2] = ["PMI_RANK", "OMPI_COMM_WORLD_RANK"];

/// Of a command line, this number of characters is shown: some have long numbers.
const COMMAND_SHOWN: usize = 300;

/// Longest time for a debugger to show the stacks of a process.
const DEBUGGER_TIME: Duration = Duration::from_secs(10);

/// The processes that have this mark, ascending. One that has ended has none.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let pids = entries.flatten().filter_map(number);
    let mut pids: Vec<u32> = pids.filter(|pid| is_marked(*pid, mark)).collect();
    pids.sort_unstable();
    pids
}

/// Whether this process lives and has the mark.
pub(crate) fn is_marked(pid: u32, mark: &str) -> bool {
    variable(pid, MARK).is_some_and(|value| value == mark)
}

/// The value of a variable in the environment that the process was started with.
fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok()?;
        text.strip_prefix(name)?.strip_prefix('=').map(str::to_owned)
    };
    environment.split(|byte| *byte == 0).find_map(value)
}

/// Sends the signal if the process is still there and has the mark. Whether it was.
pub(crate) fn signal(pid: u32, mark: &str, signal: Signal) -> bool {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    is_marked(pid, mark) && raw.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Kills the process if it is still there and has the mark. Whether it was.
pub(crate) fn kill(pid: u32, mark: &str) -> bool {
    signal(pid, mark, Signal::KILL)
}

pub(crate) fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The first 15 letters of the name of its program.
pub(crate) fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// The file that it runs.
pub(crate) fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The ranks of this process and of those with the mark that it has started, or its children have.
pub(crate) fn ranks_of(pid: u32, mark: &str) -> BTreeSet<u32> {
    let line = |pid| std::iter::successors(Some(pid), |pid| parent(*pid));
    let below = marked(mark).into_iter().filter(|below| line(*below).any(|one| one == pid));
    let rank = |pid| RANKS.iter().find_map(|name| variable(pid, name)?.parse().ok());
    below.filter_map(rank).collect()
}

/// Everything that tells why a process does not end: what it is, what each of its threads waits
/// for, and, where there is a debugger, the stacks.
pub(crate) fn describe(pid: u32) -> String {
    let read = |file: &str| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&text).replace('\0', " ").trim().to_owned()
    };
    let status = read("status");
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("?");
    let (state, parent) = (line("State:").trim(), line("PPid:").trim());
    let command: String = read("cmdline").chars().take(COMMAND_SHOWN).collect();
    let mut text = format!("process {pid}, parent {parent}, {state}: {command}\n");
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for thread in threads {
        let id = thread.file_name().to_string_lossy().into_owned();
        let of = |file: &str| read(&format!("task/{id}/{file}"));
        // The state follows the name, which may hold anything.
        let stat = of("stat");
        let state = stat.rsplit(')').next().unwrap_or_default().trim().chars().next();
        let (name, waits) = (of("comm"), of("wchan"));
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  thread {id} {name:<16} {} {waits}", state.unwrap_or('?'));
    }
    text + &stacks(pid)
}

fn stacks(pid: u32) -> String {
    let commands = ["-batch", "-ex", "set pagination off", "-ex", "thread apply all backtrace 25"];
    let mut debugger = Command::new("gdb");
    debugger.args(commands).args(["-p", &pid.to_string()]);
    let said = ultramarine_subprocess::run(&mut debugger, DEBUGGER_TIME);
    let text = said.map_or(String::new(), |said| said.out);
    let frames = text.lines().filter(|line| line.starts_with('#') || line.starts_with("Thread"));
    frames.fold(String::new(), |all, line| all + "  " + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(mark: &str) -> std::process::Child {
        Command::new("sleep").arg("1000").env(MARK, mark).spawn().expect("sleep is everywhere")
    }

    #[test]
    fn only_what_has_the_mark_is_found_and_killed() {
        let (mark, other) =
            (format!("a-{}", std::process::id()), format!("b-{}", std::process::id()));
        let (mut own, mut foreign) = (sleeper(&mark), sleeper(&other));
        // Until it has become another program, a child still has our environment.
        while marked(&mark).is_empty() || marked(&other).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(marked(&mark), [own.id()]);
        assert!(!kill(foreign.id(), &mark), "it is not of this job");
        assert!(describe(own.id()).contains("sleep 1000"));
        assert!(kill(own.id(), &mark));
        own.wait().expect("it was killed");
        assert!(!kill(own.id(), &mark), "it has ended");
        assert!(kill(foreign.id(), &other));
        foreign.wait().expect("it was killed");
    }

    #[test]
    fn a_process_is_known_by_its_parent_and_its_rank() {
        let mark = format!("c-{}", std::process::id());
        let mut shell = Command::new("sh");
        shell.args(["-c", "PMI_RANK=3 sleep 1000 & wait"]).env(MARK, &mark);
        let mut shell = shell.spawn().expect("sh is everywhere");
        let start = std::time::Instant::now();
        while ranks_of(shell.id(), &mark).is_empty() && start.elapsed().as_secs() < 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(ranks_of(shell.id(), &mark), BTreeSet::from([3]));
        let sleeper = marked(&mark).into_iter().find(|pid| parent(*pid) == Some(shell.id()));
        let sleeper = sleeper.expect("it is there");
        assert_eq!(name(sleeper), "sleep");
        assert!(program(sleeper).is_some_and(|file| file.is_absolute()));
        assert!(kill(sleeper, &mark));
        shell.wait().expect("it is our child");
    }
}
