//! Series of runs that answer a question: tables and charts come out.
//!
//! | file | what |
//! |---|---|
//! | `base` | a job on a modelled machine, and what a run of it came to |

mod base;
mod trial;

pub use base::Base;
pub use trial::trial;
