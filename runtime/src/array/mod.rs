//! Arrays of plain data, which travel as they are.
//!
//! A `Vec` or `Box<[T]>` of numbers, or a `String`, is one piece of memory whose bytes mean the
//! same in every process of a job, since all run the same binary. It is not encoded: its bytes are
//! sent from where they lie, and are received in memory that is aligned for its elements, of which
//! a `Vec` is made without a copy.
//!
//! Which values those are is decided by their type. All others are encoded by
//! [`wire`](crate::wire).

#[cfg(test)]
mod tests;

use crate::transport::link::prefer_huge_pages;
use bytemuck::Pod;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Bytes in memory that is aligned for what they are. A clone shares the memory.
#[derive(Clone)]
pub struct Array(Arc<dyn Elements>);

/// What can be done with a `Vec`, whatever its elements are.
trait Elements: Any + Send + Sync {
    fn bytes(&self) -> &[u8];
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Appends zeros until it has this length in bytes, or a few more to make up a whole element.
    fn grow(&mut self, bytes: usize);
    fn alignment(&self) -> usize;
}

impl<T: Pod + Send + Sync> Elements for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }

    fn grow(&mut self, bytes: usize) {
        self.resize(bytes.div_ceil(size_of::<T>()), T::zeroed());
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

    /// What the memory is aligned to, in bytes: 1, 2, 4, 8 or 16.
    pub fn alignment(&self) -> usize {
        self.0.alignment()
    }

    /// An empty one with room for this many bytes. `None`: no array has them.
    fn with_room(bytes: usize, alignment: usize) -> Option<Array> {
        fn of<T: Pod + Send + Sync>(bytes: usize) -> Array {
            let mut elements = Vec::<T>::with_capacity(bytes / size_of::<T>());
            prefer_huge_pages(elements.spare_capacity_mut());
            elements.into()
        }
        let with_room = match alignment {
            1 => of::<u8>,
            2 => of::<u16>,
            4 => of::<u32>,
            8 => of::<u64>,
            16 => of::<u128>,
            _ => return None,
        };
        bytes.is_multiple_of(alignment).then(|| with_room(bytes))
    }

    /// The elements: the memory itself, if nobody else has it and it is aligned for them; else a
    /// copy. `None`: the bytes are not a whole number of elements.
    fn into_vec<T: Pod + Send + Sync>(self) -> Option<Vec<T>> {
        if !self.bytes().len().is_multiple_of(size_of::<T>()) {
            return None;
        }
        // As it left, if that was in this process; or as it arrived.
        let elements = self.owned::<T>().or_else(|array| match align_of::<T>() {
            1 => array.recast::<u8, T>(),
            2 => array.recast::<u16, T>(),
            4 => array.recast::<u32, T>(),
            8 => array.recast::<u64, T>(),
            _ => array.recast::<u128, T>(),
        });
        Some(elements.unwrap_or_else(|shared| bytemuck::pod_collect_to_vec(shared.bytes())))
    }

    /// The memory, if it has such elements and nobody else has it.
    fn owned<T: Pod + Send + Sync>(self) -> Result<Vec<T>, Array> {
        let elements: Arc<dyn Any + Send + Sync> = self.0.clone();
        let Ok(elements) = elements.downcast::<Vec<T>>() else { return Err(self) };
        drop(self);
        Arc::try_unwrap(elements).map_err(|shared| Array(shared))
    }

    /// The memory, if its elements are `U` and nobody else has it, as a `Vec` of `T`.
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
        let arriving = Arriving::new(bytes.len(), usize::from(alignment));
        let mut arriving =
            arriving.ok_or_else(|| serde::de::Error::custom("no array is aligned like this"))?;
        arriving.take(&bytes);
        Ok(arriving.into_array())
    }
}

/// An array whose bytes come one after the other.
pub struct Arriving {
    array: Array,
    /// How many bytes have come, and how many there will be.
    come: usize,
    bytes: usize,
}

impl Arriving {
    /// One of this many bytes in all. `None`: there is no such array.
    pub fn new(bytes: usize, alignment: usize) -> Option<Arriving> {
        Some(Arriving { array: Array::with_room(bytes, alignment)?, come: 0, bytes })
    }

    /// How many bytes are still to come.
    pub fn missing(&self) -> usize {
        self.bytes - self.come
    }

    /// Takes the next bytes.
    ///
    /// # Panics
    ///
    /// If there are more than are missing.
    pub fn take(&mut self, bytes: &[u8]) {
        self.next(bytes.len()).copy_from_slice(bytes);
    }

    /// Where the next bytes belong, `bytes_max` or as many as are missing. They have come then.
    pub fn next(&mut self, bytes_max: usize) -> &mut [u8] {
        let begin = self.come;
        self.come += bytes_max.min(self.missing());
        let elements =
            Arc::get_mut(&mut self.array.0).expect("it is not given away before its end");
        // Zeros that are overwritten at once, in the cache.
        elements.grow(self.come);
        &mut elements.bytes_mut()[begin..self.come]
    }

    /// The array, as much of it as has come.
    pub fn into_array(self) -> Array {
        self.array
    }
}

/// A type whose values are arrays.
trait Plain: Sized + 'static {
    fn become_array(self) -> Array;
    /// `None`: it is not an array of this type.
    fn from_array(array: Array) -> Option<Self>;
    /// An array in the memory of a value that others have, too. `None`: it would be a copy.
    fn share(_: Arc<Self>) -> Option<Array> {
        None
    }
    /// The value that was shared. An error: those of this type never are.
    fn shared(array: Array) -> Result<Option<Arc<Self>>, Array> {
        Err(array)
    }
}

impl Plain for Array {
    fn become_array(self) -> Array {
        self
    }
    fn from_array(array: Array) -> Option<Self> {
        Some(array)
    }
}

impl<T: Pod + Send + Sync> Plain for Vec<T> {
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

impl<T: Pod + Send + Sync> Plain for Box<[T]> {
    fn become_array(self) -> Array {
        self.into_vec().into()
    }
    fn from_array(array: Array) -> Option<Self> {
        array.into_vec().map(Vec::into_boxed_slice)
    }
}

impl Plain for String {
    fn become_array(self) -> Array {
        self.into_bytes().into()
    }
    fn from_array(array: Array) -> Option<Self> {
        array.into_vec().and_then(|bytes| String::from_utf8(bytes).ok())
    }
}

/// Has `$attempt!` tried with each type whose values are arrays.
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
    let kind = std::any::TypeId::of::<V>();
    macro_rules! compare {
        ($plain:ty) => {
            if kind == std::any::TypeId::of::<$plain>() {
                return true;
            }
        };
    }
    with_each_plain_type!(compare);
    false
}

/// The value as an array, if it is one.
pub(crate) fn from_value<V: 'static>(value: V) -> Result<Array, V> {
    let mut value = Some(value);
    macro_rules! take {
        ($plain:ty) => {
            let slot: &mut dyn Any = &mut value;
            if let Some(plain) = slot.downcast_mut::<Option<$plain>>().and_then(Option::take) {
                return Ok(plain.become_array());
            }
        };
    }
    with_each_plain_type!(take);
    Err(value.expect("nothing has taken it"))
}

/// The value that was [made an array](from_value). `None`: no value of this type becomes such an
/// array.
pub(crate) fn into_value<V: 'static>(array: Array) -> Option<V> {
    let mut value = None::<V>;
    macro_rules! put {
        ($plain:ty) => {
            let slot: &mut dyn Any = &mut value;
            if let Some(slot) = slot.downcast_mut::<Option<$plain>>() {
                *slot = Plain::from_array(array);
                return value;
            }
        };
    }
    with_each_plain_type!(put);
    None
}

/// An array in the memory of a value that others have, too. `None`: that cannot be had of this
/// type.
pub(crate) fn share<V: Send + Sync + 'static>(value: &Arc<V>) -> Option<Array> {
    let value: Arc<dyn Any + Send + Sync> = value.clone();
    macro_rules! share {
        ($plain:ty) => {
            if let Ok(plain) = value.clone().downcast::<$plain>() {
                return Plain::share(plain);
            }
        };
    }
    with_each_plain_type!(share);
    None
}

/// The value that was [shared](share): itself, within its process. `None`: it is no such array. An
/// error: values of this type are not shared.
pub(crate) fn take_shared<V: Send + Sync + 'static>(array: Array) -> Result<Option<Arc<V>>, Array> {
    macro_rules! take {
        ($plain:ty) => {
            if std::any::TypeId::of::<V>() == std::any::TypeId::of::<$plain>() {
                let value: Option<Arc<dyn Any + Send + Sync>> =
                    <$plain>::shared(array)?.map(|value| value as _);
                return Ok(value.and_then(|value| value.downcast().ok()));
            }
        };
    }
    with_each_plain_type!(take);
    Err(array)
}
