//! What a part notes of the nodes that it computes.

use crate::dag::handles::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant, SystemTime};

/// How many spans a PE sends at a time.
pub(super) const PAGE_SPANS: usize = 1 << 16;

/// What a part has computed when, on which of its threads.
pub(in crate::dag) struct Notes {
    opened: Instant,
    /// The same moment by the clock on the wall, which all PEs have in common.
    opened_at: Duration,
    spans: Vec<NotedSpan>,
    /// In the order in which they computed their first nodes.
    threads: Vec<ThreadId>,
}

struct NotedSpan {
    name: &'static str,
    span: PageSpan,
}

/// When a node was computed, in nanoseconds since the part was opened.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct PageSpan {
    pub(super) node: NodeId,
    pub(super) thread: u32,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

/// Some of the spans that a PE has noted, in order.
#[derive(Serialize, Deserialize)]
pub(in crate::dag) struct Page {
    /// When the part was opened, in nanoseconds since 1970.
    pub(super) opened_ns: u64,
    pub(super) names: Vec<String>,
    /// Each with the place of its name.
    pub(super) spans: Vec<(u32, PageSpan)>,
}

impl Notes {
    /// Those of a part that is opened now.
    pub(in crate::dag) fn begin() -> Self {
        let opened_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let (opened, opened_at) = (Instant::now(), opened_at.unwrap_or_default());
        Notes { opened, opened_at, spans: Vec::new(), threads: Vec::new() }
    }

    /// This thread has computed a node.
    pub(in crate::dag) fn note(&mut self, node: NodeId, name: &'static str, time: Range<Instant>) {
        let me = thread::current().id();
        let known = self.threads.iter().position(|known| *known == me);
        let place = known.unwrap_or_else(|| {
            self.threads.push(me);
            self.threads.len() - 1
        });
        let [start_ns, end_ns] = [time.start, time.end]
            .map(|moment| moment.saturating_duration_since(self.opened).as_nanos() as u64);
        let span = PageSpan { node, thread: place as u32, start_ns, end_ns };
        self.spans.push(NotedSpan { name, span });
    }

    /// The spans from this one on, as many as go together.
    pub(in crate::dag) fn page(&self, from: usize) -> Page {
        let mut places: HashMap<&str, u32> = HashMap::new();
        let mut names = Vec::new();
        let spans =
            self.spans.iter().skip(from).take(PAGE_SPANS).map(|NotedSpan { name, span }| {
                let place = *places.entry(name).or_insert_with(|| {
                    names.push((*name).to_owned());
                    names.len() as u32 - 1
                });
                (place, *span)
            });
        let spans = spans.collect();
        Page { opened_ns: self.opened_at.as_nanos() as u64, names, spans }
    }
}
