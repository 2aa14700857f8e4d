//! What pictures of a graph show of its nodes. It must never know how a picture is written.

use super::{Computed, Picture};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use ultramarine_topology::Pe;

/// A node as a picture shows it.
pub(super) struct DrawnNode<'a> {
    pub(super) label: String,
    /// Each once.
    pub(super) inputs: Vec<u32>,
    pub(super) is_wanted: bool,
    is_needed: bool,
    /// Each time that it was computed.
    computed: &'a [(Computed, Pe)],
}

/// What a PE has done.
#[derive(Default)]
pub(super) struct Share {
    pub(super) nodes: u32,
    pub(super) busy_ns: u64,
}

impl Picture {
    /// The nodes, in order.
    pub(super) fn nodes(&self) -> Vec<DrawnNode<'_>> {
        let labels = self.labels();
        let Picture { block, wanted, computed } = self;
        let is_needed = block.needed(wanted, &BTreeSet::new());
        let mut rest = &computed[..];
        let node = |(index, is_needed): (u32, bool)| {
            let inputs: BTreeSet<u32> = block.inputs(index).map(|input| input.index).collect();
            let (computed, others) =
                rest.split_at(rest.partition_point(|(of, _)| of.index == index));
            rest = others;
            DrawnNode {
                label: labels[block.kind_of(index) as usize].clone(),
                inputs: inputs.into_iter().collect(),
                is_wanted: false,
                is_needed,
                computed,
            }
        };
        let mut nodes: Vec<_> = (0..).zip(is_needed).map(node).collect();
        wanted.iter().for_each(|node| nodes[node.index as usize].is_wanted = true);
        nodes
    }

    /// What each PE has done.
    pub(super) fn shares(&self) -> BTreeMap<Pe, Share> {
        let mut shares: BTreeMap<Pe, Share> = BTreeMap::new();
        for (computed, pe) in &self.computed {
            let share = shares.entry(*pe).or_default();
            share.nodes += 1;
            share.busy_ns += computed.took_ns;
        }
        shares
    }

    /// A label for each kind of node: the short name of its function, with a number if several have
    /// the same, as all closures of a function have.
    fn labels(&self) -> Vec<String> {
        let shorts: Vec<String> = self.block.kind_names().map(short).collect();
        let number = |(place, name): (usize, &String)| {
            let of = |names: &[String]| names.iter().filter(|other| *other == name).count();
            match of(&shorts) {
                1 => name.clone(),
                _ => format!("{name} {}", of(&shorts[..=place])),
            }
        };
        shorts.iter().enumerate().map(number).collect()
    }
}

impl DrawnNode<'_> {
    /// The PE that has computed it. If it was computed several times, the first of the PEs.
    pub(super) fn pe(&self) -> Option<Pe> {
        self.computed.first().map(|(_, pe)| *pe)
    }

    /// What is known of the node, in lines.
    pub(super) fn details(&self, index: usize) -> String {
        let wanted = if self.is_wanted { ", wanted" } else { "" };
        let how = match (self.computed, self.is_needed) {
            ([], true) => "not computed, or by a PE that died".to_owned(),
            ([], false) => "not needed".to_owned(),
            (computed, _) => {
                let each = |(of, pe): &(Computed, Pe)| format!("{pe}: {}", duration(of.took_ns));
                computed.iter().map(each).collect::<Vec<_>>().join("\n")
            }
        };
        format!("{}, node {index}{wanted}\n{how}", self.label)
    }
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
    format!("{:.3?}", Duration::from_nanos(ns))
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
pub(super) fn colours(pe: Pe) -> (&'static str, &'static str) {
    COLOURS[pe.number() as usize % COLOURS.len()]
}

/// The number of colours.
pub(super) const COLOURS_LEN: usize = COLOURS.len();
