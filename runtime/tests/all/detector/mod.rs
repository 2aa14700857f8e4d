//! Detectors that watch each other: in separate processes where a kill matters, else with a PE that
//! the test plays.
//!
//! Times are printed, never asserted, but for bounds that only a failure reaches.

mod crowd;
mod played;
mod processes;
mod silence;
mod strangers;
mod witness;

use ultramarine_testkit::PATIENCE;
use ultramarine_topology::Pe;

const ONE: Pe = Pe::new(1);
const TWO: Pe = Pe::new(2);
const THREE: Pe = Pe::new(3);
