//! The hierarchy of a job and the distances in it: which PEs are near each other?
//!
//! The processing elements ([`Pe`]) of a job stand in a hierarchy of sites, switches, hosts,
//! packages and NUMA nodes. `SymGridPar2` (§4.1) reduces it to an ultrametric [`Distance`]: PEs
//! that part at the top level are at distance 1, those that part one level below at 1/2, and so on.
//!
//! ```text
//!                    machine                 distance 1
//!               ╱               ╲
//!           rack r1            rack r2       distance 1/2
//!          ╱       ╲          ╱       ╲
//!       host a   host b    host c   host d
//!        PE 0     PE 1      PE 2     PE 3
//! ```
//!
//! This crate finds the [`Place`] of a process ([`Sources`]), builds a [`Topology`] from the places
//! of all processes, and answers questions about it: the distance of two PEs, the PEs within a
//! radius (a [`Ball`]), the PEs that should get large pieces of work (an
//! [equidistant basis](Topology::equidistant_basis)).
//!
//! ```
//! use ultramarine_topology::{Distance, LevelKind::{Host, Switch}, Pe, Place, Topology};
//!
//! // The picture above, with one process of 8 worker threads on each host.
//! let hosts = [("r1", "a"), ("r1", "b"), ("r2", "c"), ("r2", "d")];
//! let places = hosts.map(|(rack, host)| Place::from_pairs([(Switch, rack), (Host, host)]));
//! let job = Topology::new(&places, &[8; 4])?;
//!
//! let [a, b, c, _] = [0, 1, 2, 3].map(Pe::new);
//! assert_eq!(job.distance(a, b), Distance::ONE.half());
//! assert_eq!(job.distance(a, c), Distance::ONE);
//!
//! // Large tasks go to one PE of each rack, in proportion to the threads of the racks.
//! let basis = job.equidistant_basis(a, Distance::ONE, &mut || 0);
//! assert_eq!(basis, [(a, 16), (c, 16)]);
//! # Ok::<(), ultramarine_topology::TopologyError>(())
//! ```
//!
//! It must never know what the answers are for: no tasks, no messages, no threads. Callers pass in
//! all randomness. Callers also bring the places of the processes together.
//!
//! # Which module answers which question
//!
//! | question | module | items |
//! |---|---|---|
//! | How far are two PEs from each other? Which PEs are near? | `hierarchy`, `ball`, `distance` | [`Topology`], [`Ball`], [`Distance`] |
//! | What is the place of a PE? | `place` | [`Place`], [`Label`], [`LevelKind`] |
//! | Where is this process? | `discover` | [`Sources`], [`Discovery`] |
//! | What does a topology file look like? How is one written? | [`file`](mod@file) | [`file::to_toml`] |
//! | What does a host name say about racks? | [`hostname`] | [`hostname::SCHEMES`] |
//! | What does `nid[001-064]` mean? | [`host_list`] | [`host_list::expand`] |
//! | What does Slurm say about switches? | `slurm` | |
//! | To which package and NUMA node is this process bound? | `hwloc`, `domains` | [`Domains`] |
//! | How does the hierarchy look, as text or as a picture? | `outline`, `draw` | [`Outline`] |
#![forbid(unsafe_code)]

mod ball;
mod discover;
mod distance;
mod domains;
mod draw;
mod error;
pub mod file;
mod hierarchy;
pub mod host_list;
pub mod hostname;
#[cfg(feature = "hwloc")]
mod hwloc;
mod outline;
mod pe;
mod place;
mod slurm;

pub use ball::Ball;
pub use discover::{Discovery, PlaceSource, Sources};
pub use distance::Distance;
pub use domains::Domains;
pub use error::TopologyError;
pub use hierarchy::Topology;
pub use host_list::{HOSTS_LIMIT, HostListError};
pub use outline::{Outline, OutlineKind};
pub use pe::Pe;
pub use place::{DEPTH_LIMIT, Label, LevelKind, Place};
