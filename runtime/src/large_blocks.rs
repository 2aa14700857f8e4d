//! An allocator that keeps the pages of large blocks.
//!
//! The system gives new pages to each large block, and takes them back when it is freed. To make
//! them and fill them with zeros takes longer than to copy an array into them. So the pages of the
//! large blocks that were freed last are kept, and are those of the next large blocks.

#![allow(unsafe_code)]

use crate::lock::Lock;
use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// Shorter blocks are those of the system's allocator, which [keeps](crate::os_memory::keep_freed)
/// what is freed itself.
const LARGE_BYTES: usize = HUGE_PAGE_BYTES;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A block is as long as some huge pages. Those of one or two would be up to twice as long as what
/// is in them, so they end with small pages: their lengths are multiples of this.
const SHORT_UNIT_BYTES: usize = 256 << 10;
const SHORT_BYTES_MAX: usize = 2 * HUGE_PAGE_BYTES;

/// The system aligns blocks like that.
const ALIGNMENT_MAX: usize = 4096;

/// At most this much is kept, in bytes, and for this long.
const KEPT_BYTES_MAX: usize = 256 << 20;
const KEPT_FOR: Duration = Duration::from_secs(1);

/// The allocator of programs, unless they choose another: that of the system, but for blocks of
/// 2 MiB and more. Of those that are freed it keeps at most 256 MiB in each process. What has not
/// been used for a second goes back to the system as soon as the PE has nothing to do. New blocks
/// get huge pages where the system allows it.
///
/// (Results of 8, 64 and 255 MiB from another process of the host come at 8.9, 5.1 and 5.0 GB/s
/// instead of 5.8, 2.0 and 1.9: medians of 3 runs on two cores.)
#[derive(Debug)]
pub struct Allocator;

/// Whether such a block is one of ours.
fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE_BYTES && layout.align() <= ALIGNMENT_MAX
}

/// The bytes of a large block; `None`: there are none of that length.
fn rounded(bytes: usize) -> Option<usize> {
    let is_short = bytes <= SHORT_BYTES_MAX;
    bytes.checked_next_multiple_of(if is_short { SHORT_UNIT_BYTES } else { HUGE_PAGE_BYTES })
}

// SAFETY: Blocks do not overlap: those of the system are its own, and a large one is memory that
// the system has mapped for it, until it is freed. It is as long as the layout says or longer. A
// layout says whose a block is, since no block changes its kind.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_large(layout) {
            // SAFETY: The caller's.
            return unsafe { System.alloc(layout) };
        }
        let Some(bytes) = rounded(layout.size()) else { return null_mut() };
        let kept = KEPT.lock().take(bytes);
        kept.map_or_else(|| map(bytes), Block::into_pointer)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_large(layout) {
            // SAFETY: The caller's.
            return unsafe { System.alloc_zeroed(layout) };
        }
        let Some(bytes) = rounded(layout.size()) else { return null_mut() };
        let Some(block) = KEPT.lock().take(bytes) else { return map(bytes) };
        let begin = block.into_pointer();
        // SAFETY: It has this length.
        unsafe { begin.write_bytes(0, layout.size()) };
        begin
    }

    unsafe fn dealloc(&self, begin: *mut u8, layout: Layout) {
        match rounded(layout.size()).filter(|_| is_large(layout)) {
            Some(bytes) => {
                keep(Block { begin: begin.expose_provenance(), bytes, freed: Instant::now() });
            }
            // SAFETY: The caller's.
            None => unsafe { System.dealloc(begin, layout) },
        }
    }

    unsafe fn realloc(&self, begin: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: The caller says that it is a layout.
        let new = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        match (is_large(layout), is_large(new)) {
            // SAFETY: The caller's.
            (false, false) => unsafe { System.realloc(begin, layout, bytes) },
            (true, true) => {
                let rounded = rounded(layout.size()).zip(rounded(bytes));
                // SAFETY: It is a block of this length, and the caller has given it up.
                rounded.map_or(null_mut(), |(from, to)| unsafe { resize(begin, from, to) })
            }
            // SAFETY: The blocks are different ones, and the part that is copied is in both.
            _ => unsafe {
                let moved = self.alloc(new);
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(begin, bytes.min(layout.size()));
                    self.dealloc(begin, layout);
                }
                moved
            },
        }
    }
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

/// Makes a block longer or shorter, and moves it if need be; null: it is as it was.
///
/// # Safety
///
/// It is a large block of `from` bytes.
unsafe fn resize(begin: *mut u8, from: usize, to: usize) -> *mut u8 {
    if from == to {
        return begin;
    }
    // SAFETY: The caller's.
    let moved = unsafe { mremap(begin.cast(), from, to, MremapFlags::MAYMOVE) };
    moved.map_or(null_mut(), <*mut c_void>::cast)
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

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 16).expect("it is a layout")
    }

    #[test]
    fn a_freed_block_is_the_next_of_its_length() {
        let layout = layout(9 * HUGE_PAGE_BYTES - 100);
        // SAFETY: All that is written lies in a block, which is freed once.
        unsafe {
            let first = Allocator.alloc(layout);
            assert_eq!(first.align_offset(HUGE_PAGE_BYTES), 0, "it begins at a huge page");
            first.write_bytes(7, layout.size());
            Allocator.dealloc(first, layout);
            let second = Allocator.alloc(layout);
            assert_eq!((second, second.read()), (first, 7));
            Allocator.dealloc(second, layout);
            let third = Allocator.alloc_zeroed(layout);
            let bytes = std::slice::from_raw_parts(third, layout.size());
            assert_eq!(third, first);
            assert!(bytes.iter().all(|byte| *byte == 0));
            Allocator.dealloc(third, layout);
        }
    }

    #[test]
    fn a_block_that_grows_or_shrinks_keeps_what_is_in_it() {
        let sizes =
            [100, LARGE_BYTES - 1, LARGE_BYTES, 3 << 20, 70 << 20, 70 << 20, 5 << 20, 10_000];
        // SAFETY: All that is written and read lies in the block, which is freed once.
        unsafe {
            let mut old = layout(50);
            let mut begin = Allocator.alloc_zeroed(old);
            begin.cast::<[u8; 4]>().write(*b"here");
            for size in sizes {
                begin = Allocator.realloc(begin, old, size);
                old = layout(size);
                assert_eq!(begin.cast::<[u8; 4]>().read(), *b"here");
                begin.add(size - 1).write(1);
            }
            Allocator.dealloc(begin, old);
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
        let layout = layout(11 * HUGE_PAGE_BYTES);
        // SAFETY: It is freed once.
        unsafe { Allocator.dealloc(Allocator.alloc(layout), layout) };
        let is_kept = || KEPT.lock().0.iter().flatten().any(|block| block.bytes == layout.size());
        give_back_unused();
        assert!(is_kept());
        std::thread::sleep(KEPT_FOR + Duration::from_millis(10));
        give_back_unused();
        assert!(!is_kept());
    }

    #[test]
    fn what_the_system_does_not_have_is_null() {
        let bytes = isize::MAX as usize / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        // SAFETY: Nothing is done with it.
        assert!(unsafe { Allocator.alloc(layout(bytes)) }.is_null());
        // SAFETY: As above.
        assert!(unsafe { Allocator.alloc_zeroed(layout(bytes)) }.is_null());
    }
}
