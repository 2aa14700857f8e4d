//! Messages from one PE to many.

use super::world::{World, chooser, eight, pe, settings};
use crate::protocol::message::{Bytes, Message};
use crate::wire;
use proptest::prelude::*;
use std::collections::BTreeMap;
use ultramarine_topology::{LevelKind, Pe, Place, Topology};

fn news() -> Bytes {
    Bytes::from(b"news".to_vec())
}

/// Hosts with these numbers of PEs, in racks of three.
fn machine(hosts: &[u32]) -> Topology {
    let place = |host: usize| {
        let (rack, host) = (format!("r{}", host / 3), format!("h{host}"));
        Place::from_pairs([(LevelKind::Switch, &*rack), (LevelKind::Host, &*host)])
    };
    let places = hosts.iter().enumerate();
    let places: Vec<_> = places.flat_map(|(host, pes)| vec![place(host); *pes as usize]).collect();
    Topology::new(&places, &vec![1; places.len()]).expect("consistent")
}

/// Delivers all messages in any order. Returns the number that each PE sent, and the number that
/// went between hosts.
fn deliver_and_count(world: &mut World, seed: u64) -> (BTreeMap<Pe, u32>, usize) {
    let mut choose = chooser(seed);
    let (mut sent, mut far) = (BTreeMap::new(), 0);
    while !world.flying.is_empty() {
        let letter = world.deliver(choose(world.flying.len()));
        *sent.entry(letter.from).or_default() += 1;
        far += usize::from(!world.topology.host_of(letter.from).contains(letter.to));
    }
    (sent, far)
}

proptest! {
    #[test]
    fn all_living_pes_receive_it_once(
        hosts in prop::collection::vec(1..6_u32, 1..8),
        dead in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        teller: prop::sample::Index,
        seed: u64,
    ) {
        let mut world = World::new(machine(&hosts), &settings(), seed);
        let pes = world.topology.pes();
        let teller = teller.index(pes as usize) as u32;
        let mut dead: Vec<_> = dead.iter().map(|dead| dead.index(pes as usize) as u32).collect();
        dead.retain(|dead| *dead != teller);
        // The teller has heard of all deaths, each other PE of some.
        let mut choose = chooser(!seed);
        for (at, dead) in (0..pes).flat_map(|at| dead.iter().map(move |dead| (at, *dead))) {
            if at == teller || choose(2) == 0 {
                world.mark_dead(at, dead);
            }
        }
        world.tell(teller, 0..pes, news());
        let (sent, far) = deliver_and_count(&mut world, seed);
        for at in 0..pes {
            let heard = usize::from(!dead.contains(&at));
            prop_assert_eq!(&world.seats[at as usize].heard, &vec![news(); heard], "PE {}", at);
        }
        // Twice over, for hosts and racks may be of any size.
        let most = 2 * (pes.ilog2() + 1);
        prop_assert!(sent.values().all(|sent| *sent <= most), "{:?} of {}", sent, pes);
        prop_assert!(far < hosts.len(), "{} messages between {} hosts", far, hosts.len());
    }
}

#[test]
fn a_message_to_one_pe_goes_to_no_other() {
    let mut world = World::new(eight(), &settings(), 1);
    world.tell(2, 5..6, news());
    let letter = world.deliver_only();
    assert_eq!((letter.from, letter.to), (pe(2), pe(5)));
    assert!(world.flying.is_empty());
    assert_eq!(world.seats[5].heard, [news()]);
    world.tell(5, 5..6, news());
    assert!(world.flying.is_empty() && world.seats[5].heard.len() == 2);
}

#[test]
fn messages_to_all_arrive_in_order() {
    for seed in 0..20 {
        let mut world = World::new(eight(), &settings(), seed);
        let number = |n: u8| Bytes::from(vec![n]);
        (0..5).for_each(|n| world.tell(3, 0..8, number(n)));
        deliver_and_count(&mut world, seed);
        assert!(
            world.seats.iter().all(|seat| seat.heard == (0..5).map(number).collect::<Vec<_>>())
        );
    }
}

#[test]
fn nothing_is_told_while_the_job_ends() {
    let mut world = World::new(eight(), &settings(), 1);
    world.tell(0, 0..8, news());
    world.end();
    world.tell(0, 0..8, news());
    let mut told: Vec<_> = world.seats.iter().map(|seat| seat.heard.len()).collect();
    assert_eq!(told, [1, 0, 0, 0, 0, 0, 0, 0]);
    world.deliver_all(chooser(1));
    told = world.seats.iter().map(|seat| seat.heard.len()).collect();
    assert!(told.iter().all(|told| *told <= 1), "{told:?}");
}

/// At some sizes of a job with 16 PEs a host.
#[test]
fn the_messages_of_a_sender_grow_with_the_logarithm() {
    for (hosts, most) in [(4, 6), (16, 8), (63, 10), (6250, 17)] {
        let pes = hosts * 16;
        let topology = machine(&vec![16; hosts as usize]);
        let branches: Vec<_> = topology.branches(Pe::ROOT, 0..pes).collect();
        let message = |pes: &_| {
            let pes = std::ops::Range::clone(pes);
            Message::Tell { pes, dead: Vec::new(), body: news() }
        };
        let encoded = branches.iter().map(|branch| wire::encode(&message(branch)).expect("short"));
        let bytes: usize = encoded.map(|bytes| bytes.len()).sum();
        println!("{pes} PEs: {} messages, {bytes} bytes", branches.len());
        assert!(branches.len() <= most && bytes <= most * 16, "{pes} PEs: {branches:?}, {bytes} B");
    }
}

#[test]
fn a_list_of_the_dead_makes_no_message_too_long() {
    const PES: u32 = 80_000;
    for bytes in [4, 1000, 3400, 4000] {
        let mut world = World::new(machine(&vec![16; PES as usize / 16]), &settings(), 1);
        let dead: Vec<_> = (0..2000).map(|n| 66_000 + 5 * n).collect();
        world.mark_all_dead(0, &dead);
        world.tell(0, 0..PES, Bytes::from(vec![7; bytes]));
        for letter in &world.flying {
            let encoded = wire::encode(&letter.message).expect("it is encoded");
            assert!(encoded.len() < 4096 - 80, "{bytes}: {}", encoded.len());
        }
    }
}
