//! Names the code of a task in a way that another process of the same program understands.
//!
//! Each function item, and each closure that captures nothing, has its own type, whose values have
//! no bytes: the type is the code. For each such type the compiler puts one constant [`Code`] into
//! the program's read-only data. On the wire a task's code is the offset of that constant from the
//! program's load address, with a hash of the type. The processes of a job run the same binary
//! (start-up compares build identities), so the offset means the same everywhere, also when the
//! system loads the binary at random addresses. The program registers nothing.
//!
//! A [`CodeRef`] from the wire is used only after five checks: the constant lies inside the
//! binary's read-only data, is aligned, begins with the magic number and the anchor, is for tasks
//! that arrive at a place of this type, and its own type has the hash that was sent. Nothing is
//! called before.
//!
//! This is the only file that knows code addresses.
#![allow(unsafe_code)]

use std::any::TypeId;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Stands at the beginning of each [`Code`]; two random numbers.
const MAGIC: [u64; 2] = [0x8d4c_2f61_b7e3_095a, 0x51f0_93de_6ab8_c427];

/// Each [`Code`] points here. The magic number alone also stands where it is compared with; nothing
/// but a `Code` has this address behind it.
static ANCHOR: u8 = 0;

/// A type that is nothing but code: a function item, or a closure that captures nothing.
///
/// A closure that captures only values without bytes counts as well. What such a value stands for
/// must then hold in every process of the program.
///
/// Whether a type has bytes is checked when the program is compiled to machine code (`cargo build`,
/// not `cargo check`); see [`Context`](crate::executor::Context#functions).
#[diagnostic::on_unimplemented(
    message = "a task's function must not capture variables, because only its argument travels to \
               other PEs",
    label = "this captures a value that is not `Copy`, `Send` and `Sync`",
    note = "pass what it needs as the argument, as in `cx.spawn(radius, async |cx, (a, b)| …, \
            (a, b))`"
)]
pub trait Stateless: Copy + Send + Sync + 'static {
    /// Fails to compile for a type that has bytes. A function that takes a task's function begins
    /// with `const { F::CHECKED };`, so that the compiler names the line where it is called.
    const CHECKED: () = if size_of::<Self>() != 0 {
        captures()
    };
}

/// A separate function, so that the compiler's error names the place above and not one in the core
/// library.
#[track_caller]
const fn captures() -> ! {
    panic!(
        "a task's function must not capture variables, because only its argument travels to other \
         PEs: pass what it needs as the argument, as in `cx.spawn(radius, async |cx, (a, b)| …, \
         (a, b))` (a function pointer is a value, too: name the function itself)"
    );
}

#[diagnostic::do_not_recommend]
impl<F: Copy + Send + Sync + 'static> Stateless for F {}

/// A function that returns the name of a task's function, for people to read.
pub(crate) type Name = fn() -> &'static str;

/// The name of a function. One thread writes it, at the price of a store, and others may read it.
#[derive(Default)]
pub(crate) struct NameCell(AtomicPtr<()>);

impl NameCell {
    pub(crate) fn set(&self, name: Option<Name>) {
        let name = name.map_or(std::ptr::null_mut(), |name| name as *mut ());
        self.0.store(name, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<Name> {
        let name = self.0.load(Ordering::Relaxed);
        // SAFETY: `set` alone writes here, and it writes null or such a function.
        (!name.is_null()).then(|| unsafe { std::mem::transmute::<*mut (), Name>(name) })
    }

    /// Sets the name, and returns the old one. Only one thread at a time may set it.
    pub(crate) fn replace(&self, name: Option<Name>) -> Option<Name> {
        let old = self.get();
        self.set(name);
        old
    }
}

/// A kind of task: code that can run with an argument that arrived as bytes.
pub trait Arrive<X>: Stateless {
    /// Runs a task of this kind; `at` is where it arrived.
    fn arrive(self, at: X, argument: &[u8]);
}

/// The entry in the program's read-only data for one kind of task. `X` is the type of the place
/// where a task arrives.
#[repr(C)]
pub struct Code<X: 'static> {
    magic: [u64; 2],
    anchor: &'static u8,
    /// The type `X`.
    place: TypeId,
    kind: TypeId,
    entry: fn(X, &[u8]),
}

/// Makes the compiler put the [`Code`] of the kind `K` into the read-only data.
struct StaticCode<K, X>(PhantomData<(K, X)>);

impl<K: Arrive<X>, X: 'static> StaticCode<K, X> {
    const CODE: &'static Code<X> = &Code {
        magic: MAGIC,
        anchor: &ANCHOR,
        place: TypeId::of::<X>(),
        kind: TypeId::of::<K>(),
        entry: |at, argument| {
            // SAFETY: an entry is called through `Code::of`, whose caller had a value of `K`, or
            // through `Code::resolve`, whose reference comes from a `Code::of` in a process of
            // the same program.
            let kind: K = unsafe { conjure() };
            kind.arrive(at, argument);
        },
    };
}

impl<X: 'static> Code<X> {
    /// The code of this kind of task.
    ///
    /// # Panics
    ///
    /// The kind has bytes. (A function that takes a task's function [checks](Stateless::CHECKED)
    /// that when it is compiled. A second check here would only repeat the error, far from its
    /// cause.)
    pub fn of<K: Arrive<X>>(_kind: K) -> &'static Self {
        assert_eq!(size_of::<K>(), 0, "a kind of task has bytes");
        StaticCode::<K, X>::CODE
    }

    /// Runs a task of this kind.
    pub fn arrive(&self, at: X, argument: &[u8]) {
        (self.entry)(at, argument);
    }

    /// The name of this code on the wire.
    ///
    /// # Errors
    ///
    /// The code is not part of the program's binary, but of a library loaded beside it. Then its
    /// address means nothing in other processes.
    pub fn reference(&'static self) -> Result<CodeRef, CodeError> {
        let image = Image::of_this_program();
        let address = std::ptr::from_ref(self).addr();
        if !image.holds(address, size_of::<Self>()) {
            return Err(CodeError::OutsideTheProgram);
        }
        Ok(CodeRef { offset: address.wrapping_sub(image.base) as u64, hash: hash(self.kind) })
    }

    /// The code that a reference from the wire names.
    ///
    /// # Errors
    ///
    /// One of the five checks fails; see the [module](self).
    pub fn resolve(reference: CodeRef) -> Result<&'static Self, CodeError> {
        let image = Image::of_this_program();
        let address = image.base.wrapping_add(reference.offset as usize);
        if !image.holds(address, size_of::<Self>()) {
            return Err(CodeError::OutsideTheProgram);
        }
        if !address.is_multiple_of(align_of::<Self>()) {
            return Err(CodeError::Misaligned);
        }
        let code = std::ptr::with_exposed_provenance::<Self>(address);
        // SAFETY: `holds` found `size_of::<Self>()` bytes from `address` inside a segment of this
        // program that is mapped, initialised from the file, never written after start-up and
        // never unmapped; the address is aligned for `Self`, so for its fields. Any bytes are
        // valid integers, and the pointer is only read as one.
        let (magic, anchor) =
            unsafe { ((*code).magic, (&raw const (*code).anchor).cast::<usize>().read()) };
        if magic != MAGIC || anchor != (&raw const ANCHOR).addr() {
            return Err(CodeError::NotATask);
        }
        // SAFETY: as above; and the magic number before the address of the private `ANCHOR` stands
        // nowhere but at the beginning of a `Code<Y>`. Its fields lie where those of `Self` do
        // (`repr(C)`, and no field's layout depends on `Y`), so that there is a `TypeId` here.
        let place = unsafe { (*code).place };
        if place != TypeId::of::<X>() {
            return Err(CodeError::OtherPlace);
        }
        // SAFETY: as above; and `Y` is `X`.
        let code: &'static Self = unsafe { &*code };
        if hash(code.kind) != reference.hash {
            return Err(CodeError::OtherType);
        }
        Ok(code)
    }
}

/// Makes the one value of a type without bytes.
///
/// # Safety
///
/// A value of `F` must have existed, in this process or in another of the same program: so that
/// this is no more than a copy of it, which `F: Copy + Send` allows everywhere.
unsafe fn conjure<F: Stateless>() -> F {
    assert_eq!(size_of::<F>(), 0, "a kind of task has bytes");
    // SAFETY: `F` has no bytes, so a dangling aligned pointer is valid for reading one; that `F`
    // has values at all is the caller's promise.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

/// The name of a task's code on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRef {
    /// From the program's load address to its [`Code`], in bytes.
    offset: u64,
    /// Of the type that is the code.
    hash: u64,
}

impl CodeRef {
    /// Its length on the wire, in bytes.
    pub const BYTES: usize = 16;

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..].copy_from_slice(&self.hash.to_le_bytes());
        bytes
    }

    /// Splits the bytes of a task into the reference in front and the argument behind it.
    ///
    /// # Errors
    ///
    /// There are too few bytes for a reference.
    pub fn split(bytes: &[u8]) -> Result<(Self, &[u8]), CodeError> {
        let (offset, rest) = bytes.split_first_chunk().ok_or(CodeError::Truncated)?;
        let (hash, rest) = rest.split_first_chunk().ok_or(CodeError::Truncated)?;
        let (offset, hash) = (u64::from_le_bytes(*offset), u64::from_le_bytes(*hash));
        Ok((CodeRef { offset, hash }, rest))
    }
}

/// Why a reference names no code of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// There are too few bytes for a reference.
    #[error("its code reference is cut short")]
    Truncated,
    /// It points outside the read-only data of the binary.
    #[error("its code is not part of the program's binary")]
    OutsideTheProgram,
    /// Its address is not aligned.
    #[error("its code reference is misaligned")]
    Misaligned,
    /// What it points at is something else.
    #[error("its code reference does not point at a task")]
    NotATask,
    /// What it points at is a task that arrives at a place of another type.
    #[error("its code reference points at a task that arrives elsewhere")]
    OtherPlace,
    /// What it points at is a task of another type.
    #[error("its code reference points at another task than the sender meant")]
    OtherType,
}

fn hash(kind: TypeId) -> u64 {
    let mut hasher = TypeIdHasher(0);
    kind.hash(&mut hasher);
    hasher.finish()
}

/// Takes a `TypeId` as it is, since it is a hash already. (To hash it once more took 20 ns, twice
/// for each task.)
struct TypeIdHasher(u64);

impl Hasher for TypeIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(size_of::<u64>()) {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(1) ^ word;
    }
}

/// Where this program's binary lies in memory.
struct Image {
    /// Load address: what the system added to the addresses in the file.
    base: usize,
    /// The parts that cannot be written once the program runs.
    read_only: Vec<Range<usize>>,
}

impl Image {
    fn of_this_program() -> &'static Image {
        static IMAGE: OnceLock<Image> = OnceLock::new();
        IMAGE.get_or_init(|| {
            let mut image = Image { base: 0, read_only: Vec::new() };
            // SAFETY: `note_program` has the type that the function calls it with, and its
            // `data` is the image, which outlives the call.
            unsafe { libc::dl_iterate_phdr(Some(note_program), (&raw mut image).cast()) };
            image
        })
    }

    /// Whether the `len` bytes from `address` are read-only data of the program.
    fn holds(&self, address: usize, len: usize) -> bool {
        let Some(end) = address.checked_add(len) else { return false };
        self.read_only.iter().any(|part| part.start <= address && end <= part.end)
    }
}

/// Notes the first object that the dynamic linker lists, which is the program itself.
extern "C" fn note_program(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    image: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the linker passes a valid description, and `image` is what `of_this_program` gave.
    let (info, image) = unsafe { (&*info, &mut *image.cast::<Image>()) };
    image.base = info.dlpi_addr as usize;
    // SAFETY: the linker says that `dlpi_phnum` headers stand there.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for header in headers {
        let loaded_unwritable = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0;
        if loaded_unwritable || header.p_type == libc::PT_GNU_RELRO {
            let start = image.base.wrapping_add(header.p_vaddr as usize);
            image.read_only.push(start..start.wrapping_add(header.p_memsz as usize));
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    type Seen = std::rc::Rc<std::cell::RefCell<Vec<u8>>>;
    #[derive(Clone, Copy)]
    struct Kind;
    #[derive(Clone, Copy)]
    struct Other;
    impl Arrive<Seen> for Kind {
        fn arrive(self, at: Seen, argument: &[u8]) {
            at.borrow_mut().extend(argument);
        }
    }
    impl Arrive<u8> for Kind {
        fn arrive(self, _: u8, _: &[u8]) {}
    }
    impl Arrive<Seen> for Other {
        fn arrive(self, _: Seen, _: &[u8]) {}
    }

    #[test]
    fn a_reference_finds_its_code_again() {
        let reference = Code::<Seen>::of(Kind).reference().expect("part of this program");
        let bytes = [&reference.to_bytes()[..], b"argument"].concat();
        let (read, rest) = CodeRef::split(&bytes).expect("long enough");
        assert_eq!((read, rest), (reference, &b"argument"[..]));
        let seen = Seen::default();
        Code::resolve(read).expect("the same program").arrive(seen.clone(), rest);
        assert_eq!(*seen.borrow(), b"argument");
    }

    #[test]
    fn wrong_references_are_refused() {
        let good = Code::<Seen>::of(Kind).reference().expect("part of this program");
        let other = Code::<Seen>::of(Other).reference().expect("part of this program");
        let refused = |offset, hash| Code::<Seen>::resolve(CodeRef { offset, hash }).err();
        assert_eq!(refused(u64::MAX - 8, good.hash), Some(CodeError::OutsideTheProgram));
        assert_eq!(refused(1 << 40, good.hash), Some(CodeError::OutsideTheProgram));
        assert_eq!(refused(good.offset + 4, good.hash), Some(CodeError::Misaligned));
        assert_eq!(refused(good.offset + 8, good.hash), Some(CodeError::NotATask));
        assert_eq!(refused(other.offset, good.hash), Some(CodeError::OtherType));
        assert_eq!(CodeRef::split(&[0; 15]), Err(CodeError::Truncated));
        // A word on the heap is writable: whatever it says, it is not code.
        let heap = Box::new(MAGIC);
        let offset = std::ptr::from_ref(&*heap).addr().wrapping_sub(Image::of_this_program().base);
        assert_eq!(refused(offset as u64, good.hash), Some(CodeError::OutsideTheProgram));
    }

    #[test]
    fn code_for_another_place_is_refused() {
        let there = Code::<u8>::of(Kind).reference().expect("part of this program");
        assert!(matches!(Code::<Seen>::resolve(there), Err(CodeError::OtherPlace)));
        assert!(Code::<u8>::resolve(there).is_ok());
    }

    #[test]
    fn no_random_reference_is_believed() {
        let mut state = 7u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let reference = CodeRef { offset: (state >> 40) & !7, hash: state };
            assert!(Code::<Seen>::resolve(reference).is_err());
        }
    }
}
