//! The witness of a PE's end: it answers in the PE's place that its process is gone.

use crate::handshake::{HELLO_BYTES, HandshakeError, JobKey, Purpose, testify};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// How often a witness looks for calls.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How long a caller has to say its HELLO.
const HELLO_WITHIN: Duration = Duration::from_millis(500);

/// The most calls in their handshake at a time. The system keeps some more waiting.
const CALLS_MAX: usize = 256;

/// What another process of a PE's host has to know to be a witness of the PE's end.
///
/// The witness, the guard of the PE's process, holds a second descriptor of the
/// [endpoint](super::DetectorEndpoint) on which the PE's detector listens. So the PE's address
/// stays open when its process ends, and those that call it then are told so, under the job's key.
/// The network cannot forge that: a firewall can only refuse or swallow calls, which proves
/// nothing.
#[derive(Clone, Copy, Debug)]
pub struct Witness {
    me: Pe,
    pes: u32,
    key: JobKey,
}

/// A call in its handshake.
struct Call {
    stream: TcpStream,
    begun: Instant,
    hello: [u8; HELLO_BYTES],
    received: usize,
}

impl Witness {
    /// The witness of the end of PE `me`, in a job of `pes` PEs with this key.
    pub fn new(me: Pe, pes: u32, key: JobKey) -> Witness {
        Witness { me, pes, key }
    }

    /// All that it knows, in one line. It has the job's key: only a guard may see it.
    pub fn to_words(&self) -> String {
        format!("{} {} {:x}", self.me.number(), self.pes, self.key.number())
    }

    /// A witness that knows this; `None` if they are no such words.
    pub fn from_words(words: &str) -> Option<Witness> {
        let mut words = words.split(' ');
        let me = Pe::new(words.next()?.parse().ok()?);
        let pes = words.next()?.parse().ok()?;
        let key = JobKey::of_number(u128::from_str_radix(words.next()?, 16).ok()?);
        Some(Witness { me, pes, key })
    }

    /// Answers each call that its process is gone. Ends once none has been answered for `quiet`,
    /// after the first; `within` at the latest. To be called when the process has ended.
    pub fn answer(&self, listener: &TcpListener, quiet: Duration, within: Duration) {
        let begun = Instant::now();
        let mut calls = Vec::new();
        let mut answered_at = None;
        if listener.set_nonblocking(true).is_err() {
            return;
        }
        while begun.elapsed() < within && answered_at.is_none_or(|at: Instant| at.elapsed() < quiet)
        {
            while calls.len() < CALLS_MAX
                && let Ok((stream, _)) = listener.accept()
            {
                calls.extend(Call::begin(stream));
            }
            calls.retain_mut(|call| match call.is_heard() {
                Ok(true) => {
                    if self.testify(call).is_ok() {
                        answered_at = Some(Instant::now());
                    }
                    false
                }
                Ok(false) => call.begun.elapsed() < HELLO_WITHIN,
                Err(_) => false,
            });
            thread::sleep(LOOK_EVERY);
        }
    }

    fn testify(&self, call: &mut Call) -> Result<(), HandshakeError> {
        let answer = testify(self.key, Purpose::Detector, self.me, self.pes, &call.hello)?;
        Ok(call.stream.write_all(&answer)?)
    }
}

impl Call {
    fn begin(stream: TcpStream) -> Option<Call> {
        stream.set_nonblocking(true).ok()?;
        Some(Call { stream, begun: Instant::now(), hello: [0; HELLO_BYTES], received: 0 })
    }

    /// Whether the caller's HELLO has arrived.
    fn is_heard(&mut self) -> io::Result<bool> {
        match self.stream.read(&mut self.hello[self.received..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => self.received += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(self.received == HELLO_BYTES)
    }
}
