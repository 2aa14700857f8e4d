//! One job: it is started, listened to, disturbed, and waited for, but not for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::draw::Kill;
use super::leftover::{self, Folder};
use super::proc;
use crate::process::{Result, cannot_start};

/// How precisely moments are kept.
const TICK: Duration = Duration::from_millis(1);

/// A job that takes so much longer than usual hangs; a busy machine is forgiven much.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_FACTOR: f64 = 10.0;

/// After the launcher has ended, its output is waited for so long.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Shown of what a job has said, when it fails.
const LINES_SHOWN: usize = 40;

/// A job to be run.
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) pes: u32,
    /// What should come out.
    pub(crate) result: i64,
    /// No other job of this run of xtask has it.
    pub(crate) name: String,
    pub(crate) kills: Vec<Kill>,
    /// How long it takes if nobody is killed, if that is known.
    pub(crate) usual: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    /// And why.
    Wrong(String),
    Hung,
}

/// How a job ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    /// From the time all PEs had begun until the launcher had ended.
    pub(crate) took: Duration,
    /// Who was killed, in order, and when.
    pub(crate) killed: Vec<Kill>,
    /// Tasks that were given out again, if the program says.
    pub(crate) replicas: Option<u64>,
    /// What should not be there any more.
    pub(crate) left: Vec<String>,
    /// What helps to find out why it failed; nothing if it has not.
    details: String,
}

impl Job {
    pub(crate) fn run(mut self, folder: &Folder) -> Result<Ended> {
        let mark = format!("{}-{}", std::process::id(), self.name);
        scrub(&mut self.command);
        self.command.env(proc::MARK, &mark).env("TMPDIR", folder.path());
        // The line that says which process is which PE, in plain letters.
        self.command.env("ULTRAMARINE_LOG", "info").env("NO_COLOR", "1");
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.command.spawn().map_err(|error| cannot_start(&self.command, &error))?;
        let mut watch = Watch::over(child, &mark);
        let ended = watch.until_the_end(&self);
        let left = leftover::of_job(&mark, folder, &watch.shared_memory);
        Ok(Ended { left, ..ended })
    }

    fn patience(&self) -> Duration {
        PATIENCE + self.usual.unwrap_or_default().mul_f64(PATIENCE_FACTOR)
    }

    /// What to think of a job that has ended by itself.
    fn judge(&self, status: ExitStatus, report: Option<&serde_json::Value>) -> Verdict {
        let wrong = |why: String| Verdict::Wrong(why);
        if !status.success() {
            return wrong(status.to_string());
        }
        let Some(report) = report else { return wrong("it prints no result".to_owned()) };
        match &report["result"] {
            result if result.as_i64() == Some(self.result) => Verdict::Right,
            result => wrong(format!("the result is {result} instead of {}", self.result)),
        }
    }
}

/// Takes out what a user's settings would say to the processes.
fn scrub(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ULTRAMARINE_") {
            command.env_remove(name);
        }
    }
}

/// A line that the job has written.
enum Line {
    Out(String),
    Err(String),
}

/// A job that runs.
struct Watch<'a> {
    child: Child,
    mark: &'a str,
    lines: Receiver<Line>,
    /// What it has said.
    said: Vec<String>,
    /// The processes, by PE.
    processes: BTreeMap<u32, u32>,
    /// Files of shared memory that they use.
    shared_memory: BTreeSet<PathBuf>,
    /// The object that the program prints at its end.
    report: Option<serde_json::Value>,
}

impl<'a> Watch<'a> {
    fn over(mut child: Child, mark: &'a str) -> Self {
        let (sender, lines) = mpsc::channel();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        listen(stdout, sender.clone(), Line::Out);
        listen(stderr, sender, Line::Err);
        let (said, processes, shared_memory) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Watch { child, mark, lines, said, processes, shared_memory, report: None }
    }

    fn until_the_end(&mut self, job: &Job) -> Ended {
        let start = Instant::now();
        let mut begun = None;
        let mut kills = job.kills.iter().copied().peekable();
        let mut killed = Vec::new();
        let status = loop {
            self.hear(TICK);
            if begun.is_none() && self.processes.len() == job.pes as usize {
                self.shared_memory = leftover::shared_memory_of(self.mark);
                begun = Some(Instant::now());
            }
            let age = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
            while let Some(kill) = kills.next_if(|kill| begun.is_some() && kill.after <= age) {
                // Whoever has left by then was faster.
                if self.processes.get(&kill.pe).is_some_and(|pid| proc::kill(*pid, self.mark)) {
                    killed.push(kill);
                }
            }
            match self.child.try_wait() {
                Ok(None) if start.elapsed() > job.patience() => break None,
                Ok(None) => {}
                Ok(status) => break status,
                Err(_) => break None,
            }
        };
        let took = begun.unwrap_or(start).elapsed();
        let (verdict, details) = match status {
            None => (Verdict::Hung, self.end()),
            Some(status) => {
                self.hear_the_rest();
                match job.judge(status, self.report.as_ref()) {
                    Verdict::Right if self.processes.len() < job.pes as usize => {
                        let reason = "not all PEs were heard to begin".to_owned();
                        (Verdict::Wrong(reason), self.last_lines())
                    }
                    Verdict::Right => (Verdict::Right, String::new()),
                    verdict => (verdict, self.last_lines()),
                }
            }
        };
        let replicas = self.report.as_ref().and_then(|report| report["replicas"].as_u64());
        Ended { verdict, took, killed, replicas, left: Vec::new(), details }
    }

    /// Takes in what is said by the end of the job.
    fn hear_the_rest(&mut self) {
        let deadline = Instant::now() + LAST_WORDS;
        while Instant::now() < deadline && self.hear(TICK) {}
    }

    /// Takes in what the job says within this time, or until something comes. False when nothing
    /// more will come.
    fn hear(&mut self, within: Duration) -> bool {
        match self.lines.recv_timeout(within) {
            Ok(Line::Out(line)) => {
                if line.starts_with('{') {
                    self.report = serde_json::from_str(&line).ok().or(self.report.take());
                }
                self.said.push(line);
            }
            Ok(Line::Err(line)) => {
                self.processes.extend(begins(&line));
                self.said.push(line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(within);
                return false;
            }
        }
        true
    }

    /// Ends a job that hangs, the launcher last; returns what is known about it.
    fn end(&mut self) -> String {
        let pids = proc::marked(self.mark);
        let mut text: String = pids.iter().map(|pid| proc::describe(*pid)).collect();
        let launcher = self.child.id();
        for pid in pids.into_iter().filter(|pid| *pid != launcher) {
            proc::kill(pid, self.mark);
        }
        // Fails if it has ended by now, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.hear_the_rest();
        text += &self.last_lines();
        text
    }

    fn last_lines(&self) -> String {
        let kept = self.said.len().saturating_sub(LINES_SHOWN);
        let pids = self.processes.iter().map(|(pe, pid)| format!("PE {pe} is {pid}, "));
        let pids: String = pids.collect();
        let last = self.said[kept..].iter().fold(String::new(), |all, line| all + line + "\n");
        format!("{}\nits last lines:\n{last}", pids.trim_end_matches(", "))
    }
}

/// Passes the lines on, until there are no more or nobody wants them.
fn listen(pipe: Option<impl Read + Send + 'static>, to: Sender<Line>, kind: fn(String) -> Line) {
    let Some(pipe) = pipe else { return };
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if to.send(kind(text)).is_err() {
                break;
            }
            line.clear();
        }
    });
}

/// The PE and its process, if the line says that a PE begins.
fn begins(line: &str) -> Option<(u32, u32)> {
    let (_, rest) = line.split_once("the job begins: PE ")?;
    let (pe, rest) = rest.split_once(" of ")?;
    let (_, process) = rest.split_once(" is process ")?;
    Some((pe.parse().ok()?, process.trim().parse().ok()?))
}

impl Ended {
    /// One of which nothing else is known.
    #[cfg(test)]
    pub(crate) fn new(verdict: Verdict, took: Duration, replicas: u64) -> Self {
        Ended {
            verdict,
            took,
            killed: Vec::new(),
            replicas: Some(replicas),
            left: Vec::new(),
            details: String::new(),
        }
    }

    /// What happened, in a line.
    pub(crate) fn summary(&self) -> String {
        let mut text = match &self.verdict {
            Verdict::Right => format!("{:.2} s", self.took.as_secs_f64()),
            Verdict::Wrong(why) => format!("WRONG: {why}"),
            Verdict::Hung => format!("HUNG after {:.0} s", self.took.as_secs_f64()),
        };
        let killed: Vec<_> = self.killed.iter().map(Kill::to_string).collect();
        let parts = [
            (!killed.is_empty()).then(|| format!("killed {}", killed.join(" and "))),
            self.replicas.map(|replicas| format!("{replicas} replicas")),
            (!self.left.is_empty()).then(|| format!("{} LEFT BEHIND", self.left.len())),
        ];
        for part in parts.into_iter().flatten() {
            text += ", ";
            text += &part;
        }
        text
    }

    /// What helps to find out what is wrong, if anything is.
    pub(crate) fn print_details(&self) {
        let all = std::iter::once(&self.details).chain(&self.left);
        for line in all.flat_map(|text| text.lines()) {
            println!("       | {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(script: &str, kills: Vec<Kill>) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { command, pes: 2, result: -3, name: script.len().to_string(), kills, usual: None }
    }

    fn run(job: Job) -> Ended {
        job.run(&Folder::make().expect("there is room")).expect("sh is everywhere")
    }

    /// A root and a mortal, which has a child of its own.
    const SCRIPT: &str = "
        says() { echo \"INFO x: the job begins: PE $1 of 2 is process $2\" >&2; }
        sh -c 'sleep 1000 & wait' &
        says 1 $!
        says 0 $$
        wait
        echo '{\"result\": -3, \"replicas\": 2}'";

    #[test]
    fn a_line_says_which_process_is_which_pe() {
        let line = "2026-01-01T00:00:00Z  INFO x: the job begins: PE 3 of 8 is process 4711";
        assert_eq!(begins(line), Some((3, 4711)));
        assert_eq!(begins("the job begins: PE x of 8 is process 4711"), None);
        assert_eq!(begins("something else"), None);
    }

    #[test]
    fn victims_are_killed_and_the_result_is_read() {
        let kill = Kill { after: Duration::from_millis(30), pe: 1 };
        let ended = run(job(SCRIPT, vec![kill]));
        assert_eq!(ended.killed, [kill], "{}", ended.details);
        assert_eq!(ended.verdict, Verdict::Right, "{}", ended.details);
        assert_eq!(ended.replicas, Some(2));
        assert!(ended.took >= kill.after);
        // The victim's child outlived it.
        assert!(ended.left.len() == 1 && ended.left[0].contains("sleep 1000"), "{:?}", ended.left);
    }

    #[test]
    fn what_comes_out_is_judged() {
        let verdict = |script: &str| run(job(script, Vec::new())).verdict;
        let wrong = |why: &str| Verdict::Wrong(why.to_owned());
        let begins = |pe: u32| format!("echo the job begins: PE {pe} of 2 is process $$ >&2;");
        let right = begins(0) + &begins(1) + "echo '{\"result\": -3}'";
        assert_eq!(verdict(&right), Verdict::Right);
        let silent = begins(0) + "echo '{\"result\": -3}'";
        assert_eq!(verdict(&silent), wrong("not all PEs were heard to begin"));
        assert_eq!(verdict("echo '{\"result\": 4}'"), wrong("the result is 4 instead of -3"));
        assert_eq!(verdict("echo '{\"result\": -3}'; exit 2"), wrong("exit status: 2"));
        assert_eq!(verdict("echo nothing"), wrong("it prints no result"));
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
        let text = Watch::over(child, &mark).end();
        assert!(text.contains("sleep 1000") && text.contains("last words"), "{text}");
        // A signal is heard in its own time.
        let killed = Instant::now();
        while !proc::marked(&mark).is_empty() && killed.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(proc::marked(&mark), [0u32; 0]);
    }
}
