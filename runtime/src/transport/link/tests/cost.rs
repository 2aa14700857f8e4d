//! What a port costs: its memory, and the time of a message. Run with
//! `cargo test --release -p ultramarine-runtime --no-default-features cost -- --ignored --nocapture`.

use super::super::inbound::Inbound;
use super::super::outbound::Outbound;
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
#[ignore = "a measurement"]
fn memory_of_a_port() {
    println!("PeerStreams: {} bytes", size_of::<PeerStreams>());
    println!("  outbound {}, inbound {}", size_of::<Outbound>(), size_of::<Inbound>());
    let lane = || bad_network(2, 4096, Faults::default(), 1).remove(0);
    for pes in [1000, 10_000, 100_000] {
        let lane = Box::new(lane());
        let mut port = None;
        let fresh = allocation_counter::measure(|| {
            port = Some(Port::new(Pe::ROOT, pes, lane, PortSettings::default()));
        });
        let closing = allocation_counter::measure(|| {
            let port = port.as_mut().unwrap();
            (1..=pes / 100).for_each(|pe| port.close(Pe::new(pe * 100 - 1)));
        });
        println!(
            "{pes} PEs: a port {} bytes, and {} more when 1 % have died",
            fresh.bytes_current, closing.bytes_current
        );
    }
    let mut ports = ports(101);
    let spoken = allocation_counter::measure(|| {
        for round in 1..5 {
            for to in 1..101 {
                ports[0].send(Pe::new(to), &[7; 24], None).unwrap();
                ports[to as usize].send(Pe::ROOT, &[7; 24], None).unwrap();
            }
            for later in 0..4 {
                for port in &mut ports {
                    port.poll(round * 100 * MS + later * 2 * MS, &mut |_, _, _| {}).unwrap();
                }
            }
        }
    });
    println!("after 4 messages to and from 100 peers: {} bytes in all", spoken.bytes_current);
    println!("  of which buffers: {}", ports.iter().map(Port::buffer_bytes).sum::<usize>());
}
