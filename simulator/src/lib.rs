//! Simulates jobs: many PEs and tasks, a modelled network, injected faults. Everything in a run
//! follows from its seed, so any run can be repeated.
//!
//! Each PE is the runtime's own [`Engine`], with its protocol, its port, its queue of messages and
//! its fail-over, and the rules of the runtime's own failure detector, [`Watch`]: what is simulated
//! is what runs. This crate only stands for what is around them, in a small file each, and must
//! never do any of their work.
//!
//! | module | what |
//! |---|---|
//! | [`workload`] | what the tasks do |
//! | `pe` | a PE: the engine, and what stands for its threads, queues and lanes |
//! | `traffic`, `transit` | how long messages take, and their order |
//! | `world` | time goes on from event to event |
//! | `job` | what is simulated |
//! | [`fault`] | what goes wrong on purpose |
//! | [`faults`] | random jobs with random faults |
//! | [`report`] | what a run came to |
//! | [`machine`], [`network`] | what it runs on |
//! | [`experiment`] | series of runs, as tables and charts ([`table`], [`chart`]) |
//! | [`published`] | figures of others to compare with |
//!
//! [`Engine`]: ultramarine_runtime::executor::engine::Engine
//! [`Watch`]: ultramarine_runtime::detector::watch::Watch
#![forbid(unsafe_code)]

pub mod chart;
mod dice;
pub mod experiment;
pub mod fault;
pub mod faults;
mod job;
pub mod machine;
pub mod network;
mod pe;
pub mod published;
pub mod report;
pub mod table;
mod traffic;
mod transit;
pub mod workload;
mod world;
