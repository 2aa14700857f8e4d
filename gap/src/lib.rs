//! GAP, the computer algebra system, computes for tasks.
//!
//! A [`Pool`] starts GAPs when they are needed, gives them functions to compute, as many at once
//! as there are threads that call, and replaces those that die. Tasks share one in a `static`,
//! which each process of the job has for itself:
//!
//! ```no_run
//! use std::sync::LazyLock;
//! use ultramarine::prelude::*;
//! use ultramarine_gap::{GapError, Pool, Settings};
//!
//! static GAP: LazyLock<Pool> =
//!     LazyLock::new(|| Pool::new(Settings::default().library("SumPhi := l -> Sum(l, Phi);")));
//!
//! fn sum_phi(numbers: Vec<u64>) -> Result<u64, GapError> {
//!     Ok(GAP.call("SumPhi", &[numbers.into()])?.try_into()?)
//! }
//!
//! fn main() -> ultramarine::Result<()> {
//!     ultramarine::run(async |cx| {
//!         GAP.available()?;
//!         let parts = (0..100).map(|part| (100 * part + 1..=100 * (part + 1)).collect()).collect();
//!         let sums: Vec<Result<u64, GapError>> = par_map(&cx, sum_phi, parts).await?;
//!         let sum: u64 = sums.into_iter().sum::<Result<_, _>>()?;
//!         println!("{sum}");
//!         Ok(())
//!     })
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
//! result. A call of an empty function takes 30 µs there and back; a list of 10^5 integers takes
//! some 15 ms.
//!
//! There is a standard for calls between computer algebra systems, SCSCP. It is not used here: its
//! messages are `OpenMath`, which is XML, over TCP. GAP takes tens of times as long to parse them,
//! any user of the host can connect, and it needs packages (SCSCP, `OpenMath`, `GAPDoc`, IO) that a
//! small installation of GAP does not have. Each task would still need a GAP of its own.
//!
//! A pool must never know what is computed, and for whom.

#![forbid(unsafe_code)]

mod child;
mod elsewhere;
mod error;
mod frame;
mod pool;
mod process;
mod settings;
mod value;

pub use self::elsewhere::elsewhere;
pub use self::error::{Death, GapError, WrongType};
pub use self::pool::Pool;
pub use self::process::Function;
pub use self::settings::Settings;
pub use self::value::{Permutation, Value};

/// The oldest GAP that is known to work.
const OLDEST: &str = "4.12";
