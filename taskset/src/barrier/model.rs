//! All interleavings of a few members, within Loom's model of weak memory.

use loom::{model::Builder, sync::Arc, thread};

use super::*;

/// The barrier, and how many times each member has come to it, as the members tell each other
/// through nothing but the barrier.
#[derive(Default)]
struct World {
    barrier: Barrier<3>,
    came: [AtomicU64; 3],
}

impl World {
    fn join(&self, slot: usize) -> Member {
        self.barrier.join(slot, 1).expect("the slot is free")
    }

    fn come(&self, member: &Member) {
        let came = &self.came[member.slot];
        came.store(came.load(Relaxed) + 1, Relaxed);
    }

    fn wait(&self, member: &mut Member) -> Result<Outcome, Removed> {
        self.barrier.wait(member, |_| thread::yield_now())
    }

    /// Waits for a release, whatever changes. Returns whether this member was the leader.
    fn meet(&self, member: &mut Member) -> bool {
        loop {
            match self.wait(member).expect("no one removes this member") {
                Outcome::Released { leader } => return leader,
                Outcome::Changed => {}
            }
        }
    }

    fn assert_came(&self, members: &[usize], times: u64) {
        for member in members {
            assert!(self.came[*member].load(Relaxed) >= times, "{member} has not come");
        }
    }
}

fn check(preemptions_max: usize, program: impl Fn(Arc<World>) + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(move || program(Arc::default()));
}

/// Runs `member` on a thread of its own.
fn spawn<T: 'static>(
    world: &Arc<World>,
    member: impl FnOnce(&World) -> T + 'static,
) -> thread::JoinHandle<T> {
    let world = Arc::clone(world);
    thread::spawn(move || member(&world))
}

#[test]
fn two_meet_twice_and_one_leads() {
    check(3, |world| {
        let [mut anna, mut bert] = [0, 1].map(|slot| world.join(slot));
        let meet_twice = |world: &World, member: &mut Member| {
            [1, 2].map(|times| {
                world.come(member);
                let is_leader = world.meet(member);
                world.assert_came(&[0, 1], times);
                is_leader
            })
        };
        let bert = spawn(&world, move |world| meet_twice(world, &mut bert));
        let anna = meet_twice(&world, &mut anna);
        let bert = bert.join().unwrap();
        assert!(anna.iter().zip(bert).all(|(anna, bert)| *anna != bert), "one leads each time");
    });
}

#[test]
fn one_that_waits_learns_that_another_leaves() {
    check(3, |world| {
        let [mut anna, bert] = [0, 1].map(|slot| world.join(slot));
        assert_eq!(world.wait(&mut anna), Ok(Outcome::Changed));
        let bert = spawn(&world, move |world| world.barrier.leave(bert));
        assert!(world.meet(&mut anna));
        bert.join().unwrap();
    });
}

/// Anna may meet alone before Bert has joined, and not after.
#[test]
fn no_release_passes_one_that_has_joined() {
    check(3, |world| {
        let mut anna = world.join(0);
        let bert = spawn(&world, |world| {
            let mut bert = world.join(1);
            let releases = world.barrier.releases();
            world.come(&bert);
            world.meet(&mut bert);
            releases
        });
        world.meet(&mut anna);
        let has_bert_come = world.came[1].load(Relaxed) == 1;
        world.barrier.leave(anna);
        let joined_before = bert.join().unwrap() == 0;
        assert!(has_bert_come || !joined_before);
    });
}

/// Carl has been counted, and dies. Both others notice, and remove him at once.
#[test]
fn a_member_that_died_counted_counts_no_more() {
    check(3, |world| {
        let [mut anna, mut bert, mut carl] = [0, 1, 2].map(|slot| world.join(slot));
        assert!(world.barrier.arrive(&mut carl).is_ok());
        let meet = |world: &World, member: &mut Member| {
            let is_first = world.barrier.remove(2, 1);
            world.come(member);
            world.meet(member);
            world.assert_came(&[0, 1], 1);
            is_first
        };
        let bert = spawn(&world, move |world| meet(world, &mut bert));
        let is_anna_first = meet(&world, &mut anna);
        assert_ne!(is_anna_first, bert.join().unwrap(), "one removes him");
    });
}

/// Anna removes Carl, who lives and comes to wait. Bert never comes.
#[test]
fn a_member_removed_by_mistake_releases_no_one() {
    check(3, |world| {
        let [mut anna, _bert, mut carl] = [0, 1, 2].map(|slot| world.join(slot));
        let carl = spawn(&world, move |world| {
            let mut outcomes = std::iter::repeat_with(|| world.wait(&mut carl));
            let last = outcomes.find(|outcome| *outcome != Ok(Outcome::Changed));
            assert_eq!(last, Some(Err(Removed { slot: 2, incarnation: 1 })));
        });
        assert!(world.barrier.remove(2, 1));
        while let Arrival::Over(outcome) = world.barrier.arrive(&mut anna).unwrap() {
            assert_eq!(outcome, Outcome::Changed);
        }
        carl.join().unwrap();
        assert_eq!(world.barrier.releases(), 0);
    });
}

/// Bert dies in `leave`, after the first of its steps.
#[test]
fn one_that_waits_finishes_what_another_began_that_left() {
    check(3, |world| {
        let [mut anna, _bert] = [0, 1].map(|slot| world.join(slot));
        let anna = spawn(&world, move |world| world.meet(&mut anna));
        let [active, leaving] =
            [State::Active, State::Leaving].map(|state| Slot { incarnation: 1, state });
        assert!(active.become_in(&world.barrier.slots[1], leaving));
        assert!(anna.join().unwrap());
    });
}
