//! What a machine handles.

/// What a table is about. The machine knows nothing of keys, values or hashes.
pub trait Kind {
    /// What is asked of a share at once.
    type Batch: Clone;
    /// What a batch has changed.
    type Change: Clone;
    /// What comes of a batch.
    type Answer: Clone;
    /// Some of the entries of a share.
    type Entries: Clone;
}
