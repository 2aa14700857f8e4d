//! Trials.

use crate::dice::Dice;
use crate::job::SimulatedJob;
use crate::pe::pace::PaceSettings;
use crate::pe::workers::PeSpeed;
use crate::traffic::{LinkCosts, LogGp, Traffic};
use crate::workload::map::{MapWorkload, Spread, SpreadCosts};
use crate::world::Simulation;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ultramarine_runtime::protocol::{FishingSettings, ProtocolSettings};
use ultramarine_runtime::transport::PortSettings;
use ultramarine_topology::{Label, LevelKind, Place, Topology};

fn machine([racks, hosts, pes]: [u32; 3], workers: usize) -> Topology {
    let count = racks * hosts * pes;
    let places: Vec<_> = (0..count)
        .map(|n| {
            Place::new(vec![
                Label::new(LevelKind::Switch, format!("r{}", n / hosts / pes)),
                Label::new(LevelKind::Host, format!("h{}", n / pes)),
                Label::new(LevelKind::Package, format!("{}", n % pes)),
            ])
        })
        .collect();
    Topology::new(&places, &vec![workers as u64; count as usize]).expect("fine")
}

/// Trial.
pub fn trial(shape: [u32; 3], workers: usize, items: u64, us: u64, spread: &str) -> bool {
    let begun = Instant::now();
    let topology = Arc::new(machine(shape, workers));
    let mut dice = Dice::new(7);
    let tree = (spread == "uts").then(|| {
        #[derive(clap::Parser)]
        struct F {
            #[command(flatten)]
            tree: ultramarine_uts::Uts,
        }
        let flags = match us {
            0 => "uts -t1 -a3 -d10 -b4 -r19",
            1 => "uts -t1 -a3 -d13 -b4 -r29",
            _ => "uts -t1 -a3 -d15 -b4 -r19",
        };
        <F as clap::Parser>::parse_from(flags.split(' ')).tree
    });
    let spread = match spread {
        "stolen" => Spread::Stolen,
        "turn" => Spread::InTurn,
        "two" => Spread::TwoLevel,
        _ => Spread::TwoLevelRelaxed,
    };
    let cores = u64::from(topology.pes()) * workers as u64;
    let items = items * cores;
    let costs = move |item: u64| {
        // From 0.5 to 1.5, growing, and a bit of chance.
        let grown = us * 1000 / 2 + us * 1000 * item / items;
        grown + Dice::new(item).next() % (us * 200 + 1)
    };
    let spread_costs = SpreadCosts { deal_ns: 100, pack_ns: 10, spawn_ns: 100, take_ns: 30 };
    let mut random = || dice.next();
    let around = (&*topology, &mut random);
    let workload: Arc<dyn crate::workload::Workload> = if let Some(tree) = tree {
        let nodes = match us {
            0 => 4_130_071,
            1 => 102_181_082,
            _ => 4_230_646_601,
        };
        Arc::new(Arc::new(crate::workload::search::SearchWorkload {
            tree,
            nodes,
            node_ns: 127,
            nodes_at_once: 128,
            is_supervised: false,
        }))
    } else {
        Arc::new(Arc::new(MapWorkload::new(
            items,
            Arc::new(costs),
            spread,
            spread_costs,
            false,
            around,
        )))
    };
    let pace = PaceSettings { tasks_poll: workload.polls(), ..PaceSettings::default() };
    let speed = PeSpeed { threads: workers, slowness: 1.0, task_ns: 100, spawn_ns: 0 };
    let link =
        |latency, overhead, gap, gap_per_byte| LinkCosts { latency, overhead, gap, gap_per_byte };
    let radii = topology.radii();
    let traffic = radii.iter().enumerate().map(|(n, r)| {
        (
            *r,
            match n {
                0..=1 => link(300, 100, 100, 200),
                2 => link(1300, 300, 300, 200),
                _ => link(2000, 300, 300, 200),
            },
        )
    });
    let job = SimulatedJob {
        seed: 1,
        speeds: vec![speed; topology.pes() as usize],
        workload,
        protocol: ProtocolSettings::new(FishingSettings::for_threads(workers)),
        pace: Some(pace),
        traffic: Traffic::LogGp(LogGp(traffic.collect())),
        port: PortSettings { single_copy: false, ..PortSettings::default() },
        frame_bytes_max: [4096, 65536],
        has_fallback: false,
        faults: Vec::new(),
        detection: None,
        shutdown_grace: Duration::from_secs(60),
        events_max: u64::MAX,
        topology,
    };
    let simulation = Simulation::new(job, false);
    let built = begun.elapsed();
    let run = simulation.run();
    let report = &run.report;
    let took = report.took.as_secs_f64();
    let wall = (begun.elapsed() - built).as_secs_f64();
    let s = &report.statistics;
    let fishes: u64 = s.by_distance.iter().map(|t| t.fishes).sum();
    let forwards: u64 = s.by_distance.iter().map(|t| t.forwards).sum();
    let no_works: u64 = s.by_distance.iter().map(|t| t.no_works).sum();
    let steals: u64 = s.by_distance.iter().map(|t| t.steals).sum();
    let schedules: u64 = s.by_distance.iter().map(|t| t.schedules).sum();
    let rss = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let rss = rss.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("").to_owned();
    println!(
        "{cores} cores, {} PEs, {items} items: {took:.4} s, efficiency {:.2} %, {} tasks; fault {:?}; \
         gone {:.4} s; full {:?}; fishes {fishes} forwards {forwards} no_works {no_works} schedules {schedules} steals {steals}; {} events in {wall:.2} s = {:.2} M/s (built in {built:?}); {rss}",
        report.pes,
        100.0 * report.computed.as_secs_f64() / (cores as f64 * took),
        report.tasks,
        run.fault,
        report.gone.as_secs_f64(),
        report.full,
        report.events,
        report.events as f64 / wall / 1e6,
    );
    run.fault.is_none()
}
