//! Ports above a lane that loses, doubles, damages and refuses frames, in made-up time. (It is not
//! the testkit's world: what is under test is how a port makes do without what that one promises.)

mod bad_lane;
mod cost;
mod flow;
mod offers;
mod silence;

use self::bad_lane::{BadLane, Faults, bad_network, shorter};
use super::frame::Header;
use super::*;
use crate::transport::testing::ports;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use ultramarine_topology::{Distance, Topology};

const MS: Duration = Duration::from_millis(1);

/// Writes a frame over `out`.
fn forge(out: &mut Vec<u8>, pair: (Pe, Pe), header: Header, payload: &[u8]) {
    frame::begin(out);
    out.extend(payload);
    frame::seal(out, pair, header);
}

fn settings() -> PortSettings {
    PortSettings { resend_after: 5 * MS, message_bytes_max: 1 << 20, ..PortSettings::default() }
}

fn nothing(_: Pe, _: &[u8], _: Option<Array>) {
    panic!("nothing may be delivered");
}

/// The sender, the receiver, and the number of bytes.
type Sent = (u32, u32, usize);

/// Sends all messages, some in each round, and polls all ports until all are idle. At each round
/// named in `switches`, that PE changes to the second network.
fn run(
    networks: [Vec<BadLane>; 2],
    settings: PortSettings,
    messages: &[Sent],
    switches: &[usize],
) -> Result<Vec<LinkCounters>, TestCaseError> {
    let [first, second] = networks;
    let mut ports: Vec<Port> = first.into_iter().map(|lane| lane.port(settings)).collect();
    let mut second: Vec<_> = second.into_iter().map(Some).collect();
    let content = |number: usize, bytes: usize| -> Vec<u8> {
        let mut content = vec![number as u8; bytes];
        content.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, other)| *byte = other);
        content
    };
    // Every other one has an array, which may come later than those after it that have none.
    let mut expected = BTreeMap::<_, VecDeque<_>>::new();
    let mut unsent = messages.iter().enumerate().peekable();
    for round in 0.. {
        prop_assert!(round < 100_000, "waited in vain");
        let now = MS * round as u32;
        for _ in 0..5 {
            let Some(&(number, &(from, to, bytes))) = unsent.peek() else { break };
            let mut message = content(number, bytes);
            let array = number % 2 == 1;
            let array = array.then(|| offers::in_two_blocks(message.split_off(bytes.min(8))));
            if !ports[from as usize].send(Pe::new(to), &message, array.as_ref()).unwrap() {
                break;
            }
            let queue = expected.entry((from, to, array.is_some())).or_default();
            queue.push_back((message, array));
            unsent.next();
        }
        let mut is_wrong = false;
        for (port, to) in ports.iter_mut().zip(0..) {
            port.poll(now, &mut |from, message, array| {
                let queue = expected.get_mut(&(from.number(), to, array.is_some()));
                let next = queue.and_then(VecDeque::pop_front);
                is_wrong |= next != Some((message.to_vec(), array));
            })
            .unwrap();
            if switches.get(to as usize).is_some_and(|&at| at <= round)
                && let Some(lane) = second[to as usize].take()
            {
                port.switch_lane(Box::new(lane));
            }
        }
        prop_assert!(!is_wrong, "each message arrives once, whole and in order");
        let is_all_sent = unsent.len() == 0 && expected.values().all(VecDeque::is_empty);
        if is_all_sent && ports.iter_mut().all(Port::is_idle) {
            break;
        }
    }
    Ok(ports.iter().map(Port::counters).collect())
}

fn faults() -> impl Strategy<Value = Faults> {
    (0..15_u64, 0..15_u64, 0..15_u64, 0..30_u64).prop_map(|(lose, double, damage, refuse)| Faults {
        lose,
        double,
        damage,
        refuse,
    })
}

fn messages(bytes_max: usize, count: usize) -> impl Strategy<Value = Vec<Sent>> {
    prop::collection::vec((0..3_u32, 0..3_u32, 0..=bytes_max), 0..count)
}

/// Short messages in tiny frames, or long ones in frames of a usual length.
fn frames_and_messages() -> impl Strategy<Value = (usize, usize, Vec<Sent>)> {
    prop_oneof![
        3 => (33..300_usize, 33..300_usize, messages(600, 200)),
        1 => (4096..65_536_usize, 4096..65_536_usize, messages(1 << 20, 12)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_message_arrives_once_in_order(
        (frame_bytes, _, messages) in frames_and_messages(),
        faults in faults(),
        window_frames in 1..50_u32,
        credit_bytes_max in prop_oneof![0..10_000_usize, Just(64 << 20)],
        backlog_bytes_max in prop_oneof![0..10_000_usize, Just(1 << 30)],
        seed: u64,
    ) {
        let network = bad_network(3, frame_bytes, faults, seed);
        let flow =
            PortSettings { window_frames, credit_bytes_max, backlog_bytes_max, ..settings() };
        run([network, vec![]], flow, &messages, &[])?;
    }

    #[test]
    fn a_switch_of_lanes_loses_nothing(
        (frame_bytes, other_bytes, messages) in frames_and_messages(),
        faults in faults(),
        switches: [prop::sample::Index; 3],
        seed: u64,
    ) {
        let networks = [
            bad_network(3, frame_bytes, faults, seed),
            bad_network(3, other_bytes, faults, !seed),
        ];
        run(networks, settings(), &messages, &switches.map(|at| at.index(60)))?;
    }

    #[test]
    fn any_frame_whatever_does_no_harm(
        frames: Vec<(u8, Vec<u8>)>,
        forged: Vec<(u16, u64, (u32, u32), Vec<u8>)>,
    ) {
        let mut lanes = bad_network(3, 4096, Faults::default(), 0).into_iter();
        let (receiver, sender) = (lanes.next().unwrap(), lanes.next().unwrap());
        for (from, frame) in frames {
            BadLane { me: Pe::new(from.into()), ..sender.clone() }.put(receiver.me, &frame);
        }
        let mut bytes = Vec::new();
        for (sequence, acknowledged, (credit, waiting), payload) in forged {
            let pair = (sender.me, receiver.me);
            let header = Header { sequence: sequence.into(), acknowledged, credit, waiting };
            forge(&mut bytes, pair, header, &payload);
            sender.put(receiver.me, &bytes);
        }
        let mut port = receiver.port(settings());
        port.send(sender.me, b"outwards", None).unwrap();
        for round in 0..100 {
            match port.poll(MS * round, &mut |_, _, _| {}) {
                Ok(_) | Err(LinkError::MessageTooLong { .. } | LinkError::Malformed { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Two ports above a lane without faults.
fn two(settings: PortSettings) -> ([Port; 2], BadLane) {
    let lanes = bad_network(2, 1000, Faults::default(), 1);
    let spare = lanes[0].clone();
    (ports(lanes, settings), spare)
}

#[test]
fn what_the_lane_damages_is_counted_and_comes_again() {
    let faults = Faults { damage: 50, ..Faults::default() };
    let messages = [(0, 1, 100_000); 3];
    let network = bad_network(2, 1000, faults, 3);
    let counters = run([network, vec![]], settings(), &messages, &[]).unwrap();
    assert!(counters[1].corrupt > 50, "{counters:?}");
    assert!(counters[0].bytes_resent > 10_000, "{counters:?}");
    assert_eq!(counters[1].messages_received, 3);
}

#[test]
fn what_a_full_lane_refuses_is_not_lost_and_nothing_is_sent_twice() {
    let network = bad_network(3, 1000, Faults { refuse: 30, ..Faults::default() }, 3);
    let messages: Vec<Sent> = (0..1000).map(|number| (number % 3, number / 3 % 3, 64)).collect();
    let settings = PortSettings { resend_after: Duration::MAX, ..settings() };
    for counters in run([network, vec![]], settings, &messages, &[]).unwrap() {
        let LinkCounters { bytes_resent, duplicates, gaps, corrupt, .. } = counters;
        assert_eq!([bytes_resent, duplicates, gaps, corrupt], [0; 4]);
        assert!(counters.frames_sent < 300, "small messages share frames: {counters:?}");
    }
}

#[test]
fn after_a_switch_of_lanes_nothing_waits_to_be_resent() {
    let ([mut sender, mut receiver], _) =
        two(PortSettings { resend_after: Duration::MAX, ..settings() });
    sender.send(Pe::new(1), &[1; 5000], None).unwrap();
    sender.flush(MS).unwrap();
    let mut lanes = bad_network(2, 100, Faults::default(), 1).into_iter();
    sender.switch_lane(Box::new(lanes.next().unwrap()));
    receiver.switch_lane(Box::new(lanes.next().unwrap()));
    let mut messages = Vec::new();
    for round in 0..1000 {
        sender.poll(MS * round, &mut nothing).unwrap();
        receiver.poll(MS * round, &mut |_, message, _| messages.push(message.to_vec())).unwrap();
    }
    assert_eq!(messages, [[1; 5000]]);
    assert!(sender.is_idle() && receiver.is_idle());
    // One frame's bytes: more was not in flight, as nothing had been acknowledged yet.
    let in_flight = shorter(1000) - HEADER_BYTES;
    assert_eq!(sender.counters().bytes_resent, in_flight as u64);
}

#[test]
fn a_message_to_oneself_is_delivered_by_the_next_poll_and_needs_no_lane() {
    let ([mut port, _], _) = two(settings());
    port.send(Pe::ROOT, b"note", None).unwrap();
    assert!(!port.is_idle());
    let mut heard = Vec::new();
    let progress = port.poll(MS, &mut |from, message, _| heard.push((from, message.to_vec())));
    assert_eq!(heard, [(Pe::ROOT, b"note".to_vec())]);
    assert_eq!(progress.unwrap(), Progress { messages: 1, ..Progress::default() });
    assert!(port.is_idle());
    assert!(!port.poll(MS, &mut nothing).unwrap().is_any());
}

#[test]
fn too_long_a_message_is_refused_before_it_is_queued() {
    let ([mut port, _], _) = two(PortSettings { message_bytes_max: 10, ..settings() });
    for to in [Pe::ROOT, Pe::new(1)] {
        let error = port.send(to, &[0; 11], None).unwrap_err();
        assert!(matches!(error, LinkError::TooLongToSend { bytes: 11, limit: 10, .. }));
    }
    assert!(port.is_idle());
    assert_eq!(port.counters().messages_sent, 0);
    assert!(matches!(
        port.send(Pe::new(2), b"", None).unwrap_err(),
        LinkError::Lane(LaneError::NoSuchPe(_))
    ));
}

#[test]
fn too_long_a_message_is_an_error_where_it_arrives() {
    let lanes = bad_network(2, 1000, Faults::default(), 1);
    let limits = [100, 10].into_iter();
    let mut ports = lanes
        .into_iter()
        .zip(limits)
        .map(|(lane, limit)| lane.port(PortSettings { message_bytes_max: limit, ..settings() }));
    let (mut sender, mut receiver) = (ports.next().unwrap(), ports.next().unwrap());
    sender.send(Pe::new(1), &[0; 10], None).unwrap();
    sender.send(Pe::new(1), &[0; 11], None).unwrap();
    let (mut messages, mut errors) = (0, Vec::new());
    for round in 0..50 {
        sender.poll(MS * round, &mut nothing).unwrap();
        errors.extend(receiver.poll(MS * round, &mut |_, _, _| messages += 1).err());
    }
    assert_eq!(messages, 1);
    assert!(matches!(
        errors[..],
        [LinkError::MessageTooLong { from: Pe::ROOT, bytes: 11, limit: 10 }]
    ));
    let LinkCounters { oversized, refused, .. } = receiver.counters();
    assert_eq!(oversized, 1);
    assert!(refused > 0, "what comes after is dropped");
}

#[test]
fn a_full_backlog_takes_no_more_until_some_is_acknowledged() {
    let ([mut port, mut peer], _) = two(PortSettings { backlog_bytes_max: 100, ..settings() });
    for to in [Pe::ROOT, Pe::new(1)] {
        assert!(port.send(to, &[0; 60], None).unwrap());
        assert!(!port.send(to, &[0; 60], None).unwrap());
        assert!(port.send(to, &[0; 30], None).unwrap());
    }
    assert_eq!(port.counters().messages_sent, 4);
    for ms in 0..50 {
        port.poll(ms * MS, &mut |_, _, _| {}).unwrap();
        peer.poll(ms * MS, &mut |_, _, _| {}).unwrap();
    }
    for to in [Pe::ROOT, Pe::new(1)] {
        assert!(
            port.send(to, &[0; 200], None).unwrap(),
            "longer than the limit, but nothing else waits"
        );
        assert!(!port.send(to, &[], None).unwrap());
    }
}

#[test]
fn a_closed_peer_is_not_heard() {
    let ([mut sender, mut receiver], _) = two(settings());
    sender.send(Pe::new(1), b"late", None).unwrap();
    sender.flush(MS).unwrap();
    receiver.close(Pe::ROOT);
    for _ in 0..10 {
        receiver.poll(MS, &mut nothing).unwrap();
    }
    assert_eq!(receiver.counters().refused, 1);
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_dropped() {
    let ([_, mut receiver], sender) = two(settings());
    let mut bytes = Vec::new();
    let header = Header { acknowledged: 1, ..Header::default() };
    forge(&mut bytes, (Pe::ROOT, Pe::new(1)), header, &[0; 4]);
    sender.put(Pe::new(1), &bytes);
    for _ in 0..10 {
        receiver.poll(MS, &mut nothing).unwrap();
    }
    assert_eq!(receiver.counters().corrupt, 1);
}

#[test]
fn deadlines_are_for_the_acknowledgement_and_for_the_resend() {
    let ([mut sender, mut receiver], _) = two(settings());
    assert_eq!(sender.next_deadline(), None);
    sender.send(Pe::new(1), b"message", None).unwrap();
    sender.flush(MS).unwrap();
    assert_eq!(sender.next_deadline(), Some(6 * MS));
    let mut messages = 0;
    while messages == 0 {
        receiver.poll(2 * MS, &mut |_, _, _| messages += 1).unwrap();
    }
    assert!(!receiver.is_idle(), "an acknowledgement is owed");
    // A quarter of the time after which the sender sends again, rounded up.
    assert_eq!(receiver.next_deadline(), Some(Duration::from_micros(3750)));
    receiver.poll(4 * MS, &mut nothing).unwrap();
    assert!(receiver.is_idle());
    assert_eq!(receiver.next_deadline(), None);
    while sender.poll(5 * MS, &mut nothing).unwrap().frames_received == 0 {}
    assert!(sender.is_idle());
}
