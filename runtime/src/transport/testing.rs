//! What the tests of several lanes do alike.

use super::link::LinkCounters;
use super::{Lane, LaneError, Port, PortSettings, Sleeper};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// A lane of which each send and each poll begins with a call that may fail.
pub(crate) struct Disturbed<L, F>(pub(crate) L, pub(crate) F);

impl<L: Lane, F: FnMut(&mut L) -> Result<(), LaneError> + Send> Lane for Disturbed<L, F> {
    fn name(&self) -> &'static str {
        "disturbed"
    }
    fn frame_bytes_max(&self) -> usize {
        self.0.frame_bytes_max()
    }
    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError> {
        self.1(&mut self.0)?;
        self.0.send(to, frame)
    }
    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        self.1(&mut self.0)?;
        self.0.poll(deliver)
    }
    fn is_flushed(&mut self) -> bool {
        self.0.is_flushed()
    }
    fn sleeper(&self) -> Arc<dyn Sleeper> {
        self.0.sleeper()
    }
}

/// Ports above these lanes.
pub(crate) fn ports<L: Lane + 'static, const N: usize>(
    lanes: impl IntoIterator<Item = L>,
    settings: PortSettings,
) -> [Port; N] {
    let port = |(lane, pe)| Port::new(Pe::new(pe), N as u32, Box::new(lane), settings);
    let ports: Vec<Port> = lanes.into_iter().zip(0..).map(port).collect();
    ports.try_into().ok().expect("as many as there are lanes")
}

/// The longest that any wait in a test lasts; reached only when the test fails.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// Runs the parts of a test in threads; none may panic or outlast the patience.
pub(super) fn together(parts: Vec<Box<dyn FnOnce() + Send>>) {
    let (done, is_done) = mpsc::channel();
    let count = parts.len();
    for part in parts {
        let done = done.clone();
        std::thread::spawn(move || {
            part();
            done.send(()).unwrap();
        });
    }
    drop(done);
    for _ in 0..count {
        is_done.recv_timeout(PATIENCE).expect("a part of the test panicked or hangs");
    }
}

/// Calls `step` until it says that it is done.
pub(super) fn until(mut step: impl FnMut() -> bool) {
    let start = Instant::now();
    while !step() {
        assert!(start.elapsed() < PATIENCE, "waited in vain");
        std::thread::yield_now();
    }
}

/// Throws a frame to and fro between PEs 0 and 1. The PE that waits for it sleeps, for longer than
/// the test may last: a lost wake-up fails the test.
pub(super) fn ping_pong(lanes: [Box<dyn Lane>; 2], rounds: u64) {
    let part = |pe: u32, mut lane: Box<dyn Lane>| {
        move || {
            let sleeper = lane.sleeper();
            assert!(sleeper.wakes_on_traffic());
            let other = Pe::new(1 - pe);
            let mut next = u64::from(pe);
            let mut heard = Some(0).filter(|_| pe == 0);
            while next < 2 * rounds {
                if let Some(number) = heard.take() {
                    assert_eq!(number, next, "in order");
                    until(|| {
                        lane.poll(&mut |_, _| panic!("the ball is elsewhere")).unwrap();
                        match lane.send(other, &mut (next + 1).to_le_bytes().to_vec()) {
                            // The last ball goes to one who has stopped playing.
                            Err(LaneError::HasLeft(_)) => next + 2 >= 2 * rounds,
                            sent => sent.unwrap(),
                        }
                    });
                    next += 2;
                }
                let frames = lane.poll(&mut |from, frame| {
                    assert_eq!(from, other);
                    heard = Some(u64::from_le_bytes(frame.try_into().unwrap()));
                });
                if frames.unwrap() == 0 && next < 2 * rounds {
                    sleeper.sleep(PATIENCE * 2);
                }
            }
            until(|| {
                lane.poll(&mut |_, _| {}).unwrap();
                lane.is_flushed()
            });
        }
    };
    let [one, other] = lanes;
    together(vec![Box::new(part(0, one)), Box::new(part(1, other))]);
}

/// Sends numbered messages of many sizes from PE 0 to PE 1 over ports above these lanes, with
/// `disturb` called between any two polls of the receiver, and checks that they arrive, in order.
/// Returns the counters of the two.
pub(super) fn stream(
    lanes: [Box<dyn Lane>; 2],
    messages: u32,
    mut disturb: impl FnMut(u32),
) -> [LinkCounters; 2] {
    let settings =
        PortSettings { resend_after: Duration::from_millis(50), ..PortSettings::default() };
    let mut pe = 0..;
    let [mut sender, mut receiver] =
        lanes.map(|lane| Port::new(Pe::new(pe.next().unwrap()), 2, lane, settings));
    let message = |number: u32| {
        let mut message = vec![number as u8; (number as usize * 7919) % 100_000];
        message.extend(number.to_le_bytes());
        message
    };
    let (mut sent, mut received) = (0, 0);
    let start = Instant::now();
    until(|| {
        let now = start.elapsed();
        if sent < messages {
            sender.send(Pe::new(1), &message(sent), None).unwrap();
            sent += 1;
        }
        sender.poll(now, &mut |_, _, _| panic!("nothing was sent this way")).unwrap();
        receiver
            .poll(now, &mut |from, bytes, _| {
                assert_eq!(from, Pe::ROOT);
                assert!(bytes == message(received), "message {received} is as it was sent");
                received += 1;
            })
            .unwrap();
        disturb(received);
        received == messages && sender.is_idle() && receiver.is_idle()
    });
    [sender.counters(), receiver.counters()]
}
