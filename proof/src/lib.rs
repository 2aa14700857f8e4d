//! Proof.
pub mod membership;
pub mod supervision;
