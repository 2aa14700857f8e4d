//! The part of HTTP/1.1 that is needed: one request on a connection, and one answer.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// The longest head of a request or an answer.
const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 32;

/// A connection, and until when it has to be done.
pub(crate) struct Deadline<'a> {
    stream: &'a TcpStream,
    end: Instant,
    /// Something comes there when it has to be done at once.
    stop: Option<BorrowedFd<'a>>,
}

impl<'a> Deadline<'a> {
    pub(crate) fn new(
        stream: &'a TcpStream,
        within: Duration,
        stop: Option<BorrowedFd<'a>>,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Deadline { stream, end: Instant::now() + within, stop })
    }

    /// Does something with the connection once that is possible.
    fn once<T>(
        &self,
        ready: PollFlags,
        mut act: impl FnMut(&TcpStream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match act(self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(ready)?,
                done => return done,
            }
        }
    }

    fn wait(&self, ready: PollFlags) -> io::Result<()> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        let mut fds = vec![PollFd::from_borrowed_fd(self.stream.as_fd(), ready)];
        fds.extend(self.stop.map(|stop| PollFd::from_borrowed_fd(stop, PollFlags::IN)));
        // Interrupted, it looks once more.
        let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
        let stops = fds.get(1).is_some_and(|stop| !stop.revents().is_empty());
        if stops { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

impl Read for Deadline<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.once(PollFlags::IN, |mut stream| stream.read(into))
    }
}

impl Write for Deadline<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.once(PollFlags::OUT, |mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// What the asker shows.
    pub(crate) token: Option<String>,
}

/// Reads a request; `None` if it is none that this understands.
pub(crate) fn read_request(from: &mut impl Read) -> io::Result<Option<Request>> {
    let (head, _) = read_head(from)?;
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(&head).is_ok_and(|status| status.is_complete()) {
        return Ok(None);
    }
    let is_authorization =
        |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case("authorization");
    let shown = request.headers.iter().find(is_authorization);
    let token = shown
        .and_then(|header| std::str::from_utf8(header.value).ok()?.trim().strip_prefix("Bearer "))
        .map(|token| token.trim().to_owned());
    let path = request.path.filter(|_| request.method == Some("GET"));
    Ok(path.map(|path| Request { path: path.to_owned(), token }))
}

/// Writes an answer.
pub(crate) fn write_answer(
    to: &mut impl Write,
    (code, reason): (u16, &str),
    content_type: &str,
    body: &str,
) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    to.write_all(head.as_bytes())?;
    to.write_all(body.as_bytes())
}

/// Writes a request.
pub(crate) fn write_request(
    to: &mut impl Write,
    host: &str,
    path: &str,
    token: &str,
) -> io::Result<()> {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    );
    to.write_all(head.as_bytes())
}

/// Reads an answer of at most this length: its code and its body.
pub(crate) fn read_answer(from: &mut impl Read, bytes_max: u64) -> io::Result<(u16, Vec<u8>)> {
    let (head, mut body) = read_head(from)?;
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let is_whole = answer.parse(&head).is_ok_and(|status| status.is_complete());
    let code = answer.code.filter(|_| is_whole).ok_or_else(|| io::Error::other("no HTTP"))?;
    let is_length =
        |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case("content-length");
    let length = answer.headers.iter().find(is_length);
    let length: Option<u64> =
        length.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok());
    let length = length.filter(|length| *length <= bytes_max);
    let length = length.ok_or_else(|| io::Error::other("no length, or too long an answer"))?;
    let missing = length.saturating_sub(body.len() as u64);
    if from.take(missing).read_to_end(&mut body)? < missing as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok((code, body))
}

/// Reads up to the empty line, and what has come after it.
fn read_head(from: &mut impl Read) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut read = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let count = from.read(&mut piece)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(&piece[..count]);
        if let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return Ok((read, rest));
        }
        if read.len() > HEAD_BYTES_MAX {
            return Err(io::Error::other("too long a head"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_answer_are_read_as_written() {
        let mut sent = Vec::new();
        write_request(&mut sent, "a:1", "/job", "t0k").expect("a vector takes all");
        let read = read_request(&mut sent.as_slice()).expect("all is there");
        let expected = Request { path: "/job".to_owned(), token: Some("t0k".to_owned()) };
        assert_eq!(read, Some(expected));

        let mut sent = Vec::new();
        write_answer(&mut sent, (200, "OK"), "text/plain", "hello").expect("a vector takes all");
        let answer = |bytes_max| read_answer(&mut sent.as_slice(), bytes_max);
        assert_eq!(answer(5).expect("short enough"), (200, b"hello".to_vec()));
        answer(4).expect_err("too long");
        read_answer(&mut &sent[..sent.len() - 1], 5).expect_err("cut off");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let read = |text: &str| read_request(&mut text.as_bytes());
        for other in ["POST /job HTTP/1.1\r\n\r\n", "hello\r\n\r\n", "\0\0\0\0 \x7f\r\n\r\n"] {
            assert_eq!(read(other).expect("it has an end"), None, "{other:?}");
        }
        read("GET /job HTTP/1.1\r\n").expect_err("cut off");
        read(&"x".repeat(HEAD_BYTES_MAX + 2000)).expect_err("it has no end");
    }
}
