//! What nodes of one kind have in common: a function, and the types of its argument and its result.
//!
//! A graph has few kinds and very many nodes. So what belongs to a kind is stored once, and a node
//! is three numbers: its kind, its argument's place among the kind's, and where its inputs are.

use super::value::Value;
use std::any::{Any, type_name};
use ultramarine_runtime::executor::{Portable, discard};
use ultramarine_runtime::wire::{self, WireError};

/// A function of an argument and the results of other nodes.
type Compute<A> = Box<dyn Fn(&A, &[Value]) -> Value + Send + Sync>;

/// A kind of node.
pub(super) trait Kind: Any + Send + Sync {
    /// The name of its function.
    fn name(&self) -> &'static str;

    /// Computes a node's result from its inputs.
    fn compute(&self, argument: u32, inputs: &[Value]) -> Value;

    /// Decodes a node's result.
    fn decode(&self, bytes: &[u8]) -> Result<Value, WireError>;

    /// Appends a node's argument, encoded.
    fn encode_argument(&self, argument: u32, bytes: &mut Vec<u8>) -> Result<(), WireError>;
}

/// The kind of nodes with an argument of type `A`.
pub(super) struct KindOf<A> {
    name: &'static str,
    compute: Compute<A>,
    decode: fn(&[u8]) -> Result<Value, WireError>,
    arguments: Vec<A>,
}

impl<A: Portable + Sync> KindOf<A> {
    pub(super) fn new<F, T>(compute: impl Fn(&A, &[Value]) -> T + Send + Sync + 'static) -> Self
    where
        T: Portable + Sync,
    {
        KindOf {
            name: type_name::<F>(),
            compute: Box::new(move |argument, inputs| Value::new(compute(argument, inputs))),
            decode: |bytes| Ok(Value::new(wire::decode::<T>(bytes)?)),
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

/// The arguments are the user's.
impl<A> Drop for KindOf<A> {
    fn drop(&mut self) {
        self.arguments.drain(..).for_each(discard);
    }
}

impl<A: Portable + Sync> Kind for KindOf<A> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn compute(&self, argument: u32, inputs: &[Value]) -> Value {
        (self.compute)(&self.arguments[argument as usize], inputs)
    }

    fn decode(&self, bytes: &[u8]) -> Result<Value, WireError> {
        (self.decode)(bytes)
    }

    fn encode_argument(&self, argument: u32, bytes: &mut Vec<u8>) -> Result<(), WireError> {
        wire::encode_into(&self.arguments[argument as usize], bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    static DROPPED: AtomicU32 = AtomicU32::new(0);

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Explosive;

    impl Drop for Explosive {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
            panic!("as is meant to be");
        }
    }

    #[test]
    fn arguments_that_panic_when_they_are_dropped_spoil_nothing() {
        let none = |_: &Explosive, _: &[Value]| 0_u64;
        let mut kind = KindOf::new::<(), u64>(none);
        (0..3).for_each(|place| assert_eq!(kind.keep(Explosive), place));
        drop(kind);
        assert_eq!(DROPPED.load(Relaxed), 3);
    }
}
