//! Arrays of plain data, which are sent without being encoded.
//!
//! A `Vec` or `Box<[T]>` of numbers, or a `String`, is one block of memory whose bytes mean the
//! same in every process of a job, since all run the same binary. Its bytes are sent from where
//! they lie. The receiver puts them into memory that is aligned for the elements, and makes a `Vec`
//! of it without a copy.
//!
//! What goes beside a message may consist of several such blocks, each with memory of its own: a
//! value that holds several arrays has one for each long array.
//!
//! The type of a value decides whether it is such an array. All other values are encoded by
//! [`wire`](crate::wire).

mod encoded;
pub(crate) mod held;
mod incoming;
#[cfg(test)]
mod tests;
pub(crate) mod within;

pub use encoded::Encoded;
pub use incoming::IncomingArray;
pub(crate) use incoming::{BlockShape, IncomingBlocks, shapes_bytes};

use bytemuck::Pod;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};
use std::any::{Any, TypeId};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An array consists of at most this many blocks.
pub(crate) const BLOCKS_MAX: usize = 64;

/// Bytes in memory that is aligned for their type: one block of them, or several. Clones share the
/// memory.
#[derive(Clone)]
pub struct Array(Arc<dyn Elements>);

/// Where the bytes are.
trait Elements: Any + Send + Sync {
    fn bytes(&self) -> &[u8];
    fn alignment(&self) -> usize;
    /// The blocks, if they are several.
    fn blocks(&self) -> Option<&[Array]> {
        None
    }
}

/// Several blocks, each an array of its own.
struct Several(Vec<Array>);

impl Elements for Several {
    fn bytes(&self) -> &[u8] {
        &[]
    }

    fn alignment(&self) -> usize {
        1
    }

    fn blocks(&self) -> Option<&[Array]> {
        Some(&self.0)
    }
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
    /// These blocks, none of which consists of several, as one array.
    pub(crate) fn of_blocks(mut blocks: Vec<Array>) -> Array {
        debug_assert!(blocks.len() <= BLOCKS_MAX, "no peer takes more");
        debug_assert!(blocks.iter().all(|block| block.0.blocks().is_none()), "there is one level");
        match blocks.pop() {
            Some(only) if blocks.is_empty() => only,
            last => {
                blocks.extend(last);
                Array(Arc::new(Several(blocks)))
            }
        }
    }

    /// The blocks; of most arrays, the array itself.
    pub fn blocks(&self) -> &[Array] {
        self.0.blocks().unwrap_or(std::slice::from_ref(self))
    }

    /// The blocks, which are shared only if this array is.
    fn into_blocks(self) -> Vec<Array> {
        if self.0.blocks().is_none() {
            return vec![self];
        }
        let elements: Arc<dyn Any + Send + Sync> = self.0;
        let several = elements.downcast::<Several>().map(Arc::try_unwrap);
        several.map_or(Vec::new(), |all| all.map_or_else(|all| all.0.clone(), |all| all.0))
    }

    /// The number of bytes of all blocks.
    pub fn size_bytes(&self) -> usize {
        self.blocks().iter().map(|block| block.bytes().len()).sum()
    }

    /// The bytes; none, if there are several [blocks](Self::blocks).
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The alignment of the memory, in bytes: 1, 2, 4, 8 or 16. Each of several
    /// [blocks](Self::blocks) has its own.
    pub fn alignment(&self) -> usize {
        self.0.alignment()
    }

    /// The elements: the memory itself, if it is not shared and is aligned for them; else a copy.
    /// `None`: the bytes are not a whole number of elements, or not one block.
    fn into_vec<T: Pod + Send + Sync>(self) -> Option<Vec<T>> {
        // The type as it was sent, if that was in this process; or as it was received.
        self.owned::<T>().map_or_else(Array::into_received_vec, Some)
    }

    /// The same for an array that was received.
    fn into_received_vec<T: Pod>(self) -> Option<Vec<T>> {
        if self.0.blocks().is_some() || !self.bytes().len().is_multiple_of(size_of::<T>()) {
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
        match self.0.blocks() {
            Some(blocks) => f.debug_list().entries(blocks).finish(),
            None => {
                write!(f, "Array({} bytes, aligned to {})", self.size_bytes(), self.alignment())
            }
        }
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        let each = |array: &Array| (array.alignment(), array.bytes().len());
        let (these, those) = (self.blocks().iter(), other.blocks().iter());
        these.clone().map(each).eq(those.clone().map(each))
            && these.zip(those).all(|(this, that)| this.bytes() == that.bytes())
    }
}

impl Eq for Array {}

impl Hash for Array {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.blocks().iter().for_each(|block| block.bytes().hash(state));
    }
}

impl Array {
    /// The most bytes that a block adds to its own where an array is encoded.
    pub(crate) const BLOCK_OVERHEAD_BYTES: usize = 10;
}

/// The alignment and the bytes of each block.
impl Serialize for Array {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(
            self.blocks().iter().map(|block| (block.alignment() as u8, Bytes::new(block.bytes()))),
        )
    }
}

impl<'de> Deserialize<'de> for Array {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Array, D::Error> {
        let blocks = Vec::<(u8, ByteBuf)>::deserialize(from)?;
        if blocks.is_empty() || blocks.len() > BLOCKS_MAX {
            return Err(serde::de::Error::custom("no array has this many blocks"));
        }
        let blocks = blocks.into_iter().map(|(alignment, bytes)| {
            if alignment == 1 {
                return Some(bytes.into_vec().into());
            }
            let mut incoming = IncomingArray::new(bytes.len(), usize::from(alignment))?;
            incoming.take(&bytes);
            incoming.into_array()
        });
        let blocks = blocks.collect::<Option<_>>().map(Array::of_blocks);
        blocks.ok_or_else(|| serde::de::Error::custom("no array has this length and alignment"))
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
