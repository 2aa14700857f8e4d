//! A job in the background, whose processes a test looks at.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use ultramarine_testkit::{Ended, eventually, kill, marked};

/// The variable by which all processes of a job are known.
const MARK: &str = "GUEST_TEST_JOB";

/// A job under a launcher.
pub(crate) struct Job {
    launcher: Child,
    mark: String,
    out: Said,
    err: Said,
    /// Files of shared memory that its processes were seen to use.
    shared_memory: BTreeSet<PathBuf>,
}

/// What is said on a pipe, as it comes.
struct Said {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Said {
    fn on(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let heard = text.clone();
        let reader = thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut part) {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                *heard += &String::from_utf8_lossy(&part[..length]);
            }
        });
        Said { text, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hear_out(&mut self) -> String {
        self.reader.take().into_iter().for_each(|reader| reader.join().expect("it only reads"));
        self.so_far()
    }
}

impl Job {
    pub(crate) fn start(command: &mut Command) -> Self {
        static JOBS: AtomicU32 = AtomicU32::new(0);
        let number = JOBS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        // In plain letters, the line that says which process is which PE.
        command.env(MARK, &mark).env("ULTRAMARINE_LOG", "info").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let out = Said::on(launcher.stdout.take().expect("piped"));
        let err = Said::on(launcher.stderr.take().expect("piped"));
        Job { launcher, mark, out, err, shared_memory: BTreeSet::new() }
    }

    /// The process of each PE, once all have begun.
    pub(crate) fn begun(&mut self, pes: usize) -> BTreeMap<u32, u32> {
        let mut processes = BTreeMap::new();
        eventually("all PEs begin", || {
            let err = self.err.so_far();
            processes = err.lines().filter_map(begins).collect();
            let has_ended = self.launcher.try_wait().expect("it is our child").is_some();
            assert!(!has_ended || processes.len() == pes, "it has ended: {err}");
            processes.len() == pes
        });
        for process in processes.values() {
            let maps = std::fs::read_to_string(format!("/proc/{process}/maps"));
            let file = |line: &str| Some(PathBuf::from(&line[line.find("/dev/shm/")?..]));
            self.shared_memory.extend(maps.unwrap_or_default().lines().filter_map(file));
        }
        processes
    }

    /// How it ended. No process may be left, and no file.
    pub(crate) fn end(mut self) -> Ended {
        let mut status = None;
        eventually("the job ends", || {
            status = self.launcher.try_wait().expect("it is our child");
            status.is_some()
        });
        eventually("all processes end", || self.alive().is_empty());
        let left: Vec<_> = self.shared_memory.iter().filter(|path| path.exists()).collect();
        assert!(left.is_empty(), "{left:?}");
        let status = status.expect("it has ended");
        let (out, err) = (self.out.hear_out(), self.err.hear_out());
        Ended { is_success: status.success(), code: status.code(), out, err }
    }

    /// The processes of the job, the launcher's own among them.
    fn alive(&self) -> Vec<i32> {
        marked(MARK, &self.mark)
    }
}

/// A job that a test has given up.
impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
        self.alive().into_iter().for_each(kill);
    }
}

/// The PE and its process, if the line says that a PE begins.
fn begins(line: &str) -> Option<(u32, u32)> {
    let (_, rest) = line.split_once("the job begins: PE ")?;
    let (pe, rest) = rest.split_once(" of ")?;
    let (_, process) = rest.split_once(" is process ")?;
    Some((pe.parse().ok()?, process.trim().parse().ok()?))
}
