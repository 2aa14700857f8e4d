//! The pipes to the GAP in front.
//!
//! Named pipes have their traps: to open one waits for the other side. So this side opens both
//! without waiting, first the replies, then the requests. The command sees by the requests that
//! this side is there, and only then starts GAP. If GAP ends, the requests end; if this process
//! ends, the replies do.

use crate::Answer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open as open_file};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;
use ultramarine::{Error, Result};
use ultramarine_gap::Value;
use ultramarine_gap::frame::{self, Answer as Frame};

/// A GAP that has not come by then never will: the command has been killed.
const COMES_WITHIN: Duration = Duration::from_mins(2);

/// The longest request, in bytes as it is encoded.
const REQUEST_BYTES_MAX: usize = 1 << 30;

/// Opens both pipes in this folder.
///
/// # Errors
///
/// There are none, which is so if the root is on another host than GAP.
pub(crate) fn open(folder: &Path) -> Result<(Requests, Replies)> {
    let open = |name: &str, access| {
        let path = folder.join(name);
        let file = open_file(&path, access | OFlags::CLOEXEC, Mode::empty());
        file.map(File::from).map_err(|error| {
            let path = path.display();
            let text = format!(
                "the pipe {path} to GAP cannot be opened ({error}): the first process of the job \
                 must be on the host of `ultramarine gap`, as it is in a batch script of Slurm"
            );
            Error::other(text)
        })
    };
    let replies = open("replies", OFlags::RDWR)?;
    let requests = open("requests", OFlags::RDONLY | OFlags::NONBLOCK)?;
    let inbox = Arc::new(Mutex::new(Inbox::default()));
    let filled = inbox.clone();
    thread::Builder::new().name("requests".to_owned()).spawn(move || {
        if let Err(error) = listen(requests, &filled) {
            tracing::error!("GAP's requests cannot be read: {error}");
        }
        let mut inbox = lock(&filled);
        inbox.has_ended = true;
        inbox.wake();
    })?;
    let path = folder.join("replies");
    Ok((Requests { inbox }, Replies { path, both: Some(replies), frames: None }))
}

/// The requests that have come.
#[derive(Default)]
struct Inbox {
    come: VecDeque<(u64, Value)>,
    has_ended: bool,
    waiting: Option<Waker>,
}

impl Inbox {
    fn wake(&mut self) {
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }
}

fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads requests until they end.
fn listen(mut pipe: File, inbox: &Mutex<Inbox>) -> io::Result<()> {
    let (mut come, mut part) = (Vec::new(), vec![0; 1 << 16]);
    let mut limit = Timespec::try_from(COMES_WITHIN).ok();
    loop {
        match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], limit.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match pipe.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(length) => come.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        limit = None;
        while let Some((number, request, length)) =
            frame::reply(&come, REQUEST_BYTES_MAX).map_err(io::Error::other)?
        {
            come.drain(..length);
            come.shrink_to(part.len());
            let Frame::Value(request) = request else {
                return Err(io::Error::other("it is no request"));
            };
            let mut inbox = lock(inbox);
            inbox.come.push_back((number, request));
            inbox.wake();
        }
    }
}

pub(crate) struct Requests {
    inbox: Arc<Mutex<Inbox>>,
}

impl Requests {
    /// The next request and its number; `None` at the end.
    pub(crate) async fn next(&self) -> Option<(u64, Value)> {
        self.is_there().await;
        lock(&self.inbox).come.pop_front()
    }

    /// Waits for the next request, or the end.
    pub(crate) async fn is_there(&self) {
        poll_fn(|cx| {
            let mut inbox = lock(&self.inbox);
            if inbox.has_ended || !inbox.come.is_empty() {
                return Poll::Ready(());
            }
            inbox.waiting = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// The replies. A thread writes them: GAP does not read while its user is in the break loop.
pub(crate) struct Replies {
    path: PathBuf,
    /// Until GAP is there, this process is a reader, too: GAP would wait for a writer.
    both: Option<File>,
    frames: Option<Sender<Vec<u8>>>,
}

impl Replies {
    /// From now on a write fails once GAP has ended.
    pub(crate) fn gap_is_there(&mut self) -> io::Result<()> {
        let mut pipe = File::options().write(true).open(&self.path)?;
        self.both = None;
        let (sender, frames) = channel::<Vec<u8>>();
        self.frames = Some(sender);
        let write = move || frames.iter().try_for_each(|frame| pipe.write_all(&frame));
        thread::Builder::new().name("replies".to_owned()).spawn(write)?;
        Ok(())
    }

    /// Sends an answer, unless GAP has ended: then the requests end, too.
    pub(crate) fn send(&self, number: u64, answer: Answer) {
        let frame = match answer {
            Ok(Value::Nothing) => frame::request(number, &"+".into(), &[]),
            Ok(value) => frame::request(number, &"+".into(), &[value]),
            Err(message) => frame::request(number, &"-".into(), &[message.into()]),
        };
        let _ = self.frames.as_ref().map(|frames| frames.send(frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkfifoat};
    use ultramarine_testkit::bounded;

    #[test]
    fn a_reply_that_is_not_read_holds_nothing_up() {
        let path = std::env::temp_dir().join(format!("ultramarine-pipes-{}", std::process::id()));
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("the folder can be written");
        let mut reader = File::options().read(true).write(true).open(&path).expect("it is there");
        let mut replies = Replies { path: path.clone(), both: None, frames: None };
        let long = "long".repeat(1 << 20);
        let length = frame::request(1, &"+".into(), &[long.as_str().into()]).len();
        bounded(move || {
            replies.gap_is_there().expect("it is a pipe");
            replies.send(1, Ok(long.as_str().into()));
        });
        std::fs::remove_file(path).expect("it is ours");
        bounded(move || reader.read_exact(&mut vec![0; length])).expect("it has come");
    }
}
