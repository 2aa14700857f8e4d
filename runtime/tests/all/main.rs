//! The scheduler through its public interface, in jobs whose PEs are threads or small processes.
//!
//! Two tests are separate programs: `descriptors.rs` lowers a limit of its
//! process, and `memory.rs` counts what its process allocates.

mod adrift;
mod bad_messages;
mod detector;
mod tasks;

use std::sync::Arc;
use ultramarine_runtime::executor::{BootstrapTraffic, DetectorSetup, FailureDetector, Job};
use ultramarine_runtime::settings::Settings;
use ultramarine_runtime::transport::Lane;
use ultramarine_topology::{Pe, Topology};

/// A PE of a job whose `pes` PEs are all alike.
fn job(
    me: Pe,
    pes: u32,
    lane: impl Lane + 'static,
    settings: Settings,
    detector: Option<DetectorSetup>,
) -> Job {
    let topology = Arc::new(Topology::flat(pes));
    let (lane, bootstrap) = (Box::new(lane), BootstrapTraffic::default());
    Job { me, topology, lane, settings, detector, bootstrap, boards: None }
}

/// A failure detector that does nothing.
struct Silent;

impl FailureDetector for Silent {
    fn suspect(&self, _: Pe) {}
    fn ask_end(&self) {}
    fn goodbye(self: Box<Self>) {}
}
