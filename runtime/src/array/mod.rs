//! Arrays of plain data, which are sent without being encoded.
//!
//! A `Vec` or `Box<[T]>` of numbers, or a `String`, is one block of memory whose bytes mean the
//! same in every process of a job, since all run the same binary. Its bytes are sent from where
//! they lie. The receiver puts them into memory that is aligned for the elements, and makes a `Vec`
//! of it without a copy.
//!
//! The type of a value decides whether it is such an array. All other values are encoded by
//! [`wire`](crate::wire).

pub(crate) mod held;
mod incoming;
#[cfg(test)]
mod tests;
pub(crate) mod within;

pub use incoming::IncomingArray;

use bytemuck::Pod;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};
use std::any::{Any, TypeId};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Bytes in memory that is aligned for their type. Clones share the memory.
#[derive(Clone)]
pub struct Array(Arc<dyn Elements>);

/// Where the bytes are.
trait Elements: Any + Send + Sync {
    fn bytes(&self) -> &[u8];
    fn alignment(&self) -> usize;
}

impl<T: Pod + Send + Sync> Elements for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    fn alignment(&self) -> usize {
        align_of::<T>()
    }
}

impl Array {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The alignment of the memory, in bytes: 1, 2, 4, 8 or 16.
    pub fn alignment(&self) -> usize {
        self.0.alignment()
    }

    /// The elements: the memory itself, if it is not shared and is aligned for them; else a copy.
    /// `None`: the bytes are not a whole number of elements.
    fn into_vec<T: Pod + Send + Sync>(self) -> Option<Vec<T>> {
        // The type as it was sent, if that was in this process; or as it was received.
        self.owned::<T>().map_or_else(Array::into_received_vec, Some)
    }

    /// The same for an array that was received.
    fn into_received_vec<T: Pod>(self) -> Option<Vec<T>> {
        if !self.bytes().len().is_multiple_of(size_of::<T>()) {
            return None;
        }
        let elements = match align_of::<T>() {
            1 => self.recast::<u8, T>(),
            2 => self.recast::<u16, T>(),
            4 => self.recast::<u32, T>(),
            8 => self.recast::<u64, T>(),
            _ => self.recast::<u128, T>(),
        };
        Some(elements.unwrap_or_else(|shared| bytemuck::pod_collect_to_vec(shared.bytes())))
    }

    /// The memory, if its elements are of this type and it is not shared.
    fn owned<T: Pod + Send + Sync>(self) -> Result<Vec<T>, Array> {
        let elements: Arc<dyn Any + Send + Sync> = self.0.clone();
        let Ok(elements) = elements.downcast::<Vec<T>>() else { return Err(self) };
        drop(self);
        Arc::try_unwrap(elements).map_err(|shared| Array(shared))
    }

    /// The memory as a `Vec` of `T`, if its elements are of type `U` and it is not shared.
    fn recast<U: Pod + Send + Sync, T: Pod>(self) -> Result<Vec<T>, Array> {
        bytemuck::allocation::try_cast_vec(self.owned::<U>()?)
            .map_err(|(_, elements)| elements.into())
    }
}

impl<T: Pod + Send + Sync> From<Vec<T>> for Array {
    fn from(elements: Vec<T>) -> Array {
        const { assert!(align_of::<T>() <= 16) };
        Array(Arc::new(elements))
    }
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array({} bytes, aligned to {})", self.bytes().len(), self.alignment())
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        self.alignment() == other.alignment() && self.bytes() == other.bytes()
    }
}

impl Eq for Array {}

impl Hash for Array {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl Serialize for Array {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.alignment() as u8, Bytes::new(self.bytes())).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Array {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Array, D::Error> {
        let (alignment, bytes) = <(u8, ByteBuf)>::deserialize(from)?;
        if alignment == 1 {
            return Ok(bytes.into_vec().into());
        }
        let incoming = IncomingArray::new(bytes.len(), usize::from(alignment));
        let mut incoming =
            incoming.ok_or_else(|| serde::de::Error::custom("no array is aligned like this"))?;
        incoming.take(&bytes);
        incoming.into_array().ok_or_else(|| serde::de::Error::custom("it has no such length"))
    }
}

/// A type whose values can be arrays.
trait ArrayValue: Sized + 'static {
    fn become_array(self) -> Array;
    /// `None`: it is not an array of this type.
    fn from_array(array: Array) -> Option<Self>;
    /// An array that shares the memory of a value. `None`: it would have to be a copy.
    fn share(_: Arc<Self>) -> Option<Array> {
        None
    }
    /// The value that was shared. An error: values of this type are never shared.
    fn shared(array: Array) -> Result<Option<Arc<Self>>, Array> {
        Err(array)
    }
}

impl ArrayValue for Array {
    fn become_array(self) -> Array {
        self
    }
    fn from_array(array: Array) -> Option<Self> {
        Some(array)
    }
}

impl<T: Pod + Send + Sync> ArrayValue for Vec<T> {
    fn become_array(self) -> Array {
        self.into()
    }
    fn from_array(array: Array) -> Option<Self> {
        array.into_vec()
    }
    fn share(elements: Arc<Self>) -> Option<Array> {
        Some(Array(elements))
    }
    fn shared(array: Array) -> Result<Option<Arc<Self>>, Array> {
        let elements: Arc<dyn Any + Send + Sync> = array.0.clone();
        let same = elements.downcast().ok();
        Ok(same.or_else(|| array.into_vec().map(Arc::new)))
    }
}

impl<T: Pod + Send + Sync> ArrayValue for Box<[T]> {
    fn become_array(self) -> Array {
        self.into_vec().into()
    }
    fn from_array(array: Array) -> Option<Self> {
        array.into_vec().map(Vec::into_boxed_slice)
    }
}

impl ArrayValue for String {
    fn become_array(self) -> Array {
        self.into_bytes().into()
    }
    fn from_array(array: Array) -> Option<Self> {
        array.into_vec().and_then(|bytes| String::from_utf8(bytes).ok())
    }
}

/// Calls `$attempt!` with each type whose values are arrays.
macro_rules! with_each_plain_type {
    ($attempt:ident) => {
        with_each_plain_type!(
            $attempt: u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize f32 f64
        );
        $attempt!(String);
        $attempt!(Array);
    };
    ($attempt:ident: $($element:ty)*) => {
        $($attempt!(Vec<$element>); $attempt!(Box<[$element]>);)*
    };
}

/// Whether values of this type are arrays.
pub(crate) fn is_plain<V: 'static>() -> bool {
    let kind = TypeId::of::<V>();
    macro_rules! compare {
        ($plain:ty) => {
            if kind == TypeId::of::<$plain>() {
                return true;
            }
        };
    }
    with_each_plain_type!(compare);
    false
}

/// The value as an array, if it is one.
pub(crate) fn from_value<V: 'static>(value: V) -> Result<Array, V> {
    if !is_plain::<V>() {
        return Err(value);
    }
    let mut value = Some(value);
    take_array(&mut value).ok_or_else(|| value.expect("nothing has taken it"))
}

// What follows is told the type as a value, so that it is compiled once, not for each type.

/// Takes the value out of the `Option` of a plain type.
fn take_array(value: &mut dyn Any) -> Option<Array> {
    macro_rules! take {
        ($plain:ty) => {
            if let Some(value) = value.downcast_mut::<Option<$plain>>() {
                return value.take().map(ArrayValue::become_array);
            }
        };
    }
    with_each_plain_type!(take);
    None
}

/// The value that was [made an array](from_value). `None`: it is not the array of such a value.
pub(crate) fn into_value<V: 'static>(array: Array) -> Option<V> {
    let mut value = None::<V>;
    put_array(array, &mut value);
    value
}

/// Puts the value that was made an array into the `Option` of its type.
fn put_array(array: Array, value: &mut dyn Any) {
    macro_rules! put {
        ($plain:ty) => {
            if let Some(value) = value.downcast_mut::<Option<$plain>>() {
                *value = ArrayValue::from_array(array);
                return;
            }
        };
    }
    with_each_plain_type!(put);
}

/// An array that shares the memory of a value. `None`: values of this type cannot be shared.
pub(crate) fn share<V: Send + Sync + 'static>(value: &Arc<V>) -> Option<Array> {
    if is_plain::<V>() { share_any(value.clone()) } else { None }
}

fn share_any(value: Arc<dyn Any + Send + Sync>) -> Option<Array> {
    macro_rules! share {
        ($plain:ty) => {
            if value.is::<$plain>() {
                return value.downcast::<$plain>().ok().and_then(ArrayValue::share);
            }
        };
    }
    with_each_plain_type!(share);
    None
}

/// The value that was [shared](share); within its process, the value itself. `None`: it is not the
/// array of such a value. An error: values of this type are not shared.
pub(crate) fn take_shared<V: Send + Sync + 'static>(array: Array) -> Result<Option<Arc<V>>, Array> {
    let value = take_shared_any(TypeId::of::<V>(), array)?;
    Ok(value.and_then(|value| value.downcast().ok()))
}

fn take_shared_any(
    kind: TypeId,
    array: Array,
) -> Result<Option<Arc<dyn Any + Send + Sync>>, Array> {
    macro_rules! take {
        ($plain:ty) => {
            if kind == TypeId::of::<$plain>() {
                return Ok(<$plain>::shared(array)?.map(|value| value as _));
            }
        };
    }
    with_each_plain_type!(take);
    Err(array)
}
