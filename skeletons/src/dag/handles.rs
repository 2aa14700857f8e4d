//! Handles of nodes, with the types of their results.

use super::value::{Value, result};
use std::fmt;
use std::marker::PhantomData;

/// The number of a node: that of its block, and its place in it. The same on every PE.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct NodeId {
    /// The block, from 0. A graph that is built as a whole is one block.
    pub block: u32,
    /// The node's place in its block, in the order in which the builder made them, from 0.
    pub index: u32,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            NodeId { block: 0, index } => write!(f, "node {index}"),
            NodeId { block, index } => write!(f, "node {index} of block {block}"),
        }
    }
}

/// A node whose result is a `T`. A [`Builder`](super::Builder) makes it.
///
/// Only nodes that exist can be inputs of another, so no cycle can be built; and a node with a
/// result of another type does not compile as an input.
pub struct Node<T> {
    id: NodeId,
    result: PhantomData<fn() -> T>,
}

impl<T> Node<T> {
    pub(super) fn new(id: NodeId) -> Self {
        Node { id, result: PhantomData }
    }

    /// The node's number.
    pub fn id(self) -> NodeId {
        self.id
    }
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Node<T> {}

impl<T> fmt::Debug for Node<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)
    }
}

/// Up to eight nodes with results of different types, as a tuple: the inputs of
/// [`zip`](super::Builder::zip). Other types need not implement it.
pub trait Inputs: Copy + 'static {
    /// References to their results, as a tuple.
    type Results<'a>;

    /// Their numbers, in order.
    #[doc(hidden)]
    fn ids(self) -> impl Iterator<Item = NodeId>;

    /// Their results, which stand in the same order.
    #[doc(hidden)]
    fn results(values: &[Value]) -> Self::Results<'_>;
}

/// The nodes whose results a program wants: one, several in a tuple, or many of one type.
/// Other types need not implement it.
#[diagnostic::on_unimplemented(
    message = "a builder cannot return `{Self}`",
    note = "it returns a `Node`, a `Vec` of nodes of one type, or a tuple of two to eight nodes; \
            `reduce` makes one node of many"
)]
pub trait Wanted: 'static {
    /// Their results.
    type Results;

    /// Their numbers, in order.
    #[doc(hidden)]
    fn ids(&self) -> Vec<NodeId>;

    /// Their results, from values in the same order.
    #[doc(hidden)]
    fn results(values: Vec<Value>) -> Self::Results;
}

impl<T: Clone + 'static> Wanted for Node<T> {
    type Results = T;

    fn ids(&self) -> Vec<NodeId> {
        vec![self.id]
    }

    fn results(values: Vec<Value>) -> T {
        result::<T>(&values[0]).clone()
    }
}

impl<T: Clone + 'static> Wanted for Vec<Node<T>> {
    type Results = Vec<T>;

    fn ids(&self) -> Vec<NodeId> {
        self.iter().map(|node| node.id).collect()
    }

    fn results(values: Vec<Value>) -> Vec<T> {
        values.iter().map(|value| result::<T>(value).clone()).collect()
    }
}

macro_rules! tuples {
    ($($node:ident: $type:ident),+) => {
        impl<$($type: 'static),+> Inputs for ($(Node<$type>,)+) {
            type Results<'a> = ($(&'a $type,)+);

            fn ids(self) -> impl Iterator<Item = NodeId> {
                let ($($node,)+) = self;
                [$($node.id),+].into_iter()
            }

            fn results(values: &[Value]) -> Self::Results<'_> {
                let [$($node),+] = values else { unreachable!("each input has a result") };
                ($(result::<$type>($node),)+)
            }
        }

        impl<$($type: Clone + 'static),+> Wanted for ($(Node<$type>,)+) {
            type Results = ($($type,)+);

            fn ids(&self) -> Vec<NodeId> {
                Inputs::ids(*self).collect()
            }

            fn results(values: Vec<Value>) -> Self::Results {
                let ($($node,)+) = <Self as Inputs>::results(&values);
                ($($node.clone(),)+)
            }
        }
    };
}

tuples!(a: A);
tuples!(a: A, b: B);
tuples!(a: A, b: B, c: C);
tuples!(a: A, b: B, c: C, d: D);
tuples!(a: A, b: B, c: C, d: D, e: E);
tuples!(a: A, b: B, c: C, d: D, e: E, f: F);
tuples!(a: A, b: B, c: C, d: D, e: E, f: F, g: G);
tuples!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H);

#[cfg(test)]
mod tests {
    use super::super::{Builder, evaluate};

    #[test]
    fn a_builder_may_return_eight_nodes_of_eight_types() {
        let build = |g: &mut Builder, one: &u8| {
            let one = g.source(|n: &u8| *n, *one);
            (
                one,
                g.map(|(): &(), n: &u8| u16::from(*n) + 1, (), one),
                g.map(|(): &(), n: &u8| u32::from(*n) + 2, (), one),
                g.map(|(): &(), n: &u8| u64::from(*n) + 3, (), one),
                g.map(|(): &(), n: &u8| i64::from(*n) - 6, (), one),
                g.map(|(): &(), n: &u8| n.to_string(), (), one),
                g.map(|(): &(), n: &u8| vec![*n; 2], (), one),
                g.map(|(): &(), n: &u8| *n == 1, (), one),
            )
        };
        let expected = (1, 2, 3, 4, -5, "1".to_owned(), vec![1, 1], true);
        assert_eq!(evaluate(build, &1), Ok(expected));
    }
}
