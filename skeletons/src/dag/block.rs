//! A graph, or one of its blocks: nodes, each with a kind, an argument and inputs.

use super::error::DagError;
use super::graph::RunOptions;
use super::handles::NodeId;
use super::kind::{Kind, KindOf};
use super::pool::BlockShape;
use super::value::Value;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use ultramarine_journal::Digest;
use ultramarine_runtime::executor::{Portable, caught};
use ultramarine_runtime::wire::{WireError, encode};
use ultramarine_topology::Pe;

/// The mark of an input from an earlier block.
const EARLIER: u32 = 1 << 31;

/// See the [module](self).
pub(super) struct Block {
    number: u32,
    kinds: Vec<Box<dyn Kind>>,
    /// What tells each kind from others, in all processes that run this program.
    codes: Vec<u64>,
    nodes: Vec<NodeRecord>,
    /// The inputs of all nodes, one after the other: places in this block, or with the mark,
    /// places in `earlier`.
    inputs: Vec<u32>,
    /// Inputs from earlier blocks.
    earlier: Vec<NodeId>,
    /// Nodes that were placed.
    placed: BTreeMap<u32, Pe>,
    /// Nodes whose results a journal keeps.
    kept: BTreeSet<u32>,
}

/// What a block stores of each node, beside its inputs and its argument: 12 bytes.
#[derive(Clone, Copy)]
struct NodeRecord {
    kind: u32,
    /// The place of the argument among those of the kind.
    argument: u32,
    /// Where the inputs end. They begin where those of the node before end.
    inputs_end: u32,
}

impl Block {
    pub(super) fn new(number: u32) -> Self {
        let (kinds, codes, nodes, inputs, earlier, placed, kept) = Default::default();
        Block { number, kinds, codes, nodes, inputs, earlier, placed, kept }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> u32 {
        // `add` keeps it below 2^31.
        self.nodes.len() as u32
    }

    /// Adds a kind, with a number that no other kind has. Returns its place.
    pub(super) fn add_kind<A: Portable + Sync>(&mut self, kind: KindOf<A>, code: u64) -> u32 {
        self.kinds.push(Box::new(kind));
        self.codes.push(code);
        // A kind is a type of the program.
        self.kinds.len() as u32 - 1
    }

    /// Adds a node of a kind whose arguments are `A`s.
    pub(super) fn add<A: Portable + Sync>(
        &mut self,
        kind: u32,
        argument: A,
        inputs: impl Iterator<Item = NodeId>,
    ) -> NodeId {
        let index = self.len();
        assert!(index < EARLIER, "a block has at most 2^31 nodes");
        for input in inputs {
            let place = if input.block == self.number {
                assert!(input.index < index, "{input} is of another graph");
                input.index
            } else {
                self.earlier.push(input);
                EARLIER | (self.earlier.len() as u32 - 1)
            };
            self.inputs.push(place);
        }
        let inputs_end = u32::try_from(self.inputs.len()).expect("a block has at most 2^32 inputs");
        let kinds: &mut dyn Any = &mut *self.kinds[kind as usize];
        let kept = kinds.downcast_mut::<KindOf<A>>().map(|kind| kind.keep(argument));
        let argument = kept.unwrap_or_else(|| unreachable!("the type is part of the kind"));
        self.nodes.push(NodeRecord { kind, argument, inputs_end });
        NodeId { block: self.number, index }
    }

    /// The node is to be computed by this PE, as long as that lives.
    pub(super) fn place(&mut self, index: u32, pe: Pe) {
        self.placed.insert(index, pe);
    }

    /// A journal keeps the result of this node.
    pub(super) fn keep(&mut self, index: u32) {
        self.kept.insert(index);
    }

    /// The nodes whose results a journal keeps.
    pub(super) fn kept(&self) -> &BTreeSet<u32> {
        &self.kept
    }

    /// The nodes that were placed.
    pub(super) fn placed(&self) -> impl Iterator<Item = (u32, Pe)> + '_ {
        self.placed.iter().map(|(index, pe)| (*index, *pe))
    }

    /// Which nodes are needed for these, themselves included, if the results of `known` ones are
    /// there. Inputs from earlier blocks are left out.
    pub(super) fn needed(&self, wanted: &[NodeId], known: &BTreeSet<NodeId>) -> Vec<bool> {
        let mut is_needed = vec![false; self.nodes.len()];
        wanted.iter().for_each(|node| is_needed[node.index as usize] = true);
        for index in (0..self.len()).rev() {
            if known.contains(&NodeId { block: self.number, index }) {
                is_needed[index as usize] = false;
            } else if is_needed[index as usize] {
                let own = self.inputs(index).filter(|input| input.block == self.number);
                own.for_each(|input| is_needed[input.index as usize] = true);
            }
        }
        is_needed
    }

    /// What the nodes use of earlier blocks.
    pub(super) fn earlier(&self) -> &[NodeId] {
        &self.earlier
    }

    /// The inputs of a node, in order.
    pub(super) fn inputs(&self, index: u32) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        let index = index as usize;
        let begin = index.checked_sub(1).map_or(0, |before| self.nodes[before].inputs_end);
        let inputs = &self.inputs[begin as usize..self.nodes[index].inputs_end as usize];
        inputs.iter().map(|place| match place & !EARLIER {
            index if index == *place => NodeId { block: self.number, index },
            place => self.earlier[place as usize],
        })
    }

    /// The name of a node's function.
    pub(super) fn name(&self, index: u32) -> &'static str {
        self.kind(index).name()
    }

    /// Computes a node's result from those of its inputs.
    ///
    /// # Errors
    ///
    /// The node's function panicked.
    pub(super) fn compute(&self, index: u32, inputs: &[Value]) -> Result<Value, DagError> {
        let argument = self.nodes[index as usize].argument;
        let name = self.name(index);
        let computed = caught(name, || self.kind(index).compute(argument, inputs));
        computed.map_err(|message| DagError::Panicked {
            node: NodeId { block: self.number, index },
            name: name.to_owned(),
            message,
        })
    }

    /// Decodes a node's result.
    ///
    /// # Errors
    ///
    /// The bytes are those of no such result.
    pub(super) fn decode(&self, index: u32, bytes: &[u8]) -> Result<Value, WireError> {
        self.kind(index).decode(bytes)
    }

    /// The place of a node's kind.
    pub(super) fn kind_of(&self, index: u32) -> u32 {
        self.nodes[index as usize].kind
    }

    /// The names of the functions of all kinds.
    pub(super) fn kind_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.kinds.iter().map(|kind| kind.name())
    }

    fn kind(&self, index: u32) -> &dyn Kind {
        &*self.kinds[self.nodes[index as usize].kind as usize]
    }

    /// A digest of all that the block is: functions, arguments and inputs; and of what is wanted.
    /// PEs compare it, with the options and the places of nodes; for a journal these do not matter.
    ///
    /// # Errors
    ///
    /// An argument cannot be encoded.
    pub(super) fn digest(
        &self,
        wanted: &[NodeId],
        options: Option<&RunOptions>,
    ) -> Result<u128, DagError> {
        let mut digest = Digest::default();
        // They are numbers, which can be encoded.
        options.iter().for_each(|options| digest.add(&encode(options).unwrap_or_default()));
        self.codes.iter().for_each(|code| digest.add(&code.to_le_bytes()));
        for node in wanted {
            digest.add(&[node.block.to_le_bytes(), node.index.to_le_bytes()].concat());
        }
        for (index, pe) in self.placed().filter(|_| options.is_some()) {
            digest.add(&[index.to_le_bytes(), pe.number().to_le_bytes()].concat());
        }
        let mut bytes = Vec::new();
        for (node, index) in self.nodes.iter().zip(0..) {
            bytes.clear();
            bytes.extend(node.kind.to_le_bytes());
            for input in self.inputs(index) {
                bytes.extend(input.block.to_le_bytes());
                bytes.extend(input.index.to_le_bytes());
            }
            let encoded = self.kind(index).encode_argument(node.argument, &mut bytes);
            encoded.map_err(|error| DagError::Unsendable {
                what: "argument".to_owned(),
                node: NodeId { block: self.number, index },
                name: self.name(index).to_owned(),
                why: error.to_string(),
            })?;
            digest.add(&bytes);
        }
        Ok(digest.finish())
    }
}

impl BlockShape for Block {
    fn nodes(&self) -> u32 {
        self.len()
    }

    fn inputs(&self, index: u32) -> impl Iterator<Item = NodeId> {
        Block::inputs(self, index)
    }
}
