//! What pictures of a graph show of its nodes. It must never know how a picture is written.

use super::{Span, Trace, TracedGraph};
use crate::dag::block::Block;
use std::collections::{BTreeMap, BTreeSet};

/// Why a picture of a graph cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The graph was built in blocks.
    #[error(
        "a graph that is built in blocks has no picture, since no PE has all of its edges; it has \
         a timeline"
    )]
    InBlocks,
    /// The graph has too many nodes.
    #[error(
        "the graph has {nodes} nodes, and an SVG picture shows at most {most}; for larger graphs \
         there is DOT, the language of Graphviz"
    )]
    TooLarge {
        /// The number of nodes.
        nodes: u32,
        /// The most that are drawn.
        most: u32,
    },
}

/// A node as a picture shows it.
pub(super) struct PictureNode<'a> {
    pub(super) label: &'a str,
    /// Each once.
    pub(super) inputs: Vec<u32>,
    pub(super) is_wanted: bool,
    pub(super) is_needed: bool,
    /// The last time that it was computed.
    pub(super) ran: Option<&'a Span>,
    /// How often it was computed.
    pub(super) times: u32,
}

/// What a PE has done.
#[derive(Default)]
pub(super) struct Share {
    pub(super) nodes: u32,
    pub(super) busy_ns: u64,
}

impl Trace {
    pub(super) fn graph(&self) -> Result<&TracedGraph, PictureError> {
        self.graph.as_ref().ok_or(PictureError::InBlocks)
    }

    /// The nodes of a graph, with their labels by kind.
    pub(super) fn nodes<'a>(
        &'a self,
        graph: &TracedGraph,
        labels: &'a [String],
    ) -> Vec<PictureNode<'a>> {
        let TracedGraph { block, wanted } = graph;
        let is_needed = block.needed(wanted, &BTreeSet::new());
        let node = |(index, is_needed): (u32, bool)| {
            let inputs: BTreeSet<u32> = block.inputs(index).map(|input| input.index).collect();
            PictureNode {
                label: &labels[block.kind_of(index) as usize],
                inputs: inputs.into_iter().collect(),
                is_wanted: false,
                is_needed,
                ran: None,
                times: 0,
            }
        };
        let mut nodes: Vec<_> = (0..).zip(is_needed).map(node).collect();
        wanted.iter().for_each(|node| nodes[node.index as usize].is_wanted = true);
        for span in &self.spans {
            let node = &mut nodes[span.node.index as usize];
            node.times += 1;
            if node.ran.is_none_or(|ran| ran.end_ns <= span.end_ns) {
                node.ran = Some(span);
            }
        }
        nodes
    }

    /// What each PE has done.
    pub(super) fn shares(&self) -> BTreeMap<u32, Share> {
        let mut shares: BTreeMap<u32, Share> = BTreeMap::new();
        for span in &self.spans {
            let share = shares.entry(span.pe.number()).or_default();
            share.nodes += 1;
            share.busy_ns += span.end_ns - span.start_ns;
        }
        shares
    }

    /// When the last node was computed.
    pub(super) fn took_ns(&self) -> u64 {
        self.spans.iter().map(|span| span.end_ns).max().unwrap_or(0)
    }
}

impl PictureNode<'_> {
    /// What is known of the node, in lines.
    pub(super) fn details(&self, index: u32) -> String {
        let PictureNode { label, is_wanted, times, .. } = self;
        let wanted = if *is_wanted { ", wanted" } else { "" };
        let how = match self.ran {
            None if self.is_needed => "not computed, or by a PE that died".to_owned(),
            None => "not needed".to_owned(),
            Some(Span { pe, thread, start_ns, end_ns, .. }) => {
                let [from, to, took] = [*start_ns, *end_ns, end_ns - start_ns].map(duration);
                let again =
                    if *times > 1 { format!("\ncomputed {times} times") } else { String::new() };
                format!("{pe}, thread {thread}\n{from} to {to}: {took}{again}")
            }
        };
        format!("{label}, node {index}{wanted}\n{how}")
    }
}

/// A label for each kind of a block: the short name of its function, with a number if several have
/// the same, as all closures of a function have.
pub(super) fn labels(block: &Block) -> Vec<String> {
    let shorts: Vec<String> = block.kind_names().map(short).collect();
    let number = |(place, name): (usize, &String)| {
        let of = |names: &[String]| names.iter().filter(|other| *other == name).count();
        match of(&shorts) {
            1 => name.clone(),
            _ => format!("{name} {}", of(&shorts[..=place])),
        }
    };
    shorts.iter().enumerate().map(number).collect()
}

/// The last part of a function's path, without its type arguments; that of the function around a
/// closure.
pub(super) fn short(name: &str) -> String {
    let (mut depth, mut before) = (0_u32, ' ');
    let is_outside = |c: &char| {
        let (here, is_arrow) = (depth, before == '-');
        before = *c;
        match c {
            '<' => depth += 1,
            '>' if !is_arrow => depth = depth.saturating_sub(1),
            _ => return here == 0,
        }
        false
    };
    let path: String = name.chars().filter(is_outside).collect();
    let last = path.rsplit("::").find(|part| !part.is_empty() && *part != "{{closure}}");
    last.unwrap_or(name).to_owned()
}

/// A time, made to be read.
pub(super) fn duration(ns: u64) -> String {
    format!("{:.3?}", std::time::Duration::from_nanos(ns))
}

/// The colours of the PEs, lines and areas: those of Okabe and Ito (*Color Universal Design*, 2008)
/// without yellow and black. All people can tell them apart.
const COLOURS: [(&str, &str); 6] = [
    ("#0072b2", "#8cc0dc"),
    ("#e69f00", "#f4d48c"),
    ("#009e73", "#8cd3c0"),
    ("#cc79a7", "#e8c3d7"),
    ("#d55e00", "#ecb78c"),
    ("#56b4e9", "#b3ddf5"),
];

/// The colours of a PE. From the seventh on, PEs share them.
pub(super) fn colours(pe: u32) -> (&'static str, &'static str) {
    COLOURS[pe as usize % COLOURS.len()]
}

/// The number of colours.
pub(super) const COLOURS_LEN: usize = COLOURS.len();
