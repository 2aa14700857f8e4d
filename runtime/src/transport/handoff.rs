//! How PEs of one process hand arrays to each other: the array stays in a table, and only its
//! number is sent.

use crate::array::Array;
use crate::lock::Lock;
use std::collections::HashMap;

/// Arrays on their way between the PEs of one process.
#[derive(Default)]
pub struct ArrayHandoff(Lock<HandoffTable>);

#[derive(Default)]
struct HandoffTable {
    last: u64,
    by_number: HashMap<u64, Array>,
}

impl ArrayHandoff {
    /// Puts an array into the table. Returns its number.
    pub fn put(&self, array: Array) -> u64 {
        let mut arrays = self.0.lock();
        arrays.last += 1;
        let number = arrays.last;
        arrays.by_number.insert(number, array);
        number
    }

    /// Takes the array with this number out of the table; `None` if it has been taken already.
    pub fn take(&self, number: u64) -> Option<Array> {
        self.0.lock().by_number.remove(&number)
    }
}
