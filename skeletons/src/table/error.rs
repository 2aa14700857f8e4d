//! The errors of tables.

use serde::{Deserialize, Serialize};
use ultramarine_runtime::error::TaskError;
use ultramarine_topology::Pe;

/// Why a table has not done what it was asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TableError {
    /// All PEs that held a part of the table have died. The table is over.
    #[error(
        "the table `{table}` has lost a part: {dead} PEs have died, and each entry was held by \
         {holders} (more `copies` outlive more)"
    )]
    Lost {
        /// The table.
        table: String,
        /// The number of PEs that have died.
        dead: u32,
        /// The number of PEs that held each entry, at most.
        holders: usize,
    },
    /// The entries on a PE would take more than the [limit](super::Opening::memory_max). None of
    /// the keys that were sent there together was inserted; the table goes on.
    #[error(
        "the table `{table}` is full on {pe}: {bytes} bytes would be more than `memory_max`, \
         {limit}"
    )]
    Full {
        /// The table.
        table: String,
        /// The PE.
        pe: Pe,
        /// What the entries there would take, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A function panicked that updates entries, or code of the keys and values (`Hash`, `Eq`,
    /// `Clone`, serde); or what an update returns cannot be encoded. The table is over, since what
    /// was done to entries is not known everywhere.
    #[error("in the table `{table}`: {message}")]
    Panicked {
        /// The table.
        table: String,
        /// What the panic said.
        message: String,
    },
    /// Copies cannot be told of a change, which cannot be encoded, or decoded there. The table is
    /// over, since its copies would differ from it.
    #[error("the copies of the table `{table}` cannot be told of a change: {reason}")]
    CopiesNotTold {
        /// The table.
        table: String,
        /// Why not.
        reason: String,
    },
    /// The function of a [search](crate::orbit::reachable_batched) says that it cannot go on.
    #[error("{message}")]
    Failed {
        /// What it says.
        message: String,
    },
    /// A table of this name is open, with other types.
    #[error("the table `{table}` is open with {open}, not with {wanted}")]
    OtherTypes {
        /// The table.
        table: String,
        /// Its types of keys and values.
        open: String,
        /// Those that were asked for.
        wanted: String,
    },
    /// A table of this name is open, with other copies, or another limit of memory.
    #[error("the table `{table}` is open with {open}, not with {wanted}")]
    OtherOptions {
        /// The table.
        table: String,
        /// What it was opened with.
        open: String,
        /// What was asked for.
        wanted: String,
    },
    /// The table was closed: the [`Table`](super::Table) that was opened has been dropped.
    #[error("the table `{table}` is closed")]
    Closed {
        /// The table.
        table: String,
    },
    /// The job ends, or the runtime refused something: a key or a value cannot be encoded, or
    /// decoded by the owner of the key, or is too long for a message. In the latter cases the table
    /// goes on.
    #[error(transparent)]
    Task(#[from] TaskError),
}
