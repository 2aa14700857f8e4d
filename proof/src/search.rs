//! Searching all states of a model.

use stateright::{Checker, HasDiscoveries, Model};
use std::fmt::{self, Debug, Display};
use std::hash::Hash;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// What a search came to.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// How many different states there are.
    pub states: usize,
    /// How many steps lead from one of them to another.
    pub steps: usize,
    /// The most steps from the beginning to any of them, on the way that was taken.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// What does not hold.
    pub broken: Vec<BrokenProperty>,
    /// What should be possible and is not: then the model is not what it is meant to be.
    pub unseen: Vec<&'static str>,
}

/// A property that does not hold.
#[derive(Clone, Debug)]
pub struct BrokenProperty {
    /// Which.
    pub property: &'static str,
    /// How it comes to that, step by step.
    pub trace: Vec<String>,
}

impl SearchResult {
    /// Whether all is as it must be.
    pub fn is_good(&self) -> bool {
        self.broken.is_empty() && self.unseen.is_empty()
    }

    /// Whether this property was found not to hold.
    pub fn breaks(&self, property: &str) -> bool {
        self.broken.iter().any(|broken| broken.property == property)
    }
}

impl Display for SearchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SearchResult { states, steps, depth, took, .. } = self;
        write!(f, "{states} states, {steps} steps, depth {depth}, {:.1} s", took.as_secs_f64())?;
        for broken in &self.broken {
            write!(f, "\n  broken: {}", broken.property)?;
            broken.trace.iter().try_for_each(|step| write!(f, "\n    {step}"))?;
        }
        self.unseen.iter().try_for_each(|property| write!(f, "\n  never seen: {property}"))
    }
}

/// Visits every state of a model.
pub fn all<M>(model: M) -> SearchResult
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let threads = available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    let checker = model.checker().threads(threads).spawn_dfs().join();
    judge(&checker, start)
}

/// Visits states in the order of their distance from the beginning, until a property is found not
/// to hold: the trace is as short as it can be.
pub fn first_fault<M>(model: M) -> SearchResult
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let start = Instant::now();
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    judge(&checker, start)
}

fn judge<M: Model>(checker: &impl Checker<M>, start: Instant) -> SearchResult
where
    M::State: Clone + Debug + Hash + PartialEq,
    M::Action: Clone + Debug + PartialEq,
{
    let found = checker.discoveries();
    let properties = checker.model().properties();
    let (faults, sights): (Vec<_>, Vec<_>) =
        properties.into_iter().partition(|property| property.expectation.discovery_is_failure());
    let broken = faults.iter().filter_map(|property| {
        let path = found.get(property.name)?.clone();
        let trace = path.into_actions().iter().map(|act| format!("{act:?}")).collect();
        Some(BrokenProperty { property: property.name, trace })
    });
    let unseen = sights.iter().map(|property| property.name);
    SearchResult {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        took: start.elapsed(),
        broken: broken.collect(),
        unseen: unseen.filter(|name| !found.contains_key(name)).collect(),
    }
}
