//! Results, of any type that can be sent.

use super::error::DagError;
use super::messages::{Sent, send_value};
use serde::{Deserialize, Serialize};
use std::any::{Any, type_name};
use std::sync::Arc;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable, caught, discard, memory_estimate};
use ultramarine_runtime::wire;
use ultramarine_topology::Pe;

/// A result, of any type; or [why there is none](Failed). It is the user's: if its drop panics,
/// that gets no further, wherever it is dropped.
#[derive(Clone)]
pub struct Value(Option<Arc<dyn AnyResult>>);

impl Value {
    pub(super) fn new(result: impl AnyResult) -> Self {
        Value::shared(Arc::new(result))
    }

    pub(super) fn shared(result: Arc<impl AnyResult>) -> Self {
        Value(Some(result))
    }

    fn any(&self) -> &dyn Any {
        // Not the method of the `Arc`.
        let result: &dyn AnyResult = &**self.inner();
        result.as_any()
    }

    fn inner(&self) -> &Arc<dyn AnyResult> {
        self.0.as_ref().expect("it is taken out at its end only")
    }

    /// About how many bytes of memory it takes; 0 if its own code panics.
    pub(super) fn memory(&self) -> u64 {
        self.inner().clone().memory()
    }

    /// Sends it as that of a node to the pool of another PE, in a run.
    pub(super) fn send(mut self, cx: &Context, to: Pe, of: Sent) -> Result<(), TaskError> {
        self.0.take().map_or(Ok(()), |result| result.send(cx, to, of))
    }

    /// Its encoding, or why there is none.
    pub(super) fn encoded(&self) -> Result<Vec<u8>, String> {
        (**self.inner()).encoded()
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

/// What a node has that has no result. It is sent as a result is, and has no place of its own.
#[derive(Serialize, Deserialize)]
struct Failed(DagError);

/// There is no result.
pub(super) fn failed(error: DagError) -> Value {
    Value::new(Failed(error))
}

/// Why there is no result, if there is none.
pub(super) fn error_of(value: &Value) -> Option<&DagError> {
    value.any().downcast_ref().map(|Failed(error)| error)
}

/// What is done with a result of any type. A type that is [`Portable`] and `Sync` has it.
pub(super) trait AnyResult: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;

    fn memory(self: Arc<Self>) -> u64;

    fn send(self: Arc<Self>, cx: &Context, to: Pe, of: Sent) -> Result<(), TaskError>;

    fn encoded(&self) -> Result<Vec<u8>, String>;
}

impl<T: Portable + Sync> AnyResult for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory(self: Arc<Self>) -> u64 {
        caught(type_name::<T>(), || memory_estimate(&self) as u64).unwrap_or(0)
    }

    fn send(self: Arc<Self>, cx: &Context, to: Pe, of: Sent) -> Result<(), TaskError> {
        send_value(self, cx, to, of)
    }

    fn encoded(&self) -> Result<Vec<u8>, String> {
        caught(type_name::<T>(), || wire::encode(self))?.map_err(|error| error.to_string())
    }
}

/// A result whose type the builder has checked, unless its node was named by numbers.
///
/// # Panics
///
/// It is of another type.
pub(super) fn result<T: 'static>(value: &Value) -> &T {
    value
        .any()
        .downcast_ref()
        .unwrap_or_else(|| panic!("an input is no {}: its node has another type", type_name::<T>()))
}
