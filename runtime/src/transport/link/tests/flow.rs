//! Limits on the bytes in flight and on the buffers.

use super::*;
use crate::transport::link::buffers::POOL_BYTES_MAX;

const FRAME_BYTES_MAX: usize = 1000;
const FRAME_BYTES: usize = FRAME_BYTES_MAX - HEADER_BYTES;
const SENDERS: u32 = 1000;

/// A root and its senders, each with a message of this many bytes for it.
fn incast(message_bytes: usize, settings: PortSettings) -> (Port, Vec<Port>, BadLane) {
    let lanes = bad_network(SENDERS + 1, FRAME_BYTES_MAX, Faults::default(), 1);
    let network = lanes[0].clone();
    let mut ports = lanes.into_iter().map(|lane| lane.port(settings));
    let root = ports.next().unwrap();
    let mut senders: Vec<Port> = ports.collect();
    for (sender, number) in senders.iter_mut().zip(0..) {
        sender.send(Pe::ROOT, &vec![number as u8; message_bytes], None).unwrap();
    }
    (root, senders, network)
}

/// Polls each sender once, and the root until its inbox is empty.
fn step(root: &mut Port, senders: &mut [Port], ms: u32, deliver: &mut Deliver<'_>) {
    for sender in senders {
        sender.poll(MS * ms, &mut |_, _, _| {}).unwrap();
    }
    for _ in 0..50 {
        root.poll(MS * ms, deliver).unwrap();
    }
}

fn are_idle(root: &mut Port, senders: &mut [Port]) -> bool {
    root.is_idle() && senders.iter_mut().all(Port::is_idle)
}

/// Bytes of streams that are on their way to the root.
fn in_flight(network: &BadLane) -> usize {
    let inboxes = network.inboxes.lock().unwrap();
    inboxes[0].iter().map(|(_, frame)| frame.len() - HEADER_BYTES).sum()
}

#[test]
fn frames_are_as_long_as_the_lane_says_of_the_peer() {
    let mut lanes = bad_network(3, FRAME_BYTES_MAX, Faults::default(), 1).into_iter();
    let first = lanes.next().unwrap();
    let (network, mut port) = (first.clone(), first.port(settings()));
    for (to, longest) in [(1, shorter(FRAME_BYTES_MAX)), (2, FRAME_BYTES_MAX)] {
        port.send(Pe::new(to), &[7; 10_000], None).unwrap();
        port.flush(MS).unwrap();
        let inboxes = network.inboxes.lock().unwrap();
        assert_eq!(inboxes[to as usize].iter().map(|(_, frame)| frame.len()).max(), Some(longest));
    }
}

#[test]
fn a_thousand_senders_have_no_more_in_flight_than_the_budget_and_a_frame_each() {
    const BUDGET: usize = 50_000;
    const MESSAGE_BYTES: usize = 20_000;
    let settings = PortSettings { credit_bytes_max: BUDGET, ..settings() };
    let settings = PortSettings { resend_after: Duration::from_hours(1), ..settings };
    let (mut root, mut senders, network) = incast(MESSAGE_BYTES, settings);
    let (mut arrived, mut most) = (0, 0);
    for ms in 0.. {
        assert!(ms < 10_000, "waited in vain: {arrived} have arrived");
        step(&mut root, &mut senders, ms, &mut |from, message, _| {
            assert_eq!(message, vec![(from.number() - 1) as u8; MESSAGE_BYTES]);
            arrived += 1;
        });
        for sender in &mut senders {
            sender.poll(MS * ms, &mut nothing).unwrap();
        }
        most = most.max(in_flight(&network));
        assert!(most <= BUDGET + SENDERS as usize * FRAME_BYTES, "{most} bytes");
        if arrived == SENDERS && are_idle(&mut root, &mut senders) {
            break;
        }
    }
    assert!(most >= SENDERS as usize * FRAME_BYTES, "each may send a frame at once: {most} bytes");
    assert_eq!(root.counters().gaps, 0);
}

#[test]
fn one_sender_alone_gets_the_whole_window_also_after_others_have_sent() {
    let settings = PortSettings { window_frames: 50, ..settings() };
    let (mut root, mut senders, network) = incast(5000, settings);
    let mut now = 0;
    let mut run = |root: &mut Port, senders: &mut [Port]| {
        let mut most = 0;
        while !are_idle(root, senders) {
            now += 1;
            assert!(now < 10_000, "waited in vain");
            for sender in &mut *senders {
                sender.poll(MS * now, &mut nothing).unwrap();
            }
            most = most.max(in_flight(&network));
            step(root, senders, now, &mut |_, _, _| {});
        }
        most
    };
    run(&mut root, &mut senders);
    senders[7].send(Pe::ROOT, &vec![7; 1_000_000], None).unwrap();
    assert_eq!(run(&mut root, &mut senders), 50 * FRAME_BYTES);
}

#[test]
fn what_buffers_keep_does_not_grow_with_the_number_of_peers() {
    let (mut root, mut senders, _) = incast(200_000, settings());
    for peer in 1..=SENDERS {
        root.send(Pe::new(peer), &vec![1; 100_000], None).unwrap();
    }
    assert!(root.buffer_bytes() > 5 * POOL_BYTES_MAX, "each stream waits in a buffer");
    for ms in 0.. {
        assert!(ms < 10_000, "waited in vain");
        step(&mut root, &mut senders, ms, &mut |_, _, _| {});
        if are_idle(&mut root, &mut senders) {
            break;
        }
    }
    assert_eq!(root.counters().messages_received, u64::from(SENDERS));
    assert!(root.buffer_bytes() <= POOL_BYTES_MAX, "{} bytes", root.buffer_bytes());
}

#[test]
fn an_array_arrives_although_messages_come_faster_than_the_lane_takes_them() {
    let settings = PortSettings { window_frames: 1, ..settings() };
    let lanes = bad_network(2, 4096, Faults::default(), 1);
    let [mut sender, mut receiver] = ports(lanes, settings);
    let array = Array::from(vec![7u8; 200_000]);
    let mut arrived = None;
    sender.send(Pe::new(1), b"array", Some(&array)).expect("it is not too long");
    for ms in 0..200 {
        // At most one frame gets through at a time.
        sender.send(Pe::new(1), &[0; 8000], None).expect("it is not too long");
        sender.poll(ms * MS, &mut nothing).expect("the lane works");
        let mut deliver =
            |_: Pe, _: &[u8], array: Option<Array>| arrived = array.or(arrived.take());
        receiver.poll(ms * MS, &mut deliver).expect("the lane works");
    }
    assert_eq!(arrived, Some(array));
    assert!(!sender.is_idle(), "messages still wait");
}

#[test]
fn at_the_end_acknowledgements_come_at_once() {
    let patient = PortSettings { resend_after: Duration::from_secs(1), ..settings() };
    let ([mut sender, mut receiver], _) = two(patient);
    for (hastens, at) in [(false, 2 * MS), (true, 3 * MS)] {
        sender.send(Pe::new(1), b"message", None).unwrap();
        sender.flush(at).unwrap();
        let mut messages = 0;
        while messages == 0 {
            receiver.poll(at, &mut |_, _, _| messages += 1).unwrap();
        }
        let due = receiver.next_deadline().expect("an acknowledgement is owed");
        assert!(if hastens { due <= at + MS } else { due > 50 * MS }, "{due:?}");
        receiver.hasten(at);
        receiver.poll(at, &mut nothing).unwrap();
        assert_eq!(receiver.is_idle(), !hastens, "what is owed already goes out at once");
    }
}
