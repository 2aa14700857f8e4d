//! A job is a good guest on a machine that it shares with others: it takes no more than it was
//! given, gets along with other jobs, and leaves nothing behind.

mod job;
mod neighbours;
mod ordinary;
mod threads;

const LIOUVILLE: &str = env!("CARGO_BIN_EXE_liouville");
