//! Arrays that are copied from their sender's memory.

use super::*;
use crate::transport::link::offers::{Fetches, Offers};
use crate::transport::link::outbound::Outbound;
use crate::transport::link::records::{CopyRecord, Offer, OfferReply, Records};
use ultramarine_topology::{Distance, Topology};

/// So that copying takes several polls.
const ELEMENTS: u64 = 1 << 20;

fn array(number: u64) -> Array {
    (0..ELEMENTS).map(|element| number << 32 | element).collect::<Vec<_>>().into()
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
    assert_eq!(ports[1].counters().bytes_fetched, ARRAYS * ELEMENTS * 8);
    assert!(ports[0].counters().bytes_sent < 100_000, "{:?}", ports[0].counters());
}

#[test]
fn what_is_refused_is_sent_in_pieces() {
    let (mut outbound, mut buffers) = (Outbound::new((1000, 1 << 30)), Buffers::default());
    for number in 0..2 {
        outbound.push(b"large", Some((&array(number), ArrayRoute::Offer)), &mut buffers);
    }
    assert_eq!(outbound.handle_reply(OfferReply::Refused, &mut buffers), Some(2));
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
        let mut deliver = |message: &[u8], found| {
            assert_eq!((message, found), (&b"large"[..], Some(array(arrived))));
            arrived += 1;
        };
        records.cut(&frame, 1 << 30, &mut deliver).unwrap();
        outbound.advance(frame.len(), MS, &mut buffers);
        outbound.acknowledge(position, 0, 1000, MS, &mut buffers);
    }
    assert_eq!(arrived, 2);
    assert!(matches!(records.take_copy_record(), Some(CopyRecord::Offered(..))));
}

/// What becomes of an offer that is changed so, and of one after it.
fn fetched(offers: &mut Offers, change: impl FnOnce(&mut Offer)) -> Option<OfferReply> {
    let mut offer = offers.add(b"", array(0));
    change(&mut offer);
    let mut fetches = Fetches::default();
    fetches.add(Vec::new(), offer);
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
    assert_eq!(fetched(offers, |offer| offer.address = 8), refused);
    assert_eq!(fetched(offers, |offer| offer.seal_address = 8), refused);
    assert_eq!(fetched(offers, |offer| offer.seal += 1), refused);
    assert_eq!(fetched(offers, |offer| offer.alignment = 3), refused);
}

#[test]
fn what_is_dropped_while_it_is_copied_is_not_delivered() {
    let mut offers = Offers::default();
    let mut fetches = Fetches::default();
    let kept = array(0);
    fetches.add(Vec::new(), offers.add(b"", kept.clone()));
    assert_eq!(fetches.go_on(1000, &mut |_, _| panic!("it is not whole")), None);
    // Or its memory might happen to have another content by then.
    let _word = offers.seal();
    drop(offers);
    let reply = fetches.go_on(usize::MAX, &mut |_, _| panic!("it may be something else by now"));
    assert_eq!(reply, Some(OfferReply::Refused));
}
