//! How far a run is: each PE tells that of the program now and then how many nodes it has computed.

use super::part::RunPart;
use futures_util::future::{Either, select};
use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::time::Duration;
use ultramarine_group::{GroupId, Groups, Member, Name};
use ultramarine_runtime::executor::Context;
use ultramarine_topology::Pe;

/// What a part knows of the number of computed nodes.
#[derive(Default)]
pub(super) struct Counts {
    /// How many were computed here.
    computed: u64,
    /// How many of them the PE of the program has been told of.
    reported: u64,
    /// Whether a report is under way.
    is_reporting: bool,
    /// On the PE of the program: what the others have told it.
    of_pes: BTreeMap<Pe, u64>,
}

impl Counts {
    pub(super) fn note_computed(&mut self) {
        self.computed += 1;
    }

    /// Another PE wants to know.
    pub(super) fn renew(&mut self) {
        self.reported = 0;
    }

    /// Whether a report is to be begun now.
    pub(super) fn begin_report(&mut self) -> bool {
        let is_due = self.computed > self.reported && !self.is_reporting;
        self.is_reporting |= is_due;
        is_due
    }

    /// What is reported now.
    pub(super) fn report(&mut self) -> u64 {
        (self.reported, self.is_reporting) = (self.computed, false);
        self.computed
    }

    pub(super) fn note_report(&mut self, from: Pe, computed: u64) {
        self.of_pes.insert(from, computed);
    }

    /// What these PEs have computed, as far as is known.
    pub(super) fn of(&self, pes: impl Fn(Pe) -> bool) -> u64 {
        self.of_pes.iter().filter(|(pe, _)| pes(**pe)).map(|(_, computed)| computed).sum()
    }
}

/// Has this PE report after this time. Until then more may be computed.
pub(super) fn report_later(cx: &Context, part: (Name, u64), after: Duration) {
    let report = async |cx: Context, ((name, number), after): ((Name, u64), Duration)| {
        cx.sleep(after).await;
        let run = Groups::<RunPart>::on(&cx).get(name);
        let report = run.and_then(|run| run.with(|id, part| part.report(id, number)));
        let Some((id, computed)) = report.flatten() else { return };
        let note = |cx: &Context, (id, from, computed): (GroupId, Pe, u64)| {
            let run = Groups::<RunPart>::on(cx).get(id.name);
            run.and_then(|run| run.with(|now, part| part.note_report((id, now), from, computed)));
        };
        // If it cannot be told, the job ends.
        let _ = cx.tell_fn(id.opening.by, note, (id, cx.pe(), computed));
    };
    // A message comes before the nodes that wait; a task would not.
    let _ = cx.tell(cx.pe(), report, (part, after));
}

impl RunPart {
    /// The run, and how many nodes of this graph the PE has computed.
    fn report(&mut self, id: GroupId, number: u64) -> Option<(GroupId, u64)> {
        (self.number == number).then(|| (id, self.counts.report()))
    }

    /// A PE says how many nodes it has computed in an opening of the run, which may be over now.
    fn note_report(&mut self, (told, now): (GroupId, GroupId), from: Pe, computed: u64) {
        if told == now {
            self.counts.note_report(from, computed);
        }
    }
}

/// What a program wants to hear of its run.
pub(super) struct Watch {
    every: Duration,
    f: Box<dyn FnMut(u64, Option<u64>) + Send>,
    /// The number of nodes that are to be computed, if it is known.
    pub(super) of: Option<u64>,
    /// What the program has heard last.
    done: u64,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("every", &self.every).finish_non_exhaustive()
    }
}

impl Watch {
    pub(super) fn new(every: Duration, f: impl FnMut(u64, Option<u64>) + Send + 'static) -> Self {
        Watch { every, f: Box::new(f), of: None, done: 0 }
    }

    /// Awaits `work`, and tells the program meanwhile how far it is.
    pub(super) async fn beside<T, E>(
        mut self,
        cx: &Context,
        run: &Member<RunPart>,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        // What the dead had is lost, or the others have it.
        let computed =
            || run.with(|_, part| part.counts.of(|pe| !cx.is_dead(pe))).unwrap_or_default();
        let mut work = pin!(work);
        loop {
            match select(work.as_mut(), pin!(cx.sleep(self.every))).await {
                Either::Left((result, _)) => {
                    if result.is_ok() {
                        self.show(self.of.unwrap_or_else(computed));
                    }
                    return result;
                }
                Either::Right(_) => self.show(computed()),
            }
        }
    }

    /// A node that was computed again counts twice.
    fn show(&mut self, computed: u64) {
        let done = computed.min(self.of.unwrap_or(u64::MAX));
        if done > self.done {
            self.done = done;
            (self.f)(done, self.of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn one_report_at_a_time_is_begun_while_there_is_news() {
        let mut counts = Counts::default();
        assert!(!counts.begin_report(), "nothing is computed");
        counts.note_computed();
        assert_eq!([(); 2].map(|()| counts.begin_report()), [true, false], "it is under way");
        counts.note_computed();
        assert_eq!(counts.report(), 2);
        assert!(!counts.begin_report(), "it is known");
        counts.renew();
        assert!(counts.begin_report(), "not to the other PE");
        assert_eq!(counts.report(), 2);
        let mut one = Counts::default();
        one.note_computed();
        assert!(one.begin_report());
        one.report();
        one.renew();
        assert!(one.begin_report(), "however little it is");
    }

    #[test]
    fn the_last_reports_of_those_that_count_are_added() {
        let mut counts = Counts::default();
        for (pe, computed) in [(1, 5), (2, 7), (1, 6), (3, 100)] {
            counts.note_report(Pe::new(pe), computed);
        }
        assert_eq!(counts.of(|pe| pe != Pe::new(3)), 13);
    }

    #[test]
    fn the_program_hears_only_of_more_and_of_no_more_than_there_is() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tellers = told.clone();
        let tell = move |done, of| tellers.lock().unwrap().push((done, of));
        let mut watch = Watch::new(Duration::ZERO, tell);
        [0, 3, 3, 2, 4].into_iter().for_each(|computed| watch.show(computed));
        watch.of = Some(6);
        [5, 9].into_iter().for_each(|computed| watch.show(computed));
        assert_eq!(*told.lock().unwrap(), [(3, None), (4, None), (5, Some(6)), (6, Some(6))]);
    }
}
