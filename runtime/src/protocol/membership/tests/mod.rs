//! Single PEs by hand; whole jobs with random faults are in `faults`.

mod faults;
mod succession;

use super::announcing::ANNOUNCE_EVERY;
use super::*;

const PATIENCE: Duration = Duration::from_secs(2);
const ZERO: Duration = Duration::ZERO;

fn pe(number: u32) -> Pe {
    Pe::new(number)
}

/// A bulletin from the beginning of the list on.
fn bulletin(dead: &[u32]) -> Notice {
    bulletin_after(0, dead)
}

fn bulletin_after(after: u32, dead: &[u32]) -> Notice {
    let dead = dead.iter().map(|number| Death::silent(pe(*number))).collect();
    Notice::Bulletin { of: Heading::FIRST, after, dead }
}

fn known(dead: u32) -> Notice {
    Notice::Known { of: Heading::FIRST, dead }
}

fn accuse(number: u32) -> Notice {
    Notice::Accuse { pe: pe(number), claim: Claim::Suspected }
}

fn insist(number: u32) -> Notice {
    Notice::Accuse { pe: pe(number), claim: Claim::Lost }
}

fn look(number: u32) -> Notice {
    Notice::Look { pe: pe(number), anew: false }
}

fn look_anew(number: u32) -> Notice {
    Notice::Look { pe: pe(number), anew: true }
}

fn orphaned(herald: u32) -> Notice {
    Notice::Orphaned { herald: pe(herald), term: Term::FIRST, claim: Claim::Suspected }
}

/// One PE. Each method returns what the PE sends.
struct Played(Membership);

type Sent = Vec<(u32, Notice)>;

impl Played {
    fn new(me: u32, pes: u32) -> Self {
        Played(Membership::new(pe(me), pes, PATIENCE))
    }

    /// A PE that knows that these are dead.
    fn knowing(me: u32, pes: u32, dead: &[u32]) -> Self {
        let mut played = Played::new(me, pes);
        if me == 0 {
            dead.iter().for_each(|number| drop(played.lose(*number)));
            played.announce();
        } else {
            played.hear(0, bulletin(dead));
        }
        assert_eq!(played.dead(), dead);
        played
    }

    fn act<T>(
        &mut self,
        act: impl FnOnce(&mut Membership, &mut dyn FnMut(Pe, Notice)) -> T,
    ) -> (Sent, T) {
        let mut sent = Vec::new();
        let done = act(&mut self.0, &mut |to, notice| sent.push((to.number(), notice)));
        (sent, done)
    }

    fn hear(&mut self, from: u32, notice: Notice) -> Sent {
        self.act(|member, out| member.handle(ZERO, pe(from), notice, out)).0
    }

    fn suspect(&mut self, now: Duration, whom: u32) -> Sent {
        self.act(|member, out| member.suspect(now, pe(whom), out)).0
    }

    fn lose(&mut self, whom: u32) -> Sent {
        self.lose_at(ZERO, whom, Loss::Silent)
    }

    fn lose_at(&mut self, now: Duration, whom: u32, loss: Loss) -> Sent {
        self.act(|member, out| member.lose(now, pe(whom), loss, out)).0
    }

    fn announce(&mut self) -> Sent {
        self.act(|member, out| member.announce(ZERO, out)).0
    }

    fn ask_end(&mut self) -> Sent {
        self.act(|member, out| member.ask_end(ZERO, out)).0
    }

    fn reach(&mut self, whom: u32) {
        self.0.reach(pe(whom), &mut |_, _| unreachable!("nothing is sent"));
    }

    fn tick(&mut self, now: Duration) -> (Sent, Option<Duration>) {
        self.act(|member, out| member.tick(now, out))
    }

    fn dead(&self) -> Vec<u32> {
        self.0.dead().iter().map(|pe| pe.number()).collect()
    }

    fn status(&self) -> MembershipStatus {
        self.0.status()
    }

    /// Checks that this notice from `from` changes nothing and has no answer.
    fn ignores(&mut self, from: u32, notice: &Notice) {
        let before = self.0.clone();
        assert_eq!(self.hear(from, notice.clone()), [], "{notice:?}");
        assert_eq!(self.0, before, "{notice:?}");
    }
}

#[test]
fn an_accusation_makes_the_root_look_and_a_loss_goes_down_the_tree() {
    let mut root = Played::new(0, 8);
    // The observer is the next in the row that is not a party.
    let to_observer = [(4, look(6)), (4, look(3))];
    let asked = [&to_observer[..], &[(0, look(3))]].concat();
    assert_eq!(root.hear(6, accuse(3)), asked);
    assert_eq!(root.hear(6, accuse(3)), [(0, look(3))], "one observer is enough");
    assert!(root.dead().is_empty());
    // The row is 0 1 2 4 5 6 7: the root's children are 1 and 2.
    assert_eq!(root.lose(3), [1, 2, 6, 3].map(|to| (to, bulletin(&[3]))));
    let mut one = Played::new(1, 8);
    assert_eq!(one.hear(0, bulletin(&[3])), [4, 5].map(|to| (to, bulletin(&[3]))));
    assert_eq!(one.hear(2, bulletin(&[3])), [], "nothing new");
    assert_eq!(one.dead(), [3]);
    // The root loses a PE that no other PE has accused. The row is 0 1 4 5 6 7.
    assert_eq!(root.lose(2), [], "it waits for more");
    assert_eq!(root.announce(), [1, 4, 2].map(|to| (to, bulletin_after(1, &[2]))));
    assert_eq!(
        one.hear(0, bulletin_after(1, &[2])),
        [5, 6].map(|to| (to, bulletin_after(1, &[2])))
    );
    assert_eq!(one.dead(), [3, 2]);
}

#[test]
fn the_first_death_is_announced_at_once_and_those_that_follow_it_together() {
    let mut root = Played::new(0, 1000);
    let begin = Duration::from_secs(7);
    assert_eq!(root.lose_at(begin, 9, Loss::Silent).len(), 3, "two children and the dead one");
    root.hear(800, accuse(10));
    for whom in 10..500 {
        assert_eq!(root.lose_at(begin + ANNOUNCE_EVERY / 2, whom, Loss::Silent), []);
    }
    // One that accuses again before that waits, too.
    assert_eq!(root.hear(801, accuse(11)), []);
    root.ignores(801, &known(1));
    assert_eq!(root.hear(802, known(0)), [(802, bulletin(&[9]))], "no more is announced");
    let announce_at = begin + ANNOUNCE_EVERY;
    assert_eq!(root.tick(begin + ANNOUNCE_EVERY / 2), (vec![], Some(announce_at)));
    let (sent, due) = root.tick(announce_at);
    let all: Vec<u32> = (10..500).collect();
    let to_living: Vec<u32> = [1, 2, 800, 801].to_vec();
    let (living, dead) = sent.split_at(4);
    assert_eq!(
        living,
        to_living.iter().map(|to| (*to, bulletin_after(1, &all))).collect::<Vec<_>>()
    );
    let names_it = |(at, dead): (u32, u32)| (dead, bulletin_after(at, &[dead]));
    assert_eq!(dead, (1..).zip(10..500).map(names_it).collect::<Vec<_>>());
    assert_eq!(due, None);
    // After a pause a death is announced at once again.
    assert_eq!(root.lose_at(announce_at + ANNOUNCE_EVERY, 700, Loss::Silent).len(), 3);
    assert_eq!(root.hear(802, known(491)), [(802, bulletin_after(491, &[700]))]);
}

#[test]
fn a_death_travels_once_over_each_edge_of_the_tree() {
    let mut one = Played::new(1, 1000);
    let bytes = |sent: &Sent| {
        let named = |notice: &Notice| match notice {
            Notice::Bulletin { dead, .. } => dead.len(),
            _ => 0,
        };
        sent.iter().map(|(_, notice)| named(notice)).sum::<usize>()
    };
    let named = (0..500).map(|n| bytes(&one.hear(0, bulletin_after(n, &[n + 2])))).sum::<usize>();
    assert_eq!(named, 2 * 500, "not the whole list each time");
}

#[test]
fn no_accusation_alone_makes_a_pe_dead() {
    let mut root = Played::new(0, 6);
    for accuser in 1..5 {
        root.hear(accuser, insist(5));
        root.hear(accuser, insist(5));
    }
    assert_eq!(root.suspect(ZERO, 5), [], "not even the root's own doubts");
    assert!(root.dead().is_empty());
}

#[test]
fn one_end_of_a_broken_path_leaves() {
    let mut root = Played::new(0, 6);
    root.hear(2, accuse(4));
    // What the root saw before it heard the accuser insist does not count.
    root.reach(4);
    assert_eq!(root.hear(2, insist(4)), [(0, look_anew(4))]);
    assert_eq!(root.hear(2, insist(4)), [(0, look(4))], "it looks already");
    root.reach(4);
    let told = root.hear(2, insist(4));
    assert_eq!(told, [1, 2, 4].map(|to| (to, bulletin(&[4]))), "the greater number");
}

#[test]
fn of_two_pes_the_one_that_has_lost_more_leaves() {
    let mut root = Played::new(0, 6);
    root.hear(2, accuse(5));
    root.hear(2, insist(4));
    root.reach(4);
    root.hear(2, insist(4));
    assert_eq!(root.dead(), [2], "it accuses two");
    // Its other accusation is void.
    root.reach(5);
    root.hear(3, insist(5));
    root.reach(5);
    root.hear(3, insist(5));
    assert_eq!(root.dead(), [2, 5]);
}

#[test]
fn an_accusation_that_is_not_repeated_is_forgotten() {
    let mut root = Played::new(0, 6);
    root.hear(2, insist(4));
    root.reach(4);
    assert_eq!(root.0.due(), Some(PATIENCE));
    assert_eq!(root.tick(PATIENCE), (vec![], None));
    assert_eq!(root.hear(2, insist(4)).last(), Some(&(0, look_anew(4))), "it begins anew");
    assert!(root.dead().is_empty());
}

#[test]
fn an_observer_looks_only_for_the_root() {
    let mut three = Played::knowing(3, 6, &[5]);
    assert_eq!(three.hear(0, look(4)), [(3, look(4))]);
    for (from, whom) in [(1, 4), (0, 5), (0, 3), (0, 6)] {
        three.ignores(from, &look(whom));
    }
}

#[test]
fn a_pe_that_missed_a_death_gets_what_it_lacks_as_the_answer() {
    let mut root = Played::knowing(0, 8, &[3, 5]);
    assert_eq!(root.hear(6, accuse(3)), [(6, bulletin(&[3, 5]))]);
    assert_eq!(root.hear(6, accuse(5)), [(6, bulletin_after(1, &[5]))]);
    assert_eq!(root.hear(7, known(1)), [(7, bulletin_after(1, &[5]))]);
    root.ignores(7, &known(2));
    root.ignores(7, &known(9));
    let mut one = Played::knowing(1, 8, &[3, 5]);
    assert_eq!(one.hear(7, known(0)), [(7, bulletin(&[3, 5]))]);
}

#[test]
fn senseless_accusations_have_no_effect() {
    let mut root = Played::new(0, 4);
    for (from, accused) in [(1, 0), (1, 1), (1, 4), (1, u32::MAX), (4, 1), (0, 1)] {
        root.ignores(from, &accuse(accused));
    }
    Played::new(1, 4).ignores(2, &accuse(3));
    assert_eq!(Played::new(1, 4).suspect(ZERO, 1), [], "oneself");
    assert_eq!(Played::new(1, 4).suspect(ZERO, 4), [], "no such PE");
    assert_eq!(Played::knowing(1, 4, &[2]).suspect(ZERO, 2), [], "known already");
}

#[test]
fn senseless_bulletins_have_no_effect() {
    let mut one = Played::knowing(1, 5, &[3]);
    for wrong in [&[][..], &[3], &[2, 3], &[3, 3], &[3, 2, 2], &[3, 0], &[3, 5], &[3, u32::MAX]] {
        one.ignores(0, &bulletin(wrong));
    }
    Played::knowing(0, 5, &[3]).ignores(1, &bulletin(&[3, 2]));
}

#[test]
fn a_bulletin_that_has_overtaken_another_makes_the_pe_ask_for_what_it_lacks() {
    let mut two = Played::new(2, 9);
    two.hear(0, bulletin(&[1]));
    let before = two.0.clone();
    assert_eq!(two.hear(4, bulletin_after(2, &[7])), [(4, known(1))]);
    assert_eq!(two.0, before);
    // The row is 0 2 3 4 6 8.
    let learnt = bulletin_after(1, &[5, 7]);
    assert_eq!(two.hear(4, learnt.clone()), [4, 6].map(|to| (to, learnt.clone())));
    assert_eq!(two.dead(), [1, 5, 7]);
    for late in [bulletin(&[1]), bulletin_after(1, &[5]), bulletin_after(2, &[7])] {
        two.ignores(0, &late);
    }
    // Only what is new is passed on.
    let sent = two.hear(0, bulletin_after(2, &[7, 8]));
    assert_eq!(sent, [4, 6].map(|to| (to, bulletin_after(3, &[8]))));
    for wrong in [bulletin_after(2, &[8, 6]), bulletin_after(9, &[6, 6]), bulletin_after(9, &[0])] {
        two.ignores(0, &wrong);
    }
}

#[test]
fn a_pe_that_a_bulletin_names_leaves_whatever_came_before() {
    let mut four = Played::new(4, 6);
    assert_eq!(four.hear(0, bulletin_after(3, &[5, 4])), []);
    assert_eq!((four.status(), four.dead()), (MembershipStatus::Expelled, vec![]));
}

#[test]
fn the_dead_get_nothing_but_their_place_in_the_list() {
    for me in [0, 1] {
        let mut played = Played::knowing(me, 6, &[5, 4]);
        for notice in [
            accuse(2),
            look(2),
            bulletin(&[5, 4, 2]),
            orphaned(2),
            Notice::Goodbye,
            known(0),
            known(1),
        ] {
            let before = played.0.clone();
            assert_eq!(played.hear(4, notice), [(4, bulletin_after(1, &[4]))]);
            assert_eq!(played.0, before);
        }
    }
}

#[test]
fn a_pe_in_the_list_leaves_without_a_message() {
    let mut four = Played::new(4, 6);
    four.suspect(ZERO, 2);
    assert_eq!(four.hear(0, bulletin(&[4])), []);
    assert_eq!(four.status(), MembershipStatus::Expelled);
    for notice in [accuse(2), bulletin(&[4, 1]), orphaned(2), Notice::Goodbye] {
        four.ignores(1, &notice);
    }
    assert_eq!(four.tick(PATIENCE * 9), (vec![], None));
    assert_eq!(four.suspect(ZERO, 3), []);
}

#[test]
fn an_accusation_is_repeated_until_a_bulletin_names_the_accused_or_contact_is_back() {
    let mut one = Played::new(1, 6);
    let eighth = PATIENCE / 8;
    assert_eq!(one.suspect(ZERO, 3), [(0, accuse(3)), (1, look(0))]);
    assert_eq!(one.suspect(eighth, 3), [], "said already");
    assert_eq!(one.tick(ZERO), (vec![], Some(eighth)));
    assert_eq!(one.tick(eighth), (vec![(0, accuse(3)), (1, look(0))], Some(eighth * 2)));
    assert_eq!(one.lose(3), [(0, insist(3)), (1, look(0))]);
    assert_eq!(one.lose(3), [], "said already");
    one.hear(0, bulletin(&[5]));
    assert_eq!(one.tick(eighth * 2), (vec![(0, insist(3)), (1, look(0))], Some(eighth * 3)));
    one.hear(0, bulletin(&[5, 3]));
    assert_eq!(one.tick(PATIENCE * 2), (vec![], None));
    one.suspect(ZERO, 2);
    one.reach(2);
    assert_eq!(one.tick(PATIENCE), (vec![], None));
    assert_eq!(one.status(), MembershipStatus::Member);
}

#[test]
fn a_pe_that_hears_of_a_lost_root_looks_and_leaves_only_if_it_loses_it() {
    let mut four = Played::knowing(4, 7, &[2]);
    // The row from the herald on is 4 5 6 1 3.
    assert_eq!(four.suspect(ZERO, 0), [(5, orphaned(4)), (6, orphaned(4))]);
    assert_eq!(four.status(), MembershipStatus::Member);
    let mut five = Played::knowing(5, 7, &[2]);
    assert_eq!(five.hear(4, orphaned(4)), [(1, orphaned(4)), (3, orphaned(4)), (5, look(0))]);
    assert_eq!(five.status(), MembershipStatus::Member);
    assert_eq!(five.hear(4, orphaned(4)), [(5, look(0))], "passed on already");
    // It reaches the root and forgets the herald; the next herald makes it look again.
    five.reach(0);
    assert_eq!(five.hear(6, orphaned(6)).last(), Some(&(5, look(0))));
    // It loses the root: it leaves, and passes on the notices of smaller heralds.
    assert_eq!(five.lose(0), [(6, orphaned(5)), (1, orphaned(5))]);
    assert_eq!(five.status(), MembershipStatus::RootLost);
    five.ignores(4, &orphaned(6));
    // The row from 3 on is 3 4 5 6 1.
    assert_eq!(five.hear(3, orphaned(3)), []);
    assert_eq!(five.hear(3, orphaned(1)), [], "the row from 1 on is 1 3 4 5 6");
    assert_eq!(five.status(), MembershipStatus::RootLost);
}

#[test]
fn senseless_heralds_have_no_effect() {
    let mut one = Played::knowing(1, 5, &[3]);
    for herald in [0, 3, 5, u32::MAX] {
        one.ignores(2, &orphaned(herald));
    }
    Played::new(0, 5).ignores(2, &orphaned(2));
}

#[test]
fn a_root_judges_though_others_leave() {
    let mut root = Played::new(0, 5);
    root.ignores(2, &Notice::Goodbye);
    assert_eq!(root.status(), MembershipStatus::Member);
    root.lose(3);
    assert_eq!(root.0.dead(), [pe(3)]);
}

#[test]
fn after_a_goodbye_nothing_is_sent() {
    let mut one = Played::new(1, 5);
    one.suspect(ZERO, 3);
    assert_eq!(one.hear(2, Notice::Goodbye), []);
    assert_eq!(one.status(), MembershipStatus::Over { by: pe(2) });
    assert_eq!(one.tick(PATIENCE * 2), (vec![], None));
    one.ignores(0, &bulletin(&[1]));
}
