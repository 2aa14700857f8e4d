//! The trees: how many children a node has is drawn from its digest, and a child's digest is the
//! SHA-1 of its parent's and its own number among the siblings. So a tree is all in a few
//! parameters, and the same on every machine.
//!
//! It follows the reference program to the letter (its functions `uts_numChildren` and `rng_spawn`,
//! with the generator it calls BRG), and so yields the node counts published with it.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::hint::black_box;
use std::ops::{Range, RangeInclusive};
use ultramarine::prelude::*;

/// The parameters of a tree, by the reference program's letters.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct Uts {
    /// What kind of tree.
    #[arg(short = 't', value_name = "KIND", value_enum, default_value_t = Kind::Geo)]
    kind: Kind,
    /// How many children the root has, in a geometric tree on average.
    #[arg(
        short = 'b',
        value_name = "CHILDREN",
        default_value_t = 4.0,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = count)]
    root_children: f64,
    /// How a geometric tree narrows.
    #[arg(short = 'a', value_name = "SHAPE", value_enum, default_value_t = Shape::Linear)]
    shape: Shape,
    /// The depth that a geometric or balanced tree narrows towards.
    #[arg(short = 'd', value_name = "DEPTH", default_value_t = 6, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=DEPTH_MAX))]
    depth: u32,
    /// At which part of the depth a hybrid tree turns from geometric to binomial.
    #[arg(short = 'f', value_name = "PART", default_value_t = 0.5, allow_negative_numbers = true)]
    #[arg(value_parser = part)]
    shift: f64,
    /// The root's seed.
    #[arg(short = 'r', value_name = "SEED", default_value_t = 0, allow_negative_numbers = true)]
    seed: u32,
    /// With which probability a node of a binomial tree has children. With more than one child on
    /// average, the tree may be without end.
    #[arg(short = 'q', value_name = "PROBABILITY", default_value_t = 15.0 / 64.0)]
    #[arg(allow_negative_numbers = true, value_parser = part)]
    probability: f64,
    /// How many these are.
    #[arg(
        short = 'm',
        value_name = "CHILDREN",
        default_value_t = 4,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=i64::from(CHILDREN_MAX)))]
    children: u32,
    /// How often each digest is computed, to make nodes cost more.
    #[arg(short = 'g', value_name = "TIMES", default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    granularity: u32,
}

/// Laws by which trees grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum Kind {
    /// 0: a node has children with one probability, and then always as many; the root has its own
    /// number.
    #[value(alias = "0")]
    Bin,
    /// 1: the number of children is distributed geometrically, about an average that depends on the
    /// depth.
    #[value(alias = "1")]
    Geo,
    /// 2: geometric above, binomial below.
    #[value(alias = "2")]
    Hybrid,
    /// 3: all nodes above the depth have as many children as the root.
    #[value(alias = "3")]
    Balanced,
}

/// How the average of children in a geometric tree depends on the depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum Shape {
    /// 0: falls evenly to 0.
    #[value(alias = "0")]
    Linear,
    /// 1: falls as a power of the depth, to 1 at the depth given, and goes on falling below.
    #[value(alias = "1")]
    Expdec,
    /// 2: swings, five times.
    #[value(alias = "2")]
    Cyclic,
    /// 3: the same at all nodes above the depth.
    #[value(alias = "3")]
    Fixed,
}

/// The most children, but for the root of a binomial tree and in a balanced one.
const CHILDREN_MAX: u32 = 100;

/// A cyclic tree may be five times as deep.
const DEPTH_MAX: i64 = 100_000_000;

fn count(text: &str) -> Result<f64, String> {
    number(text, 0.0..=1e9)
}

fn part(text: &str) -> Result<f64, String> {
    number(text, 0.0..=1.0)
}

fn number(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let number = text.parse().map_err(|e| format!("{e}"))?;
    let is_good = range.contains(&number);
    is_good.then_some(number).ok_or(format!("not from {} to {}", range.start(), range.end()))
}

/// A node, with how many children it has.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Node {
    digest: Digest,
    pub(crate) depth: u32,
    pub(crate) children: u32,
}

/// A SHA-1 digest; the words' bytes are read from the highest to the lowest.
type Digest = [u32; 5];

/// How the nodes of one depth come to have children.
#[derive(Clone, Copy)]
enum Law {
    Always(u32),
    /// With a probability.
    Often(f64, u32),
    /// Geometrically, where this is the logarithm of the probability of one more.
    Geometric(f64),
}

impl Law {
    fn children(self, digest: &Digest) -> u32 {
        // On [0, 1).
        let drawn = f64::from(digest[4] & 0x7fff_ffff) / f64::from(1_u32 << 31);
        match self {
            Law::Always(children) => children,
            Law::Often(probability, children) => children * u32::from(drawn < probability),
            Law::Geometric(log) => {
                let children = (1.0 - drawn).ln() / log;
                (children as u32).min(CHILDREN_MAX)
            }
        }
    }
}

/// The children of a node, in order.
pub(crate) struct Children {
    parent: Digest,
    /// Their own.
    depth: u32,
    law: Law,
    granularity: u32,
    numbers: Range<u32>,
}

impl Iterator for Children {
    type Item = Node;

    // Else a node is written to memory and read again in other pieces, for which the processor
    // waits: 4 % of the time.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured")]
    fn next(&mut self) -> Option<Node> {
        let number = self.numbers.next()?;
        for _ in 1..self.granularity {
            black_box(sha1(self.parent, [number]));
        }
        let digest = sha1(self.parent, [number]);
        Some(Node { digest, depth: self.depth, children: self.law.children(&digest) })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.numbers.size_hint()
    }
}

impl Uts {
    pub(crate) fn root(&self) -> Node {
        let digest = sha1([0, 0, 0, 0, self.seed], []);
        Node { digest, depth: 0, children: self.law(0).children(&digest) }
    }

    /// The node's children, in order.
    #[inline]
    pub(crate) fn grow(&self, node: Node) -> Children {
        let Node { digest: parent, depth, children } = node;
        let depth = depth + 1;
        let law = if children > 0 { self.law(depth) } else { Law::Always(0) };
        Children { parent, depth, law, granularity: self.granularity, numbers: 0..children }
    }

    fn law(&self, depth: u32) -> Law {
        match self.kind {
            Kind::Bin if depth == 0 => Law::Always(self.root_children as u32),
            Kind::Geo => self.geometric(depth),
            Kind::Hybrid if f64::from(depth) < self.shift * f64::from(self.depth) => {
                self.geometric(depth)
            }
            Kind::Bin | Kind::Hybrid => Law::Often(self.probability, self.children),
            Kind::Balanced if depth < self.depth => Law::Always(self.root_children as u32),
            Kind::Balanced => Law::Always(0),
        }
    }

    fn geometric(&self, depth: u32) -> Law {
        let (most, at, to) = (self.root_children, f64::from(depth), f64::from(self.depth));
        let average = match self.shape {
            _ if depth == 0 => most,
            Shape::Linear => most * (1.0 - at / to),
            Shape::Expdec => most * at.powf(-most.ln() / to.ln()),
            Shape::Cyclic if at > 5.0 * to => 0.0,
            Shape::Cyclic => most.powf((TAU * at / to).sin()),
            Shape::Fixed if at < to => most,
            Shape::Fixed => 0.0,
        };
        let stop = 1.0 / (1.0 + average);
        Law::Geometric((1.0 - stop).ln())
    }
}

impl Tree for Uts {
    type Node = Node;

    #[inline]
    fn children(&self, node: Node) -> impl Iterator<Item = Node> + Send {
        self.grow(node)
    }
}

/// The digest of the words, which fit one block of SHA-1 with its padding: a one, zeros and the
/// length in bits.
#[inline]
fn sha1<const N: usize>(digest: Digest, more: [u32; N]) -> Digest {
    let mut block = [0; 64];
    for (bytes, word) in block.chunks_exact_mut(4).zip(digest.iter().chain(&more)) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    let length = 4 * (digest.len() + N);
    block[length] = 0x80;
    block[60..].copy_from_slice(&(8 * length as u32).to_be_bytes());
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    sha1::block_api::compress(&mut state, &[block]);
    state
}
