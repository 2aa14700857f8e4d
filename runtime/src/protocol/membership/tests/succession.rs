//! Single PEs that lose their judge, by hand.

use super::*;

fn played(me: u32, pes: u32) -> Played {
    Played(Membership::new(pe(me), pes, PATIENCE).with_succession())
}

fn term(round: u32, judge: u32) -> Term {
    Term { round, judge: pe(judge) }
}

/// A PE asks for votes; these are silent.
fn call(term: Term, silent: &[u32]) -> Notice {
    let dead = silent.iter().map(|number| Death::silent(pe(*number))).collect();
    Notice::Bulletin { of: Heading::of(term, false), after: 0, dead }
}

fn follow(term: Term, dead: u32) -> Notice {
    Notice::Follow { term, dead, count: 1, ends: false }
}

#[test]
fn a_pe_that_has_lost_its_judge_follows_the_one_that_calls() {
    let mut three = played(3, 5);
    assert_eq!(three.hear(1, call(term(1, 1), &[0])).last(), Some(&(3, look_anew(0))), "not yet");
    three.lose(0);
    let sent = three.hear(1, call(term(1, 1), &[0]));
    assert_eq!(sent.last(), Some(&(1, follow(term(1, 1), 1))));
    assert_eq!((three.0.judge(), three.dead()), (pe(1), vec![]), "it is not in office");
    let of = Heading { confirmed: 1, ..Heading::of(term(1, 1), true) };
    three.hear(1, Notice::Bulletin { of, after: 1, dead: vec![] });
    assert_eq!((three.0.heading(), three.dead()), (of, vec![0]));
}

/// That it is in contact with the candidate is no reason not to.
#[test]
fn a_candidate_that_calls_again_is_followed_again() {
    let mut three = played(3, 5);
    three.lose(0);
    three.hear(1, call(term(1, 1), &[0]));
    let sent = three.hear(1, call(term(2, 1), &[0, 2]));
    assert_eq!(sent.last(), Some(&(1, follow(term(2, 1), 2))));
}

#[test]
fn a_pe_tells_of_deaths_that_are_missing_before_it_votes() {
    let mut three = played(3, 5);
    three.hear(0, bulletin(&[4]));
    three.lose(0);
    let declared = Notice::Accuse { pe: pe(4), claim: Claim::Declared(Evidence::Silent) };
    assert_eq!(three.hear(1, call(term(1, 1), &[0])), [(1, declared.clone())], "and no vote");
    assert_eq!(three.tick(PATIENCE / 8).0[0], (1, declared), "it says so again");
    let sent = three.hear(1, call(term(1, 1), &[0, 4]));
    assert_eq!(sent, [(1, follow(term(1, 1), 2))]);
}

/// It has just been in contact with it.
#[test]
fn a_pe_tells_of_a_death_though_that_pe_lives() {
    let mut three = played(3, 5);
    three.hear(0, bulletin(&[4]));
    three.lose(0);
    three.hear(1, call(term(1, 1), &[0]));
    three.0.reach(pe(4), &mut |_, _| {});
    let sent = three.hear(1, call(term(1, 1), &[0]));
    assert!(!sent.contains(&(1, follow(term(1, 1), 1))), "{sent:?}");
}

#[test]
fn a_candidate_leaves_when_another_is_in_contact_with_its_judge() {
    let mut one = played(1, 4);
    let called = one.lose(0);
    assert!(called.contains(&(2, call(term(1, 1), &[0]))), "{called:?}");
    assert_eq!(one.hear(3, Notice::InContact { term: term(0, 0) }), []);
    assert_eq!(one.status(), MembershipStatus::RootLost);
}

/// The contact was before the judge's end. (Another PE had said so when this one had lost the judge
/// before.)
#[test]
fn a_candidate_that_has_seen_its_judges_end_stays() {
    let mut one = played(1, 4);
    one.lose_at(ZERO, 0, Loss::Witnessed);
    assert_eq!(one.hear(3, Notice::InContact { term: term(0, 0) }), []);
    assert_eq!(one.status(), MembershipStatus::Member);
}

/// Others have reached it, which it asked for votes in the term before.
#[test]
fn a_candidate_that_asks_again_is_not_lost_to_itself() {
    let mut one = played(1, 5);
    one.lose(0);
    one.lose_at(ZERO, 0, Loss::Witnessed);
    let asked = one.0.heading();
    assert!(asked.term.round == 2 && !asked.in_office, "{asked:?}");
    one.hear(3, Notice::InContact { term: term(1, 1) });
    assert_eq!(one.status(), MembershipStatus::Member);
}

/// That candidate may call again, in a later term.
#[test]
fn a_pe_stays_if_others_follow_a_candidate_that_it_has_not_lost() {
    let mut four = played(4, 6);
    four.lose(0);
    four.hear(1, call(term(1, 1), &[0]));
    four.lose_at(ZERO, 1, Loss::Witnessed);
    let contact = Notice::InContact { term: term(1, 2) };
    four.hear(5, contact.clone());
    assert_eq!(four.status(), MembershipStatus::Member);
    four.lose(2);
    four.hear(5, contact);
    assert_eq!(four.status(), MembershipStatus::RootLost, "the path is broken");
}

/// A candidate would ask for votes again instead.
#[test]
fn a_pe_leaves_if_a_judge_says_itself_that_it_is_in_office() {
    let mut four = played(4, 6);
    four.lose(0);
    four.hear(1, call(term(1, 1), &[0]));
    four.lose_at(ZERO, 1, Loss::Witnessed);
    four.hear(2, Notice::InContact { term: term(1, 2) });
    assert_eq!(four.status(), MembershipStatus::RootLost);
}

/// The votes that it has are for the list alone: those PEs may not have heard that the job ends.
#[test]
fn a_pe_that_hears_of_the_end_counts_its_children_anew() {
    let gone = Death { pe: pe(7), evidence: Evidence::Witnessed };
    let list = |of, after, dead| Notice::Bulletin { of, after, dead };
    let mut one = played(1, 8);
    one.hear(0, list(Heading::FIRST, 0, vec![gone]));
    for child in [3, 4] {
        one.hear(child, follow(Term::FIRST, 1));
    }
    let ends = Heading { confirmed: 1, ends: true, ..Heading::FIRST };
    let sent = one.hear(0, list(ends, 1, vec![]));
    let vote = |count| Notice::Follow { term: Term::FIRST, dead: 1, count, ends: true };
    assert_eq!(sent.last(), Some(&(0, vote(1))));
    one.hear(3, vote(1));
    assert_eq!(one.hear(4, vote(1)).last(), Some(&(0, vote(3))));
    assert_eq!(one.hear(4, vote(1)), [], "it is known");
}

/// The path from there may be broken, and this PE need not watch it.
#[test]
fn a_pe_that_waits_for_votes_looks_at_those_that_say_nothing() {
    let mut root = played(0, 8);
    root.ask_end();
    root.hear(2, Notice::Follow { term: Term::FIRST, dead: 0, count: 1, ends: true });
    let (sent, _) = root.tick(PATIENCE);
    assert!(sent.contains(&(0, look(1))) && !sent.contains(&(0, look(2))), "{sent:?}");

    let mut one = played(1, 8);
    let ends = Heading { ends: true, ..Heading::FIRST };
    let asked = Notice::Bulletin { of: ends, after: 0, dead: vec![] };
    one.hear(0, asked.clone());
    one.hear(4, Notice::Follow { term: Term::FIRST, dead: 0, count: 1, ends: true });
    let sent = one.hear(0, asked);
    assert!(sent.contains(&(1, look(3))) && !sent.contains(&(1, look(4))), "{sent:?}");
}

/// Else the number of messages would double at each level of the tree.
#[test]
fn a_call_that_is_heard_twice_is_passed_on_once() {
    let asked = call(term(1, 1), &[0]);
    for has_lost_judge in [true, false] {
        let mut two = played(2, 20);
        if has_lost_judge {
            two.lose(0);
        }
        let mut hear = |now| {
            let mut sent = 0;
            let mut count = |to, _| sent += u32::from(to == pe(4));
            two.0.handle(now, pe(1), asked.clone(), &mut count);
            sent
        };
        hear(ZERO);
        hear(ZERO);
        assert_eq!(hear(ZERO), 0, "{has_lost_judge}");
        assert_eq!(hear(PATIENCE / 8), 1, "the candidate asks again: {has_lost_judge}");
    }
}

/// Else each of the others would find that out for itself, when its turn has come.
#[test]
fn a_candidate_that_is_outvoted_at_once_says_so() {
    let mut one = played(1, 5);
    [2, 3].into_iter().for_each(|silent| drop(one.lose(silent)));
    let sent = one.lose(0);
    assert_eq!(one.status(), MembershipStatus::Outvoted);
    let Some((4, list)) = sent.last() else { panic!("{sent:?}") };
    let mut four = played(4, 5);
    four.lose(0);
    four.hear(1, list.clone());
    assert_eq!(four.status(), MembershipStatus::Outvoted);
}

/// It was out of office for a while, or asks before it is in office again.
#[test]
fn a_judge_that_calls_again_still_asks_for_the_end() {
    let orphan = Notice::Orphaned { herald: pe(2), term: term(1, 1), claim: Claim::Lost };
    let mut root = played(0, 3);
    root.ask_end();
    let contact = Notice::InContact { term: Term::FIRST };
    assert_eq!(root.hear(2, orphan.clone()).last(), Some(&(2, contact)), "the other lives");
    root.lose(1);
    let sent = root.hear(2, orphan);
    let of = root.0.heading();
    assert!(of.ends && !of.in_office && of.term.round == 1, "{sent:?}");
    let vote = |ends| Notice::Follow { term: of.term, dead: 1, count: 1, ends };
    root.hear(2, vote(false));
    assert!(!root.0.heading().in_office, "that vote is not for the end");
    root.hear(2, vote(true));
    assert!(root.0.heading().in_office && root.0.is_end_agreed());
}

/// It would say of its own judge what another has seen of a candidate.
#[test]
fn a_pe_that_leaves_passes_on_no_news_of_another_term() {
    let mut three = played(3, 9);
    three.lose(0);
    three.hear(4, Notice::InContact { term: term(0, 0) });
    assert_eq!(three.status(), MembershipStatus::RootLost);
    let news = |term| Notice::Orphaned { herald: pe(2), term, claim: Claim::Gone };
    assert_eq!(three.hear(2, news(term(1, 1))), []);
    assert_ne!(three.hear(2, news(term(0, 0))), [], "of its own term it does");
}

/// One has it from a former judge's list, the other had lost the one before.
#[test]
fn two_that_are_dead_for_each_other_do_not_talk_for_ever() {
    let mut one = played(1, 9);
    one.hear(0, bulletin(&[2]));
    one.lose(0);
    assert_eq!((one.0.judge(), one.dead()), (pe(1), vec![2]), "it asks for votes");
    let mut two = played(2, 5);
    [0, 1].into_iter().for_each(|pe| drop(two.lose(pe)));
    let of = two.0.heading();
    two.hear(3, Notice::Follow { term: of.term, dead: 2, count: 2, ends: false });
    assert!(two.0.heading().in_office && two.dead().contains(&1), "it is the judge");
    let mut said = two.hear(1, one.0.heartbeat());
    for (from, to) in [(2, &mut one), (1, &mut two)] {
        said = said.into_iter().flat_map(|(_, notice)| to.hear(from, notice)).collect();
    }
    assert_eq!(said, []);
    assert_eq!(one.status(), MembershipStatus::Expelled, "the other is in office");
    assert_eq!(two.status(), MembershipStatus::Member);
}

#[test]
fn a_candidate_needs_more_than_half_and_a_judge_half() {
    let mut one = played(1, 4);
    one.lose(0);
    assert_eq!(one.hear(3, follow(term(1, 1), 1)), [], "a grandchild");
    assert!(!one.0.heading().in_office);
    let vote = Notice::Follow { term: term(1, 1), dead: 1, count: 2, ends: false };
    one.hear(2, vote);
    assert!(one.0.heading().in_office, "three of four");
    // Of three it may lose one.
    one.lose(2);
    assert_eq!(one.status(), MembershipStatus::Member);
    one.lose(3);
    assert_eq!(one.status(), MembershipStatus::Outvoted);
}

/// The list of the dead is as long as its confirmed part.
fn is_confirmed(played: &Played) -> bool {
    played.0.heading().confirmed as usize == played.0.list.len()
}

fn votes(term: Term, dead: u32, count: u32) -> Notice {
    Notice::Follow { term, dead, count, ends: false }
}

#[test]
fn half_of_the_votes_make_no_judge() {
    for (pes, votes_of_others, is_judge) in
        [(4, 1, false), (4, 2, true), (5, 1, false), (5, 2, true)]
    {
        let mut one = played(1, pes);
        one.lose(0);
        one.hear(2, votes(term(1, 1), 1, votes_of_others));
        assert_eq!(one.0.heading().in_office, is_judge, "{votes_of_others} + 1 of {pes}");
    }
}

#[test]
fn a_judge_in_office_needs_half_of_the_votes() {
    for (pes, votes_of_others, is_enough) in
        [(4, 0, false), (4, 1, true), (5, 1, false), (5, 2, true)]
    {
        let mut root = played(0, pes);
        root.lose(pes - 1);
        root.hear(1, votes(Term::FIRST, 1, votes_of_others));
        assert_eq!(is_confirmed(&root), is_enough, "{votes_of_others} + 1 of {pes}");
        let evidence = root.0.dead.evidence(pe(pes - 1));
        assert_eq!(evidence == Evidence::Confirmed, is_enough, "{evidence:?}");
    }
}

#[test]
fn a_judge_goes_on_with_half_of_the_pes_and_a_candidate_does_not() {
    let mut root = played(0, 4);
    [3, 2].into_iter().for_each(|silent| drop(root.lose(silent)));
    assert_eq!(root.status(), MembershipStatus::Member, "two of four");
    root.lose(1);
    assert_eq!(root.status(), MembershipStatus::Outvoted);
    let mut one = played(1, 4);
    one.lose(0);
    assert_eq!(one.status(), MembershipStatus::Member, "it has lost one of four");
    one.lose(3);
    assert_eq!(one.status(), MembershipStatus::Outvoted, "two of four");
}

/// Of the two that have a vote one would be enough; but the other has followed a shorter list.
#[test]
fn votes_count_only_for_a_list_that_was_told() {
    let mut root = played(0, 3);
    root.lose(2);
    root.hear(1, votes(Term::FIRST, 1, 1));
    assert!(is_confirmed(&root), "two of three");
    assert!(!root.0.has_to_announce());
    assert_eq!(root.lose(1), [], "it waits for more");
    assert!(root.0.has_to_announce());
    assert_eq!((root.0.list.len(), root.0.heading().confirmed), (2, 1));
    root.ask_end();
    assert!(!is_confirmed(&root) && !root.0.is_end_agreed());
    root.announce();
    assert!(is_confirmed(&root) && root.0.is_end_agreed());
}

#[test]
fn a_candidate_that_hears_a_greater_one_call_later_calls_again_and_does_nothing_else() {
    let mut one = played(1, 6);
    one.lose(0);
    let sent = one.hear(2, call(term(2, 2), &[0]));
    assert_eq!(one.0.heading().term, term(2, 1));
    let is_own = |notice: &Notice| match notice {
        Notice::Bulletin { of, .. } => of.term == term(2, 1),
        _ => false,
    };
    assert!(sent.len() > 1 && sent.iter().all(|(_, notice)| is_own(notice)), "{sent:?}");
}

/// It was the judge of those that have it in their lists.
#[test]
fn a_death_that_a_judge_had_declared_is_believed_at_once() {
    let mut root = played(0, 6);
    let declared = Claim::Declared(Evidence::Witnessed);
    let sent = root.hear(2, Notice::Accuse { pe: pe(4), claim: declared });
    assert_eq!(root.dead(), [4]);
    let is_list = |(_, notice): &(u32, Notice)| matches!(notice, Notice::Bulletin { .. });
    assert!(!sent.is_empty() && sent.iter().all(is_list), "{sent:?}");
}

#[test]
fn a_judge_that_takes_office_accuses_none_before_others() {
    let mut one = played(1, 4);
    one.suspect(ZERO, 3);
    one.lose(0);
    one.hear(2, votes(term(1, 1), 1, 2));
    assert!(one.0.heading().in_office);
    let (sent, _) = one.tick(PATIENCE);
    let is_accusation = |(_, notice): &(u32, Notice)| matches!(notice, Notice::Accuse { .. });
    assert!(!sent.iter().any(is_accusation), "{sent:?}");
}

/// With better evidence it needs fewer votes.
#[test]
fn a_candidate_that_sees_the_end_of_a_silent_pe_calls_again() {
    for (loss, round) in [(Loss::Silent, 1), (Loss::Witnessed, 2)] {
        let mut one = played(1, 6);
        one.lose(0);
        one.lose_at(ZERO, 0, loss);
        assert_eq!(one.0.heading().term, term(round, 1), "{loss:?}");
    }
}

/// Of a whole rack that is silent none answers, so as many others are looked at.
#[test]
fn a_pe_looks_at_as_many_others_as_have_been_silent() {
    let looks = |loss, declared: &[u32]| {
        let mut sixty = played(60, 64);
        (1..=20).for_each(|lost| _ = sixty.lose_at(ZERO, lost, loss));
        sixty.hear(0, bulletin(declared));
        let sent = sixty.lose(0).into_iter();
        let looks = sent.filter_map(|(_, notice)| match notice {
            Notice::Look { pe, .. } => Some(pe.number()),
            _ => None,
        });
        looks.collect::<Vec<_>>()
    };
    let many: Vec<u32> = (21..42).collect();
    assert_eq!(looks(Loss::Silent, &[]), many);
    assert_eq!(looks(Loss::Witnessed, &[]), many[..16]);
    let declared: Vec<u32> = (1..=20).collect();
    assert_eq!(looks(Loss::Silent, &declared), many[..16], "these are known to be dead");
}

#[test]
fn a_pe_that_has_lost_its_judge_asks_the_next_when_that_is_due_and_not_before() {
    let mut three = played(3, 9);
    assert_eq!(three.tick(PATIENCE * 9), (vec![], None), "it has lost none");
    assert!(three.lose(0).ends_with(&[(3, look(1)), (3, look(2))]));
    let due = PATIENCE / 2;
    assert_eq!(three.tick(due.saturating_sub(Duration::from_nanos(1))), (vec![], Some(due)));
    let lost = Notice::Orphaned { herald: pe(3), term: Term::FIRST, claim: Claim::Lost };
    let (sent, next) = three.tick(due);
    assert_eq!(sent, [(1, lost.clone()), (3, look(1))]);
    assert_eq!(three.tick(due), (vec![], next));
    three.lose(1);
    let (sent, _) = three.tick(next.expect("it goes on"));
    assert!(sent.ends_with(&[(2, lost), (3, look(2))]), "{sent:?}");
}

#[test]
fn a_candidate_asks_again_when_that_is_due_and_not_before() {
    let mut one = played(1, 4);
    one.lose(0);
    let (sent, due) = one.tick(ZERO);
    assert_eq!(sent, []);
    let (sent, _) = one.tick(due.expect("it waits for votes"));
    let asked = Notice::Bulletin { of: one.0.heading(), after: 1, dead: vec![] };
    assert_eq!(sent[..2], [2, 3].map(|child| (child, asked.clone())));
    assert_eq!(sent[2..], [(1, look(2)), (1, look(3))]);
}
