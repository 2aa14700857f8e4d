//! The thread that answers.

#[cfg(test)]
mod tests;

use crate::JobStatus;
use crate::contact::{self, Contact};
use crate::http::{Deadline, Request, read_request, write_answer};
use crate::json;
use crate::metrics;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::convert::Infallible;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// How long a request may take to come. Another one waits meanwhile.
const REQUEST_WITHIN: Duration = Duration::from_millis(300);

/// How long its answer may take to go.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// A status that is not older than this answers the next request as well.
const STAYS_NEW: Duration = Duration::from_millis(200);

/// How often the file of metrics is written.
const FILE_EVERY: Duration = Duration::from_secs(5);

/// After a failed `accept`, as when the process has no descriptor left.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Says what the job does now, or why that is not known.
pub type Look = Box<dyn FnMut() -> Result<JobStatus, String> + Send>;

/// How the job is to be seen.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// The file that is to say where the job answers those who have its token.
    pub contact: Option<PathBuf>,
    /// Where Prometheus finds the metrics.
    pub metrics: Option<Metrics>,
    /// The addresses by which others may reach this host. If there are none: only this host can.
    pub addresses: Vec<IpAddr>,
    /// The ports that may be listened on, where it is all the same which.
    pub ports: Option<RangeInclusive<u16>>,
}

/// Where Prometheus finds metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metrics {
    /// At `/metrics` of this port, for all.
    Port(u16),
    /// In this file, which is written anew every 5 s, and once at the end.
    File(PathBuf),
}

/// At its end the thread gets this long to say so in the file of metrics. It may be waiting for a
/// slow disk or the PEs.
const END_WITHIN: Duration = Duration::from_secs(1);

impl FromStr for Metrics {
    type Err = String;

    /// A number is a port, all else a file.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.bytes().any(|byte| !byte.is_ascii_digit()) {
            return Ok(Metrics::File(text.into()));
        }
        let port = text.parse().ok().filter(|port| *port > 0);
        port.map(Metrics::Port).ok_or_else(|| "a port from 1 to 65535, or a file".to_owned())
    }
}

/// Answers until it is dropped.
pub struct Server {
    stop: Arc<OwnedFd>,
    /// Closed when the thread has ended.
    ended: Receiver<Infallible>,
}

impl Server {
    /// Starts answering in these ways. What cannot be done is said, and left out; `None` if nothing
    /// is left.
    pub fn start(ways: &Ways, look: Look) -> Option<Server> {
        let (contact, open) = match &ways.contact {
            Some(file) => told(&format!("no status in `{}`", file.display()), contact(ways, file)),
            None => None,
        }
        .unzip();
        let token = contact.as_ref().map(|(_, contact)| contact.token.clone());
        let (port, file) = match &ways.metrics {
            Some(Metrics::Port(port)) => {
                let bound = bind(&ways.addresses, *port..=*port);
                (told(&format!("no metrics at port {port}"), bound), None)
            }
            Some(Metrics::File(file)) => (None, Some(MetricsFile::new(file.clone()))),
            None => (None, None),
        };
        let open = open.map(|listener| Door { listener, token });
        let doors: Vec<_> =
            open.into_iter().chain(port.map(|listener| Door { listener, token: None })).collect();
        if doors.is_empty() && file.is_none() {
            return None;
        }
        let (alive, ended) = mpsc::channel();
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from);
        let stop = Arc::new(told("no status", stop)?);
        let answers = Answers { doors, contact, file, stop: stop.clone(), look, last: None };
        let run = move || {
            answers.run();
            drop(alive);
        };
        told("no status", thread::Builder::new().name("status".to_owned()).spawn(run))?;
        Some(Server { stop, ended })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        let _ = self.ended.recv_timeout(END_WITHIN);
    }
}

/// What has come out, or says what has not.
fn told<T>(what: &str, result: io::Result<T>) -> Option<T> {
    result.inspect_err(|error| tracing::warn!("{what}: {error}")).ok()
}

/// Listens at a port of its own, and says so in the file.
fn contact(ways: &Ways, file: &Path) -> io::Result<((PathBuf, Contact), TcpListener)> {
    let listener = bind(&ways.addresses, ways.ports.clone().unwrap_or(0..=0))?;
    let port = listener.local_addr()?.port();
    let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let addresses = if ways.addresses.is_empty() { &here[..] } else { &ways.addresses };
    let addresses = addresses.iter().map(|address| SocketAddr::new(*address, port)).collect();
    let contact = Contact { addresses, token: contact::new_token()? };
    contact.write(file)?;
    Ok(((file.to_owned(), contact), listener))
}

/// Listens at the first of these ports that is free, where one is reached at these addresses.
fn bind(addresses: &[IpAddr], ports: RangeInclusive<u16>) -> io::Result<TcpListener> {
    let any: IpAddr = match addresses {
        [] => Ipv4Addr::LOCALHOST.into(),
        [one] => *one,
        some if some.iter().all(IpAddr::is_ipv4) => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut failed = ErrorKind::AddrNotAvailable.into();
    for port in ports {
        match TcpListener::bind((any, port)) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                return Ok(listener);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Where others come in, and what they have to show there.
struct Door {
    listener: TcpListener,
    token: Option<String>,
}

impl Door {
    /// Whether a request may have an answer.
    fn admits(&self, request: &Request) -> bool {
        match (&self.token, &request.token) {
            (Some(wanted), Some(shown)) => is_same(wanted.as_bytes(), shown.as_bytes()),
            (wanted, _) => wanted.is_none() && request.path == "/metrics",
        }
    }
}

/// The same whatever the first difference is: else the time that it takes would tell.
fn is_same(wanted: &[u8], shown: &[u8]) -> bool {
    let differs = wanted.iter().zip(shown).fold(0, |all, (a, b)| all | (a ^ b));
    wanted.len() == shown.len() && differs == 0
}

/// The file of metrics, and when it is to be written next.
struct MetricsFile {
    path: PathBuf,
    next: Instant,
    has_failed: bool,
}

impl MetricsFile {
    fn new(path: PathBuf) -> Self {
        MetricsFile { path, next: Instant::now(), has_failed: false }
    }

    fn write(&mut self, job: &JobStatus) {
        let written = contact::replace(&self.path, 0o644, &metrics::text(job));
        // It is said once.
        if let Err(error) = written
            && !std::mem::replace(&mut self.has_failed, true)
        {
            tracing::warn!("no metrics in `{}`: {error}", self.path.display());
        }
    }
}

/// What the thread has.
struct Answers {
    doors: Vec<Door>,
    contact: Option<(PathBuf, Contact)>,
    file: Option<MetricsFile>,
    stop: Arc<OwnedFd>,
    look: Look,
    last: Option<(Instant, JobStatus)>,
}

impl Answers {
    fn run(mut self) {
        while !self.waits_for_the_end() {
            for at in 0..self.doors.len() {
                if let Some(Err(error)) = self.accept(at) {
                    tracing::debug!("a request for the status has failed: {error}");
                }
            }
            self.write_file_if_due();
        }
        if let Some((path, own)) = &self.contact
            && Contact::read(path).is_ok_and(|there| there == *own)
        {
            let _ = fs::remove_file(path);
        }
        self.write_file_at_the_end();
    }

    /// Waits until something is to be done. Returns whether that is to end.
    fn waits_for_the_end(&self) -> bool {
        let until = self.file.as_ref().map(|file| file.next);
        let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let fds = std::iter::once(self.stop.as_fd());
        let fds = fds.chain(self.doors.iter().map(|door| door.listener.as_fd()));
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // Interrupted, it looks and finds nothing.
        let _ = poll(&mut fds, wait.as_ref());
        !fds[0].revents().is_empty()
    }

    /// Answers the request of who has come in at this door, if any has.
    fn accept(&mut self, at: usize) -> Option<io::Result<()>> {
        let stream = match self.doors[at].listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => {
                thread::sleep(ACCEPT_AGAIN_AFTER);
                return Some(Err(error));
            }
        };
        Some(self.answer(at, &stream))
    }

    fn answer(&mut self, at: usize, stream: &TcpStream) -> io::Result<()> {
        let stop = self.stop.clone();
        let within = |time| Deadline::new(stream, time, Some(stop.as_fd()));
        let request = read_request(&mut within(REQUEST_WITHIN)?)?;
        let (plain, object) = ("text/plain; charset=utf-8", "application/json");
        let (status, content_type, body) = match request {
            None => ((400, "Bad Request"), plain, "GET is understood\n".to_owned()),
            Some(request) if !self.doors[at].admits(&request) => {
                ((401, "Unauthorized"), plain, "another token is wanted\n".to_owned())
            }
            Some(request) => match (request.path.as_str(), self.look()) {
                ("/job", Ok(job)) => ((200, "OK"), object, json::object(job)),
                ("/metrics", Ok(job)) => ((200, "OK"), metrics::CONTENT_TYPE, metrics::text(job)),
                ("/job" | "/metrics", Err(why)) => ((503, "Service Unavailable"), plain, why),
                _ => ((404, "Not Found"), plain, "there are /job and /metrics\n".to_owned()),
            },
        };
        write_answer(&mut within(ANSWER_WITHIN)?, status, content_type, &body)
    }

    /// What the job does now, or did a moment ago.
    fn look(&mut self) -> Result<&JobStatus, String> {
        if self.last.as_ref().is_none_or(|(when, _)| when.elapsed() > STAYS_NEW) {
            self.last = Some((Instant::now(), (self.look)()?));
        }
        Ok(&self.last.as_ref().expect("it was just put there").1)
    }

    /// Writes the file of metrics if it is time. What is not known now may be in a while: until
    /// then the file stays as old as it is.
    fn write_file_if_due(&mut self) {
        let is_due = self.file.as_ref().is_some_and(|file| Instant::now() >= file.next);
        let job = is_due.then(|| self.look().ok().cloned()).flatten();
        for file in self.file.iter_mut().filter(|_| is_due) {
            file.next = Instant::now() + FILE_EVERY;
            job.iter().for_each(|job| file.write(job));
        }
    }

    /// Writes it at the end, with what was known last.
    fn write_file_at_the_end(&mut self) {
        if self.file.is_some() {
            let _ = self.look();
            let last = self.last.take().map(|(_, job)| job).unwrap_or_default();
            let job = JobStatus { is_running: false, ..last };
            self.file.iter_mut().for_each(|file| file.write(&job));
        }
    }
}
