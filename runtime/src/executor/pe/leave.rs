//! How a PE leaves the job.

use crate::executor::engine::liveness::Liveness;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::Pe;

/// After the first goodbye, `MPI_Finalize` gets this long in the other processes. It has ended in
/// all of them at about that time (with a load of 150 on each core, some seconds later). Otherwise
/// a process has died, unnoticed by those that wait in it.
const GOODBYES_WITHIN: Duration = Duration::from_secs(15);

/// How a PE left the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// All PEs took leave of each other, and all messages arrived.
    Orderly,
    /// A PE has died, and the others left as soon as they could. Collective operations are not
    /// possible any more.
    AfterFailures,
    /// A PE did not answer in time (`shutdown_grace`), or this one could not go on. Collective
    /// operations are not possible any more.
    Hasty,
}

/// What is left when a PE has left the job. Drop it without a [`goodbye`](Self::goodbye), and the
/// others consider this PE dead.
#[must_use = "the others take this PE for dead unless it says goodbye"]
pub struct Parting {
    /// How it left.
    pub leave: Leave,
    pub(crate) liveness: Option<Arc<Liveness>>,
}

impl Parting {
    /// Whether the other PEs can be expected to take part in a collective operation, after an
    /// orderly leave: no PE is known to have died, and the first goodbye was less than 15 s ago. (A
    /// PE says goodbye only after the collective operation. Some may not hear of a death in the
    /// very last moment.)
    pub fn are_others_there(&self) -> bool {
        self.liveness.as_ref().is_none_or(|liveness| liveness.are_others_there(GOODBYES_WITHIN))
    }

    /// The PE that ran the main task in the end, as far as this one has heard.
    pub fn root(&self) -> Pe {
        self.liveness.as_ref().map_or(Pe::ROOT, |liveness| liveness.root())
    }

    /// Whether all other PEs have died, as far as this one has heard.
    pub fn is_alone(&self) -> bool {
        self.liveness.as_ref().is_none_or(|liveness| liveness.is_alone())
    }

    /// Waits until this time has passed since this PE last heard of a death.
    pub fn stay_after_deaths(&self, time: Duration) {
        let last_death = || self.liveness.as_ref()?.last_death();
        while let Some(last) = last_death()
            && last.elapsed() < time
        {
            std::thread::sleep(time.saturating_sub(last.elapsed()));
        }
    }

    /// Tells the PEs that watch this one that it leaves in order, and ends its own failure
    /// detector.
    pub fn goodbye(mut self) {
        self.liveness.take().into_iter().for_each(|liveness| liveness.end(true));
    }
}

/// Without a goodbye: the others will consider this PE dead.
impl Drop for Parting {
    fn drop(&mut self) {
        self.liveness.take().into_iter().for_each(|liveness| liveness.end(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detector::FailureEvent;

    fn parting(events: Vec<FailureEvent>) -> Parting {
        let liveness = Liveness::new(3);
        events.into_iter().for_each(|event| _ = liveness.note(event));
        Parting { leave: Leave::Orderly, liveness: Some(Arc::new(liveness)) }
    }

    #[test]
    fn a_pe_that_leaves_says_what_it_has_heard_of_the_others() {
        let dead = |pes: &[u32]| FailureEvent::Dead(pes.iter().copied().map(Pe::new).collect());
        let said = |parting: &Parting| {
            (parting.are_others_there(), parting.root().number(), parting.is_alone())
        };
        assert_eq!(said(&Parting { leave: Leave::Orderly, liveness: None }), (true, 0, true));
        assert_eq!(said(&parting(vec![])), (true, 0, false));
        let succession = FailureEvent::Succession { judge: Pe::new(1) };
        assert_eq!(said(&parting(vec![dead(&[0]), succession])), (false, 1, false));
        assert_eq!(said(&parting(vec![dead(&[0, 1])])), (false, 0, true));
    }

    #[test]
    fn it_stays_for_a_while_after_a_death_only() {
        let while_ms = Duration::from_millis(50);
        let dead = parting(vec![FailureEvent::Dead(vec![Pe::new(1)])]);
        dead.stay_after_deaths(while_ms);
        let heard = dead.liveness.as_ref().and_then(|liveness| liveness.last_death());
        assert!(heard.expect("of one").elapsed() >= while_ms);
        parting(vec![]).stay_after_deaths(Duration::MAX);
    }
}
