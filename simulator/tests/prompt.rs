//! What must not take long, in simulated time: the same on any machine.

use std::sync::Arc;
use ultramarine_simulator::experiment::Base;
use ultramarine_simulator::machine::{Machine, Variation};
use ultramarine_simulator::network::{Network, Preset};
use ultramarine_simulator::report::SimulatedRun;
use ultramarine_simulator::workload::spawn_tree::{Queens, SpawnTree};

/// Queens on a board of this size on this number of PEs, each with one worker, and the efficiency
/// of the run.
fn queens(size: u32, pes: u64) -> (SimulatedRun, f64) {
    let machine = Machine::of_cores(pes, 1, &Variation::default()).expect("a machine");
    let base = Base::new(machine, Network::of(Preset::Gemini), 1);
    let tree = SpawnTree { problem: Queens::new(size, 5), step_ns: 100.0, is_supervised: false };
    let run = base.run(Arc::new(tree), Vec::new());
    assert_eq!(run.fault, None);
    let efficiency = base.efficiency(&run);
    (run, efficiency)
}

/// Acknowledgements wait for company, but not when all PEs wait for them.
#[test]
fn the_end_of_a_job_waits_for_no_acknowledgement() {
    let (run, _) = queens(12, 32);
    let end = run.report.gone.saturating_sub(run.report.took);
    assert!(end.as_millis() < 50, "{end:?}");
}

/// Results go home level by level, mostly to PEs that have nothing else to do.
#[test]
fn a_tree_of_tasks_does_not_wait_at_each_level() {
    let (run, efficiency) = queens(14, 128);
    assert!(efficiency > 0.8, "{efficiency}, {:?}", run.report);
}
