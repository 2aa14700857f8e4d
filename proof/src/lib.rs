//! Proof.
pub mod membership;
pub mod simulation;
pub mod supervision;
