//! The kinds of arrays that are found in values, whatever serde is told about them.

#![allow(unsafe_code)]

use super::PlainElements;
use crate::array::held::{Blocks, Changed, Root};
use crate::array::{Array, IncomingArray};
use bytemuck::Pod;
use serde::de::value::Error as ValueError;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use std::any::TypeId;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

/// Calls `$act!` with each type of numbers.
macro_rules! with_each_number {
    ($act:ident) => {
        $act!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize f32 f64)
    };
}
pub(super) use with_each_number;

/// A type of numbers. On the wire it is its place in the list above, so it means the same in the
/// processes of one program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind(pub(super) u8);

/// What is on the wire for elements that only their owner knows.
pub(super) const PLAIN: Kind = Kind(u8::MAX);

/// An array may be aligned to at most this, in bytes.
const ALIGNMENT_MAX: usize = 16;

/// The bytes of an array, and what they are.
pub(super) struct Found<'a> {
    pub(super) kind: Kind,
    /// The number of elements; of plain ones, of bytes.
    pub(super) length: usize,
    pub(super) bytes: &'a [u8],
    alignment: usize,
    /// Where the `Vec` or `String` lies, if it is one.
    holder: Option<Root>,
    /// The array that has the bytes, if there is one.
    shared: Option<&'a Array>,
}

impl<'a> Found<'a> {
    fn of<N: Pod>(kind: u8, elements: &'a [N], holder: Option<Root>) -> Self {
        let (length, bytes) = (elements.len(), bytemuck::cast_slice(elements));
        Found { kind: Kind(kind), length, bytes, alignment: align_of::<N>(), holder, shared: None }
    }

    /// Bytes of any kind.
    pub(super) fn bytes(bytes: &'a [u8]) -> Self {
        Found { kind: PLAIN, length: bytes.len(), bytes, alignment: 1, holder: None, shared: None }
    }

    /// Adds the array to those of its value, if it may stay there. Returns whether it may.
    pub(super) fn stay_in(&self, blocks: &mut Blocks) -> Result<bool, Changed> {
        let Some(holder) = &self.holder else { return Ok(false) };
        blocks.add_place(holder, self.bytes, self.alignment)
    }

    /// Whether the encoding of the elements is the same as their bytes.
    pub(super) fn is_its_encoding(&self) -> bool {
        macro_rules! compare {
            ($($number:ty)*) => {{
                let fixed = [$(
                    TypeId::of::<$number>() == TypeId::of::<u8>()
                        || TypeId::of::<$number>() == TypeId::of::<i8>()
                        || TypeId::of::<$number>() == TypeId::of::<f32>()
                        || TypeId::of::<$number>() == TypeId::of::<f64>()
                ),*];
                fixed.get(usize::from(self.kind.0)).is_some_and(|fixed| *fixed)
            }};
        }
        cfg!(target_endian = "little") && with_each_number!(compare)
    }

    /// A copy, in memory that is aligned for the elements; or the array itself.
    pub(super) fn to_array(&self) -> Array {
        if let Some(shared) = self.shared {
            return shared.clone();
        }
        let array = IncomingArray::new(self.bytes.len(), self.alignment).and_then(|mut array| {
            array.take(self.bytes);
            array.into_array()
        });
        array.expect("it is an array that exists")
    }
}

/// The array of which a `Vec` or a slice asks to have each element encoded.
#[inline]
pub(super) fn find<I>(elements: &I) -> Option<Found<'_>> {
    let of = typeid::of::<I>();
    let place = std::ptr::from_ref(elements);
    let mut kind = 0;
    macro_rules! compare {
        ($($number:ty)*) => { $(
            if of == typeid::of::<&Vec<$number>>() {
                // SAFETY: It is of this type but for the lifetime of the reference, which is longer
                // than that of `elements`.
                let elements = unsafe { *place.cast::<&Vec<$number>>() };
                return Some(Found::of(kind, elements, Some(Root::of(elements))));
            }
            if of == typeid::of::<&[$number]>() {
                // SAFETY: As above.
                return Some(Found::of(kind, unsafe { *place.cast::<&[$number]>() }, None));
            }
            kind += 1;
        )* };
    }
    with_each_number!(compare);
    let _ = kind;
    None
}

/// The elements of [`plain`](crate::plain), if the value is that.
pub(super) fn find_plain<T: ?Sized>(value: &T) -> Option<Found<'_>> {
    if typeid::of::<T>() != typeid::of::<PlainElements<'_>>() {
        return None;
    }
    // SAFETY: It is of this type but for the lifetime of its bytes, which is longer than that of
    // `value`.
    let elements = unsafe { &*std::ptr::from_ref(value).cast::<PlainElements<'_>>() };
    let PlainElements { bytes, alignment, holder, shared } = elements;
    // Of those that are aligned to more, only the bytes are sent.
    let alignment = *alignment.min(&ALIGNMENT_MAX);
    let (holder, shared) = (holder.clone(), *shared);
    Some(Found { kind: PLAIN, length: bytes.len(), bytes, alignment, holder, shared })
}

/// Whether this is a type of numbers.
pub(super) fn is_number<T: ?Sized>() -> bool {
    macro_rules! compare {
        ($($number:ty)*) => { [$(TypeId::of::<$number>()),*].contains(&typeid::of::<T>()) };
    }
    with_each_number!(compare)
}

/// Whether this is serde's own visitor of a `Vec` of such numbers, which takes the elements as they
/// are. (Others may check them.)
pub(super) fn is_visitor_of_vec<'de, V: Visitor<'de>>(kind: Kind) -> bool {
    static VISITORS: OnceLock<Vec<TypeId>> = OnceLock::new();
    macro_rules! visitors {
        ($($number:ty)*) => { vec![$(visitor_of::<Vec<$number>>()),*] };
    }
    let visitors = VISITORS.get_or_init(|| with_each_number!(visitors));
    visitors.get(usize::from(kind.0)) == Some(&typeid::of::<V>())
}

/// The type of the visitor with which a sequence asks for its elements.
fn visitor_of<S: for<'de> Deserialize<'de>>() -> TypeId {
    let mut visitor = TypeId::of::<()>();
    let asked = S::deserialize(Ask(&mut visitor));
    debug_assert!(asked.is_err(), "it was given nothing");
    visitor
}

/// Notes the type of the visitor of a sequence, and gives it nothing.
struct Ask<'a>(&'a mut TypeId);

impl<'de> Deserializer<'de> for Ask<'_> {
    type Error = ValueError;

    fn deserialize_seq<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
        *self.0 = typeid::of::<V>();
        Err(ValueError::custom("nothing"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
        Err(ValueError::custom("nothing"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The value itself. `None`: `B` is another type.
pub(super) fn same<A: 'static, B>(value: A) -> Option<B> {
    if TypeId::of::<A>() != typeid::of::<B>() {
        return None;
    }
    let value = ManuallyDrop::new(value);
    // SAFETY: `B` is the same type but for lifetimes, which `A` does not have; and the value is not
    // used again.
    Some(unsafe { std::mem::transmute_copy::<ManuallyDrop<A>, B>(&value) })
}
