//! The runs that a PE takes part in.

use super::messages::{Outbox, Told};
use super::part::Part;
use super::runs::{RunId, RunTable};
use futures_util::StreamExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ultramarine_runtime::executor::Context;
use ultramarine_topology::{Distance, Pe};

/// See the [module](self).
#[derive(Default)]
pub(super) struct Runs {
    table: Mutex<RunTable<Arc<Part>>>,
    is_watching: AtomicBool,
}

impl Runs {
    /// Those of this PE.
    pub(super) fn on(cx: &Context) -> Arc<Runs> {
        let runs: Arc<Runs> = cx.pe_local();
        if !runs.is_watching.swap(true, Ordering::Relaxed) {
            drop(cx.independent().spawn(Distance::ZERO, watch_deaths, ()));
        }
        runs
    }

    pub(super) fn table(&self) -> MutexGuard<'_, RunTable<Arc<Part>>> {
        // No user code runs under the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages of another pool have arrived for a run.
    pub(super) fn receive(
        &self,
        cx: &Context,
        id: RunId,
        from: Pe,
        messages: impl IntoIterator<Item = Told>,
    ) {
        let Some(part) = self.join(cx, id) else { return };
        part.receive(id, from, messages.into_iter().collect()).carry_out(cx, &part);
        if cx.dead() > 0 {
            ask_for_invitation(cx, id, &part);
        }
    }

    /// The run that this PE is invited to, or for which something has arrived. `None`: it is over.
    pub(super) fn join(&self, cx: &Context, id: RunId) -> Option<Arc<Part>> {
        if id.name.key.is_some_and(|key| cx.is_dead(key.home)) {
            return None;
        }
        let part = self.table().join(id, Part::early)?;
        part.renew(id).carry_out(cx, &part);
        Some(part)
    }

    /// Has the pool of a run do something, if this PE has a part of it.
    pub(super) fn act(&self, cx: &Context, id: RunId, act: impl FnOnce(&Part) -> Outbox) {
        let part = self.table().get(id.name);
        if let Some(part) = part {
            act(&part).carry_out(cx, &part);
        }
    }

    /// A run is over, unless it has been opened again.
    fn close(&self, id: RunId) {
        let part = self.table().close(id);
        part.into_iter().for_each(|part| part.close());
    }
}

/// If this PE has not been invited to a run: asks those from which something has come. After a
/// death the invitation may be lost.
fn ask_for_invitation(cx: &Context, id: RunId, part: &Part) {
    let senders = part.early_senders();
    for sender in senders.into_iter().filter(|sender| !cx.is_dead(*sender)) {
        let asked = async |cx: Context, (id, from): (RunId, Pe)| {
            let part = Runs::on(&cx).table().get(id.name);
            if let Some((inviter, id)) = part.and_then(|part| part.inviter()) {
                inviter(&cx, from, id);
            }
        };
        // If it cannot be told, the job ends.
        let _ = cx.tell(sender, asked, (id, cx.pe()));
    }
}

/// The number of runs that this PE knows and that are not over: for tests that none is left behind.
#[doc(hidden)]
pub fn runs_known(cx: &Context) -> usize {
    Runs::on(cx).table().all().len()
}

/// A PE that dies may not have passed on that a run is over: of the last ones, this number, it is
/// told again.
const TOLD_AGAIN: usize = 8;

/// Tells the pools of deaths, for as long as there is a job.
async fn watch_deaths(cx: Context, (): ()) {
    let mut deaths = cx.deaths();
    while let Some(dead) = deaths.next().await {
        let runs = Runs::on(&cx);
        let (all, closed) = {
            let table = runs.table();
            (table.all(), table.closed().take(TOLD_AGAIN).collect::<Vec<_>>())
        };
        for (id, part) in all {
            if id.name.key.is_some_and(|key| key.home == dead) {
                runs.close(id);
            } else {
                part.act(|pool| pool.died(dead)).carry_out(&cx, &part);
                ask_for_invitation(&cx, id, &part);
            }
        }
        let is_own = |id: &RunId| id.name.key.map_or(cx.root(), |key| key.home) == cx.pe();
        closed.into_iter().filter(is_own).for_each(|id| tell_closed(&cx, id));
    }
}

/// Tells all PEs that a run is over.
pub(super) fn tell_closed(cx: &Context, id: RunId) {
    let close = async |cx: Context, id: RunId| Runs::on(&cx).close(id);
    // If it cannot be told, the job ends, and all is forgotten.
    let _ = cx.tell_all(close, id);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::graph::{Extent, Graph, RunOptions, Supplied};
    use crate::dag::pool::PoolMessage;
    use crate::dag::runs::RunName;
    use std::collections::BTreeSet;
    use ultramarine::{LaneKind, Options};
    use ultramarine_testkit::{bounded, racks};

    /// A graph in blocks, of which none is ever built.
    fn unbuilt(cx: &Context) -> Graph {
        let options = RunOptions {
            extent: Extent::Stream,
            assignment: super::super::Assignment::default(),
            memory: u64::MAX,
            drops_used: false,
            is_traced: false,
            report_after: None,
        };
        let supplied = Supplied { nodes: BTreeSet::new(), by: cx.pe() };
        let make = Arc::new(|_| unreachable!("no node is asked for"));
        Graph::new(cx, make, options, (Vec::new(), supplied), None)
    }

    /// As after a death that has lost the invitation.
    #[test]
    fn a_pe_that_was_not_invited_is_invited_by_those_whose_messages_have_come() {
        let options = Options::default().places(racks(&[1, 1, 1], 1)).threads(1);
        let options = options.lane(LaneKind::Memory);
        let main = async |cx: Context| {
            let name = RunName { digest: 7, key: None };
            let begun = Runs::on(&cx).table().begin(name, (1, cx.pe()), Part::early);
            let (id, part) = begun;
            let invited = Arc::new(Mutex::new(Vec::new()));
            let inviters = invited.clone();
            let inviter = move |_: &Context, to: Pe, id: RunId| {
                inviters.lock().expect("no thread panics").push((to, id));
            };
            let inviter = (id, Arc::new(inviter) as Arc<_>);
            part.open(&cx, inviter, unbuilt(&cx), None, Vec::new()).carry_out(&cx, &part);
            for pe in [1, 2].map(Pe::new) {
                let ask = async |cx: Context, id: RunId| {
                    let runs = Runs::on(&cx);
                    if cx.pe() == Pe::new(1) {
                        runs.receive(&cx, id, Pe::ROOT, [PoolMessage::Load(1)]);
                    }
                    let part = runs.join(&cx, id).expect("it is not over");
                    ask_for_invitation(&cx, id, &part);
                };
                cx.spawn_at(pe, ask, id).await?;
                // Which comes after what was told.
                cx.spawn_at(
                    pe,
                    async |cx: Context, (): ()| {
                        let come = async |_: Context, (): ()| {};
                        cx.spawn_at(Pe::ROOT, come, ()).await
                    },
                    (),
                )
                .await??;
            }
            let invited = std::mem::take(&mut *invited.lock().expect("no thread panics"));
            assert_eq!(invited, [(Pe::new(1), id)], "from PE 2 nothing has been told");
            Ok(())
        };
        bounded(move || options.run(main)).expect("the job is well");
    }
}
