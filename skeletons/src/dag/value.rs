//! Results, of any type that can be sent.

use super::error::DagError;
use super::handles::NodeId;
use super::messages::send_value;
use super::runs::RunId;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable, memory_estimate};
use ultramarine_runtime::wire::{self, WireError};
use ultramarine_topology::Pe;

/// A result, of any type; or [why there is none](Failed).
pub(super) type Value = Arc<dyn AnyResult>;

/// What a node has that has no result. It is sent as a result is, and has no place of its own.
#[derive(Serialize, Deserialize)]
struct Failed(DagError);

/// There is no result.
pub(super) fn failed(error: DagError) -> Value {
    Arc::new(Failed(error))
}

/// Why there is no result, if there is none.
pub(super) fn error_of(value: &Value) -> Option<&DagError> {
    // Not the method of the `Arc`.
    let value: &dyn AnyResult = &**value;
    value.as_any().downcast_ref().map(|Failed(error)| error)
}

/// What is done with a result of any type. A type that is [`Portable`] and `Sync` has it.
pub trait AnyResult: Any + Send + Sync {
    #[doc(hidden)]
    fn as_any(&self) -> &dyn Any;

    /// About how many bytes of memory it takes; 0 if its own code panics.
    #[doc(hidden)]
    fn memory(self: Arc<Self>) -> u64;

    /// Sends it as that of a node to the pool of another PE, in a run.
    #[doc(hidden)]
    fn send(self: Arc<Self>, cx: &Context, to: Pe, of: (RunId, NodeId)) -> Result<(), TaskError>;

    #[doc(hidden)]
    fn encoded(&self) -> Result<Vec<u8>, WireError>;
}

impl<T: Portable + Sync> AnyResult for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory(self: Arc<Self>) -> u64 {
        catch_unwind(AssertUnwindSafe(|| memory_estimate(&self) as u64)).unwrap_or(0)
    }

    fn send(self: Arc<Self>, cx: &Context, to: Pe, of: (RunId, NodeId)) -> Result<(), TaskError> {
        send_value(self, cx, to, of)
    }

    fn encoded(&self) -> Result<Vec<u8>, WireError> {
        wire::encode(self)
    }
}

/// A result whose type the builder has checked, unless its node was named by numbers.
///
/// # Panics
///
/// It is of another type.
pub(super) fn result<T: 'static>(value: &Value) -> &T {
    // Not the method of the `Arc`.
    let value: &dyn AnyResult = &**value;
    value.as_any().downcast_ref().unwrap_or_else(|| {
        panic!("an input is no {}: its node has another type", std::any::type_name::<T>())
    })
}
