//! Arrays that are copied from their sender's memory.

use super::*;
use crate::transport::link::offers::{Fetches, Offers};
use crate::transport::link::outbound::{ArrayRoute, Outbound};
use crate::transport::link::queue::Queued;
use crate::transport::link::records::{CopyRecord, Offer, OfferReply, Records};
use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// So that copying takes several polls.
const ELEMENTS: u64 = 1 << 20;

/// An array of three blocks.
fn array(number: u64) -> Array {
    let elements = (0..ELEMENTS).map(|element| number << 32 | element);
    let words = elements.clone().map(|element| element as u16).collect::<Vec<_>>();
    let bytes = elements.clone().take(12_345).map(|element| element as u8).collect::<Vec<_>>();
    Array::of_blocks(vec![words.into(), bytes.into(), elements.collect::<Vec<_>>().into()])
}

/// These elements in two blocks.
pub(super) fn in_two_blocks<T: bytemuck::Pod + Send + Sync>(mut elements: Vec<T>) -> Array {
    let last = elements.split_off(elements.len() / 3);
    Array::of_blocks(vec![elements.into(), last.into()])
}

#[test]
fn arrays_are_copied_and_small_messages_overtake_them() {
    const ARRAYS: u64 = 4;
    let faults = Faults { lose: 10, double: 10, damage: 10, refuse: 10 };
    let everybody = Topology::flat(2).ball(Pe::ROOT, Distance::ONE);
    let mut ports: [Port; 2] = ports(bad_network(2, 1000, faults, 7), PortSettings::default());
    ports.iter_mut().for_each(|port| port.has_neighbours(everybody));
    for number in 0..ARRAYS {
        assert!(ports[0].send(Pe::new(1), b"large", Some(&array(number))).unwrap());
    }
    ports[0].send(Pe::new(1), b"small", None).unwrap();
    let (mut arrived, mut small_after) = (0, None);
    for round in 0.. {
        assert!(round < 100_000, "waited in vain: {arrived} have arrived");
        ports[0].poll(MS * 100 * round, &mut nothing).unwrap();
        ports[1]
            .poll(MS * 100 * round, &mut |_, message, found| {
                if found.is_some() {
                    assert_eq!((message, found), (&b"large"[..], Some(array(arrived))));
                    arrived += 1;
                } else {
                    small_after = Some(arrived);
                }
            })
            .unwrap();
        if arrived == ARRAYS && ports.iter_mut().all(Port::is_idle) {
            break;
        }
        if arrived < ARRAYS {
            assert!(!ports[0].is_idle(), "the peer still copies them");
        }
    }
    assert_eq!(small_after, Some(0));
    assert_eq!(ports[1].counters().bytes_fetched, ARRAYS * array(0).size_bytes() as u64);
    assert!(ports[0].counters().bytes_sent < 100_000, "{:?}", ports[0].counters());
}

/// (Else a peer that is stopped would keep a core busy here, while others say something.)
#[test]
fn a_peer_that_copies_nothing_is_not_looked_for_without_pause() {
    let everybody = Topology::flat(3).ball(Pe::ROOT, Distance::ONE);
    let lanes = bad_network(3, 1000, Faults::default(), 7);
    let mut ports: [Port; 3] = ports(lanes, PortSettings::default());
    ports.iter_mut().for_each(|port| port.has_neighbours(everybody));
    assert!(ports[0].send(Pe::new(1), b"large", Some(&array(0))).unwrap());
    let [sender, receiver, other] = &mut ports;
    let mut is_streaming = |now| sender.poll(now, &mut |_, _, _| {}).unwrap().is_streaming;
    assert!(is_streaming(Duration::ZERO) && is_streaming(MS));
    let mut last = true;
    for ms in 2..100 {
        other.send(Pe::ROOT, b"small", None).unwrap();
        other.flush(MS * ms).unwrap();
        last = is_streaming(MS * ms);
    }
    assert!(!last);
    let mut arrived = None;
    for _ in 0..100_000 {
        receiver.poll(101 * MS, &mut |_, _, found| arrived = found).unwrap();
        if arrived.is_some() {
            break;
        }
    }
    assert_eq!(arrived, Some(array(0)));
}

/// Messages of all kinds, some of which are in order.
#[test]
fn no_message_in_order_overtakes_another() {
    const MESSAGES: u64 = 60;
    let faults = Faults { lose: 10, double: 10, damage: 10, refuse: 10 };
    let everybody = Topology::flat(2).ball(Pe::ROOT, Distance::ONE);
    for (seed, copies) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut choose = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut choose = |below| choose.next_u64() % below;
        let mut ports: [Port; 2] = ports(bad_network(2, 1000, faults, 7), PortSettings::default());
        if copies {
            ports.iter_mut().for_each(|port| port.has_neighbours(everybody));
        }
        let (mut left, mut arrived, mut in_order) = (0..MESSAGES, 0, Vec::new());
        let mut sizes = Vec::new();
        for round in 0.. {
            assert!(round < 100_000, "waited in vain: {arrived} have arrived");
            for number in left.by_ref().take(choose(4) as usize) {
                let elements = [None, Some(0), Some(600), Some(20_000)][choose(4) as usize];
                sizes.push(elements);
                let array = elements.map(|elements| in_two_blocks(vec![number; elements]));
                let message = [number as u8, u8::from(choose(3) > 0)];
                let is_sent = if message[1] == 1 {
                    ports[0].send_in_order(Pe::new(1), &message, array.as_ref())
                } else {
                    ports[0].send(Pe::new(1), &message, array.as_ref())
                };
                assert!(is_sent.unwrap());
            }
            ports[0].poll(MS * 100 * round, &mut nothing).unwrap();
            let mut deliver = |_, message: &[u8], found: Option<Array>| {
                arrived += 1;
                let elements = found.as_ref().map(|found| found.size_bytes() / size_of::<u64>());
                assert_eq!(elements, sizes[usize::from(message[0])]);
                if let Some(first) =
                    found.as_ref().and_then(|found| found.blocks()[1].bytes().first())
                {
                    assert_eq!(*first, message[0]);
                }
                if message[1] == 1 {
                    in_order.push(message[0]);
                }
            };
            ports[1].poll(MS * 100 * round, &mut deliver).unwrap();
            if arrived == MESSAGES && ports.iter_mut().all(Port::is_idle) {
                break;
            }
        }
        assert!(in_order.is_sorted(), "seed {seed}, copied: {copies}: {in_order:?}");
    }
}

#[test]
fn what_is_refused_is_sent_in_pieces() {
    let flow = Flow { frame_bytes: 1000, window_bytes: 1 << 30 };
    let (mut outbound, mut buffers) = (Outbound::new(flow), Buffers::default());
    for number in 0..2 {
        let array = array(number);
        assert!(outbound.push(b"large", Some((&array, ArrayRoute::Offer)), true, &mut buffers));
    }
    assert!(outbound.push(b"behind", None, true, &mut buffers), "it is offered as well");
    assert!(!outbound.push(b"beside", None, false, &mut buffers));
    assert_eq!(outbound.handle_reply(OfferReply::Refused, &mut buffers), Some(3));
    assert!(!outbound.push(b"behind", None, true, &mut buffers));
    assert!(!outbound.may_offer());
    assert_eq!(
        outbound.handle_reply(OfferReply::Fetched, &mut buffers),
        None,
        "nothing is offered"
    );
    let (mut records, mut arrived, mut frame) = (Records::default(), 0, Vec::new());
    while outbound.may_send() {
        frame.clear();
        let (position, _) = outbound.next(&mut frame);
        let position = position + frame.len() as u64;
        let mut deliver = |message: &[u8], found: Option<Array>| {
            match message {
                b"beside" => assert!(found.is_none() && arrived == 0),
                b"behind" => assert!(found.is_none() && arrived >= 2),
                _ => assert_eq!((message, found), (&b"large"[..], Some(array(arrived)))),
            }
            arrived += u64::from(message != b"beside");
        };
        records.cut(&frame, 1 << 30, &mut deliver).unwrap();
        outbound.advance(frame.len(), MS, &mut buffers);
        outbound.acknowledge(position, 0, MS, &mut buffers);
    }
    assert_eq!(arrived, 4);
    assert!(matches!(records.take_copy_record(), Some(CopyRecord::Offered(..))));
}

fn queued(array: Array) -> Queued {
    Queued { message: Vec::new(), array: Some(array), in_order: false }
}

/// What becomes of an offer that is changed so, and of one after it.
fn fetched(offers: &mut Offers, change: impl FnOnce(&mut Offer)) -> Option<OfferReply> {
    let mut offer = offers.add(queued(array(0)));
    change(&mut offer);
    let mut fetches = Fetches::default();
    fetches.add(Vec::new(), offer.clone());
    let reply = fetches.go_on(usize::MAX, &mut |_, found| assert_eq!(found, Some(array(0))));
    fetches.add(Vec::new(), offer);
    assert_eq!(
        fetches.are_open(),
        reply == Some(OfferReply::Fetched),
        "who refuses once refuses all"
    );
    reply
}

#[test]
fn only_what_is_certainly_the_array_is_delivered() {
    let offers = &mut Offers::default();
    assert_eq!(fetched(offers, |_| {}), Some(OfferReply::Fetched));
    let refused = Some(OfferReply::Refused);
    assert_eq!(fetched(offers, |offer| offer.process = i32::MAX as u32), refused);
    assert_eq!(fetched(offers, |offer| offer.process = 0), refused);
    assert_eq!(fetched(offers, |offer| offer.blocks[0].0 = 8), refused);
    assert_eq!(fetched(offers, |offer| offer.blocks[2].0 = 8), refused);
    assert_eq!(fetched(offers, |offer| offer.blocks[2].1.alignment = 3), refused);
    assert_eq!(fetched(offers, |offer| offer.blocks[1].1.bytes = u64::MAX), refused);
    assert_eq!(fetched(offers, |offer| offer.seal_address = 8), refused);
    assert_eq!(fetched(offers, |offer| offer.seal += 1), refused);
    assert_eq!(fetched(offers, |offer| offer.blocks[0].1.alignment = 3), refused);
}

#[test]
fn what_is_dropped_while_it_is_copied_is_not_delivered() {
    let mut offers = Offers::default();
    let mut fetches = Fetches::default();
    let kept = array(0);
    fetches.add(Vec::new(), offers.add(queued(kept.clone())));
    assert_eq!(fetches.go_on(1000, &mut |_, _| panic!("it is not whole")), None);
    // Or its memory might happen to have another content by then.
    let _word = offers.seal();
    drop(offers);
    let reply = fetches.go_on(usize::MAX, &mut |_, _| panic!("it may be something else by now"));
    assert_eq!(reply, Some(OfferReply::Refused));
}
