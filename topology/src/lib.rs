//! Who is near whom: the hierarchy of a job and the distances in it.
//!
//! A job's processing elements ([`Pe`]) stand in a hierarchy of sites, switches, hosts, packages
//! and NUMA nodes. `SymGridPar2` (§4.1) sees in it only an ultrametric [`Distance`]: PEs that part
//! at the top are at distance 1, one level below at 1/2, and so on. This crate finds out where a
//! process is ([`Sources`]), makes a [`Topology`] of the [`Place`]s of all, and answers questions:
//! how far, who is within a radius ([`Ball`]), whom to give work to ([equidistant
//! bases](Topology::equidistant_basis)).
//!
//! It must never know what the answers are for: no tasks, no messages, no threads. All randomness
//! is handed in. How the processes tell each other their places is for the caller, too.
//!
//! ```
//! use ultramarine_topology::{Distance, LevelKind::{Host, Switch}, Pe, Place, Topology};
//!
//! // Two racks with two hosts each, one process with 8 threads per host.
//! let hosts = [("r1", "a"), ("r1", "b"), ("r2", "c"), ("r2", "d")];
//! let places = hosts.map(|(rack, host)| Place::from_pairs([(Switch, rack), (Host, host)]));
//! let job = Topology::new(&places, &[8; 4])?;
//!
//! let [a, b, c, _] = [0, 1, 2, 3].map(Pe::new);
//! assert_eq!(job.distance(a, b), Distance::ONE.half());
//! assert_eq!(job.distance(a, c), Distance::ONE);
//!
//! // Big tasks go to one PE per rack, in proportion to the racks' threads.
//! let basis = job.equidistant_basis(a, Distance::ONE, &mut || 0);
//! assert_eq!(basis, [(a, 16), (c, 16)]);
//! # Ok::<(), ultramarine_topology::TopologyError>(())
//! ```
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
pub use discover::{Discovery, Source, Sources};
pub use distance::Distance;
pub use domains::Domains;
pub use error::TopologyError;
pub use hierarchy::{DEPTH_LIMIT, Topology};
pub use host_list::{HOSTS_LIMIT, HostListError};
pub use outline::{Outline, Shape};
pub use pe::Pe;
pub use place::{Label, LevelKind, Place};
