//! Proofs that a job survives the deaths of its processes, in two ways:
//!
//! | module | what is checked | how large |
//! |---|---|---|
//! | [`supervision`], [`membership`] | the runtime's own state machines, in every order of events | few PEs, few tasks |
//! | [`supersteps`] | the same of a skeleton: bulk-synchronous runs | few PEs, few ranks |
//! | [`tables`] | and of another: distributed tables | few PEs, few requests |
//! | [`spin`] | the same protocol, written again in Promela | the same |
//!
//! The first drives [`ultramarine_runtime::protocol`] unchanged: what is proven is what runs. This
//! crate only stands for what is around it, the workers and the network. It must never do any of
//! its work. Whole jobs are simulated in random orders of events by the crate `simulator`.
//!
//! Each proof has mutants: the protocol with one rule left out, for which the proof must fail.
#![forbid(unsafe_code)]

mod frame;
pub mod membership;
pub mod search;
pub mod spin;
pub mod supersteps;
pub mod supervision;
pub mod tables;
