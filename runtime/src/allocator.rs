//! The allocator of programs: who allocates blocks of which length.

#![allow(unsafe_code)]

use crate::large_blocks;
use libmimalloc_sys::{mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned};
use libmimalloc_sys::{mi_zalloc, mi_zalloc_aligned};
use std::alloc::{GlobalAlloc, Layout, System};

/// The length up to which the system's allocator keeps freed blocks for the thread that has freed
/// them. If a worker frees what another has allocated, it gets that block again and again, while
/// the neighbours of the block in a cache line stay with the other. The two then wait for each
/// other at all that they allocate. mimalloc gives a block back to the thread that it came from.
/// (With the system's, searches for cliques take 1.3 to 2.2 times as long with two workers of one
/// process, and 1.1 to 1.2 times with one; a million empty tasks 1.2 times with one worker. But if
/// one worker spawns them and another runs them, they take 0.6 to 0.8 times as long.)
const SMALL_BYTES_MAX: usize = 1032;

/// mimalloc aligns all blocks like that; it takes longer for those that need more.
const SMALL_ALIGNMENT: usize = 8;

/// The allocator of programs, unless they choose another: mimalloc for blocks up to 1,032 bytes,
/// the system's for longer ones, and one of its own from 2 MiB. Of the large blocks that are freed
/// it keeps at most 256 MiB in each process. What has not been used for a second goes back to the
/// system as soon as the PE has nothing to do. New ones get huge pages where the system allows it.
#[derive(Debug)]
pub struct Allocator;

/// Who allocates a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Small,
    Middle,
    Large,
}

impl Kind {
    #[inline]
    fn of(layout: Layout) -> Self {
        if layout.size() <= SMALL_BYTES_MAX {
            Kind::Small
        } else if layout.size() < large_blocks::LARGE_BYTES
            || layout.align() > large_blocks::ALIGNMENT_MAX
        {
            Kind::Middle
        } else {
            Kind::Large
        }
    }
}

// SAFETY: Blocks do not overlap: each allocator has its own. A block is as long as its layout says,
// or longer. The layout says whose a block is, since no block changes its kind.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's.
        unsafe {
            match Kind::of(layout) {
                Kind::Small if layout.align() <= SMALL_ALIGNMENT => mi_malloc(layout.size()).cast(),
                Kind::Small => mi_malloc_aligned(layout.size(), layout.align()).cast(),
                Kind::Middle => System.alloc(layout),
                Kind::Large => large_blocks::alloc(layout.size()),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's.
        unsafe {
            match Kind::of(layout) {
                Kind::Small if layout.align() <= SMALL_ALIGNMENT => mi_zalloc(layout.size()).cast(),
                Kind::Small => mi_zalloc_aligned(layout.size(), layout.align()).cast(),
                Kind::Middle => System.alloc_zeroed(layout),
                Kind::Large => large_blocks::alloc_zeroed(layout.size()),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, begin: *mut u8, layout: Layout) {
        // SAFETY: The caller's.
        unsafe {
            match Kind::of(layout) {
                Kind::Small => mi_free(begin.cast()),
                Kind::Middle => System.dealloc(begin, layout),
                Kind::Large => large_blocks::dealloc(begin, layout.size()),
            }
        }
    }

    unsafe fn realloc(&self, begin: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: The caller says that it is a layout, and has given the block up. A block that
        // changes its kind is copied: the new one is another, and the part that is copied in both.
        unsafe {
            let new = Layout::from_size_align_unchecked(bytes, layout.align());
            let kind = Kind::of(layout);
            if kind != Kind::of(new) {
                let moved = self.alloc(new);
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(begin, bytes.min(layout.size()));
                    self.dealloc(begin, layout);
                }
                return moved;
            }
            match kind {
                Kind::Small if layout.align() <= SMALL_ALIGNMENT => {
                    mi_realloc(begin.cast(), bytes).cast()
                }
                Kind::Small => mi_realloc_aligned(begin.cast(), bytes, layout.align()).cast(),
                Kind::Middle => System.realloc(begin, layout, bytes),
                Kind::Large => large_blocks::realloc(begin, layout.size(), bytes),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_grows_or_shrinks_keeps_what_is_in_it() {
        let layout = |bytes| Layout::from_size_align(bytes, 16).expect("it is a layout");
        let large = large_blocks::LARGE_BYTES;
        let small = SMALL_BYTES_MAX;
        let lengths = [100, small, small + 1, large - 1, large, 3 << 20, 70 << 20, 70 << 20];
        // SAFETY: All that is written and read lies in the block, which is freed once.
        unsafe {
            let mut old = layout(50);
            let mut begin = Allocator.alloc_zeroed(old);
            begin.cast::<[u8; 4]>().write(*b"here");
            for length in lengths.into_iter().chain([5 << 20, 10_000, 20]) {
                begin = Allocator.realloc(begin, old, length);
                old = layout(length);
                assert_eq!(begin.cast::<[u8; 4]>().read(), *b"here");
                begin.add(length - 1).write(1);
            }
            Allocator.dealloc(begin, old);
        }
    }

    #[test]
    fn blocks_of_each_kind_are_aligned_and_zero() {
        for (bytes, align) in [(1, 1), (8, 4096), (1000, 64), (1 << 16, 8192), (5 << 20, 1 << 16)] {
            let layout = Layout::from_size_align(bytes, align).expect("it is a layout");
            // SAFETY: It is freed once, with its layout, and what is read lies in it.
            unsafe {
                let begin = Allocator.alloc_zeroed(layout);
                assert_eq!(begin.align_offset(align), 0, "{layout:?}");
                assert!(std::slice::from_raw_parts(begin, bytes).iter().all(|byte| *byte == 0));
                Allocator.dealloc(begin, layout);
            }
        }
    }
}
