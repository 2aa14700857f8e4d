//! How a superstep ends: the members meet.

use super::meeting::Meeting;
use super::message::{Facts, MessageOf};
use super::span::Spans;
use super::{Effect, Kind, Letter, Machine, Next, Phase, Seat, Trouble, ViewId, When};
use std::collections::BTreeMap;
use std::mem::take;
use ultramarine_topology::Pe;

/// What ranks do in a superstep.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Doing<K: Kind> {
    pub(super) is_any_sent: bool,
    pub(super) letters: BTreeMap<Pe, Vec<Letter<K::Content>>>,
    pub(super) collected: Vec<Collected<K::Operation, K::Value>>,
}

/// An operation, with the first rank that took part, and the values of the ranks.
type Collected<O, V> = (u32, O, BTreeMap<u32, V>);

impl<K: Kind> Doing<K> {
    pub(super) fn new() -> Self {
        Doing { is_any_sent: false, letters: BTreeMap::new(), collected: Vec::new() }
    }
}

impl<K: Kind> Machine<K> {
    /// All that this PE has sent has come, or will have before the meeting ends.
    pub(super) fn meet(&mut self) {
        let nexts = || self.seats.values().filter_map(|seat| seat.next.as_ref());
        let own = self.view.own();
        let collected = self.doing.collected.iter_mut().map(|(_, operation, values)| {
            let values = values.iter().map(|(rank, value)| (*rank, value.clone())).collect();
            let spans = Spans::of_own(own.clone(), values, &mut |l, r| K::combine(operation, l, r));
            (K::digest(operation), spans)
        });
        let collected = collected.collect();
        let facts = Facts {
            is_any_awake: nexts().any(|next| matches!(next, Next::Awake(_))),
            is_any_sent: take(&mut self.doing.is_any_sent),
            have_all_ended: nexts().all(|next| matches!(next, Next::Ended(_))),
            is_save_due: self.view.is_first() && self.is_saved_next(),
            is_weighing_due: self.view.is_first() && self.reports.is_weighing_due,
            extremes: self.extremes(),
            kept: self.progress.kept,
            stored: self.progress.stored,
            settled: self.progress.settled(self.saving),
            is_too_long: self.reports.is_too_long,
            cost: self.reports.cost,
            collected,
            are_mixed: false,
        };
        self.phase = Phase::Meeting(Meeting::begin(facts));
        self.go_on_meeting();
    }

    /// Whether the next superstep begins with a checkpoint, as far as this PE knows.
    fn is_saved_next(&self) -> bool {
        let begun = self.saving_now.map(|(key, _)| key);
        let is_due = match self.saving.when {
            When::Never => false,
            When::Told => self.reports.is_due,
            When::Every(every) => {
                let last = begun.map_or(0, |key| key.superstep);
                self.superstep + 1 - last.min(self.superstep + 1) >= every
            }
        };
        is_due && begun == self.progress.all_settled
    }

    pub(super) fn go_on_meeting(&mut self) {
        let Phase::Meeting(meeting) = &mut self.phase else { return };
        let (effects, id, superstep) = (&mut self.effects, self.view.id, self.superstep);
        let say = |to, round, facts| {
            effects.push(Effect::Send(to, (id, MessageOf::Round { superstep, round, facts })));
        };
        let doing = &self.doing;
        let merge = |own: &mut Facts<K::Value>, heard| own.add(heard, doing);
        if let Some(facts) = meeting.go_on(&self.view, superstep, &mut self.early, merge, say) {
            self.end_superstep(facts);
        }
    }

    /// All have met.
    fn end_superstep(&mut self, mut facts: Facts<K::Value>) {
        self.seats.values_mut().for_each(|seat| seat.results.clear());
        if facts.are_mixed {
            return self.fail(Trouble::Mixed { ranks: None, superstep: self.superstep });
        }
        for ((_, operation, values), (_, mut spans)) in
            take(&mut self.doing.collected).into_iter().zip(take(&mut facts.collected))
        {
            let combine = &mut |left: &_, right: &_| K::combine(&operation, left, right);
            let is_scan = K::is_scan(&operation);
            let all = (!is_scan).then(|| spans.all(self.ranks, combine));
            let took_part: Vec<u32> = values.keys().copied().collect();
            if is_scan {
                spans.divide(self.view.own(), values);
            }
            for rank in took_part {
                let result = if K::has_result(&operation, rank) {
                    all.clone().unwrap_or_else(|| spans.before(rank, combine))
                } else {
                    None
                };
                self.seats.entry(rank).and_modify(|seat| seat.results.push(result));
            }
        }
        self.superstep += 1;
        self.cost_of_all = facts.cost;
        self.hear_of_checkpoints(&facts);
        // What was sent to ranks that have ended is an error where they are.
        if facts.have_all_ended && !facts.is_any_sent {
            self.phase = Phase::Ended;
            return self.tell_outputs();
        }
        let is_quiet = !facts.is_any_awake && !facts.is_any_sent;
        if std::mem::replace(&mut self.is_quiet, is_quiet) && is_quiet {
            return self.fail(Trouble::Stalled { superstep: self.superstep - 1 });
        }
        if !is_quiet && self.weigh_if_due(&facts) {
            return;
        }
        // What is restored is not known to be quiet.
        self.compute(facts.is_save_due && !is_quiet);
    }

    pub(super) fn tell_outputs(&mut self) {
        let output = |(rank, seat): (&u32, &Seat<K>)| match &seat.next {
            Some(Next::Ended(output)) => Some((*rank, output.clone())),
            _ => None,
        };
        let outputs = self.seats.iter().filter_map(output).collect();
        if self.home == self.me {
            self.hear_outputs(self.view.id, outputs);
        } else {
            self.send(self.home, MessageOf::Outputs(outputs));
        }
    }

    /// A program may come to other outputs after a death: those of a run are of one view.
    pub(super) fn hear_outputs(&mut self, view: ViewId, outputs: BTreeMap<u32, K::Output>) {
        if view > self.outputs.0 {
            self.outputs = (view, BTreeMap::new());
        }
        if view == self.outputs.0 {
            self.outputs.1.extend(outputs);
        }
        if self.outputs.1.len() == self.ranks as usize && self.home == self.me {
            self.effects.push(Effect::End(self.outputs.1.clone()));
        }
    }
}

impl<V: Clone> Facts<V> {
    /// Adds what others have said. (Values are combined only as far as this PE knows how.)
    fn add<K: Kind<Value = V>>(&mut self, heard: Facts<V>, doing: &Doing<K>) {
        self.is_any_awake |= heard.is_any_awake;
        self.is_any_sent |= heard.is_any_sent;
        self.have_all_ended &= heard.have_all_ended;
        self.is_save_due |= heard.is_save_due;
        self.is_weighing_due |= heard.is_weighing_due;
        self.extremes.add(heard.extremes);
        self.kept = self.kept.min(heard.kept);
        self.stored = self.stored.min(heard.stored);
        self.settled = self.settled.min(heard.settled);
        self.is_too_long |= heard.is_too_long;
        self.cost = self.cost.max(heard.cost);
        self.are_mixed |= heard.are_mixed;
        for (number, (digest, heard)) in heard.collected.into_iter().enumerate() {
            if number == self.collected.len() {
                self.collected.push((digest, Spans::default()));
            }
            let (known, own) = &mut self.collected[number];
            self.are_mixed |= *known != digest;
            own.add(heard);
            if let Some((_, operation, _)) = doing.collected.get(number)
                && !K::is_scan(operation)
            {
                own.condense(&mut |left, right| K::combine(operation, left, right));
            }
        }
    }
}
