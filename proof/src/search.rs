//! Searches all states of a model.

use stateright::{Checker, HasDiscoveries, Model};
use std::fmt::{self, Debug, Display};
use std::hash::Hash;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// The result of a search.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// The number of different states.
    pub states: usize,
    /// The number of steps between them.
    pub steps: usize,
    /// The most steps from the beginning to any state, on the path that the search took.
    pub depth: usize,
    /// How long the search took.
    pub took: Duration,
    /// The properties that do not hold.
    pub broken: Vec<BrokenProperty>,
    /// The properties that should hold in some state and never do: the model is wrong then.
    pub unseen: Vec<&'static str>,
}

/// A property that does not hold.
#[derive(Clone, Debug)]
pub struct BrokenProperty {
    /// The property's name.
    pub property: &'static str,
    /// The steps to a state in which it does not hold.
    pub trace: Vec<String>,
}

impl SearchResult {
    /// Whether all properties hold, and all that should be possible was seen.
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

/// Visits states in the order of their distance from the beginning, until a property does not hold:
/// so the trace is as short as possible.
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
