//! How long a death takes until all PEs have been told, and what detection costs, with the default
//! settings: a PE, a host and a rack die in jobs of some hundred PEs.
//!
//! `ULTRAMARINE_SIMULATOR_MACHINE=32x128x4x1` chooses a larger machine; then print what comes out,
//! with `--nocapture`, and build with `--release`.

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ultramarine_runtime::detector::DetectorSettings;
use ultramarine_simulator::experiment::Base;
use ultramarine_simulator::fault::InjectedFault;
use ultramarine_simulator::machine::{Machine, Shape, Variation};
use ultramarine_simulator::network::{Network, Preset};
use ultramarine_simulator::report::RunReport;
use ultramarine_simulator::workload::map::{MapWorkload, Spread, SpreadCosts};
use ultramarine_topology::Pe;

const SECOND: u64 = 1_000_000_000;

/// When something dies: after the time in which a PE that was never heard is not suspected.
const DIES_AT: u64 = 6 * SECOND;

/// The job is to live for longer than it takes until all know.
const ITEM_NS: u64 = 10 * SECOND;

/// A job in which each worker has an item to compute.
fn run(shape: &str, faults: Vec<(u64, InjectedFault)>) -> RunReport {
    let shape: Shape = shape.parse().unwrap();
    let machine = Machine::new(&shape, &Variation::default()).unwrap();
    let mut base = Base::new(machine, Network::of(Preset::Gemini), 1);
    // Those that have nothing to do need not fish all the time.
    let fishing = &mut base.protocol.fishing;
    fishing.min_fish_delay = Duration::from_millis(200);
    fishing.max_fish_delay = Duration::from_secs(1);
    let topology = base.machine.topology().clone();
    let spread_costs = SpreadCosts { deal_ns: 10, pack_ns: 20, spawn_ns: 100, take_ns: 30 };
    let mut place = 0_u64;
    let mut chance = || {
        place += 1;
        place
    };
    let items = base.machine.cores();
    let map = MapWorkload::new(
        items,
        Arc::new(|_| ITEM_NS),
        Spread::InTurn,
        spread_costs,
        true,
        (&topology, &mut chance),
    );
    let run = base.run_with(Arc::new(Arc::new(map)), faults);
    assert_eq!(run.fault, None);
    run.report
}

#[test]
fn all_are_told_soon_after_the_time_limit_and_a_pe_sends_few_messages() {
    let shape = env::var("ULTRAMARINE_SIMULATOR_MACHINE").unwrap_or_else(|_| "4x8x4x1".to_owned());
    let sizes: Vec<u32> = shape.split('x').map(|size| size.parse().unwrap()).collect();
    let [.., hosts, per_host, _] = sizes[..] else { panic!("{shape} is no machine") };
    // The second host of the second rack, and the second rack.
    let rack = hosts * per_host;
    let [host, rack] = [(rack + per_host, per_host), (rack, rack)].map(|(first, count)| {
        let [first, last] = [first, first + count - 1].map(Pe::new);
        InjectedFault::HostDeaths { first, last }
    });
    let DetectorSettings { dead_after, heartbeat, .. } = DetectorSettings::default();
    let second = Duration::from_secs(1);
    for (what, fault, limit) in [
        ("a PE", InjectedFault::Death(Pe::new(hosts * per_host + 1)), second),
        ("a host", host, dead_after + second),
        ("a rack", rack, dead_after + second),
    ] {
        let begun = Instant::now();
        let report = run(&shape, vec![(DIES_AT, fault)]);
        let detection = &report.detection;
        let told_within = detection.told_within().unwrap();
        let seconds = report.gone.as_secs_f64();
        let each = detection.messages() as f64 / f64::from(report.pes) / seconds;
        let most = detection.messages_max as f64 / seconds;
        println!(
            "{} PEs, {what} dies ({} deaths): all told after {told_within:?}, false verdicts {}; \
             messages per PE and second {each:.2}, the most of any PE {most:.1} ({} beats and {} \
             notices in {seconds:.1} s), {} dials; {} events in {:.1?}",
            report.pes,
            report.deaths,
            report.false_verdicts(),
            detection.heartbeats,
            detection.notices,
            detection.dials,
            report.events,
            begun.elapsed(),
        );
        assert_eq!(detection.told.len(), report.deaths as usize);
        let survivors = report.pes - report.deaths;
        assert!(detection.told.iter().all(|told| told.pes == survivors), "{detection:?}");
        assert_eq!(report.false_verdicts(), 0);
        assert!(told_within < limit, "{what}: {told_within:?}");
        // Four partners.
        let beats = 4.0 / heartbeat.as_secs_f64();
        assert!(each < beats * 1.2, "{each} messages per PE and second");
    }
}
