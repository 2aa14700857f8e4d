//! How a job ended.

use std::time::Duration;

use super::deed::Deed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    Right,
    /// With an error, as it may.
    Ended,
    /// With a wrong result, or an error that this class does not allow; and why.
    Wrong(String),
    Hung,
}

/// How a job ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) judgement: Judgement,
    /// From the launcher's start until all PEs had begun; nothing if they never had.
    pub(crate) started: Option<Duration>,
    /// From then on (or from the launcher's start) until the launcher had ended.
    pub(crate) took: Duration,
    /// The faults that hit it, in order.
    pub(crate) done: Vec<Deed>,
    /// What its processes ran before the program.
    pub(crate) before: Option<String>,
    /// How many PEs were killed.
    pub(crate) killed: u64,
    /// How many PEs were lost that no fault had hit.
    pub(crate) innocents: usize,
    /// Tasks that were given out again, if the program says.
    pub(crate) replicas: Option<u64>,
    /// What should not be there any more.
    pub(crate) left: Vec<String>,
    /// What helps to find out why it failed.
    pub(crate) details: String,
}

impl Ended {
    /// One of which nothing else is known.
    #[cfg(test)]
    pub(crate) fn new(judgement: Judgement, took: Duration, replicas: u64) -> Self {
        Ended {
            judgement,
            started: None,
            took,
            done: Vec::new(),
            before: None,
            killed: 0,
            innocents: 0,
            replicas: Some(replicas),
            left: Vec::new(),
            details: String::new(),
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        let is_bad = matches!(self.judgement, Judgement::Wrong(_) | Judgement::Hung);
        is_bad || self.innocents > 0 || !self.left.is_empty()
    }

    /// How long it may have taken, with this number of PEs and tasks and usually as long as this,
    /// before it is called slow: the survivors do the lost work again, on the cores that they can
    /// use, and a second comes on top.
    pub(crate) fn slow_after(&self, usual: Duration, pes: u32, tasks: u64) -> Duration {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let used = |pes: u32| (pes as usize).clamp(1, cores) as f64;
        let fewer = used(pes) / used(pes.saturating_sub(self.killed as u32));
        let again = self.replicas.unwrap_or(0) as f64 / tasks as f64;
        usual.mul_f64(fewer * (1.0 + again)) + Duration::from_secs(1)
    }

    /// What happened, in a line.
    pub(crate) fn summary(&self) -> String {
        let seconds = self.took.as_secs_f64();
        let mut text = match &self.judgement {
            Judgement::Right => format!("{seconds:.2} s"),
            Judgement::Ended => format!("ended after {seconds:.2} s"),
            Judgement::Wrong(why) => format!("WRONG: {why}"),
            Judgement::Hung => format!("HUNG after {seconds:.0} s"),
        };
        let done = self.done.iter().map(Deed::to_string).chain(self.before.clone());
        let done: Vec<_> = done.collect();
        let parts = [
            (!done.is_empty()).then(|| done.join(" and ")),
            self.replicas.map(|replicas| format!("{replicas} replicas")),
            (self.innocents > 0).then(|| format!("{} INNOCENTS LOST", self.innocents)),
            (!self.left.is_empty()).then(|| format!("{} LEFT BEHIND", self.left.len())),
        ];
        for part in parts.into_iter().flatten() {
            text += ", ";
            text += &part;
        }
        text
    }

    /// What helps to find out what is wrong, if anything is.
    pub(crate) fn print_details(&self) {
        let details = self.has_failed().then_some(&self.details);
        for line in details.into_iter().chain(&self.left).flat_map(|text| text.lines()) {
            println!("       | {line}");
        }
    }
}
