//! The quick proofs: each model in the sizes that are checked within minutes, random jobs, and the
//! model in Promela.

mod membership;
mod spin;
mod supersteps;
mod supervision;
mod tables;

use stateright::Model;
use std::fmt::Debug;
use std::hash::Hash;
use ultramarine_proof::search::all;

/// Searches those of these cases whose names are meant.
#[track_caller]
fn hold<M>(cases: Vec<(&'static str, M)>, those: impl Fn(&str) -> bool)
where
    M: Model<State: Clone + Debug + Hash + PartialEq + Send + Sync> + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let mut searched = 0;
    for (name, case) in cases.into_iter().filter(|(name, _)| those(name)) {
        let search = all(case);
        println!("{name}: {search}");
        assert!(search.is_good(), "{name}: {search}");
        searched += 1;
    }
    assert!(searched > 0, "there is no such case");
}
