//! One connection for each pair of PEs, and no more than the limit.

use super::*;

/// What a counter has counted on all lanes.
fn sum(lanes: &[TcpLane], counter: fn(&TcpCounters) -> &AtomicU64) -> u64 {
    lanes.iter().map(|lane| counter(&lane.counters()).load(Ordering::Relaxed)).sum()
}

/// The number of connections that the lanes have, and have had, with each other.
fn connections(lanes: &[TcpLane]) -> (Vec<usize>, u64, u64) {
    let totals = lanes.iter().map(|lane| lane.sockets.total()).collect();
    (totals, sum(lanes, |counters| &counters.dialled), sum(lanes, |counters| &counters.accepted))
}

#[test]
fn a_pair_shares_one_connection() {
    let (mut lanes, _) = network::<2>(key());
    let [one, other] = &mut lanes;
    for round in 0..10_u8 {
        deliver_one(one, Pe::new(1), other, &[round; 100]);
        deliver_one(other, Pe::ROOT, one, &[round; 100]);
    }
    assert_eq!(connections(&lanes), (vec![1, 1], 1, 1));
}

/// Frames numbered from 0 on, between all PEs of a network.
struct Traffic {
    /// The number of frames sent, and received, from one PE to the other.
    sent: Vec<Vec<u64>>,
    received: Vec<Vec<u64>>,
}

impl Traffic {
    fn new(pes: usize) -> Self {
        Traffic { sent: vec![vec![0; pes]; pes], received: vec![vec![0; pes]; pes] }
    }

    /// Sends the next frame, if the lane takes it.
    fn send(&mut self, lane: &mut TcpLane, from: usize, to: usize) -> bool {
        let number = &mut self.sent[from][to];
        let is_taken = lane.send(Pe::new(to as u32), &mut number.to_le_bytes().to_vec()).unwrap();
        *number += u64::from(is_taken);
        is_taken
    }

    /// Takes the frames that have arrived. None may be missing or arrive twice.
    fn poll(&mut self, lane: &mut TcpLane, me: usize) {
        lane.poll(&mut |from, frame| {
            let number = &mut self.received[from.index()][me];
            assert_eq!(frame, number.to_le_bytes(), "from {from} to {me}");
            *number += 1;
        })
        .unwrap();
    }

    fn has_arrived(&self) -> bool {
        self.sent == self.received
    }
}

#[test]
fn two_that_dial_each_other_at_once_keep_one_connection_and_every_frame() {
    // The number of polls of one before the other decides the order of events.
    for polls in (0..6).flat_map(|one| (0..6).map(move |other| [one, other])) {
        let (mut lanes, _) = network::<2>(key());
        let mut traffic = Traffic::new(2);
        assert!(traffic.send(&mut lanes[0], 0, 1) && traffic.send(&mut lanes[1], 1, 0));
        let mut rounds = 0;
        until(|| {
            for me in 0..2 {
                for _ in 0..=polls[me] * u32::from(rounds < 10) {
                    traffic.poll(&mut lanes[me], me);
                    std::thread::sleep(Duration::from_micros(50));
                }
                if rounds < 50 {
                    traffic.send(&mut lanes[me], me, 1 - me);
                }
            }
            rounds += 1;
            rounds > 50 && traffic.has_arrived() && connections(&lanes).0 == [1, 1]
        });
        assert_eq!(sum(&lanes, |counters| &counters.broken), 0, "{polls:?}");
    }
}

#[test]
fn of_two_connections_at_once_the_one_that_the_smaller_number_dialled_stays() {
    let (mut lanes, _) = network::<2>(key());
    let mut traffic = Traffic::new(2);
    assert!(traffic.send(&mut lanes[0], 0, 1) && traffic.send(&mut lanes[1], 1, 0));
    // Both dials come through before either of the called reads the proof.
    until(|| {
        for (me, lane) in lanes.iter_mut().enumerate() {
            if lane.sockets.peers[1 - me].as_ref().unwrap().open.is_none() {
                traffic.poll(lane, me);
            }
        }
        connections(&lanes).1 == 2
    });
    for _ in 0..3 {
        assert!(traffic.send(&mut lanes[0], 0, 1) && traffic.send(&mut lanes[1], 1, 0));
    }
    until(|| {
        lanes.iter_mut().enumerate().for_each(|(me, lane)| traffic.poll(lane, me));
        traffic.has_arrived() && connections(&lanes).0 == [1, 1]
    });
    for (lane, dialled) in lanes.iter_mut().zip([true, false]) {
        let open = lane.sockets.connections.iter().flatten().next().unwrap();
        assert_eq!(open.is_dialled, dialled);
    }
}

#[test]
fn more_pes_than_connections_take_turns_and_every_frame_arrives() {
    for connections_max in [2, 3, 5] {
        let (mut lanes, _) = network_within::<8>(key(), connections_max);
        let mut traffic = Traffic::new(8);
        let goal = 3;
        until(|| {
            for (me, lane) in lanes.iter_mut().enumerate() {
                traffic.poll(lane, me);
                assert!(lane.sockets.total() <= connections_max);
                for to in (0..8).filter(|to| *to != me) {
                    if traffic.sent[me][to] < goal {
                        traffic.send(lane, me, to);
                    }
                }
            }
            traffic.has_arrived() && traffic.sent.iter().flatten().sum::<u64>() == 56 * goal
        });
        assert_eq!(sum(&lanes, |counters| &counters.broken), 0);
        assert!(sum(&lanes, |counters| &counters.made_room) > 0);
    }
}

#[test]
fn pes_that_stand_still_do_not_keep_their_room() {
    for are_met in [false, true] {
        let ([mut lane, mut one, mut two, mut other], _) = network_within::<4>(key(), 2);
        let frame = vec![5; FRAME_BYTES_MAX];
        for (pe, still) in [(Pe::new(1), &mut one), (Pe::new(2), &mut two)] {
            if are_met {
                deliver_one(&mut lane, pe, still, b"and now it stops");
            }
            let mut refused = 0;
            until(|| {
                lane.poll(&mut |_, _| {}).unwrap();
                refused += u32::from(!lane.send(pe, &mut frame.clone()).unwrap());
                refused > 1000
            });
        }
        deliver_one(&mut lane, Pe::new(3), &mut other, b"there is limit");
    }
}

#[test]
fn one_that_lost_its_connection_is_heard_on_the_next() {
    let key = key();
    let (mut lanes, addresses) = network::<2>(key);
    let [lane, other] = &mut lanes;
    deliver_one(lane, Pe::new(1), other, b"to");
    deliver_one(other, Pe::ROOT, lane, b"fro");
    // The other end has forgotten the connection that this one dialled, and dials itself.
    let _stream = join(lane, addresses[0], key, Pe::new(1), &[1, 0, 0, 0, 7]);
    let mut heard = Vec::new();
    until(|| {
        lane.poll(&mut |_, frame| heard.push(frame.to_vec())).unwrap();
        !heard.is_empty()
    });
    assert_eq!(heard, [[7]]);
    until(|| {
        lane.poll(&mut |_, _| {}).unwrap();
        other.poll(&mut |_, _| {}).unwrap();
        other.sockets.total() == 0 && lane.sockets.total() == 1
    });
    let open = lane.sockets.connections.iter().flatten().next().unwrap();
    assert!(!open.is_dialled);
}
