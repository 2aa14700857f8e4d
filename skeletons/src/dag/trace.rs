//! What a PE notes of the nodes that it computes.

use super::handles::NodeId;
use std::time::Instant;

/// The time in which a node was computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) node: NodeId,
    pub(super) began: Instant,
    pub(super) ended: Instant,
}

impl Span {
    pub(super) fn nanos(&self) -> u64 {
        self.ended.duration_since(self.began).as_nanos() as u64
    }
}

/// What a part has computed.
#[derive(Default)]
pub(super) struct Progress {
    computed: u64,
    spans: Vec<Span>,
}

impl Progress {
    pub(super) fn note(&mut self, span: Span, is_traced: bool) {
        self.computed += 1;
        if is_traced {
            self.spans.push(span);
        }
    }
}
