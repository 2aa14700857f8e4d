//! One job: it is started, listened to, disturbed, and waited for until its deadline.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::class::{Expected, Plan};
use super::deed::Deed;
use super::ended::{Ended, Judgement};
use super::hosts::Hosts;
use super::input::Answer;
use super::leftover;
use super::log::Log;
use super::scene::{Outcome, Scene};
use super::{interrupt, proc};
use crate::process::{self, Failure, Line, Result, cannot_start};

/// How precisely moments are kept.
const TICK: Duration = Duration::from_millis(1);

/// A job hangs if it takes longer than this plus the usual time times this factor. Both are large,
/// since the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_FACTOR: f64 = 10.0;

/// How long to wait for output after the launcher has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Shown of what a job has said, when it fails.
const LINES_SHOWN: usize = 40;

/// A job to be run.
pub(crate) struct Job<'a> {
    pub(crate) command: Command,
    /// The file of its program.
    pub(crate) program: PathBuf,
    pub(crate) plan: Plan,
    /// What should come out.
    pub(crate) answer: Answer,
    /// No other job of this run of xtask has it.
    pub(crate) name: String,
    /// How long it takes if it is left alone, if that is known.
    pub(crate) usual: Option<Duration>,
    /// Where it runs, if not here.
    pub(crate) hosts: Option<&'a Hosts>,
    /// The file that it keeps its results in, a journal or an arena, removed at its end.
    pub(crate) kept: Option<PathBuf>,
}

impl Job<'_> {
    pub(crate) fn run(mut self, folder: &Path) -> Result<Ended> {
        let mark = format!("{}-{}", std::process::id(), self.name);
        process::scrub(&mut self.command);
        self.command.env(proc::MARK, &mark).env("TMPDIR", folder);
        // The line that says which process is which PE, in plain letters.
        self.command.env("ULTRAMARINE_LOG", "info").env("NO_COLOR", "1");
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.command.spawn().map_err(|error| cannot_start(&self.command, &error))?;
        let mut monitor = Monitor::over(child);
        let (kept, launcher) = (self.kept.as_deref(), monitor.child.id());
        let mut scene = Scene::new(&mark, &self.program, self.hosts, kept, launcher);
        scene.killed.extend(self.plan.is_last_lost.then(|| self.plan.pes - 1));
        let ended = monitor.until_the_end(&self, &mut scene);
        let is_session_left = scene.is_session_left;
        // Whatever was done to the machine ends here.
        drop(scene);
        let mut left = leftover::of_job(&mark, folder, &monitor.shared_memory);
        if let Some(hosts) = self.hosts {
            hosts.heal()?;
            left.extend(hosts.clear()?);
        }
        for file in kept.into_iter().flat_map(|at| [at.to_owned(), at.with_extension("moved")]) {
            // One of them at most is there.
            let _ = std::fs::remove_file(file);
        }
        let ended = ended?;
        if is_session_left || ended.judgement == Judgement::Hung {
            left.retain(|what| !leftover::is_session_of_open_mpi(what));
        }
        Ok(Ended { left, ..ended })
    }

    fn patience(&self) -> Duration {
        let usual = self.usual.unwrap_or_default();
        PATIENCE + usual.mul_f64(PATIENCE_FACTOR) + self.plan.delay
    }

    /// What to think of a job that has ended by itself.
    fn judge(&self, status: ExitStatus, log: &Log, is_disturbed: bool) -> Judgement {
        let wrong = |why: String| Judgement::Wrong(why);
        if !status.success() {
            let may_fail = self.plan.expected == Expected::End && is_disturbed;
            return if may_fail { Judgement::Ended } else { wrong(status.to_string()) };
        }
        let Some(report) = &log.report else { return wrong("it prints no result".to_owned()) };
        if let Err(why) = self.answer.check(&report["result"]) {
            wrong(why)
        } else if self.plan.is_heard && log.processes.len() < self.plan.pes as usize {
            wrong("not all PEs were heard to begin".to_owned())
        } else {
            Judgement::Right
        }
    }
}

/// A job that runs.
struct Monitor {
    child: Child,
    lines: Receiver<Line>,
    log: Log,
    /// Files of shared memory that its processes use.
    shared_memory: BTreeSet<PathBuf>,
}

impl Monitor {
    fn over(mut child: Child) -> Self {
        let lines = process::lines(&mut child);
        Monitor { child, lines, log: Log::default(), shared_memory: BTreeSet::new() }
    }

    fn until_the_end(&mut self, job: &Job<'_>, scene: &mut Scene<'_>) -> Result<Ended> {
        let start = Instant::now();
        let mut begun = None;
        let mut deeds: VecDeque<Deed> = job.plan.deeds.iter().copied().collect();
        let status = loop {
            self.hear(TICK);
            if begun.is_none() && self.log.processes.len() == job.plan.pes as usize {
                self.shared_memory = leftover::shared_memory_of(scene.mark);
                begun = Some(Instant::now());
            }
            let disturbed = self.disturb(scene, &mut deeds, (start, begun));
            if interrupt::is_asked() || disturbed.is_err() {
                self.kill_all(scene.mark);
                return Err(disturbed.err().unwrap_or_else(|| Failure("interrupted".to_owned())));
            }
            match self.child.try_wait() {
                Ok(None) if start.elapsed() > job.patience() => break None,
                Ok(None) => {}
                Ok(status) => break status.filter(|_| scene.is_over()),
                Err(_) => break None,
            }
        };
        let took = begun.unwrap_or(start).elapsed();
        if status.is_some() {
            self.hear_the_rest();
        }
        let spoilt = job.plan.before.as_ref().or(job.plan.around.as_ref());
        let has_deed = job.plan.flags.starts_with("--deed");
        let is_disturbed = !scene.done.is_empty() || spoilt.is_some() || has_deed;
        let (judgement, details) = match status {
            None => (Judgement::Hung, self.end(scene.mark)),
            Some(status) => (job.judge(status, &self.log, is_disturbed), self.last_lines()),
        };
        let dead = self.log.number("dead").unwrap_or(0);
        Ok(Ended {
            // A job that may end is lost to all.
            innocents: if judgement == Judgement::Ended {
                0
            } else {
                scene.innocents(&self.log, dead)
            },
            judgement,
            started: begun.map(|begun| begun - start),
            took,
            done: std::mem::take(&mut scene.done),
            before: spoilt
                .map(|(what, _)| what.clone())
                .or(has_deed.then(|| job.plan.flags.to_owned())),
            killed: scene.killed.len() as u64,
            replicas: self.log.number("replicas"),
            left: Vec::new(),
            details,
        })
    }

    /// Does what is due, given when the launcher was started, and when the job had begun.
    fn disturb(
        &mut self,
        scene: &mut Scene<'_>,
        deeds: &mut VecDeque<Deed>,
        (start, begun): (Instant, Option<Instant>),
    ) -> Result<()> {
        scene.resume();
        while let Some(deed) = deeds.front().copied() {
            let is_early = deed.act.is_early();
            let since = if is_early { Some(start) } else { begun };
            if since.is_none_or(|since| since.elapsed() < deed.after) {
                break;
            }
            let is_late = is_early && begun.is_some();
            if !is_late && scene.perform(deed, &self.log)? == Outcome::TooEarly {
                break;
            }
            deeds.pop_front();
        }
        Ok(())
    }

    /// Reads the rest of the output, once the job has ended.
    fn hear_the_rest(&mut self) {
        let deadline = Instant::now() + LAST_WORDS;
        while Instant::now() < deadline && self.hear(TICK) {}
    }

    /// Takes in what the job says within this time, or until something comes. False when nothing
    /// more will come.
    fn hear(&mut self, within: Duration) -> bool {
        let text = |line: &[u8]| String::from_utf8_lossy(line).trim_end().to_owned();
        match self.lines.recv_timeout(within) {
            Ok(Line::Out(line)) => self.log.hear_out(text(&line)),
            Ok(Line::Err(line)) => self.log.hear_err(text(&line)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(within);
                return false;
            }
        }
        true
    }

    /// Ends a job that hangs; returns what is known about it.
    fn end(&mut self, mark: &str) -> String {
        let pids = proc::marked(mark);
        let text: String = pids.iter().map(|pid| proc::describe(*pid)).collect();
        self.kill_all(mark);
        self.hear_the_rest();
        text + &self.last_lines()
    }

    /// The launcher last.
    fn kill_all(&mut self, mark: &str) {
        let launcher = self.child.id();
        for pid in proc::marked(mark).into_iter().filter(|pid| *pid != launcher) {
            proc::kill(pid, mark);
        }
        // Fails if it has ended by now, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn last_lines(&self) -> String {
        let Log { lines, processes, .. } = &self.log;
        let kept = lines.len().saturating_sub(LINES_SHOWN);
        let pids = processes.iter().map(|(pe, pid)| format!("PE {pe} is {pid}, "));
        let pids: String = pids.collect();
        let last = lines[kept..].iter().fold(String::new(), |all, line| all + line + "\n");
        format!("{}\nits last lines:\n{last}", pids.trim_end_matches(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::deed::{Act, Target};

    fn plan(deeds: Vec<Deed>) -> Plan {
        Plan { deeds, ..Plan::undisturbed(2) }
    }

    fn run_by(plan: Plan, script: &str) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (program, name) = (PathBuf::from("/bin/sh"), script.len().to_string());
        let (hosts, usual, kept) = (None, None, None);
        let answer = Answer::Is("-3");
        let job = Job { command, program, plan, answer, name, usual, hosts, kept };
        job.run(leftover::folder().expect("there is room").path()).expect("sh is everywhere")
    }

    fn deed(millis: u64, act: Act) -> Deed {
        Deed { after: Duration::from_millis(millis), act }
    }

    /// A root and a mortal, which has a child.
    const SCRIPT: &str = "
        says() { echo \"INFO x: the job begins: PE $1 of 2 is process $2\" >&2; }
        sh -c 'sleep 1000 & wait' &
        says 1 $!
        says 0 $$
        wait
        echo '{\"result\": -3, \"replicas\": 2}'";

    #[test]
    fn victims_are_killed_and_the_result_is_read() {
        let kill = deed(30, Act::Kill(Target::Pe(1)));
        let ended = run_by(plan(vec![kill]), SCRIPT);
        assert_eq!(ended.done, [kill], "{}", ended.details);
        assert_eq!(ended.judgement, Judgement::Right, "{}", ended.details);
        assert_eq!((ended.replicas, ended.killed, ended.innocents), (Some(2), 1, 0));
        assert!(ended.took >= kill.after);
        // The victim's child outlived it.
        assert!(ended.left.len() == 1 && ended.left[0].contains("sleep 1000"), "{:?}", ended.left);
    }

    #[test]
    fn what_is_stopped_goes_on_after_its_time() {
        let script = "
            sh -c 'sleep 0.3' &
            echo the job begins: PE 1 of 2 is process $! >&2
            echo the job begins: PE 0 of 2 is process $$ >&2
            wait; echo '{\"result\": -3}'";
        let time = Duration::from_secs(1);
        let stop = deed(0, Act::Stop(Target::Pe(1), Some(time)));
        let ended = run_by(plan(vec![stop]), script);
        assert_eq!((ended.judgement, ended.done), (Judgement::Right, vec![stop]));
        assert!(ended.took >= time);
    }

    #[test]
    fn a_job_may_end_with_its_launcher_but_must_end() {
        let kill = deed(30, Act::Kill(Target::Launcher));
        let killed = || Plan { expected: Expected::End, ..plan(vec![kill]) };
        let begins = "for pe in 0 1; do echo the job begins: PE $pe of 2 is process $$ >&2; done;";
        let ended = run_by(killed(), &format!("{begins} sleep 1 & {begins} wait"));
        assert_eq!((ended.judgement, ended.left.len()), (Judgement::Ended, 0));
        let orphan = run_by(killed(), &format!("{begins} sleep 1000 & {begins} wait; true"));
        assert_eq!(orphan.judgement, Judgement::Hung);
        let failing = run_by(plan(Vec::new()), &format!("{begins} exit 3"));
        assert_eq!(failing.judgement, Judgement::Wrong("exit status: 3".to_owned()));
    }

    #[test]
    fn what_comes_out_is_judged() {
        let judgement = |script: &str| run_by(plan(Vec::new()), script).judgement;
        let wrong = |why: &str| Judgement::Wrong(why.to_owned());
        let begins = |pe: u32| format!("echo the job begins: PE {pe} of 2 is process $$ >&2;");
        let right = begins(0) + &begins(1) + "echo '{\"result\": -3}'";
        assert_eq!(judgement(&right), Judgement::Right);
        let silent = begins(0) + "echo '{\"result\": -3}'";
        assert_eq!(judgement(&silent), wrong("not all PEs were heard to begin"));
        assert_eq!(judgement("echo '{\"result\": 4}'"), wrong("the result is 4 instead of -3"));
        assert_eq!(judgement("echo '{\"result\": -3}'; exit 2"), wrong("exit status: 2"));
        assert_eq!(judgement("echo nothing"), wrong("it prints no result"));
    }

    #[test]
    fn a_job_that_hangs_is_described_and_ended() {
        let mark = format!("hang-{}", std::process::id());
        let mut command = Command::new("sh");
        command.args(["-c", "echo last words; sleep 1000; true"]).env(proc::MARK, &mark);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("sh is everywhere");
        while proc::marked(&mark).len() < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        let text = Monitor::over(child).end(&mark);
        assert!(text.contains("sleep 1000") && text.contains("last words"), "{text}");
        // A signal is heard in its own time.
        let killed = Instant::now();
        while !proc::marked(&mark).is_empty() && killed.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(proc::marked(&mark), [0u32; 0]);
    }
}
