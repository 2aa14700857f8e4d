//! How a graph is built, node by node.

use super::block::Block;
use super::handles::{Inputs, Node, NodeId};
use super::kind::KindOf;
use super::value::{Value, result};
use std::any::TypeId;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::iter;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::Portable;
use ultramarine_topology::Pe;

/// Builds a graph of computations, or one of its blocks.
///
/// Each node has a function, an argument, and inputs: the results of other nodes. The function must
/// capture nothing, and gives the same result for the same argument and inputs on every PE: a node
/// may be computed again after a death. Arguments should be small, since every PE has those of all
/// nodes. What is large belongs into results; a [source](Self::source) makes or reads it where it
/// is needed.
pub struct Builder {
    block: Block,
    pes: u32,
    /// How many blocks before this one it may use.
    reach: u32,
    /// The places of the kinds, by the types of how they were made.
    kinds: HashMap<TypeId, u32>,
}

/// What tells nodes apart that are made in different ways from the same function.
struct Sources;
struct Maps;
struct Reductions;

impl Builder {
    pub(super) fn new(number: u32, pes: u32) -> Self {
        Builder { block: Block::new(number), pes, reach: u32::MAX, kinds: HashMap::new() }
    }

    /// A block may use the one before only.
    pub(super) fn of_stream(self) -> Self {
        Builder { reach: 1, ..self }
    }

    pub(super) fn finish(self) -> Block {
        self.block
    }

    /// The number of PEs of the job, to [place](Self::place) nodes on them; 1 in
    /// [`evaluate`](super::evaluate).
    pub fn pes(&self) -> u32 {
        self.pes
    }

    /// Has a node computed by the PE of this number, as long as that lives, whatever the
    /// [assignment](super::Assignment) says: where its inputs are large, for example. In a graph in
    /// [blocks](super::Dag::blocks), or a [stream](super::Dag::stream), that changes nothing: a PE
    /// computes all nodes of a block, less those that are pushed to others.
    ///
    /// # Panics
    ///
    /// The job has no such PE, or the node is of another block.
    #[track_caller]
    pub fn place<T>(&mut self, node: Node<T>, pe: u32) {
        assert!(pe < self.pes, "a node is placed on PE {pe} of a job of {}", self.pes);
        let index = self.own(node);
        self.block.place(index, Pe::new(pe));
    }

    /// Has the result of a node kept in the [journal](super::Dag::journal), if there is one.
    ///
    /// # Panics
    ///
    /// The node is of another block.
    pub fn keep<T>(&mut self, node: Node<T>) {
        let index = self.own(node);
        self.block.keep(index);
    }

    /// The place of a node in this block.
    fn own<T>(&self, node: Node<T>) -> u32 {
        let NodeId { block, index } = node.id();
        assert!(block == self.block() && index < self.len(), "{} is of another block", node.id());
        index
    }

    /// The number of the block that is built; 0 if the graph is built as a whole.
    pub fn block(&self) -> u32 {
        self.block.number()
    }

    /// The number of nodes built so far, which is the place of the next.
    pub fn len(&self) -> u32 {
        self.block.len()
    }

    /// Whether nothing is built yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A node without inputs.
    ///
    /// # Panics
    ///
    /// The block has 2^31 nodes already.
    pub fn source<F, A, T>(&mut self, f: F, argument: A) -> Node<T>
    where
        F: Fn(&A) -> T + Stateless,
        A: Portable + Sync,
        T: Portable + Sync,
    {
        const { F::CHECKED };
        let kind = || new_kind::<F, A, T>(move |argument: &A, _: &[Value]| f(argument));
        self.add::<(Sources, F), _, _>(kind, argument, iter::empty())
    }

    /// A node with one input.
    ///
    /// # Panics
    ///
    /// The block has 2^31 nodes already, or the input is none of this graph.
    pub fn map<F, A, X, T>(&mut self, f: F, argument: A, input: Node<X>) -> Node<T>
    where
        F: Fn(&A, &X) -> T + Stateless,
        A: Portable + Sync,
        X: Portable + Sync,
        T: Portable + Sync,
    {
        const { F::CHECKED };
        let kind = || {
            new_kind::<F, A, T>(move |argument: &A, inputs: &[Value]| {
                f(argument, result::<X>(&inputs[0]))
            })
        };
        self.add::<(Maps, F, X), _, _>(kind, argument, iter::once(input.id()))
    }

    /// A node with up to eight inputs, of any types.
    ///
    /// # Panics
    ///
    /// The block has 2^31 nodes already, or an input is none of this graph.
    pub fn zip<F, A, I, T>(&mut self, f: F, argument: A, inputs: I) -> Node<T>
    where
        F: for<'a> Fn(&A, I::Results<'a>) -> T + Stateless,
        A: Portable + Sync,
        I: Inputs,
        T: Portable + Sync,
    {
        const { F::CHECKED };
        let kind = || {
            new_kind::<F, A, T>(move |argument: &A, inputs: &[Value]| {
                f(argument, I::results(inputs))
            })
        };
        self.add::<(I, F), _, _>(kind, argument, inputs.ids())
    }

    /// A node with any number of inputs of one type, which it gets all at once, in order.
    ///
    /// # Panics
    ///
    /// The block has 2^31 nodes already, or an input is none of this graph.
    pub fn reduce<F, A, X, T>(
        &mut self,
        f: F,
        argument: A,
        inputs: impl IntoIterator<Item = Node<X>>,
    ) -> Node<T>
    where
        F: Fn(&A, &[&X]) -> T + Stateless,
        A: Portable + Sync,
        X: Portable + Sync,
        T: Portable + Sync,
    {
        const { F::CHECKED };
        let kind = || {
            new_kind::<F, A, T>(move |argument: &A, inputs: &[Value]| {
                f(argument, &inputs.iter().map(result::<X>).collect::<Vec<_>>())
            })
        };
        let inputs = inputs.into_iter().map(Node::id);
        self.add::<(Reductions, F, X), _, _>(kind, argument, inputs)
    }

    /// Reduces any number of nodes, at least one, by a function that is associative: neighbours are
    /// combined, up to `arity` of them (at least 2), then the results of that, and so on. So the
    /// work is spread, and results are combined near where they arise.
    ///
    /// `None` if there are no inputs.
    ///
    /// # Panics
    ///
    /// `arity` is less than 2; the block has 2^31 nodes already; or an input is none of this graph.
    #[expect(clippy::needless_pass_by_value, reason = "all nodes take their argument so")]
    pub fn reduce_tree<F, A, T>(
        &mut self,
        f: F,
        argument: A,
        arity: usize,
        inputs: impl IntoIterator<Item = Node<T>>,
    ) -> Option<Node<T>>
    where
        F: Fn(&A, &[&T]) -> T + Stateless,
        A: Portable + Sync + Clone,
        T: Portable + Sync,
    {
        assert!(arity >= 2, "a node of a reduction has at least 2 inputs, not {arity}");
        let mut level: Vec<Node<T>> = inputs.into_iter().collect();
        while level.len() > 1 {
            let combine = |part: &[Node<T>]| match part {
                [one] => *one,
                several => self.reduce(f, argument.clone(), several.iter().copied()),
            };
            level = level.chunks(arity).map(combine).collect();
        }
        level.pop()
    }

    /// A node of an earlier block, by its place there. That there is such a node, and that its type
    /// is right, is found out when its result is needed.
    ///
    /// # Panics
    ///
    /// The block is not an earlier one; or, in a stream, not the one before.
    #[track_caller]
    pub fn node_of<T: Portable + Sync>(&self, block: u32, index: u32) -> Node<T> {
        let number = self.block();
        assert!(block < number, "block {number} uses nodes of earlier blocks only, not of {block}");
        let is_near = number - block <= self.reach;
        assert!(is_near, "block {number} of a stream uses nodes of the block before only");
        Node::new(NodeId { block, index })
    }

    /// Adds a node. `K` tells its kind from others.
    fn add<K: 'static, A: Portable + Sync, T: Portable + Sync>(
        &mut self,
        kind: impl FnOnce() -> KindOf<A>,
        argument: A,
        inputs: impl Iterator<Item = NodeId>,
    ) -> Node<T> {
        let types = TypeId::of::<(K, A, fn() -> T)>();
        let add = || self.block.add_kind(kind(), code_of::<(K, A, fn() -> T)>());
        let place = *self.kinds.entry(types).or_insert_with(add);
        Node::new(self.block.add(place, argument, inputs))
    }
}

/// What tells a type from others, in all processes that run this program. Names would not do: all
/// closures of a function have the same.
pub(super) fn code_of<T: 'static>() -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(TypeId::of::<T>())
}

/// The kind of nodes with this function.
fn new_kind<F, A: Portable + Sync, T: Portable + Sync>(
    compute: impl Fn(&A, &[Value]) -> T + Send + Sync + 'static,
) -> KindOf<A> {
    KindOf::new::<F, T>(compute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn is_refused(act: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(act)).is_err()
    }

    #[test]
    fn a_block_counts_its_nodes() {
        let mut g = Builder::new(3, 2);
        assert!(g.is_empty());
        let node = g.source(|n: &u64| *n, 7);
        assert_eq!((g.len(), g.is_empty(), g.block(), g.pes()), (1, false, 3, 2));
        assert_eq!(node.id(), NodeId { block: 3, index: 0 });
    }

    #[test]
    fn nodes_are_placed_and_kept_that_are_of_this_block_on_pes_that_there_are() {
        let mut g = Builder::new(1, 2);
        let own = g.source(|n: &u64| *n, 7);
        g.place(own, 1);
        g.keep(own);
        let (earlier, later) =
            (g.node_of::<u64>(0, 0), Node::<u64>::new(NodeId { block: 1, index: 1 }));
        assert!(is_refused(|| g.place(own, 2)), "there are two");
        for other in [earlier, later] {
            assert!(is_refused(|| g.place(other, 0)) && is_refused(|| g.keep(other)));
        }
        let block = g.finish();
        assert!(block.placed().eq([(0, Pe::new(1))]));
        assert_eq!(block.kept().iter().collect::<Vec<_>>(), [&0]);
    }

    #[test]
    fn a_block_uses_earlier_ones_and_in_a_stream_the_one_before() {
        let refused = |g: Builder| {
            (0..5)
                .filter(|block| is_refused(|| _ = g.node_of::<u64>(*block, 0)))
                .collect::<Vec<_>>()
        };
        assert_eq!(refused(Builder::new(3, 1)), [3, 4]);
        assert_eq!(refused(Builder::new(3, 1).of_stream()), [0, 1, 3, 4]);
    }

    #[test]
    fn a_tree_of_reductions_has_no_more_nodes_than_it_needs() {
        let sum = |(): &(), all: &[&u64]| all.iter().copied().sum::<u64>();
        for (leaves, arity, nodes) in [(0, 2, 0), (1, 2, 1), (2, 2, 3), (5, 2, 9), (9, 3, 13)] {
            let mut g = Builder::new(0, 1);
            let all: Vec<_> = (0..leaves).map(|n| g.source(|n: &u64| *n, n)).collect();
            let top = g.reduce_tree(sum, (), arity, all);
            assert_eq!((top.is_some(), g.len()), (leaves > 0, nodes), "{leaves}");
        }
        let mut g = Builder::new(0, 1);
        assert!(is_refused(|| _ = g.reduce_tree(sum, (), 1, [])));
    }
}
