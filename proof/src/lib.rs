//! Proofs that a job survives the deaths of its processes, at three depths:
//!
//! | module | what | how far |
//! |---|---|---|
//! | [`supervision`], [`membership`] | the runtime's own state machines, every order of events | few PEs, few tasks |
//! | [`spin`] | the same protocol, written again in Promela | the same |
//! | [`simulation`] | the runtime's own state machines, random orders of events | whole jobs |
//!
//! The first and the last drive [`ultramarine_runtime::protocol`] as it is: what is proven is what
//! runs. This crate only stands for what is around it, the workers and the network, and must never
//! do a part of the protocol's own work.
//!
//! Each proof has mutants: the same with a rule left out, which must fail.
#![forbid(unsafe_code)]

pub mod membership;
pub mod search;
pub mod simulation;
pub mod spin;
pub mod supervision;
