//! Owners that have room for few connections.

use super::*;

#[test]
fn room_is_made_by_closing_what_is_needed_least() {
    let hosts = Arc::new(HostRings::new(&Topology::flat(5)));
    let mut root = Watch::new(Pe::ROOT, hosts, DetectorSettings::default(), Arc::default());
    let (kept_for, mut effects) = (100 * MS, Effects::new());
    // In the ring it shares connections with PE 1 and PE 4. PE 2 happens to have called it.
    root.opened(MS, ONE, ConnectionNumber(1), &mut effects);
    root.dialling(MS, Pe::new(4), ConnectionNumber(2), &mut effects);
    root.opened(MS, TWO, ConnectionNumber(3), &mut effects);
    effects.clear();
    root.make_room(kept_for, kept_for, false, &mut effects);
    assert_eq!(effects.pop_front(), None);
    for (number, keeps_needed) in [(3, true), (2, true), (1, false)] {
        root.make_room(MS + kept_for, kept_for, keeps_needed, &mut effects);
        assert_eq!(effects.pop_front(), Some(Effect::Close(ConnectionNumber(number))));
        root.make_room(kept_for, kept_for, keeps_needed, &mut effects);
        assert_eq!(effects.pop_front(), None);
    }
    root.make_room(MS + kept_for, kept_for, false, &mut effects);
    assert_eq!(effects.pop_front(), None);
}

#[test]
fn a_silent_pe_is_dead_though_there_is_room_for_few_dials() {
    let (mut root, mut effects) = root();
    let (mut now, mut numbers, mut begun) = (MS * 2, 10.., Vec::new());
    root.opened(now, TWO, ACCUSER, &mut effects);
    let is_dead = |effect: &Effect| *effect == Effect::Report(dead(&[2]));
    loop {
        now += 10 * MS;
        assert!(now < 6 * SECOND, "it is never lost");
        root.tick(now, &mut effects);
        root.assess(now, &mut effects);
        root.notice(now, ONE, ConnectionNumber(1), root.membership().heartbeat(), &mut effects);
        if effects.iter().any(is_dead) {
            break;
        }
        for effect in std::mem::take(&mut effects) {
            if let Effect::Dial(pe) = effect {
                if begun.len() < 2 {
                    let number = ConnectionNumber(numbers.next().unwrap());
                    begun.push(number);
                    root.dialling(now, pe, number, &mut effects);
                } else {
                    root.dial_failed(now, pe, CloseReason::NoRoom, &mut effects);
                }
            }
        }
    }
    assert!(now > 2 * SECOND, "lost after {now:?}");
}
