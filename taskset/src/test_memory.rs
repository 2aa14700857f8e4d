//! Memory for the tests of this crate.

use crate::memory::Memory;
use crate::sync::AtomicU64;

/// Words of zero.
pub(crate) struct TestMemory(Vec<AtomicU64>);

impl TestMemory {
    pub(crate) fn new(words: usize) -> Self {
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Memory for TestMemory {
    fn words(&self, offset: u64, count: usize) -> Option<&[AtomicU64]> {
        let first = usize::try_from(offset / 8).ok()?;
        self.0.get(first..first.checked_add(count)?).filter(|_| offset.is_multiple_of(8))
    }
}
