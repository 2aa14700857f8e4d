//! Proofs that a job survives the deaths of its processes, in three ways:
//!
//! | module | what is checked | how large |
//! |---|---|---|
//! | [`supervision`], [`membership`] | the runtime's own state machines, in every order of events | few PEs, few tasks |
//! | [`spin`] | the same protocol, written again in Promela | the same |
//! | [`simulation`] | the runtime's own engine, in random orders of events | whole jobs |
//!
//! The first drives [`ultramarine_runtime::protocol`] unchanged, the last
//! [`ultramarine_runtime::executor::engine`]: what is proven is what runs. This crate only stands
//! for what is around them, the workers and the network. It must never do any of their own work.
//!
//! Each proof has mutants: the protocol with one rule left out, for which the proof must fail.
#![forbid(unsafe_code)]

pub mod membership;
pub mod search;
pub mod simulation;
pub mod spin;
pub mod supervision;
