//! The trees of the Unbalanced Tree Search benchmark (Olivier et al., LCPC 2006).
//!
//! The number of children of a node is drawn from its digest, and the digest of a child is the
//! SHA-1 of its parent's digest and its number among the siblings. So a few parameters determine a
//! tree, which is the same on every machine.
//!
//! This module follows the reference program exactly (its functions `uts_numChildren` and
//! `rng_spawn`, with the generator that it calls BRG), and so yields the published node counts.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::hint::black_box;
use std::ops::{Range, RangeInclusive};
use ultramarine_skeletons::Tree;

/// The parameters of a tree, with the flags of the reference program.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub struct Uts {
    /// The type of the tree.
    #[arg(short = 't', value_name = "KIND", value_enum, default_value_t = TreeType::Geo)]
    tree_type: TreeType,
    /// The number of children of the root; in a geometric tree, on average.
    #[arg(short = 'b', value_name = "CHILDREN", default_value_t = 4.0, value_parser = count)]
    root_children: f64,
    /// How a geometric tree narrows with the depth.
    #[arg(short = 'a', value_name = "SHAPE", value_enum, default_value_t = GeometricShape::Linear)]
    shape: GeometricShape,
    /// The depth that a geometric or balanced tree narrows towards.
    #[arg(short = 'd', value_name = "DEPTH", default_value_t = 6)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=DEPTH_MAX))]
    depth: u32,
    /// The part of the depth at which a hybrid tree turns from geometric to binomial.
    #[arg(short = 'f', value_name = "PART", default_value_t = 0.5, value_parser = part)]
    shift: f64,
    /// The seed of the root.
    #[arg(short = 'r', value_name = "SEED", default_value_t = 0)]
    seed: u32,
    /// The probability that a node of a binomial tree has children. With more than one child on
    /// average, the tree may be infinite.
    #[arg(short = 'q', value_name = "PROBABILITY", default_value_t = 15.0 / 64.0)]
    #[arg(value_parser = part)]
    probability: f64,
    /// The number of children of such a node.
    #[arg(short = 'm', value_name = "CHILDREN", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=i64::from(CHILDREN_MAX)))]
    children: u32,
    /// Compute each digest this number of times, so that nodes cost more.
    #[arg(short = 'g', value_name = "TIMES", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    granularity: u32,
}

/// The types of trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum TreeType {
    /// 0: binomial. A node has a fixed number of children with a fixed probability; the root has
    /// its own number.
    #[value(alias = "0")]
    Bin,
    /// 1: geometric. The number of children has a geometric distribution, with an average that
    /// depends on the depth.
    #[value(alias = "1")]
    Geo,
    /// 2: geometric in the upper part, binomial below.
    #[value(alias = "2")]
    Hybrid,
    /// 3: all nodes above the given depth have as many children as the root.
    #[value(alias = "3")]
    Balanced,
}

/// How the average number of children in a geometric tree depends on the depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum GeometricShape {
    /// 0: falls evenly to 0.
    #[value(alias = "0")]
    Linear,
    /// 1: falls as a power of the depth, to 1 at the given depth, and on below it.
    #[value(alias = "1")]
    Expdec,
    /// 2: rises and falls periodically, down to five times the given depth.
    #[value(alias = "2")]
    Cyclic,
    /// 3: constant above the given depth.
    #[value(alias = "3")]
    Fixed,
}

/// The largest number of children, except for the root of a binomial tree and in balanced trees.
const CHILDREN_MAX: u32 = 100;

/// The largest `-d`. A cyclic tree may be five times as deep.
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

/// A node, with the number of its children.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Node {
    digest: Digest,
    /// The root's is 0.
    pub depth: u32,
    /// The number of its children.
    pub children: u32,
}

impl Node {
    /// The length of a node in bytes.
    pub const BYTES: usize = 28;

    /// The node in bytes.
    pub fn to_bytes(&self) -> [u8; Node::BYTES] {
        let words = self.digest.into_iter().chain([self.depth, self.children]);
        let mut bytes = [0; Node::BYTES];
        for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// The node of these bytes; `None` if there are too few or too many.
    pub fn from_bytes(bytes: &[u8]) -> Option<Node> {
        let mut words = bytes.chunks(4).map(|word| word.try_into().ok().map(u32::from_be_bytes));
        let mut next = || words.next().flatten();
        let digest = [next()?, next()?, next()?, next()?, next()?];
        let node = Node { digest, depth: next()?, children: next()? };
        (bytes.len() == Node::BYTES).then_some(node)
    }
}

/// A SHA-1 digest, as big-endian words.
type Digest = [u32; 5];

/// The distribution of the number of children at one depth.
#[derive(Clone, Copy, Debug)]
enum ChildDistribution {
    Always(u32),
    /// This number with this probability, else none.
    Often(f64, u32),
    /// Geometric. The number is the logarithm of the probability of one more child.
    Geometric(f64),
}

impl ChildDistribution {
    fn children(self, digest: &Digest) -> u32 {
        // On [0, 1).
        let drawn = f64::from(digest[4] & 0x7fff_ffff) / f64::from(1_u32 << 31);
        match self {
            ChildDistribution::Always(children) => children,
            ChildDistribution::Often(probability, children) => {
                children * u32::from(drawn < probability)
            }
            ChildDistribution::Geometric(log) => {
                let children = (1.0 - drawn).ln() / log;
                (children as u32).min(CHILDREN_MAX)
            }
        }
    }
}

/// The children of a node, in order.
#[derive(Debug)]
pub struct Children {
    parent: Digest,
    /// The depth of the children.
    depth: u32,
    distribution: ChildDistribution,
    granularity: u32,
    numbers: Range<u32>,
}

impl Iterator for Children {
    type Item = Node;

    // Without this, a node is written to memory and read again in pieces of another size, which
    // stalls the processor: 4 % of the time.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured")]
    fn next(&mut self) -> Option<Node> {
        let number = self.numbers.next()?;
        for _ in 1..self.granularity {
            black_box(sha1(self.parent, [number]));
        }
        let digest = sha1(self.parent, [number]);
        Some(Node { digest, depth: self.depth, children: self.distribution.children(&digest) })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.numbers.size_hint()
    }
}

impl Uts {
    /// The root.
    pub fn root(&self) -> Node {
        let digest = sha1([0, 0, 0, 0, self.seed], []);
        Node { digest, depth: 0, children: self.distribution(0).children(&digest) }
    }

    /// The node's children, in order.
    #[inline]
    pub fn grow(&self, node: Node) -> Children {
        let Node { digest: parent, depth, children } = node;
        let depth = depth + 1;
        let distribution =
            if children > 0 { self.distribution(depth) } else { ChildDistribution::Always(0) };
        Children {
            parent,
            depth,
            distribution,
            granularity: self.granularity,
            numbers: 0..children,
        }
    }

    fn distribution(&self, depth: u32) -> ChildDistribution {
        match self.tree_type {
            TreeType::Bin if depth == 0 => ChildDistribution::Always(self.root_children as u32),
            TreeType::Geo => self.geometric(depth),
            TreeType::Hybrid if f64::from(depth) < self.shift * f64::from(self.depth) => {
                self.geometric(depth)
            }
            TreeType::Bin | TreeType::Hybrid => {
                ChildDistribution::Often(self.probability, self.children)
            }
            TreeType::Balanced if depth < self.depth => {
                ChildDistribution::Always(self.root_children as u32)
            }
            TreeType::Balanced => ChildDistribution::Always(0),
        }
    }

    fn geometric(&self, depth: u32) -> ChildDistribution {
        let (most, at, to) = (self.root_children, f64::from(depth), f64::from(self.depth));
        let average = match self.shape {
            _ if depth == 0 => most,
            GeometricShape::Linear => most * (1.0 - at / to),
            GeometricShape::Expdec => most * at.powf(-most.ln() / to.ln()),
            GeometricShape::Cyclic if at > 5.0 * to => 0.0,
            GeometricShape::Cyclic => most.powf((TAU * at / to).sin()),
            GeometricShape::Fixed if at < to => most,
            GeometricShape::Fixed => 0.0,
        };
        let stop = 1.0 / (1.0 + average);
        ChildDistribution::Geometric((1.0 - stop).ln())
    }
}

impl Tree for Uts {
    type Node = Node;

    #[inline]
    fn children(&self, node: Node) -> impl Iterator<Item = Node> + Send {
        self.grow(node)
    }
}

/// The digest of the words, which fit one block of SHA-1 together with the padding: a one bit,
/// zeros and the length in bits.
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
