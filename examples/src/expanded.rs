//! The number of nodes that a search expands.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;
use ultramarine::Result;
use ultramarine::prelude::*;

/// A counter in a cache line of its own: a node may take only some 40 ns.
#[repr(align(128))]
struct Counter(AtomicU64);

/// The number of nodes whose children were asked for in this process, by threads.
static EXPANDED: [Counter; 64] = [const { Counter(AtomicU64::new(0)) }; 64];

/// Tells this process from those of other hosts.
static PROCESS: LazyLock<(u32, SystemTime)> =
    LazyLock::new(|| (std::process::id(), SystemTime::now()));

/// The number of threads that have counted.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static COUNTER: &'static AtomicU64 = {
        &EXPANDED[THREADS.fetch_add(1, Ordering::Relaxed) % EXPANDED.len()].0
    };
}

/// Counts a node whose children are asked for.
#[inline]
pub(crate) fn note_expanded() {
    COUNTER.with(|counter| counter.fetch_add(1, Ordering::Relaxed));
}

/// The number of nodes that were expanded on all PEs that are alive.
///
/// # Errors
///
/// A PE cannot say it.
pub(crate) async fn expanded(cx: &Context) -> Result<u64> {
    // PEs that are threads of one process count together.
    let count = async |_, ()| -> ((u32, SystemTime), u64) {
        let counts = EXPANDED.iter().map(|counter| counter.0.load(Ordering::Relaxed));
        (*PROCESS, counts.sum())
    };
    let living = (0..cx.pes()).map(Pe::new).filter(|pe| !cx.is_dead(*pe));
    let asked: Vec<_> = living.map(|pe| cx.supervised().spawn_at(pe, count, ())).collect();
    let mut expanded = HashMap::new();
    for count in asked {
        let (process, count) = count.await?;
        expanded.insert(process, count);
    }
    Ok(expanded.into_values().sum())
}
