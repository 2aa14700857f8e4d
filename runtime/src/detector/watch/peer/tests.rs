use super::*;
use crate::detector::DetectorSettings;
use crate::protocol::{Claim, Death, Heading};
use ultramarine_topology::Pe;

const MS: Duration = Duration::from_millis(1);

const SETTINGS: DetectorSettings = DetectorSettings {
    heartbeat: Duration::from_millis(20),
    dead_after: Duration::from_millis(200),
    stalled_after: Duration::from_secs(3),
    root_after: Duration::from_secs(3),
    succession: false,
};

const CONNECTION: ConnectionNumber = ConnectionNumber(7);

/// A PE that this one watches, and is to dial.
fn watched() -> PeerView {
    let mut peer = PeerView::new(MS);
    peer.watch(DialRole::Dialler, MS, MS * 200);
    peer
}

/// The PE has a connection, and nothing is due about it.
fn connect(peer: &mut PeerView) {
    peer.connections.push(PeerConnection::open(CONNECTION, Duration::ZERO));
}

fn limits(me: u32, pe: u32) -> ContactLimits {
    ContactLimits::of(Pe::new(me), Pe::new(pe), Pe::ROOT, &SETTINGS)
}

#[test]
fn one_that_falls_silent_is_suspected_and_then_lost() {
    let mut peer = watched();
    peer.note_heard(MS * 10);
    let limits = limits(1, 2);
    let mut judge = |ms| peer.assess(MS * ms, &limits, MS * 500);
    assert_eq!(
        [10, 109, 110, 111].map(&mut judge),
        [None, None, Some(Reachability::Suspected), None]
    );
    // The root decides after 200 ms; who accuses insists 300 ms later.
    let lost = Reachability::Lost(LossReason::Unreached(MS * 500));
    assert_eq!([509, 510, 511].map(&mut judge), [None, Some(lost), None]);
    peer.contact.answer(MS * 712);
    let stalled = Some(Reachability::Suspected);
    assert_eq!(peer.assess(MS * 712, &limits, MS * 500), stalled, "its path is whole");
    peer.note_heard(MS * 713);
    assert_eq!(peer.assess(MS * 713, &limits, MS * 500), Some(Reachability::InContact));
}

#[test]
fn one_whose_host_answers_has_stalled_and_is_no_more_than_suspected_for_long() {
    let mut peer = watched();
    connect(&mut peer);
    peer.dial_at = None;
    peer.note_heard(MS * 10);
    let mut seen = Vec::new();
    for ms in 10..4000 {
        if ms % 80 == 0 {
            peer.contact.answer(MS * ms);
        }
        if ms == 300 {
            peer.probe(MS * ms, MS * 90);
        }
        if ms % 80 == 1 {
            let pace = DialPace { after: MS * 80, every: MS * 80, every_max: MS * 80 };
            let due = peer.due(MS * ms, &limits(0, 2), MS, &pace);
            assert!(due.is_none_or(|due| due > MS * ms), "it would not sleep at {ms}");
        }
        seen.extend(peer.assess(MS * ms, &limits(0, 2), MS).map(|reachability| (ms, reachability)));
    }
    let lost = Reachability::Lost(LossReason::Unheard(MS * 3000));
    assert_eq!(seen, [(210, Reachability::Suspected), (3010, lost)]);
}

/// It was dialled to tell it something. Unless it is dialled again, its silence says nothing.
#[test]
fn one_that_is_wanted_for_a_notice_only_is_dialled_again_while_it_is_silent() {
    let mut peer = PeerView::new(MS);
    peer.queue(Notice::Known { of: Heading::FIRST, dead: 1 }, MS * 10);
    let pace = DialPace::towards(Pe::new(2), Pe::ROOT, &SETTINGS);
    assert!(peer.is_to_be_dialled(MS * 10, &pace));
    peer.note_dial(MS * 10);
    peer.connections.push(PeerConnection::dialling(CONNECTION, MS * 10));
    peer.note_answer(MS * 12, MS * 10);
    let again_at = 12 + SETTINGS.dead_after.as_millis() as u32 * 2 / 5;
    let is_dialled = |ms| peer.is_to_be_dialled(MS * ms, &pace);
    assert_eq!([again_at - 1, again_at].map(is_dialled), [false, true]);
}

#[test]
fn those_never_heard_have_the_grace_unless_a_witness_says_that_they_are_gone() {
    let mut peer = watched();
    assert_eq!(peer.assess(MS * 499, &limits(0, 2), MS * 500), None);
    peer.contact.is_refused = true;
    assert_eq!(peer.assess(MS * 499, &limits(0, 2), MS * 500), None);
    peer.contact.is_gone = true;
    let lost = Some(Reachability::Lost(LossReason::Gone));
    assert_eq!(peer.assess(MS * 499, &limits(0, 2), MS * 500), lost);
}

#[test]
fn patience_with_the_root_is_longer_whatever_its_host_does() {
    let mut peer = watched();
    peer.note_heard(MS * 10);
    let mut judge = |ms| peer.assess(MS * ms, &limits(1, 0), MS);
    assert_eq!([209, 210, 3009].map(&mut judge), [None, Some(Reachability::Suspected), None]);
    assert!(matches!(judge(3010), Some(Reachability::Lost(_))));
}

#[test]
fn a_look_ends_with_contact_after_it_and_not_with_what_was_seen_before() {
    let mut peer = watched();
    peer.note_heard(MS * 10);
    peer.probe(MS * 10, MS * 90);
    assert_eq!(peer.assess(MS * 11, &limits(0, 2), MS), None);
    peer.note_heard(MS * 12);
    assert_eq!(peer.assess(MS * 12, &limits(0, 2), MS), Some(Reachability::InContact));
    assert_eq!(peer.assess(MS * 13, &limits(0, 2), MS), None, "said once");
    // One that is not watched counts as silent for half of its time, and is forgotten once it
    // is heard.
    let mut other = PeerView::new(MS);
    other.probe(MS * 1000, MS * 90);
    assert_eq!(other.dial_at, Some(MS * 1000));
    let lost = Some(Reachability::Lost(LossReason::Unreached(MS * 200)));
    assert_eq!(other.assess(MS * 1109, &limits(0, 2), MS), Some(Reachability::Suspected));
    assert_eq!(other.assess(MS * 1110, &limits(0, 2), MS), lost);
    other.postpone(MS * 1400);
    assert_eq!(other.assess(MS * 1400, &limits(0, 2), MS), Some(Reachability::InContact));
    assert!(other.is_wanted(), "that this host cannot dial says nothing of it");
    other.note_heard(MS * 1500);
    assert_eq!(other.assess(MS * 1500, &limits(0, 2), MS), Some(Reachability::InContact));
    assert!(!other.is_wanted());
}

#[test]
fn a_silent_one_is_dialled_over_and_over_but_ever_later() {
    let mut peer = PeerView::new(MS);
    peer.watch(DialRole::Acceptor, MS, MS * 200);
    connect(&mut peer);
    peer.dial_at = None;
    peer.note_heard(MS * 10);
    let pace = DialPace::towards(Pe::new(2), Pe::ROOT, &SETTINGS);
    let mut dials = Vec::new();
    let mut dial = |peer: &mut PeerView, from: u32, until: u32| {
        for ms in from..until {
            if peer.is_to_be_dialled(MS * ms, &pace) {
                peer.note_dial(MS * ms);
                dials.push(ms);
            }
        }
        std::mem::take(&mut dials)
    };
    assert_eq!(dial(&mut peer, 10, 240), [90, 100, 120, 150, 190, 230]);
    // Its host answers: that is enough for a while; and it takes its time.
    peer.note_answer(MS * 240, MS * 190);
    assert_eq!(dial(&mut peer, 240, 400), [320, 345, 370]);
    peer.note_answer(MS * 400, MS * 399);
    assert_eq!(dial(&mut peer, 400, 500), [480, 490]);
}

#[test]
fn the_first_redial_is_at_once_and_then_ever_later() {
    let mut peer = PeerView::new(MS);
    peer.watch(DialRole::Dialler, MS, MS * 10);
    let delays: Vec<_> = (0..20)
        .map(|_| {
            connect(&mut peer);
            peer.note_closed(Some(CONNECTION), MS, MS * 5);
            peer.dial_at.unwrap().saturating_sub(MS)
        })
        .collect();
    assert_eq!(delays[..5], [Duration::ZERO, MS * 2, MS * 4, MS * 5, MS * 5]);
    peer.note_heard(MS);
    connect(&mut peer);
    peer.note_closed(Some(CONNECTION), MS, MS * 5);
    assert_eq!(peer.dial_at, Some(MS));
}

#[test]
fn news_for_one_whose_last_connection_came_to_nothing_is_still_dialled() {
    let mut peer = PeerView::new(MS);
    peer.failures = 3;
    peer.queue(Notice::Goodbye, MS * 2);
    assert_eq!(peer.dial_at, Some(MS * 2));
    // But not at once if it is to be dialled later anyway.
    connect(&mut peer);
    peer.note_closed(Some(CONNECTION), MS * 3, MS * 50);
    let later = peer.dial_at;
    assert!(later > Some(MS * 3));
    peer.queue(Notice::Known { of: Heading::FIRST, dead: 0 }, MS * 3);
    assert_eq!(peer.dial_at, later);
}

#[test]
fn the_outbox_holds_the_last_bulletin_and_nothing_twice() {
    let mut peer = PeerView::new(MS);
    let bulletin = |dead: &[u32]| {
        let dead = dead.iter().map(|pe| Death::silent(Pe::new(*pe))).collect();
        Notice::Bulletin { of: Heading::FIRST, after: 0, dead }
    };
    let accusation = Notice::Accuse { pe: Pe::new(3), claim: Claim::Suspected };
    for notice in [bulletin(&[1]), accusation.clone(), accusation.clone(), bulletin(&[1, 2])] {
        peer.queue(notice, MS * 4);
    }
    assert_eq!(peer.outbox, [accusation, bulletin(&[1, 2])]);
    assert!(peer.is_wanted(), "it has to take them");
}
