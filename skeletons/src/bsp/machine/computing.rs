//! What happens in a superstep before all meet: ranks are saved and take their steps, and what they
//! have sent goes on its way.

use super::checkpoints::{Copy, Key};
use super::message::{Effect, Job, Letter, MessageOf, Work};
use super::{Kind, Machine, Next, Phase, Seat, Step, Trouble};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

impl<K: Kind> Machine<K> {
    /// A rank has been saved. Without a state it takes its step next; otherwise it is back.
    pub fn saved(&mut self, work: Work, rank: u32, saved: K::Saved, back: Option<K::State>) {
        if work.ticket != self.ticket {
            self.waste.states.extend(back);
            return;
        }
        let moves_awake =
            || self.moving.is_some() && self.seats.get(&rank).is_some_and(|seat| !seat.is_asleep);
        let is_awake = back.is_none() || moves_awake();
        self.keep_own(rank, Copy::Live(saved, is_awake));
        if let Some(state) = back {
            self.is_back(rank, Next::Asleep(state));
        }
    }

    /// A rank has taken its step.
    pub fn stepped(&mut self, work: Work, rank: u32, step: Step<K>) {
        if work.ticket != self.ticket {
            self.waste.steps.push(step);
            return;
        }
        let Step { next, letters, offered, took } = step;
        if let Some(seat) = self.seats.get_mut(&rank) {
            seat.load += took.as_nanos() as u64;
        }
        self.doing.is_any_sent |= !letters.is_empty();
        for letter in letters {
            let to = self.view.owner(letter.to);
            self.doing.letters.entry(to).or_default().push(letter);
        }
        for (number, (operation, value)) in offered.into_iter().enumerate() {
            match self.doing.collected.get_mut(number) {
                Some((first, known, _)) if *known != operation => {
                    let ranks = Some([*first, rank]);
                    return self.fail(Trouble::Mixed { ranks, superstep: self.superstep });
                }
                Some((.., values)) => _ = values.insert(rank, value),
                None => {
                    self.doing.collected.push((rank, operation, BTreeMap::from([(rank, value)])));
                }
            }
        }
        self.is_back(rank, next);
    }

    /// Begins a superstep: what was sent in the one before is delivered.
    pub(super) fn compute(&mut self, is_saved: bool) {
        if let Some(mut letters) =
            self.superstep.checked_sub(1).and_then(|before| self.arrived.remove(&before))
        {
            letters.sort_by_key(|letter| letter.from);
            for letter in letters {
                match self.seats.get_mut(&letter.to) {
                    Some(Seat { next: Some(Next::Ended(_)), .. }) => {
                        let Letter { from, to, .. } = letter;
                        let superstep = self.superstep;
                        return self.fail(Trouble::ToEnded { from, to, superstep });
                    }
                    Some(seat) => seat.letters.push(letter),
                    None => debug_assert!(false, "it was sent to the PE of the rank"),
                }
            }
        }
        self.ticket += 1;
        let (superstep, is_quiet) = (self.superstep, self.is_quiet);
        let work = Work { ticket: self.ticket, superstep, is_saved, is_quiet };
        if is_saved {
            let key = Key { generation: self.generation, superstep };
            self.saving_now = Some((key, self.seats.len()));
        }
        let mut jobs = Vec::new();
        let mut ended = Vec::new();
        for (&rank, seat) in &mut self.seats {
            let is_stepping = match &seat.next {
                Some(Next::Awake(_)) => true,
                Some(Next::Asleep(_)) => is_quiet || !seat.letters.is_empty(),
                Some(Next::Ended(output)) => {
                    ended.push((rank, output.clone()));
                    false
                }
                None => false,
            };
            if !is_stepping && !is_saved {
                continue;
            }
            seat.is_asleep = matches!(seat.next, Some(Next::Asleep(_)));
            let is_stepping = is_stepping && self.moving.is_none();
            if let Some(Next::Awake(state) | Next::Asleep(state)) =
                seat.next.take_if(|next| !matches!(next, Next::Ended(_)))
            {
                let (letters, results) = (take(&mut seat.letters), take(&mut seat.results));
                jobs.push(Job { rank, state, letters, results, is_stepping });
            }
        }
        if is_saved {
            ended.into_iter().for_each(|(rank, output)| self.keep_own(rank, Copy::Ended(output)));
            if self.seats.is_empty() {
                self.copies_are_made();
            }
        }
        self.phase = Phase::Computing(jobs.len());
        if jobs.is_empty() {
            self.all_are_back();
        } else {
            self.effects.push(Effect::Run(work, jobs));
        }
    }

    /// A rank is back from its job.
    fn is_back(&mut self, rank: u32, next: Next<K::State, K::Output>) {
        if let Some(seat) = self.seats.get_mut(&rank) {
            seat.next = Some(next);
        }
        if let Phase::Computing(left) = &mut self.phase {
            *left -= 1;
            if *left == 0 {
                self.all_are_back();
            }
        }
    }

    fn all_are_back(&mut self) {
        if !self.move_if_saved() {
            self.post();
        }
    }

    /// All steps are taken.
    fn post(&mut self) {
        let (superstep, mut missing) = (self.superstep, BTreeSet::new());
        for (to, mut letters) in take(&mut self.doing.letters) {
            // Each sender's in order; the senders may have ended in any.
            letters.sort_by_key(|letter| letter.from);
            if to == self.me {
                self.arrived.entry(superstep).or_default().append(&mut letters);
                continue;
            }
            let is_to_be_acknowledged = !self.view.hears_in_meeting(to);
            if is_to_be_acknowledged {
                missing.insert(to);
            }
            self.send(to, MessageOf::Batch { superstep, letters, is_to_be_acknowledged });
        }
        let is_complete = missing.is_empty();
        self.phase = Phase::Posting(missing);
        if is_complete {
            self.meet();
        }
    }
}
