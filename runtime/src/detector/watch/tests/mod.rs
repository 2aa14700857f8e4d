//! Watches without sockets: some by hand, and some in a small world of simulated connections.

mod cuts;
mod room;
mod succession;
mod world;

use super::peer::ConnectionPurpose;
use super::reachability::{ContactLimits, DialPace};
use super::{CloseReason, ConnectionNumber, Effect, Effects, HostRings, Watch};
use crate::detector::{DetectorSettings, FailureEvent};
use crate::protocol::{Claim, Heading, MembershipStatus, Notice};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ultramarine_topology::{Pe, Topology};
use world::World;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const ONE: Pe = Pe::new(1);
const TWO: Pe = Pe::new(2);
/// The root's connection with PE 2.
const ACCUSER: ConnectionNumber = ConnectionNumber(2);

fn dead(pes: &[u32]) -> FailureEvent {
    FailureEvent::Dead(pes.iter().copied().map(Pe::new).collect())
}

/// The root of a job of three, in the ring 0 → 1 → 2 → 0, with an open connection with PE 1.
fn root() -> (Watch, Effects) {
    let hosts = Arc::new(HostRings::new(&Topology::flat(3)));
    let mut effects = Effects::new();
    let mut root = Watch::new(Pe::ROOT, hosts, DetectorSettings::default(), Arc::default());
    root.tick(MS, &mut effects);
    assert_eq!(Vec::from(std::mem::take(&mut effects)), [Effect::Dial(ONE)]);
    root.dialling(MS, ONE, ConnectionNumber(1), &mut effects);
    root.answered(MS * 2, ONE, ConnectionNumber(1));
    root.opened(MS * 2, ONE, ConnectionNumber(1), &mut effects);
    effects.clear();
    (root, effects)
}

/// Holds that a turn that looked at all PEs would find nothing more to do now.
fn check_that_none_is_forgotten(watch: &Watch, now: Duration) {
    let (timing, judge) = (watch.timing(), watch.membership.judge());
    for (pe, peer, timer) in watch.peers.unchanged() {
        assert_eq!(timer, timing.due(now, pe, peer), "{pe} at {now:?}: {peer:?}");
        let limits = ContactLimits::of(watch.me, pe, judge, &watch.settings);
        if watch.is_judging() && peer.is_wanted() && peer.purpose == ConnectionPurpose::Contact {
            let news = peer.clone().assess(now, &limits, watch.grace());
            assert_eq!(news, None, "{pe} at {now:?}: {peer:?}");
        }
        assert!(!peer.is_idle(), "{pe}: {peer:?}");
        let pace = DialPace::towards(pe, judge, &watch.settings);
        assert!(!peer.is_to_be_dialled(now, &pace), "{pe} at {now:?}: {peer:?}");
    }
}

fn sent(number: usize, notice: Notice) -> Effect {
    Effect::Send { connection: ConnectionNumber(number), notice }
}

#[test]
fn a_notice_that_was_not_sent_goes_on_the_next_connection() {
    let (mut root, mut effects) = root();
    let look = Notice::Look { pe: Pe::new(2), anew: false };
    root.not_sent(MS * 3, ONE, ConnectionNumber(1), look.clone());
    root.not_sent(MS * 3, ONE, ConnectionNumber(1), Notice::Known { of: Heading::FIRST, dead: 0 });
    root.closed(MS * 3, ONE, ConnectionNumber(1), CloseReason::Broken, &mut effects);
    root.tick(MS * 3, &mut effects);
    assert_eq!(Vec::from(std::mem::take(&mut effects)), [Effect::Dial(ONE)], "and no heartbeat");
    root.dialling(MS * 3, ONE, ConnectionNumber(2), &mut effects);
    root.opened(MS * 4, ONE, ConnectionNumber(2), &mut effects);
    let both = [sent(2, Notice::Known { of: Heading::FIRST, dead: 0 }), sent(2, look)];
    assert_eq!(Vec::from(effects), both);
}

#[test]
fn a_notice_that_one_of_two_connections_takes_is_not_queued() {
    let (mut root, mut effects) = root();
    root.opened(MS * 3, ONE, ConnectionNumber(2), &mut effects);
    let look = Notice::Look { pe: Pe::new(2), anew: false };
    root.not_sent(MS * 3, ONE, ConnectionNumber(2), look.clone());
    root.closed(MS * 3, ONE, ConnectionNumber(2), CloseReason::Broken, &mut effects);
    effects.clear();
    root.opened(MS * 4, ONE, ConnectionNumber(3), &mut effects);
    assert_eq!(
        Vec::from(effects),
        [1, 3].map(|number| sent(number, Notice::Known { of: Heading::FIRST, dead: 0 }))
    );
}

#[test]
fn a_connection_with_a_backlog_gets_no_heartbeat_and_no_end() {
    let (mut root, mut effects) = root();
    let beat = sent(1, Notice::Known { of: Heading::FIRST, dead: 0 });
    root.set_backlog(ONE, ConnectionNumber(1), true);
    root.tick(MS * 500, &mut effects);
    assert!(!effects.contains(&beat), "{effects:?}");
    root.set_backlog(ONE, ConnectionNumber(1), false);
    root.tick(MS * 1000, &mut effects);
    assert!(effects.contains(&beat), "{effects:?}");
    effects.clear();
    root.goodbye(MS * 1001, MS * 500, &mut effects);
    assert_eq!(effects.pop_front(), Some(sent(1, Notice::Goodbye)));
    root.tick(MS * 1001, &mut effects);
    assert!(effects.contains(&Effect::Dial(Pe::new(2))), "{effects:?}");
    root.dial_failed(MS * 1001, Pe::new(2), CloseReason::Gone, &mut effects);
    root.set_backlog(ONE, ConnectionNumber(1), true);
    assert!(!root.is_done(MS * 1002));
    root.set_backlog(ONE, ConnectionNumber(1), false);
    assert!(root.is_done(MS * 1002));
}

#[test]
fn of_three_open_connections_the_oldest_is_closed() {
    let (mut root, mut effects) = root();
    root.opened(MS * 3, ONE, ConnectionNumber(2), &mut effects);
    assert!(!effects.contains(&Effect::Close(ConnectionNumber(1))));
    root.opened(MS * 4, ONE, ConnectionNumber(3), &mut effects);
    assert!(effects.contains(&Effect::Close(ConnectionNumber(1))));
    effects.clear();
    // Its end is no reason to dial.
    root.closed(MS * 4, ONE, ConnectionNumber(1), CloseReason::NotNeeded, &mut effects);
    root.tick(MS * 5, &mut effects);
    assert!(!effects.contains(&Effect::Dial(ONE)), "{effects:?}");
}

#[test]
fn a_killed_process_is_dead_at_once() {
    let mut world = World::new(4, 3);
    world.run_until(SECOND);
    let gone = Pe::new(7);
    world.kill(gone);
    world.run_until(SECOND + MS * 30);
    for pe in world.running() {
        assert_eq!(world.events_of(pe), [dead(&[7])], "at {pe}");
    }
    assert_eq!(world.running().count(), 11);
}

#[test]
fn a_silent_host_is_dead_after_its_time() {
    let mut world = World::new(5, 2);
    world.run_until(SECOND * 10);
    world.isolate(Pe::new(4));
    world.isolate(Pe::new(5));
    let dead_after = DetectorSettings::default().dead_after;
    world.run_until(SECOND * 10 + dead_after.mul_f64(0.75));
    assert_eq!(world.events, []);
    world.run_until(SECOND * 10 + dead_after + MS * 500);
    for pe in world.running().filter(|pe| ![4, 5].contains(&pe.number())) {
        let mut pes: Vec<Pe> = Vec::new();
        for event in world.events_of(pe) {
            let FailureEvent::Dead(more) = event else { panic!("{pe}: {event:?}") };
            pes.extend(more);
        }
        pes.sort_unstable();
        assert_eq!(pes, [4, 5].map(Pe::new), "at {pe}");
    }
}

#[test]
fn a_silent_rack_is_dead_as_soon_as_a_silent_host() {
    let mut world = World::new(40, 2);
    world.run_until(SECOND * 10);
    // Twelve hosts. Each of them is watched from two hosts that live (`ring_order.rs`).
    let rack: Vec<Pe> = (20..44).map(Pe::new).collect();
    rack.iter().for_each(|pe| world.isolate(*pe));
    let dead_after = DetectorSettings::default().dead_after;
    world.run_until(SECOND * 10 + dead_after + MS * 500);
    let mut dead = world.dead(Pe::ROOT).to_vec();
    dead.sort_unstable();
    assert_eq!(dead, rack);
    for pe in world.running().filter(|pe| !rack.contains(pe)) {
        assert_eq!(world.dead(pe).len(), rack.len(), "at {pe}");
    }
}

#[test]
fn a_stalled_process_is_not_dead_before_its_time() {
    let mut world = World::new(4, 2);
    world.run_until(SECOND);
    world.stall(Pe::new(3));
    world.run_until(SECOND * 21);
    world.resume(Pe::new(3));
    world.run_until(SECOND * 31);
    assert_eq!(world.events, []);
    let counters = world.counters(Pe::ROOT);
    assert_eq!(counters.losses.load(Relaxed), 0, "{counters:?}");

    world.stall(Pe::new(3));
    world.run_until(SECOND * 31 + DetectorSettings::default().stalled_after + SECOND * 5);
    for pe in world.running() {
        assert_eq!(world.events_of(pe), [dead(&[3])], "at {pe}");
    }
    world.resume(Pe::new(3));
    world.run_until(SECOND * 70);
    assert_eq!(world.events_of(Pe::new(3)), [FailureEvent::Expelled]);
}

/// PE 2 says that it has lost PE 1 for good.
fn insist(root: &mut Watch, now: Duration) {
    let accusation = Notice::Accuse { pe: ONE, claim: Claim::Lost };
    root.notice(now, TWO, ACCUSER, accusation, &mut Effects::new());
}

/// The root has never heard PE 1, which was stopped too early. That its host answers proves no path
/// between PE 1 and PE 2 broken.
#[test]
fn of_a_stopped_process_and_one_that_accuses_it_the_stopped_one_leaves() {
    let (mut root, mut effects) = root();
    root.opened(MS * 3, TWO, ACCUSER, &mut effects);
    let stalled_after = DetectorSettings::default().stalled_after;
    let mut ms = 3;
    while root.membership().dead().is_empty() {
        ms += 100;
        assert!(MS * ms < stalled_after + SECOND, "no PE is held for dead");
        let now = MS * ms;
        root.answered(now, ONE, ConnectionNumber(1));
        insist(&mut root, now);
        root.assess(now, &mut effects);
        root.tick(now, &mut effects);
        effects.clear();
    }
    assert_eq!(root.membership().dead(), [ONE]);
}

/// PE 2 has lost PE 1. A frame of PE 1 that was on its way shows nothing: the root calls it.
#[test]
fn the_answer_to_a_call_shows_that_a_path_is_broken_and_a_late_frame_does_not() {
    let call = ConnectionNumber(3);
    for is_answered in [true, false] {
        let (mut root, mut effects) = root();
        root.opened(MS * 3, TWO, ACCUSER, &mut effects);
        insist(&mut root, MS * 10);
        effects.clear();
        root.tick(MS * 10, &mut effects);
        assert_eq!(effects.pop_front(), Some(Effect::Dial(ONE)), "though there is a connection");
        root.dialling(MS * 10, ONE, call, &mut effects);
        root.notice(
            MS * 11,
            ONE,
            ConnectionNumber(1),
            Notice::Known { of: Heading::FIRST, dead: 0 },
            &mut effects,
        );
        root.assess(MS * 11, &mut effects);
        insist(&mut root, MS * 12);
        assert_eq!(root.membership().dead(), []);
        if is_answered {
            root.opened(MS * 13, ONE, call, &mut effects);
            insist(&mut root, MS * 14);
            assert_eq!(root.membership().dead(), [TWO]);
        } else {
            root.closed(MS * 13, ONE, call, CloseReason::Gone, &mut effects);
            root.closed(MS * 14, ONE, ConnectionNumber(1), CloseReason::Broken, &mut effects);
            effects.clear();
            root.tick(MS * 14, &mut effects);
            assert_eq!(effects.pop_front(), Some(Effect::Dial(ONE)));
            root.dial_failed(MS * 14, ONE, CloseReason::Gone, &mut effects);
            assert_eq!(root.membership().dead(), [ONE]);
        }
    }
}

/// A firewall lets the root make no new connection with PE 1, whose heartbeats go on.
#[test]
fn a_call_that_is_never_answered_does_not_keep_the_root_from_deciding() {
    let (mut root, mut effects) = root();
    root.opened(MS * 3, TWO, ACCUSER, &mut effects);
    let mut now = MS * 3;
    while root.membership().dead().is_empty() {
        now += MS * 100;
        assert!(now <= DetectorSettings::default().stalled_after + SECOND, "no PE leaves");
        let beat = Notice::Known { of: Heading::FIRST, dead: 0 };
        root.notice(now, ONE, ConnectionNumber(1), beat, &mut effects);
        insist(&mut root, now);
        root.assess(now, &mut effects);
        root.tick(now, &mut effects);
        effects.clear();
    }
    assert_eq!((root.membership().dead(), now > SECOND * 30), (&[TWO][..], true));
}

#[test]
fn a_goodbye_is_no_death() {
    let mut world = World::new(4, 3);
    world.run_until(SECOND);
    world.say_goodbye(Pe::new(8));
    world.run_until(SECOND + MS * 500);
    let told: Vec<Pe> = world.running().filter(|pe| !world.events_of(*pe).is_empty()).collect();
    assert_eq!(world.running().count(), 11, "it has left");
    assert!(!told.is_empty(), "those that watch it have heard it");
    let is_over = |event: &FailureEvent| *event == FailureEvent::JobOver { by: Pe::new(8) };
    assert!(world.events.iter().all(|(_, _, event)| is_over(event)), "{:?}", world.events);
    world.say_goodbye_all();
    world.run_until(SECOND * 2);
    assert_eq!(world.running().count(), 0);
    assert!(!world.events.iter().any(|(_, _, event)| matches!(event, FailureEvent::Dead(_))));
}

#[test]
fn without_the_root_all_leave() {
    let mut world = World::new(4, 3);
    world.run_until(SECOND);
    world.kill(Pe::ROOT);
    world.run_until(SECOND * 2);
    assert_eq!(world.running().count(), 0);
    for pe in (1..12).map(Pe::new) {
        let events = world.events_of(pe);
        assert!(matches!(events[..], [FailureEvent::RootLost { .. }]), "at {pe}: {events:?}");
        assert_eq!(world.status(pe), MembershipStatus::RootLost);
    }
}

#[test]
fn many_deaths_at_once_are_agreed_on() {
    let mut world = World::new(10, 4);
    world.run_until(SECOND);
    let gone: Vec<Pe> =
        (1..40).filter(|pe| pe % 3 == 0 || (8..20).contains(pe)).map(Pe::new).collect();
    gone.iter().for_each(|pe| world.kill(*pe));
    world.run_until(SECOND * 2);
    let order = world.dead(Pe::ROOT).to_vec();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, gone);
    for pe in world.running() {
        assert_eq!(world.dead(pe), order, "at {pe}");
    }
}

#[test]
fn while_nothing_happens_there_is_little_to_do() {
    let mut world = World::new(8, 4);
    world.run_until(SECOND);
    let all: Vec<Pe> = world.running().collect();
    let count = |world: &World| -> (u64, u64) {
        let counters = all.iter().map(|pe| world.counters(*pe));
        let each =
            counters.map(|c| (c.heartbeats_sent.load(Relaxed), c.notices_sent.load(Relaxed)));
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let before = (count(&world), world.turns);
    world.run_until(SECOND * 21);
    let after = (count(&world), world.turns);
    let rate = |from: u64, to: u64| (to - from) as f64 / 20.0 / all.len() as f64;
    let beats = rate(before.0.0, after.0.0);
    println!("per PE and second: {beats} heartbeats, {} turns", rate(before.1, after.1));
    assert!(beats <= 10.0, "{beats} heartbeats a second");
    assert_eq!(before.0.1, after.0.1, "no other notices");
    assert_eq!(world.events, []);
    for pe in all {
        let counters = world.counters(pe);
        assert_eq!(counters.suspicions.load(Relaxed), 0, "at {pe}");
        assert!(counters.dialled.load(Relaxed) <= 2, "at {pe}: {counters:?}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Isolate,
    Stall,
    Suspect,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// At each turn the world also holds that no PE is forgotten.
    #[test]
    fn of_any_faults_all_dead_are_found_and_no_other(
        hosts in 1..5_u32,
        pes_each in 1..4_u32,
        faults in prop::collection::vec(
            (0..3000_u32, 1..16_u32, prop::sample::select(vec![
                Fault::Kill, Fault::Isolate, Fault::Stall, Fault::Suspect,
            ])),
            0..10,
        ),
    ) {
        let pes = hosts * pes_each;
        let mut world = World::new(hosts, pes_each);
        let mut gone = BTreeSet::new();
        let mut now = Duration::ZERO;
        for (after_ms, number, fault) in faults {
            now += MS * after_ms;
            world.run_until(now);
            let pe = Pe::new(number % pes);
            let is_running = world.running().any(|other| other == pe);
            match fault {
                Fault::Suspect => world.suspect(pe, Pe::new((number * 7 + after_ms) % pes)),
                _ if pe == Pe::ROOT || !is_running || gone.contains(&pe) => {}
                Fault::Stall => world.stall(pe),
                Fault::Kill | Fault::Isolate => {
                    gone.insert(pe);
                    if matches!(fault, Fault::Kill) { world.kill(pe) } else { world.isolate(pe) }
                }
            }
        }
        // Those that were stopped for all this time were so for less than `stalled_after`.
        world.resume_all();
        // One that is cut off at once is lost when the grace of 5 s ends, and then all are told.
        world.run_until(now + SECOND * 5 + MS * 500);
        let order = world.dead(Pe::ROOT).to_vec();
        prop_assert_eq!(&order.iter().copied().collect::<BTreeSet<_>>(), &gone);
        for pe in (0..pes).map(Pe::new).filter(|pe| !gone.contains(pe)) {
            prop_assert!(world.running().any(|other| other == pe), "{} has left", pe);
            prop_assert_eq!(world.dead(pe), &order[..], "at {}", pe);
        }
    }
}
