//! Whole jobs: PEs crash, suspect each other rightly and wrongly, and their messages are lost,
//! doubled and delivered in any order. Then the faults end, and all PEs must agree. (In the
//! testkit's world messages keep their order, and only those of the dead are lost.)

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A message in flight arrives; `which` chooses it. With `keeps` a copy stays in flight.
    Deliver { which: usize, keeps: bool },
    /// A message in flight is lost.
    Lose(usize),
    /// A PE suspects another.
    Suspect { by: u32, whom: u32 },
    /// A PE takes another for lost.
    Forsake { by: u32, whom: u32 },
    /// A PE has contact with another.
    Reach { by: u32, whom: u32 },
    /// A PE crashes, the root only if the case allows it.
    Crash(u32),
    /// Time goes on by an eighth of the patience, for one PE.
    Tick(u32),
    /// Two PEs exchange heartbeats.
    Heartbeats(u32, u32),
    /// The main task ends, if this PE is the judge.
    AskEnd(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pe = 0..9_u32;
    let step = prop_oneof![
        12 => (any::<usize>(), prop::bool::weighted(0.1))
            .prop_map(|(which, keeps)| Step::Deliver { which, keeps }),
        1 => any::<usize>().prop_map(Step::Lose),
        2 => (pe.clone(), pe.clone()).prop_map(|(by, whom)| Step::Suspect { by, whom }),
        1 => (pe.clone(), pe.clone()).prop_map(|(by, whom)| Step::Forsake { by, whom }),
        2 => (pe.clone(), pe.clone()).prop_map(|(by, whom)| Step::Reach { by, whom }),
        1 => pe.clone().prop_map(Step::Crash),
        1 => pe.clone().prop_map(Step::Tick),
        1 => (pe.clone(), pe.clone()).prop_map(|(one, other)| Step::Heartbeats(one, other)),
        1 => pe.prop_map(Step::AskEnd),
    ];
    prop::collection::vec(step, 0..120)
}

#[derive(Default)]
struct Job {
    machines: Vec<Membership>,
    clocks: Vec<Duration>,
    crashed: BTreeSet<Pe>,
    /// The sender, the receiver and the notice.
    in_flight: Vec<(Pe, Pe, Notice)>,
    /// The PE that is to look at another, and that other PE.
    looks: BTreeSet<(Pe, Pe)>,
    /// The PEs whose result has counted, but for those that have crashed.
    results: BTreeSet<Pe>,
}

impl Job {
    fn new(size: u32) -> Self {
        Job::of((0..size).map(|me| Membership::new(pe(me), size, PATIENCE)).collect())
    }

    fn of(machines: Vec<Membership>) -> Self {
        Job { clocks: vec![ZERO; machines.len()], machines, ..Job::default() }
    }

    /// Lets one PE do something now, unless it has crashed, and checks what must always hold.
    fn with(
        &mut self,
        who: Pe,
        act: impl FnOnce(&mut Membership, Duration, &mut dyn FnMut(Pe, Notice)),
    ) {
        if self.crashed.contains(&who) {
            return;
        }
        let machine = &mut self.machines[who.index()];
        let before = machine.clone();
        act(machine, self.clocks[who.index()], &mut |to, notice| match notice {
            Notice::Look { pe, .. } if to == who => drop(self.looks.insert((who, pe))),
            notice => self.in_flight.push((who, to, notice)),
        });
        assert!(machine.dead().starts_with(before.dead()), "{who} forgets");
        if before.status() != MembershipStatus::Member {
            assert_eq!(machine.status(), before.status());
        }
        if machine.succession.is_some() {
            return self.check_results(who);
        }
        let is_expelled = machine.status() == MembershipStatus::Expelled;
        assert!(is_expelled || !machine.is_dead(who));
        assert!(!machine.is_dead(Pe::ROOT));
        let machine = &self.machines[who.index()];
        assert!(self.machines[0].dead().starts_with(machine.dead()), "{who} makes up a death");
        assert!(!is_expelled || self.machines[0].is_dead(who), "{who} is not dead");
    }

    /// If the result of this PE counts, no other PE has had one that did, unless it has crashed.
    fn check_results(&mut self, who: Pe) {
        let machine = &self.machines[who.index()];
        if machine.heading().ends && machine.is_judge() && machine.is_end_agreed() {
            self.results.insert(who);
        }
        assert!(self.results.len() < 2, "several results count: {:?}", self.results);
    }

    /// Time goes on for one PE.
    fn wait(&mut self, who: Pe, time: Duration) {
        self.clocks[who.index()] += time;
        self.with(who, |machine, now, out| _ = machine.tick(now, out));
    }

    fn deliver(&mut self, which: usize, keeps: bool) {
        if self.in_flight.is_empty() {
            return;
        }
        let which = which % self.in_flight.len();
        let (from, to, notice) = self.in_flight[which].clone();
        if !keeps {
            self.in_flight.swap_remove(which);
        }
        self.with(to, |machine, now, out| machine.handle(now, from, notice, out));
    }

    /// Delivers all that is in flight and all that follows from it.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.in_flight.is_empty() {
                return;
            }
            let last = self.in_flight.len() - 1;
            self.deliver(last, false);
        }
        panic!("they never stop talking: {:?}", self.in_flight);
    }

    fn heartbeats(&mut self, one: Pe, other: Pe) {
        for (from, to) in [(one, other), (other, one)] {
            let said = self.machines[from.index()].heartbeat();
            let speaks = self.machines[from.index()].status() == MembershipStatus::Member;
            if speaks && !self.crashed.contains(&from) {
                self.in_flight.push((from, to, said));
            }
        }
    }

    fn step(&mut self, step: Step, root_may_crash: bool) {
        let size = self.machines.len() as u32;
        let of = |number| pe(number % size);
        match step {
            Step::Deliver { which, keeps } => self.deliver(which, keeps),
            Step::Lose(which) => {
                if !self.in_flight.is_empty() {
                    self.in_flight.swap_remove(which % self.in_flight.len());
                }
            }
            Step::Suspect { by, whom } => {
                self.with(of(by), |machine, now, out| machine.suspect(now, of(whom), out));
            }
            Step::Forsake { by, whom } => {
                // The root does not crash, so no PE loses it.
                if of(whom) != Pe::ROOT || root_may_crash {
                    let loss = Loss::Silent;
                    self.with(of(by), |machine, now, out| machine.lose(now, of(whom), loss, out));
                }
            }
            Step::Reach { by, whom } => {
                self.with(of(by), |machine, _, out| machine.reach(of(whom), out));
            }
            Step::Crash(who) => {
                if of(who) != Pe::ROOT || root_may_crash {
                    self.crashed.insert(of(who));
                    self.results.remove(&of(who));
                }
            }
            Step::Tick(who) => self.wait(of(who), PATIENCE / 8),
            Step::AskEnd(who) => self.with(of(who), |machine, now, out| machine.ask_end(now, out)),
            Step::Heartbeats(one, other) => {
                if of(one) != of(other) {
                    self.heartbeats(of(one), of(other));
                }
            }
        }
    }

    /// Whether a PE is gone: a PE that has left or is expelled has closed its port.
    fn is_gone(&self, whom: Pe) -> bool {
        self.crashed.contains(&whom)
            || self.machines[whom.index()].status() != MembershipStatus::Member
    }

    /// A PE looks at another, and reaches or loses it.
    fn see(&mut self, by: Pe, whom: Pe) {
        let (is_gone, has_crashed) = (self.is_gone(whom), self.crashed.contains(&whom));
        let loss = if has_crashed { Loss::Witnessed } else { Loss::Refused };
        self.with(by, |machine, now, out| {
            if is_gone { machine.lose(now, whom, loss, out) } else { machine.reach(whom, out) }
        });
    }

    /// Does the detectors' work for a while. Each PE watches the next in the ring that it sees, and
    /// hears from it or loses it. It looks where it is told to, and repeats its accusations.
    fn calm(&mut self) {
        let size = self.machines.len();
        for _ in 0..2 * size + 2 {
            for me in (0..size as u32).map(pe) {
                let machine = &self.machines[me.index()];
                let living = machine.watched();
                let Some(index) = living.index_of(me) else { continue };
                if machine.status() != MembershipStatus::Member {
                    continue;
                }
                let next = living.at((index + 1) % living.count()).expect("within");
                if next != me {
                    self.see(me, next);
                }
                if next != me && !self.is_gone(next) {
                    self.heartbeats(me, next);
                }
                for (by, whom) in std::mem::take(&mut self.looks) {
                    self.see(by, whom);
                }
                self.settle();
                self.wait(me, PATIENCE / 4);
                self.settle();
            }
        }
    }

    fn survivors(&self) -> impl Iterator<Item = &Membership> {
        let lives = |m: &&Membership| !self.crashed.contains(&m.me);
        self.machines.iter().filter(lives)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn all_that_live_agree_in_the_end(size in 1..9_u32, steps in steps()) {
        let mut job = Job::new(size);
        steps.into_iter().for_each(|step| job.step(step, false));
        job.in_flight.clear();
        job.calm();
        let list = job.machines[0].dead().to_vec();
        for gone in &job.crashed {
            prop_assert!(list.contains(gone), "{gone} crashed, and no PE noticed");
        }
        for machine in job.survivors() {
            let is_expelled = list.contains(&machine.me);
            let expected =
                if is_expelled { MembershipStatus::Expelled } else { MembershipStatus::Member };
            prop_assert_eq!(machine.status(), expected, "{}", machine.me);
            prop_assert!(machine.status() != MembershipStatus::Member || machine.dead() == list);
        }
    }

    #[test]
    fn no_pe_stays_without_the_root(size in 2..9_u32, steps in steps()) {
        let mut job = Job::new(size);
        steps.into_iter().for_each(|step| job.step(step, true));
        job.crashed.insert(Pe::ROOT);
        job.calm();
        for machine in job.survivors() {
            prop_assert_ne!(machine.status(), MembershipStatus::Member, "{}", machine.me);
        }
    }

    /// PEs lose others wrongly, too, so some leave; perhaps all.
    #[test]
    fn those_that_stay_agree_on_a_judge(size in 2..9_u32, steps in steps()) {
        let machine = |me| Membership::new(pe(me), size, PATIENCE).with_succession();
        let mut job = Job::of((0..size).map(machine).collect());
        steps.into_iter().for_each(|step| job.step(step, true));
        job.in_flight.clear();
        (0..3).for_each(|_| job.calm());
        let gone = (0..size).map(pe).filter(|pe| job.is_gone(*pe)).collect::<BTreeSet<_>>();
        let first = job.survivors().find(|machine| !gone.contains(&machine.me));
        let judge = first.map(|machine| machine.me);
        for machine in job.survivors().filter(|machine| !gone.contains(&machine.me)) {
            prop_assert_eq!(Some(machine.judge()), judge, "{}", machine.me);
            prop_assert!(machine.heading().in_office, "{}", machine.me);
            prop_assert_eq!(&machine.dead().iter().copied().collect::<BTreeSet<_>>(), &gone);
        }
    }

    #[test]
    fn the_trees_alone_tell_every_pe(
        size in 2..9_u32,
        order in prop::collection::vec(any::<usize>(), 60),
        heralds in prop::collection::btree_set(1..9_u32, 1..4),
    ) {
        // No message is lost and no PE dies: the news reaches all PEs without heartbeats, in any
        // order of delivery.
        let mut job = Job::new(size);
        job.with(Pe::ROOT, |root, now, out| root.lose(now, pe(size - 1), Loss::Silent, out));
        order.iter().for_each(|which| job.deliver(*which, false));
        job.settle();
        let told = job.machines.iter().filter(|machine| machine.dead() == [pe(size - 1)]).count();
        prop_assert_eq!(told, size as usize);

        let mut job = Job::new(size);
        for herald in &heralds {
            let herald = pe(1 + herald % (size - 1));
            job.with(herald, |machine, now, out| machine.suspect(now, Pe::ROOT, out));
        }
        order.iter().for_each(|which| job.deliver(*which, false));
        job.settle();
        for me in 1..size {
            let is_told = heralds.contains(&me) || job.looks.contains(&(pe(me), Pe::ROOT));
            prop_assert!(is_told || heralds.iter().any(|herald| 1 + herald % (size - 1) == me));
        }
    }
}
