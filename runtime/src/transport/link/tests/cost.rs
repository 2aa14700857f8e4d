//! What a port costs: its memory, and the time of a message. To see the time:
//! `cargo test --release -p ultramarine-runtime --no-default-features time_of -- --ignored
//! --nocapture`.

use super::super::peer::PeerStreams;
use super::*;
use crate::transport::memory;
use std::time::Instant;

const PES: u32 = 100_000;

/// The ports of the first `active` PEs of a job of [`PES`], between which there are lanes.
fn ports(active: u32) -> Vec<Port> {
    let port = |(lane, pe)| Port::new(Pe::new(pe), PES, Box::new(lane), PortSettings::default());
    memory::network(active).into_iter().zip(0..).map(port).collect()
}

/// Nanoseconds for each message, which includes both ends: PE 0 sends `batch` messages to each
/// other PE, these take them, and PE 0 takes their acknowledgements.
fn ns_per_message(active: u32, batch: u32, rounds: u32) -> f64 {
    let mut ports = ports(active);
    let (mut now, mut received) = (Duration::ZERO, 0u32);
    let mut round = |ports: &mut Vec<Port>| {
        now += 2 * MS;
        let (first, others) = ports.split_at_mut(1);
        for to in 1..active {
            for _ in 0..batch {
                assert!(first[0].send(Pe::new(to), &[7; 24], None).unwrap());
            }
        }
        first[0].flush(now).unwrap();
        for port in others {
            port.poll(now, &mut |_, _, _| received += 1).unwrap();
            port.poll(now + 2 * MS, &mut |_, _, _| {}).unwrap();
        }
        first[0].poll(now + 2 * MS, &mut |_, _, _| {}).unwrap();
        now += 2 * MS;
    };
    (0..rounds / 10).for_each(|_| round(&mut ports));
    let begin = Instant::now();
    (0..rounds).for_each(|_| round(&mut ports));
    let took = begin.elapsed();
    assert_eq!(received, (active - 1) * batch * (rounds + rounds / 10));
    took.as_nanos() as f64 / f64::from((active - 1) * batch * rounds)
}

#[test]
#[ignore = "a measurement"]
fn time_of_a_message() {
    for (active, batch, rounds) in
        [(2, 1, 300_000), (2, 32, 30_000), (101, 1, 3000), (101, 8, 1000)]
    {
        let mut times: Vec<f64> = (0..9).map(|_| ns_per_message(active, batch, rounds)).collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{} peers, {batch} at once: {:.1} ns a message (least {:.1}, most {:.1})",
            active - 1,
            times[4],
            times[0],
            times[8]
        );
    }
}

#[test]
fn the_memory_of_a_port_grows_only_with_the_peers_it_speaks_to() {
    println!("PeerStreams: {} bytes", size_of::<PeerStreams>());
    for pes in [1000, 10_000, 100_000] {
        let lane = Box::new(bad_network(2, 4096, Faults::default(), 1).remove(0));
        let mut port = None;
        let fresh = allocation_counter::measure(|| {
            port = Some(Port::new(Pe::ROOT, pes, lane, PortSettings::default()));
        });
        let closing = allocation_counter::measure(|| {
            let port = port.as_mut().unwrap();
            (1..=pes / 100).for_each(|pe| port.close(Pe::new(pe * 100 - 1)));
        });
        let (fresh, closing) = (fresh.bytes_current, closing.bytes_current);
        println!("{pes} PEs: a port {fresh} bytes, and {closing} more when 1 % have died");
        assert!(fresh <= 4096 && closing <= 8 * i64::from(pes / 100), "{fresh}, {closing}");
    }
    let mut ports = ports(101);
    let spoken = allocation_counter::measure(|| {
        for to in 1..101 {
            ports[0].send(Pe::new(to), &[7; 24], None).unwrap();
            ports[to as usize].send(Pe::ROOT, &[7; 24], None).unwrap();
        }
        for time in 0..10 {
            for port in &mut ports {
                port.poll(220 * time * MS, &mut |_, _, _| {}).unwrap();
            }
        }
    });
    assert!(ports.iter_mut().all(Port::is_idle), "all has arrived");
    assert!(ports.iter().all(|port| port.peers.opened().is_empty()), "all pairs rest");
    let buffers = ports.iter().map(Port::buffer_bytes).sum::<usize>();
    let spoken = spoken.bytes_current;
    println!("100 pairs: {spoken} bytes, of which the shared buffers have {buffers}");
    assert!(spoken - buffers as i64 <= 2 * 100 * 250, "a peer at rest costs too much");
}
