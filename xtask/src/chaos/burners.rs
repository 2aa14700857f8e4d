//! Busy processes beside a job.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::process::{Result, cannot_start};

/// How long they may take to end when they are asked to, on the machine that they keep busy.
const GRACE: Duration = Duration::from_secs(5);

/// They end with this value; after their time; and, at the latest then, if this program is killed.
///
/// Each is a session: Linux may share the cores between sessions first (`sched_autogroup_enabled`),
/// and then 300 processes of one session take no more from a job than one. (A job beside 291 of
/// them took as long as ever; beside 232 sessions it took 17 s instead of 4 s.)
pub(crate) struct Burners(Vec<Child>);

impl Burners {
    /// Starts this number of processes that compute for this time.
    pub(crate) fn start(processes: u32, seconds: u32) -> Result<Self> {
        let mut burners = Burners(Vec::new());
        for _ in 0..processes {
            let mut command = Command::new("setsid");
            command.args(["timeout", &seconds.to_string(), "sh", "-c", "while :; do :; done"]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = command.spawn().map_err(|error| cannot_start(&command, &error))?;
            burners.0.push(child);
        }
        Ok(burners)
    }

    fn forget_the_ended(&mut self) {
        self.0.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// To each process group: `timeout`, and what computes.
    fn signal(&self, signal: Signal) {
        let group = |child: &Child| i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        for group in self.0.iter().filter_map(group) {
            // One that has not become a session yet has no group: it is asked again.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        let start = Instant::now();
        self.forget_the_ended();
        while !self.0.is_empty() {
            let is_late = start.elapsed() > GRACE;
            self.signal(if is_late { Signal::KILL } else { Signal::TERM });
            std::thread::sleep(Duration::from_millis(20));
            self.forget_the_ended();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many processes there are in the process groups of these.
    fn members(groups: &[u32]) -> usize {
        let stat =
            |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
        let entries = std::fs::read_dir("/proc").expect("this is Linux").flatten();
        // The name of the program is in parentheses; then come state, parent and group.
        let group_of =
            |stat: String| stat.rsplit(')').next()?.split_whitespace().nth(2)?.parse().ok();
        let found = entries.filter_map(stat).filter_map(group_of);
        found.filter(|group: &u32| groups.contains(group)).count()
    }

    #[test]
    fn they_end_with_their_value() {
        let burners = Burners::start(3, 60).expect("they are everywhere");
        let groups: Vec<u32> = burners.0.iter().map(Child::id).collect();
        let start = Instant::now();
        while members(&groups) < 6 && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(members(&groups), 6, "three that burn, each below a timeout");
        drop(burners);
        while members(&groups) > 0 && start.elapsed() < Duration::from_secs(40) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(members(&groups), 0);
    }
}
