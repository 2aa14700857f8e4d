//! Proof.
pub mod membership;
pub mod supervision;
pub mod simulation;
