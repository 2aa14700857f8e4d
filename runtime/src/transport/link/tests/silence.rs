//! Peers that do not answer, and lanes that take nothing.

use super::*;
use crate::transport::memory;

const THERE: Pe = Pe::new(2);

/// A port that has sent something over a lane with these faults.
fn calling(faults: Faults) -> Port {
    let lane = bad_network(3, 1000, faults, 1).swap_remove(0);
    let mut port = lane.port(PortSettings { resends_max: 3, ..settings() });
    port.send(THERE, b"anybody there?", None).unwrap();
    port
}

/// Polls a port each millisecond. When it told of silence, for how long that had lasted then, and
/// when it told of a stuck lane.
fn complaints(port: &mut Port, from: u32, rounds: u32) -> (Vec<(u32, Duration)>, Vec<u32>) {
    let (mut silences, mut stuck) = (Vec::new(), Vec::new());
    for ms in from..from + rounds {
        port.poll(MS * ms, &mut nothing).unwrap();
        for Silence { pe, lasting } in port.take_silences() {
            assert_eq!(pe, THERE);
            silences.push((ms, lasting));
        }
        stuck.extend(port.take_stuck().then_some(ms));
    }
    (silences, stuck)
}

#[test]
fn a_peer_that_does_not_answer_is_told_of_after_each_resend() {
    let mut port = calling(Faults { lose: 100, ..Faults::default() });
    let (silences, stuck) = complaints(&mut port, 0, 22);
    assert_eq!(silences, [(5, 5 * MS), (10, 10 * MS), (15, 15 * MS), (20, 20 * MS)]);
    assert_eq!(stuck, [20], "after one resend more than `resends_max`");
    assert!(!port.is_idle());
    port.close(THERE);
    port.send(THERE, b"never mind", None).unwrap();
    assert_eq!(complaints(&mut port, 22, 1000), (vec![], vec![]));
    assert!(port.is_idle());
    assert_eq!(port.next_deadline(), None);
}

#[test]
fn a_peer_is_not_silent_while_the_lane_refuses_what_is_for_it() {
    let mut port = calling(Faults { refuse: 100, ..Faults::default() });
    let (silences, stuck) = complaints(&mut port, 0, 1000);
    assert_eq!(silences, []);
    assert!(!port.is_idle());
    assert_eq!(stuck[0], 16, "a lane that takes nothing for longer than three times 5 ms is stuck");
    assert_eq!(port.counters().bytes_resent, 0);
    // The clock begins when a lane takes the bytes.
    let lane = bad_network(3, 1000, Faults { lose: 100, ..Faults::default() }, 1).swap_remove(0);
    port.switch_lane(Box::new(lane));
    let (silences, stuck) = complaints(&mut port, 1000, 10);
    assert_eq!((silences, stuck), (vec![(1005, 5 * MS)], vec![]));
}

#[test]
fn an_answer_ends_the_silence() {
    let ([mut port, mut peer], _) = two(settings());
    for round in 0..3 {
        let from = 100 * round;
        port.send(Pe::new(1), b"message", None).unwrap();
        for ms in from..from + 7 {
            port.poll(MS * ms, &mut nothing).unwrap();
        }
        let silence = Silence { pe: Pe::new(1), lasting: 5 * MS };
        assert_eq!(port.take_silences(), [silence], "the count begins anew");
        for ms in from + 7..from + 90 {
            peer.poll(MS * ms, &mut |_, _, _| {}).unwrap();
            port.poll(MS * ms, &mut nothing).unwrap();
        }
        assert!(port.is_idle());
        assert_eq!(port.take_silences(), []);
    }
}

#[test]
fn nothing_is_sent_again_over_a_lane_that_loses_nothing() {
    let [mut sender, mut receiver] = ports(memory::network(2), settings());
    sender.send(Pe::new(1), b"in a while", None).unwrap();
    for minute in 0..100 {
        sender.poll(minute * Duration::from_mins(1), &mut nothing).unwrap();
        assert_eq!(sender.take_silences(), []);
        assert!(!sender.is_idle() && !sender.take_stuck());
    }
    let mut heard = 0;
    for minute in 100..110 {
        receiver.poll(minute * Duration::from_mins(1), &mut |_, _, _| heard += 1).unwrap();
        sender.poll(minute * Duration::from_mins(1), &mut nothing).unwrap();
    }
    assert!(heard == 1 && sender.is_idle());
    assert_eq!((sender.counters().bytes_resent, receiver.counters().duplicates), (0, 0));
}

#[test]
fn a_pe_of_this_process_that_has_left_is_told_of_once_and_others_are_sent_to() {
    let [mut port, gone, mut other] = ports(memory::network(3), settings());
    drop(gone);
    port.send(Pe::new(1), b"message", None).unwrap();
    port.send(THERE, b"message", None).unwrap();
    let left = port.poll(MS, &mut nothing);
    assert!(matches!(left, Err(LinkError::Lane(LaneError::HasLeft(pe))) if pe == Pe::new(1)));
    port.poll(2 * MS, &mut nothing).unwrap();
    let mut heard = 0;
    other.poll(2 * MS, &mut |_, _, _| heard += 1).unwrap();
    assert_eq!(heard, 1);
}
