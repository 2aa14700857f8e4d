//! What nodes of one kind have in common: a function, and the types of its argument and its result.
//!
//! A graph has few kinds and very many nodes. So what belongs to a kind is stored once, and a node
//! is three numbers: its kind, its argument's place among the kind's, and where its inputs are.

use super::handles::NodeId;
use super::runs::RunId;
use std::any::{Any, type_name};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable, memory_estimate};
use ultramarine_runtime::wire::{self, WireError};
use ultramarine_topology::Pe;

/// A result, of any type.
pub(crate) type Value = Arc<dyn Any + Send + Sync>;

/// A function of an argument and the results of other nodes.
type Compute<A> = Box<dyn Fn(&A, &[Value]) -> Value + Send + Sync>;

/// Sends the result of a node to the pool of another PE, in a run.
type SendResult = fn(&Context, Pe, (RunId, NodeId), Value) -> Result<(), TaskError>;

/// What is done with results of one type.
#[derive(Clone, Copy)]
pub(super) struct ResultType {
    pub(super) send: SendResult,
    /// About how many bytes of memory a result takes.
    pub(super) bytes: fn(&Value) -> u64,
}

/// About how many bytes of memory a result of type `T` takes; 0 if its own code panics.
pub(super) fn bytes_of<T: Portable + Sync>(result: &Value) -> u64 {
    let result = result.clone().downcast::<T>();
    let estimate = || result.map_or(0, |result| memory_estimate(&result) as u64);
    catch_unwind(AssertUnwindSafe(estimate)).unwrap_or(0)
}

/// A kind of node.
pub(super) trait Kind: Any + Send + Sync {
    /// The name of its function.
    fn name(&self) -> &'static str;

    /// The type of its results.
    fn results(&self) -> ResultType;

    /// Computes a node's result from its inputs.
    fn compute(&self, argument: u32, inputs: &[Value]) -> Value;

    /// Appends a node's argument, encoded.
    fn encode_argument(&self, argument: u32, bytes: &mut Vec<u8>) -> Result<(), WireError>;
}

/// The kind of nodes with an argument of type `A`.
pub(super) struct KindOf<A> {
    name: &'static str,
    results: ResultType,
    compute: Compute<A>,
    arguments: Vec<A>,
}

impl<A: Portable + Sync> KindOf<A> {
    pub(super) fn new<F, T>(
        compute: impl Fn(&A, &[Value]) -> T + Send + Sync + 'static,
        results: ResultType,
    ) -> Self
    where
        T: Portable + Sync,
    {
        KindOf {
            name: type_name::<F>(),
            results,
            compute: Box::new(move |argument, inputs| Arc::new(compute(argument, inputs))),
            arguments: Vec::new(),
        }
    }

    /// Keeps the argument of another node. Returns its place.
    ///
    /// # Panics
    ///
    /// There are 2^32 already.
    pub(super) fn keep(&mut self, argument: A) -> u32 {
        self.arguments.push(argument);
        u32::try_from(self.arguments.len() - 1).expect("a block has at most 2^31 nodes")
    }
}

impl<A: Portable + Sync> Kind for KindOf<A> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn results(&self) -> ResultType {
        self.results
    }

    fn compute(&self, argument: u32, inputs: &[Value]) -> Value {
        (self.compute)(&self.arguments[argument as usize], inputs)
    }

    fn encode_argument(&self, argument: u32, bytes: &mut Vec<u8>) -> Result<(), WireError> {
        wire::encode_into(&self.arguments[argument as usize], bytes)
    }
}
