//! The quick proofs: each model in the sizes that are checked within minutes, random jobs, and the
//! model in Promela.

mod membership;
mod spin;
mod supersteps;
mod supervision;
mod tables;
