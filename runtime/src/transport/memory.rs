//! The lane between PEs that are threads of one process.
//!
//! Each PE has one inbox, a bounded lock-free queue, into which all others push. Frames of one
//! sender leave it in the order in which they entered. The buffers of frames go back to the PE that
//! filled them, so a steady flow allocates nothing. Arrays are [handed over](ArrayHandoff) without
//! being copied.
//!
//! # Sleeping
//!
//! A frame rings the receiver's bell. That must cost next to nothing while the receiver is awake,
//! and a receiver that is falling asleep must never miss it. The bell is one atomic:
//!
//! ```text
//! sender                          sleeper
//! (1) push the frame              (a) bell: Quiet -> Asleep
//! (2) fence                       (b) fence
//! (3) if bell is Asleep: ring     (c) if the inbox is empty: wait while the bell is Asleep
//! ```
//!
//! Both fences are sequentially consistent, so one of them comes first. If the sender's fence does,
//! (c) sees the frame. If the sleeper's fence does, (3) sees `Asleep`. Either way the sleeper does
//! not sleep while the frame waits. Ringing takes the mutex that the sleeper holds from (a) until
//! it waits, so the notification cannot fall between the check and the wait.

use super::error::LaneError;
use super::handoff::ArrayHandoff;
use super::lane::{Lane, Sleeper};
use crate::lock::Lock;
use crossbeam_queue::ArrayQueue;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use std::sync::{Arc, Condvar};
use std::time::Duration;
use ultramarine_topology::Pe;

/// The longest frame, in bytes.
const FRAME_BYTES_MAX: usize = 64 << 10;

/// The most frames in an inbox.
const INBOX_FRAMES_MAX: usize = 1024;

/// The most empty buffers that wait for their next use, per PE and in the whole network: at most
/// 256 MiB, unless there are thousands of PEs.
const SPARE_BUFFERS_MAX: usize = 64;
const SPARE_BUFFERS_IN_ALL: usize = 4096;

/// The most frames that one poll delivers.
const POLL_FRAMES_MAX: usize = 256;

/// The lanes of a job of `pes` PEs in this process, by the PE's number.
pub fn network(pes: u32) -> Vec<MemoryLane> {
    let spare = (SPARE_BUFFERS_IN_ALL / pes.max(1) as usize).clamp(1, SPARE_BUFFERS_MAX);
    let inboxes: Arc<[Arc<MemoryInbox>]> =
        (0..pes).map(|_| Arc::new(MemoryInbox::new(spare))).collect();
    let handoff = Arc::<ArrayHandoff>::default();
    let lane =
        |pe| MemoryLane { me: Pe::new(pe), inboxes: inboxes.clone(), handoff: handoff.clone() };
    (0..pes).map(lane).collect()
}

/// One PE's end of a [`network`].
pub struct MemoryLane {
    me: Pe,
    inboxes: Arc<[Arc<MemoryInbox>]>,
    handoff: Arc<ArrayHandoff>,
}

/// The part of a PE that the others share.
struct MemoryInbox {
    inbox: ArrayQueue<(Pe, Vec<u8>)>,
    /// Empty buffers for this PE's next frames.
    spare: ArrayQueue<Vec<u8>>,
    bell: AtomicU8,
    has_left: AtomicBool,
    lock: Lock<()>,
    rung: Condvar,
}

/// No thread sleeps.
const QUIET: u8 = 0;
/// A thread sleeps, or is about to.
const ASLEEP: u8 = 1;
/// The bell was rung: the sleep, or else the next one, is over.
const RUNG: u8 = 2;

impl MemoryInbox {
    fn new(spare: usize) -> Self {
        MemoryInbox {
            inbox: ArrayQueue::new(INBOX_FRAMES_MAX),
            spare: ArrayQueue::new(spare),
            bell: AtomicU8::new(QUIET),
            has_left: AtomicBool::new(false),
            lock: Lock::new(()),
            rung: Condvar::new(),
        }
    }
}

impl Lane for MemoryLane {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn frame_bytes_max(&self) -> usize {
        FRAME_BYTES_MAX
    }

    fn has_room(&self, to: Pe) -> bool {
        // A PE that has left takes no frame, but `send` must report that.
        let has_room =
            |to: &Arc<MemoryInbox>| !to.inbox.is_full() || to.has_left.load(Ordering::Relaxed);
        self.inboxes.get(to.index()).is_none_or(has_room)
    }

    fn send(&mut self, to: Pe, frame: &mut Vec<u8>) -> Result<bool, LaneError> {
        let receiver = self.inboxes.get(to.index()).ok_or(LaneError::NoSuchPe(to))?;
        if frame.len() > FRAME_BYTES_MAX {
            return Err(LaneError::FrameTooLong { bytes: frame.len(), limit: FRAME_BYTES_MAX });
        }
        if receiver.has_left.load(Ordering::Relaxed) {
            return Err(LaneError::HasLeft(to));
        }
        if let Err((_, refused)) = receiver.inbox.push((self.me, std::mem::take(frame))) {
            *frame = refused;
            return Ok(false);
        }
        *frame = self.inboxes[self.me.index()].spare.pop().unwrap_or_default();
        fence(Ordering::SeqCst);
        if receiver.bell.load(Ordering::Relaxed) == ASLEEP {
            receiver.wake();
        }
        Ok(true)
    }

    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        let inbox = &self.inboxes[self.me.index()].inbox;
        let mut frames = 0;
        while frames < POLL_FRAMES_MAX
            && let Some((from, mut frame)) = inbox.pop()
        {
            deliver(from, &frame);
            frame.clear();
            // If there are enough spare buffers, this one is dropped.
            let _ = self.inboxes[from.index()].spare.push(frame);
            frames += 1;
        }
        Ok(frames)
    }

    fn is_flushed(&mut self) -> bool {
        true
    }

    fn is_lossless(&self) -> bool {
        true
    }

    fn handoff(&self) -> Option<Arc<ArrayHandoff>> {
        Some(self.handoff.clone())
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        Arc::<MemoryInbox>::clone(&self.inboxes[self.me.index()])
    }
}

impl Drop for MemoryLane {
    fn drop(&mut self) {
        self.inboxes[self.me.index()].has_left.store(true, Ordering::Relaxed);
    }
}

impl Sleeper for MemoryInbox {
    fn sleep(&self, at_most: Duration) {
        let guard = self.lock.lock();
        // Fails if the bell was rung before; then there is no wait.
        let _ = self.bell.compare_exchange(QUIET, ASLEEP, Ordering::SeqCst, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.inbox.is_empty() {
            let is_asleep = |(): &mut ()| self.bell.load(Ordering::SeqCst) == ASLEEP;
            // It makes no difference whether the time is over or the bell was rung.
            drop(self.rung.wait_timeout_while(guard, at_most, is_asleep));
        }
        // Not a mere store: what the ringing thread did before must be visible to the thread that
        // returns.
        self.bell.swap(QUIET, Ordering::SeqCst);
    }

    fn wake(&self) {
        if self.bell.swap(RUNG, Ordering::SeqCst) == ASLEEP {
            drop(self.lock.lock());
            self.rung.notify_all();
        }
    }

    fn wakes_on_traffic(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;
    use crate::transport::PortSettings;
    use crate::transport::testing::{PATIENCE, ping_pong, ports, stream, together, until};

    fn boxed<const N: usize>() -> [Box<dyn Lane>; N] {
        let mut lanes = network(N as u32).into_iter();
        std::array::from_fn(|_| Box::new(lanes.next().unwrap()) as Box<dyn Lane>)
    }

    #[test]
    fn no_frame_is_slept_on() {
        ping_pong(boxed(), 20_000);
    }

    #[test]
    fn a_frame_before_the_sleep_ends_it() {
        let [mut sender, receiver] = boxed();
        assert!(sender.send(Pe::new(1), &mut b"frame".to_vec()).unwrap());
        together(vec![Box::new(move || receiver.sleeper().sleep(PATIENCE * 2))]);
    }

    #[test]
    fn a_call_before_the_sleep_ends_it() {
        let [lane] = boxed();
        let sleeper = lane.sleeper();
        together(vec![Box::new(move || {
            sleeper.wake();
            sleeper.wake();
            sleeper.sleep(PATIENCE * 2);
        })]);
    }

    #[test]
    fn a_call_ends_the_sleep() {
        let [lane] = boxed();
        let (one, other) = (lane.sleeper(), lane.sleeper());
        let (ready, is_ready) = std::sync::mpsc::channel();
        together(vec![
            Box::new(move || {
                for _ in 0..1000 {
                    ready.send(()).unwrap();
                    one.sleep(PATIENCE * 2);
                }
            }),
            Box::new(move || is_ready.iter().for_each(|()| other.wake())),
        ]);
    }

    #[test]
    fn frames_of_each_sender_arrive_in_order_and_a_full_inbox_refuses() {
        const FRAMES: u32 = 5_000;
        let [mut receiver, one, other] = boxed();
        let sender = |mut lane: Box<dyn Lane>| {
            move || {
                for number in 0..FRAMES {
                    until(|| lane.send(Pe::ROOT, &mut number.to_le_bytes().to_vec()).unwrap());
                }
            }
        };
        together(vec![
            Box::new(sender(one)),
            Box::new(sender(other)),
            Box::new(move || {
                let mut next = [0; 3];
                until(|| {
                    let frames = receiver.poll(&mut |from, frame| {
                        assert_eq!(frame, u32::to_le_bytes(next[from.index()]));
                        next[from.index()] += 1;
                    });
                    assert!(frames.unwrap() <= POLL_FRAMES_MAX);
                    next == [0, FRAMES, FRAMES]
                });
            }),
        ]);
    }

    #[test]
    fn a_full_inbox_takes_frames_again_once_it_is_polled() {
        let [mut sender, mut receiver] = boxed();
        let mut sent = 0;
        while sender.send(Pe::new(1), &mut b"frame".to_vec()).unwrap() {
            sent += 1;
        }
        assert_eq!(sent, INBOX_FRAMES_MAX);
        assert_eq!(receiver.poll(&mut |_, _| {}).unwrap(), POLL_FRAMES_MAX);
        assert!(sender.send(Pe::new(1), &mut b"frame".to_vec()).unwrap());
    }

    #[test]
    fn a_pe_that_has_left_is_an_error() {
        let [mut lane, other] = boxed();
        assert!(lane.send(Pe::new(1), &mut b"frame".to_vec()).unwrap());
        drop(other);
        let left = lane.send(Pe::new(1), &mut b"frame".to_vec());
        assert!(matches!(left, Err(LaneError::HasLeft(pe)) if pe == Pe::new(1)));
    }

    #[test]
    fn wrong_frames_are_errors() {
        let [mut lane] = boxed();
        let mut frame = vec![0; FRAME_BYTES_MAX + 1];
        assert!(matches!(lane.send(Pe::ROOT, &mut frame), Err(LaneError::FrameTooLong { .. })));
        assert!(matches!(lane.send(Pe::new(1), &mut Vec::new()), Err(LaneError::NoSuchPe(_))));
    }

    #[test]
    fn an_array_is_handed_over_as_it_is() {
        let [mut sender, mut receiver] = ports(network(2), PortSettings::default());
        let array = Array::from(vec![1.5; 100_000]);
        let place = array.bytes().as_ptr();
        sender.send(Pe::new(1), b"large", Some(&array)).expect("there is room");
        sender.send(Pe::new(1), b"small", None).expect("there is room");
        sender.flush(Duration::ZERO).expect("the lane is open");
        let mut heard = Vec::new();
        let mut deliver = |_, message: &[u8], array: Option<Array>| {
            heard.push((message.to_vec(), array.map(|array| array.bytes().as_ptr())));
        };
        receiver.poll(Duration::ZERO, &mut deliver).expect("the lane is open");
        assert_eq!(heard, [(b"large".to_vec(), Some(place)), (b"small".to_vec(), None)]);
    }

    #[test]
    fn a_port_above_streams() {
        let [sender, receiver] = stream(boxed(), 200, |_| {});
        assert_eq!((sender.messages_sent, receiver.messages_received), (200, 200));
        assert_eq!((receiver.corrupt, receiver.gaps), (0, 0));
    }
}
