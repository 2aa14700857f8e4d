//! What a port keeps about the others: a stream for those with which it has spoken, and nothing
//! about the rest.

use std::time::Duration;
use ultramarine_runtime::transport::{Port, PortSettings, memory};
use ultramarine_topology::Pe;

/// How many bytes a port holds for each of the others, after it and they have sent each other
/// messages of these lengths and all is quiet again.
fn held(pes: u32, messages: &[usize]) -> i64 {
    let lanes = memory::network(pes).into_iter().zip(0..);
    let mut ports = lanes
        .map(|(lane, pe)| Port::new(Pe::new(pe), pes, Box::new(lane), PortSettings::default()));
    let mut root = ports.next().expect("there are several");
    let mut others: Vec<Port> = ports.collect();
    let mut now = Duration::ZERO;
    for bytes in messages {
        let message = vec![7; *bytes];
        for (other, pe) in others.iter_mut().zip(1..) {
            root.send(Pe::new(pe), &message, None).expect("there is room");
            other.send(Pe::ROOT, &message, None).expect("there is room");
        }
        while !(root.is_idle() && others.iter_mut().all(Port::is_idle)) {
            now += Duration::from_millis(1);
            assert!(now < Duration::from_mins(1), "it waits in vain");
            for port in others.iter_mut().chain([&mut root]) {
                port.poll(now, &mut |_, _, _| {}).expect("the lane is open");
            }
        }
    }
    -allocation_counter::measure(|| drop(root)).bytes_current / i64::from(pes - 1)
}

#[test]
fn a_peer_takes_nothing_until_it_is_spoken_to_and_then_little() {
    println!("| PEs | bytes for a peer | after 100 bytes each way | after 100 kB each way |");
    println!("|---|---|---|---|");
    for pes in [64, 256, 1000] {
        let [silent, brief, long] = [&[][..], &[100], &[100, 100_000]].map(|sent| held(pes, sent));
        println!("| {pes} | {silent} | {brief} | {long} |");
        // What the port itself has is shared by all.
        assert!(silent <= 512 / i64::from(pes - 1), "{silent}");
        // Free buffers that all streams share, and the frame that is being made.
        let shared = ((8 << 20) + (64 << 10)) / i64::from(pes - 1);
        assert!(brief < 800 && long < 800 + shared, "{brief} and {long}");
    }
}
