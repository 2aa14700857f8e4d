//! First by hand, then whole jobs with random faults.

mod faults;

use super::*;

const PATIENCE: Duration = Duration::from_secs(2);
const ZERO: Duration = Duration::ZERO;

fn pe(number: u32) -> Pe {
    Pe::new(number)
}

fn pes(numbers: &[u32]) -> Vec<Pe> {
    numbers.iter().copied().map(Pe::new).collect()
}

fn bulletin(dead: &[u32]) -> Notice {
    Notice::Bulletin { dead: pes(dead) }
}

fn accuse(number: u32) -> Notice {
    Notice::Accuse { pe: pe(number) }
}

fn orphaned(herald: u32) -> Notice {
    Notice::Orphaned { herald: pe(herald) }
}

/// One PE, and what it sends.
struct Played(Membership);

type Sent = Vec<(u32, Notice)>;

impl Played {
    fn new(me: u32, pes: u32) -> Self {
        Played(Membership::new(pe(me), pes, PATIENCE))
    }

    /// One that knows of these dead.
    fn knowing(me: u32, pes: u32, dead: &[u32]) -> Self {
        let mut played = Played::new(me, pes);
        if me == 0 {
            dead.iter().for_each(|number| drop(played.suspect(ZERO, *number)));
        } else {
            played.hear(0, bulletin(dead));
        }
        assert_eq!(played.dead(), dead);
        played
    }

    fn hear(&mut self, from: u32, notice: Notice) -> Sent {
        let mut sent = Vec::new();
        self.0.handle(pe(from), notice, &mut |to, notice| sent.push((to.number(), notice)));
        sent
    }

    fn suspect(&mut self, now: Duration, whom: u32) -> Sent {
        let mut sent = Vec::new();
        self.0.suspect(now, pe(whom), &mut |to, notice| sent.push((to.number(), notice)));
        sent
    }

    fn tick(&mut self, now: Duration) -> (Sent, Option<Duration>) {
        let mut sent = Vec::new();
        let next = self.0.tick(now, &mut |to, notice| sent.push((to.number(), notice)));
        (sent, next)
    }

    fn dead(&self) -> Vec<u32> {
        self.0.dead().iter().map(|pe| pe.number()).collect()
    }

    fn standing(&self) -> Standing {
        self.0.standing()
    }

    /// Nothing that it hears from `from` changes it or makes it speak.
    fn ignores(&mut self, from: u32, notice: &Notice) {
        let before = self.0.clone();
        assert_eq!(self.hear(from, notice.clone()), [], "{notice:?}");
        assert_eq!(self.0, before, "{notice:?}");
    }
}

#[test]
fn an_accusation_becomes_a_bulletin_down_the_tree_to_the_accuser_and_to_the_accused() {
    let mut root = Played::new(0, 8);
    // The row is 0 1 2 4 5 6 7: the root's children are 1 and 2.
    let sent = root.hear(6, accuse(3));
    assert_eq!(sent, [1, 2, 3, 6].map(|to| (to, bulletin(&[3]))));
    let mut one = Played::new(1, 8);
    assert_eq!(one.hear(0, bulletin(&[3])), [4, 5].map(|to| (to, bulletin(&[3]))));
    assert_eq!(one.hear(2, bulletin(&[3])), [], "nothing new");
    assert_eq!(one.dead(), [3]);
    // The root suspects somebody itself. The row is 0 1 4 5 6 7.
    assert_eq!(root.suspect(ZERO, 2), [1, 2, 4].map(|to| (to, bulletin(&[3, 2]))));
}

#[test]
fn whoever_missed_a_death_gets_the_list_as_the_answer() {
    let mut root = Played::knowing(0, 8, &[3, 5]);
    assert_eq!(root.hear(6, accuse(3)), [(6, bulletin(&[3, 5]))]);
    assert_eq!(root.hear(7, Notice::Known { dead: 1 }), [(7, bulletin(&[3, 5]))]);
    root.ignores(7, &Notice::Known { dead: 2 });
    root.ignores(7, &Notice::Known { dead: 9 });
    let mut one = Played::knowing(1, 8, &[3, 5]);
    assert_eq!(one.hear(7, Notice::Known { dead: 0 }), [(7, bulletin(&[3, 5]))]);
}

#[test]
fn senseless_accusations_have_no_effect() {
    let mut root = Played::new(0, 4);
    for (from, accused) in [(1, 0), (1, 1), (1, 4), (1, u32::MAX), (4, 1), (0, 1)] {
        root.ignores(from, &accuse(accused));
    }
    Played::new(1, 4).ignores(2, &accuse(3));
    assert_eq!(Played::new(1, 4).suspect(ZERO, 1), [], "oneself");
    assert_eq!(Played::new(1, 4).suspect(ZERO, 4), [], "nobody");
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
fn bulletins_can_overtake_each_other() {
    let mut two = Played::new(2, 6);
    two.hear(0, bulletin(&[1, 5]));
    two.ignores(0, &bulletin(&[1]));
    assert_eq!(two.dead(), [1, 5]);
}

#[test]
fn the_dead_get_nothing_but_the_list() {
    for me in [0, 1] {
        let mut played = Played::knowing(me, 6, &[4]);
        for notice in [
            accuse(2),
            bulletin(&[4, 2]),
            orphaned(2),
            Notice::Goodbye,
            Notice::Known { dead: 0 },
            Notice::Known { dead: 1 },
        ] {
            let before = played.0.clone();
            assert_eq!(played.hear(4, notice), [(4, bulletin(&[4]))]);
            assert_eq!(played.0, before);
        }
    }
}

#[test]
fn whoever_is_in_the_list_leaves_without_a_word() {
    let mut four = Played::new(4, 6);
    four.suspect(ZERO, 2);
    assert_eq!(four.hear(0, bulletin(&[4])), []);
    assert_eq!(four.standing(), Standing::Expelled);
    for notice in [accuse(2), bulletin(&[4, 1]), orphaned(2), Notice::Goodbye] {
        four.ignores(1, &notice);
    }
    assert_eq!(four.tick(PATIENCE * 9), (vec![], None));
    assert_eq!(four.suspect(ZERO, 3), []);
}

#[test]
fn an_accusation_is_repeated_until_a_bulletin_names_the_accused() {
    let mut one = Played::new(1, 6);
    let quarter = PATIENCE / 4;
    assert_eq!(one.suspect(ZERO, 3), [(0, accuse(3))]);
    assert_eq!(one.suspect(quarter, 3), [], "said already");
    assert_eq!(one.tick(ZERO), (vec![], Some(quarter)));
    assert_eq!(one.tick(quarter), (vec![(0, accuse(3))], Some(quarter * 2)));
    one.hear(0, bulletin(&[5]));
    assert_eq!(one.tick(quarter * 2), (vec![(0, accuse(3))], Some(quarter * 3)));
    one.hear(0, bulletin(&[5, 3]));
    assert_eq!(one.tick(PATIENCE * 2), (vec![], None));
    assert_eq!(one.standing(), Standing::Member);
}

#[test]
fn a_root_that_does_not_answer_is_lost() {
    let mut one = Played::new(1, 6);
    one.suspect(ZERO, 3);
    one.tick(PATIENCE.mul_f64(0.999));
    assert_eq!(one.standing(), Standing::Member);
    // The row without the root is 1 2 3 4 5.
    assert_eq!(one.tick(PATIENCE), (vec![(2, orphaned(1)), (3, orphaned(1))], None));
    assert_eq!(one.standing(), Standing::RootLost(Loss::Unanswered(pe(3))));
}

#[test]
fn a_lost_root_is_told_from_its_herald_on() {
    let mut four = Played::knowing(4, 7, &[2]);
    // The row from the herald on is 4 5 6 1 3.
    assert_eq!(four.suspect(ZERO, 0), [(5, orphaned(4)), (6, orphaned(4))]);
    assert_eq!(four.standing(), Standing::RootLost(Loss::Suspected));
    let mut five = Played::knowing(5, 7, &[2]);
    assert_eq!(five.hear(4, orphaned(4)), [(1, orphaned(4)), (3, orphaned(4))]);
    assert_eq!(five.standing(), Standing::RootLost(Loss::Heard(pe(4))));
    five.ignores(4, &orphaned(4));
    five.ignores(6, &orphaned(6));
    // The row from 3 on is 3 4 5 6 1.
    assert_eq!(five.hear(3, orphaned(3)), []);
    assert_eq!(five.hear(3, orphaned(1)), [], "the row from 1 on is 1 3 4 5 6");
    assert_eq!(five.standing(), Standing::RootLost(Loss::Heard(pe(4))));
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
    assert_eq!(root.standing(), Standing::Member);
    root.suspect(ZERO, 3);
    assert_eq!(root.0.dead(), [pe(3)]);
}

#[test]
fn a_goodbye_ends_it_all() {
    let mut one = Played::new(1, 5);
    one.suspect(ZERO, 3);
    assert_eq!(one.hear(2, Notice::Goodbye), []);
    assert_eq!(one.standing(), Standing::Over { by: pe(2) });
    assert_eq!(one.tick(PATIENCE * 2), (vec![], None));
    one.ignores(0, &bulletin(&[1]));
}
