//! A running job as its disturber sees it: the processes that a fault can hit.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::burners::Burners;
use super::deed::{Act, Deed, Harm, Target};
use super::hosts::Hosts;
use super::log::Log;
use super::proc;
use crate::process::{Failure, Result};

/// The names of what launchers start on each host.
const PROXIES: [&str; 3] = ["hydra_pmi_proxy", "orted", "prted"];

/// The longest that processes stay whose launcher was killed.
const ORPHANS_STAY: Duration = Duration::from_secs(10);

/// What is known of a job from outside, and what has been done to it.
pub(crate) struct Scene<'a> {
    pub(crate) mark: &'a str,
    /// The file of its program.
    pub(crate) program: &'a Path,
    pub(crate) hosts: Option<&'a Hosts>,
    /// The file that it keeps its results in.
    pub(crate) journal: Option<&'a Path>,
    /// Its number.
    pub(crate) launcher: u32,
    pub(crate) done: Vec<Deed>,
    /// PEs that were killed, or stopped for good: in any case they are lost.
    pub(crate) killed: BTreeSet<u32>,
    pub(crate) is_launcher_killed: bool,
    /// Whether the launcher, or what it has on a host, could not tidy up.
    pub(crate) is_session_left: bool,
    /// The ends of the path that was cut: one of them may be lost.
    path: Option<[u32; 2]>,
    /// Stopped processes that are to go on, and when.
    stopped: Vec<(Instant, u32)>,
    /// They compute until this value ends.
    burners: Option<Burners>,
}

/// What became of a deed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// There is no such process any more.
    TooLate,
    /// There is no such process yet.
    TooEarly,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(
        mark: &'a str,
        program: &'a Path,
        hosts: Option<&'a Hosts>,
        journal: Option<&'a Path>,
        launcher: u32,
    ) -> Self {
        Scene {
            mark,
            program,
            hosts,
            journal,
            launcher,
            done: Vec::new(),
            killed: BTreeSet::new(),
            is_launcher_killed: false,
            is_session_left: false,
            path: None,
            stopped: Vec::new(),
            burners: None,
        }
    }

    /// Does it, if there still is what it is done to.
    pub(crate) fn perform(&mut self, deed: Deed, log: &Log) -> Result<Outcome> {
        let outcome = match deed.act {
            Act::Kill(target) => self.kill(target, log),
            Act::Stop(target, time) => self.stop(target, time, log),
            Act::Cut { from, to, both_ways, answer } => {
                self.path = Some([from, to]);
                if let Some(hosts) = self.hosts {
                    hosts.cut(from, to, answer)?;
                    if both_ways {
                        hosts.cut(to, from, answer)?;
                    }
                }
                Outcome::Done
            }
            Act::Lose { percent } => {
                self.hosts.map_or(Ok(()), |hosts| hosts.lose(percent))?;
                Outcome::Done
            }
            Act::Harm(harm) => self.harm(harm)?,
            Act::Burn { processes, seconds } => {
                self.burners = Some(Burners::start(processes, seconds)?);
                Outcome::Done
            }
        };
        if outcome == Outcome::Done {
            self.done.push(deed);
        }
        Ok(outcome)
    }

    fn kill(&mut self, target: Target, log: &Log) -> Outcome {
        let pid = match self.find(target, log, |_| true) {
            Ok(pid) => pid,
            Err(outcome) => return outcome,
        };
        // Afterwards `/proc` does not say any more which these were.
        let lost = match target {
            Target::Pe(pe) | Target::Guard(pe) => BTreeSet::from([pe]),
            Target::Proxy(_) | Target::Starting(_) => proc::ranks_of(pid, self.mark),
            Target::Launcher => BTreeSet::new(),
        };
        if !proc::signal(pid, self.mark, Signal::KILL) {
            return Outcome::TooLate;
        }
        self.killed.extend(lost);
        self.is_launcher_killed |= target == Target::Launcher;
        self.is_session_left |= matches!(target, Target::Launcher | Target::Proxy(_));
        Outcome::Done
    }

    fn harm(&self, harm: Harm) -> Result<Outcome> {
        let Some(file) = self.journal.filter(|file| file.exists()) else {
            return Ok(Outcome::TooLate);
        };
        let halve = || {
            let file = OpenOptions::new().write(true).open(file)?;
            file.set_len(file.metadata()?.len() / 2)
        };
        let done = match harm {
            Harm::Halve => halve(),
            Harm::Move => fs::rename(file, file.with_extension("moved")),
            Harm::Remove => fs::remove_file(file),
        };
        done.map_err(|error| Failure(format!("cannot {harm} {}: {error}", file.display())))?;
        Ok(Outcome::Done)
    }

    fn stop(&mut self, target: Target, time: Option<Duration>, log: &Log) -> Outcome {
        // A launcher waits for a guard that is stopped for good, and none can help it.
        let parents: BTreeSet<u32> =
            proc::marked(self.mark).into_iter().filter_map(proc::parent).collect();
        match self.find(target, log, |pid| !parents.contains(&pid)) {
            Ok(pid) if proc::signal(pid, self.mark, Signal::STOP) => {
                match time {
                    Some(time) => self.stopped.push((Instant::now() + time, pid)),
                    None => self.killed.extend(proc::ranks_of(pid, self.mark)),
                }
                Outcome::Done
            }
            Ok(_) => Outcome::TooLate,
            Err(outcome) => outcome,
        }
    }

    /// Only one that `fits` is a process that starts.
    fn find(
        &self,
        target: Target,
        log: &Log,
        fits: impl Fn(u32) -> bool,
    ) -> std::result::Result<u32, Outcome> {
        let process = |pe: u32| log.processes.get(&pe).copied();
        let found = match target {
            Target::Pe(pe) => process(pe),
            Target::Guard(pe) => process(pe).and_then(proc::parent).filter(|parent| {
                // Without a guard the parent is the launcher's.
                proc::program(*parent).as_deref() == Some(self.program)
            }),
            Target::Launcher => Some(self.launcher),
            Target::Proxy(number) => {
                nth(proc::marked(self.mark), number, |pid| PROXIES.contains(&&*proc::name(pid)))
            }
            Target::Starting(number) => {
                let fits = |pid| proc::program(pid).as_deref() == Some(self.program) && fits(pid);
                return nth(proc::marked(self.mark), number, fits).ok_or(Outcome::TooEarly);
            }
        };
        found.ok_or(Outcome::TooLate)
    }

    /// Lets those go on that have been stopped for long enough.
    pub(crate) fn resume(&mut self) {
        let now = Instant::now();
        let mark = self.mark;
        self.stopped.retain(|(when, pid)| {
            let is_over = *when <= now;
            if is_over {
                // One that has been killed meanwhile is as well.
                proc::signal(*pid, mark, Signal::CONT);
            }
            !is_over
        });
    }

    /// Whether the job is over, now that its launcher is: not if processes stay that a killed
    /// launcher cannot end.
    pub(crate) fn is_over(&self) -> bool {
        let start = Instant::now();
        while self.is_launcher_killed && !proc::marked(self.mark).is_empty() {
            if start.elapsed() > ORPHANS_STAY {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// How many of the PEs that are lost nothing was done to; `dead` is what the job says of their
    /// number. One end of a path that was cut may be lost, either.
    pub(crate) fn innocents(&self, log: &Log, dead: u64) -> usize {
        let named = log.lost.difference(&self.killed);
        let is_end = |pe: &&u32| self.path.is_some_and(|path| path.contains(pe));
        let (ends, others): (Vec<u32>, Vec<u32>) = named.partition(|pe| is_end(pe));
        let named = others.len() + ends.len().saturating_sub(1);
        let excused = self.killed.len() + usize::from(self.path.is_some());
        named.max((dead as usize).saturating_sub(excused))
    }
}

/// Of those that fit, the one with this number, modulo how many there are.
fn nth(pids: Vec<u32>, number: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    let fitting: Vec<u32> = pids.into_iter().filter(|pid| fits(*pid)).collect();
    let index = (number as usize).checked_rem(fitting.len())?;
    fitting.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[&str]) -> Log {
        let mut log = Log::default();
        lines.iter().for_each(|line| log.hear_err((*line).to_owned()));
        log
    }

    #[test]
    fn a_pe_that_is_lost_without_a_reason_is_innocent() {
        let mut scene = Scene::new("m", Path::new("/p"), None, None, 1);
        let two = log(&["PE 1 has died", "PE 3 has died", "PE 3 has died"]);
        assert_eq!(scene.innocents(&two, 0), 2);
        assert_eq!(scene.innocents(&log(&[]), 3), 3, "where nothing can be read");
        scene.killed.insert(3);
        assert_eq!(scene.innocents(&two, 2), 1);
        scene.killed.insert(1);
        assert_eq!(scene.innocents(&two, 2), 0);
    }

    #[test]
    fn a_cut_path_may_cost_one_of_its_ends() {
        let mut scene = Scene::new("m", Path::new("/p"), None, None, 1);
        scene.path = Some([1, 3]);
        assert_eq!(scene.innocents(&log(&["PE 3 has died"]), 1), 0);
        assert_eq!(scene.innocents(&log(&["PE 3 has died", "PE 1 leaves: x"]), 1), 1);
        assert_eq!(scene.innocents(&log(&["PE 2 has died"]), 1), 1);
    }

    #[test]
    fn numbers_go_round() {
        let even = |pid: u32| pid.is_multiple_of(2);
        assert_eq!(nth(vec![2, 3, 4, 6], 4, even), Some(4));
        assert_eq!(nth(vec![3], 4, even), None);
    }
}
