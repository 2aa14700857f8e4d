//! GAP, the computer algebra system, computes for tasks.
//!
//! A [`Pool`] starts GAPs when they are needed, gives them functions to compute, as many at once
//! as there are threads that call, and replaces those that die. Tasks share one in a `static`,
//! which each process of the job has for itself:
//!
//! ```no_run
//! use std::ops::Range;
//! use std::sync::LazyLock;
//! use ultramarine::prelude::*;
//! use ultramarine_gap::{GapError, Pool, Settings};
//!
//! const SUM_PHI: &str = "SumPhi := { from, to } -> Sum([ from .. to - 1 ], Phi);";
//!
//! static GAP: LazyLock<Pool> = LazyLock::new(|| Pool::new(Settings::default().library(SUM_PHI)));
//!
//! fn sum_phi(range: Range<u64>) -> Result<u64, GapError> {
//!     Ok(GAP.call("SumPhi", &[range.start.into(), range.end.into()])?.try_into()?)
//! }
//!
//! fn main() -> ultramarine::Result<()> {
//!     ultramarine::run(async |cx| {
//!         GAP.available()?;
//!         let sums = par_map(&cx, sum_phi, split_range(1..100_001, 100)).await?;
//!         println!("{}", sums.into_iter().sum::<Result<u64, GapError>>()?);
//!         Ok(())
//!     })?;
//!     GAP.end_idle();
//!     Ok(())
//! }
//! ```
//!
//! If GAP dies amid a call, the call is tried again with a fresh one; [`elsewhere`] tries other
//! PEs, too. The error says how GAP died, and what it printed last.
//!
//! # How values travel
//!
//! A call and its result are frames of bytes in pipes (`pkg/ultramarine/lib/values.g` describes
//! them). No argument becomes source text of GAP, and nothing that a function prints gets into its
//! result. A call of an empty function takes 10 to 40 µs there and back; a list of 10^5 integers
//! takes 8 ms to GAP and 17 ms back.
//!
//! There is a standard for calls between computer algebra systems, SCSCP. It is not used here: its
//! messages are `OpenMath`, which is XML, over TCP. GAP parses that in its own language, and takes
//! 200 ms for 10^5 integers instead of 4; any user of the host can connect; and it needs packages
//! (SCSCP, `OpenMath`, `GAPDoc`, IO) that a small installation does not have. Something would still
//! have to start a GAP for each worker, and look after it.
//!
//! A pool must never know what is computed, and for whom.

#![forbid(unsafe_code)]

mod child;
mod elsewhere;
mod error;
#[doc(hidden)]
pub mod frame;
mod pool;
mod process;
mod settings;
mod value;

pub use self::elsewhere::{another, elsewhere};
pub use self::error::{Death, GapError, WrongType};
pub use self::pool::Pool;
pub use self::process::{Function, Needs};
pub use self::settings::Settings;
pub use self::value::{Permutation, Value};

/// The oldest GAP that is known to work.
const OLDEST: &str = "4.12";
