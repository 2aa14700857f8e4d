//! Large blocks of memory, whose pages are kept when they are freed.
//!
//! The system gives new pages to each large block, and takes them back when it is freed. To make
//! them and fill them with zeros takes longer than to copy an array into them. So the pages of the
//! large blocks that were freed last are kept, and are those of the next large blocks. (Results of
//! 8, 64 and 255 MiB from another process of the host come at 8.9, 5.1 and 5.0 GB/s instead of 5.8,
//! 2.0 and 1.9: medians of 3 runs on two cores.)

#![allow(unsafe_code)]

use crate::lock::Lock;
use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap,
};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// The least length of a large block.
pub(crate) const LARGE_BYTES: usize = HUGE_PAGE_BYTES;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A block is as long as some huge pages. Those of one or two would be up to twice as long as what
/// is in them, so they end with small pages: their lengths are multiples of this.
const SHORT_UNIT_BYTES: usize = 256 << 10;
const SHORT_BYTES_MAX: usize = 2 * HUGE_PAGE_BYTES;

/// The system aligns blocks like that.
pub(crate) const ALIGNMENT_MAX: usize = 4096;

/// At most this much is kept, in bytes, and for this long.
const KEPT_BYTES_MAX: usize = 256 << 20;
const KEPT_FOR: Duration = Duration::from_secs(1);

/// The bytes that a block of this length takes; `None`: there are none.
fn rounded(bytes: usize) -> Option<usize> {
    let is_short = bytes <= SHORT_BYTES_MAX;
    bytes.checked_next_multiple_of(if is_short { SHORT_UNIT_BYTES } else { HUGE_PAGE_BYTES })
}

/// A block of this length, with anything in it; null if there is none.
pub(crate) fn alloc(bytes: usize) -> *mut u8 {
    let Some(bytes) = rounded(bytes) else { return null_mut() };
    let kept = KEPT.lock().take(bytes);
    kept.map_or_else(|| map(bytes), Block::into_pointer)
}

/// A block of this length, full of zeros; null if there is none.
pub(crate) fn alloc_zeroed(bytes: usize) -> *mut u8 {
    let Some(rounded) = rounded(bytes) else { return null_mut() };
    let Some(block) = KEPT.lock().take(rounded) else { return map(rounded) };
    let begin = block.into_pointer();
    // SAFETY: It has this length, and nothing uses it.
    unsafe { begin.write_bytes(0, bytes) };
    begin
}

/// Frees a block of this length.
///
/// # Safety
///
/// It is such a block, and nothing uses it.
pub(crate) unsafe fn dealloc(begin: *mut u8, bytes: usize) {
    if let Some(bytes) = rounded(bytes) {
        keep(Block { begin: begin.expose_provenance(), bytes, freed: Instant::now() });
    }
}

/// Makes a block of `from` bytes longer or shorter, and moves it if need be; null: it is as it was.
///
/// # Safety
///
/// It is such a block, and the caller has given it up unless the result is null.
pub(crate) unsafe fn realloc(begin: *mut u8, from: usize, to: usize) -> *mut u8 {
    let Some((from, to)) = rounded(from).zip(rounded(to)) else { return null_mut() };
    if from == to {
        return begin;
    }
    // SAFETY: The caller's.
    let moved = unsafe { mremap(begin.cast(), from, to, MremapFlags::MAYMOVE) };
    moved.map_or(null_mut(), <*mut c_void>::cast)
}

/// A new block; null if there is none.
fn map(bytes: usize) -> *mut u8 {
    // With room to begin at a huge page.
    let Some(room) = bytes.checked_add(HUGE_PAGE_BYTES) else { return null_mut() };
    // SAFETY: New memory, at no place that is taken.
    let mapped = unsafe {
        mmap_anonymous(null_mut(), room, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    let Ok(mapped) = mapped else { return null_mut() };
    let before = mapped.align_offset(HUGE_PAGE_BYTES).min(HUGE_PAGE_BYTES);
    let begin = mapped.wrapping_byte_add(before);
    // SAFETY: It is memory of the mapping, which is used by nothing yet.
    unsafe {
        unmap(mapped, before);
        unmap(begin.wrapping_byte_add(bytes), HUGE_PAGE_BYTES - before);
        // If there are no huge pages, nothing is lost.
        let _ = madvise(begin, bytes, Advice::LinuxHugepage);
    }
    begin.cast()
}

/// Gives memory back to the system.
///
/// # Safety
///
/// It is whole pages that the system has mapped, and nothing uses them.
unsafe fn unmap(begin: *mut c_void, bytes: usize) {
    if bytes > 0 {
        // SAFETY: The caller's. It fails only if the process has too many mappings: then the pages
        // are lost to it.
        let _ = unsafe { munmap(begin, bytes) };
    }
}

/// A large block that nothing uses.
#[derive(Clone, Copy)]
struct Block {
    begin: usize,
    bytes: usize,
    freed: Instant,
}

impl Block {
    fn into_pointer(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.begin)
    }

    fn unmap(self) {
        // SAFETY: It is mapped, and nothing uses it.
        unsafe { unmap(self.into_pointer().cast(), self.bytes) };
    }
}

/// Those that are kept.
struct Kept([Option<Block>; KEPT_BLOCKS_MAX]);

const KEPT_BLOCKS_MAX: usize = KEPT_BYTES_MAX / LARGE_BYTES;

static KEPT: Lock<Kept> = Lock::new(Kept([None; KEPT_BLOCKS_MAX]));

impl Kept {
    /// Takes a block of this length, if there is one: the one that was freed last.
    fn take(&mut self, bytes: usize) -> Option<Block> {
        let fits = |kept: &&mut Option<Block>| kept.is_some_and(|block| block.bytes == bytes);
        let last = self.0.iter_mut().filter(fits).max_by_key(|kept| kept.map(|block| block.freed));
        last.and_then(Option::take)
    }

    /// Keeps a block, which is not longer than all that is kept. If there is no room for it, the
    /// oldest is returned instead, which must go first.
    fn put(&mut self, block: Block) -> Option<Block> {
        let kept: usize = self.0.iter().flatten().map(|kept| kept.bytes).sum();
        let has_room = kept + block.bytes <= KEPT_BYTES_MAX;
        match self.0.iter_mut().find(|kept| kept.is_none()).filter(|_| has_room) {
            None => self.take_oldest(|_| true),
            Some(free) => {
                *free = Some(block);
                None
            }
        }
    }

    /// Takes the block that was freed first, of those that may go.
    fn take_oldest(&mut self, may_go: impl Fn(&Block) -> bool) -> Option<Block> {
        let old = self.0.iter_mut().filter(|kept| kept.as_ref().is_some_and(&may_go));
        old.min_by_key(|kept| kept.map(|block| block.freed)).and_then(Option::take)
    }
}

/// Keeps a block that was freed, in place of the oldest if need be.
fn keep(block: Block) {
    if block.bytes > KEPT_BYTES_MAX {
        return block.unmap();
    }
    // Not under the lock: the system takes its time.
    let oldest = || KEPT.lock().put(block);
    std::iter::from_fn(oldest).for_each(Block::unmap);
}

/// Gives the pages of blocks back that have not been used for a while.
pub(crate) fn give_back_unused() {
    let now = Instant::now();
    let is_unused = |block: &Block| now.saturating_duration_since(block.freed) > KEPT_FOR;
    let unused = || KEPT.lock().take_oldest(is_unused);
    std::iter::from_fn(unused).for_each(Block::unmap);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_block_is_the_next_of_its_length() {
        let bytes = 9 * HUGE_PAGE_BYTES - 100;
        // SAFETY: All that is written lies in a block, which is freed once.
        unsafe {
            let first = alloc(bytes);
            assert_eq!(first.align_offset(HUGE_PAGE_BYTES), 0, "it begins at a huge page");
            first.write_bytes(7, bytes);
            dealloc(first, bytes);
            let second = alloc(bytes);
            assert_eq!((second, second.read()), (first, 7));
            dealloc(second, bytes);
            let third = alloc_zeroed(bytes);
            let all = std::slice::from_raw_parts(third, bytes);
            assert_eq!(third, first);
            assert!(all.iter().all(|byte| *byte == 0));
            dealloc(third, bytes);
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
        let start = Instant::now();
        let block = |number: usize, mebibytes: usize| Block {
            begin: number,
            bytes: mebibytes << 20,
            freed: start + Duration::from_secs(number as u64),
        };
        let mut kept = Kept([None; KEPT_BLOCKS_MAX]);
        assert!(
            [block(2, 100), block(1, 100), block(3, 50)].iter().all(|it| kept.put(*it).is_none())
        );
        let begin = |block: Option<Block>| block.map(|block| block.begin);
        assert_eq!(begin(kept.put(block(4, 150))), Some(1));
        assert_eq!(begin(kept.put(block(4, 150))), Some(2));
        assert_eq!(begin(kept.put(block(4, 150))), None, "there is room now");
        assert_eq!(begin(kept.take(49 << 20)), None);
        assert_eq!(begin(kept.take(150 << 20)), Some(4));
        assert_eq!(begin(kept.take_oldest(|block| block.begin > 3)), None);
        assert_eq!(begin(kept.take_oldest(|_| true)), Some(3));
        assert!((0..KEPT_BLOCKS_MAX).all(|number| kept.put(block(number, 2)).is_none()));
        assert_eq!(begin(kept.put(block(99, 2))), Some(0), "all places are taken");
    }

    #[test]
    fn what_is_not_used_goes_back() {
        let bytes = 11 * HUGE_PAGE_BYTES;
        // SAFETY: It is freed once.
        unsafe { dealloc(alloc(bytes), bytes) };
        let is_kept = || KEPT.lock().0.iter().flatten().any(|block| block.bytes == bytes);
        give_back_unused();
        assert!(is_kept());
        std::thread::sleep(KEPT_FOR + Duration::from_millis(10));
        give_back_unused();
        assert!(!is_kept());
    }

    #[test]
    fn what_the_system_does_not_have_is_null() {
        let bytes = isize::MAX as usize / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        assert!(alloc(bytes).is_null() && alloc_zeroed(bytes).is_null());
    }
}
