//! Trials.

use super::Base;
use crate::dice::Dice;
use crate::machine::{Machine, Shape, Variation};
use crate::network::{Network, Preset};
use crate::workload::Workload;
use crate::workload::map::{MapWorkload, Spread, SpreadCosts};
use crate::workload::search::SearchWorkload;
use crate::workload::spawn_tree::{Queens, SpawnTree};
use std::sync::Arc;
use std::time::Instant;

/// Trial.
pub fn trial(shape: &str, items: u64, us: u64, what: &str) -> bool {
    let begun = Instant::now();
    let shape: Shape = shape.parse().expect("shape");
    let machine = Machine::new(&shape, &Variation::default()).expect("machine");
    let base = Base::new(machine, Network::of(Preset::Gemini), 1);
    let cores = base.machine.cores();
    let topology = base.machine.topology().clone();
    let mut dice = Dice::new(7);
    let items = items * cores;
    let costs = move |item: u64| {
        // From 0.5 to 1.5, growing, and a bit of chance.
        let grown = us * 1000 / 2 + us * 1000 * item / items;
        grown + Dice::new(item).next() % (us * 200 + 1)
    };
    let spread_costs = SpreadCosts { deal_ns: 10, pack_ns: 20, spawn_ns: 100, take_ns: 10 };
    let mut random = || dice.next();
    let around = (&*topology, &mut random);
    let workload: Arc<dyn Workload> = match what {
        "uts" => {
            #[derive(clap::Parser)]
            struct F {
                #[command(flatten)]
                tree: ultramarine_uts::Uts,
            }
            let (flags, nodes) = match us {
                0 => ("uts -t1 -a3 -d10 -b4 -r19", 4_130_071),
                1 => ("uts -t1 -a3 -d13 -b4 -r29", 102_181_082),
                _ => ("uts -t1 -a3 -d15 -b4 -r19", 4_230_646_601),
            };
            let tree = <F as clap::Parser>::parse_from(flags.split(' ')).tree;
            Arc::new(Arc::new(SearchWorkload {
                tree,
                nodes,
                node_ns: 127,
                nodes_at_once: 128,
                is_supervised: false,
            }))
        }
        "queens" => Arc::new(SpawnTree {
            whole: Queens::empty(us as u32, items as u32),
            step_ns: 10.0,
            is_supervised: false,
        }),
        what => {
            let spread = match what {
                "stolen" => Spread::Stolen,
                "turn" => Spread::InTurn,
                "two" => Spread::TwoLevel,
                _ => Spread::TwoLevelRelaxed,
            };
            let map = MapWorkload::new(items, Arc::new(costs), spread, spread_costs, false, around);
            Arc::new(Arc::new(map))
        }
    };
    let run = base.run(workload);
    let report = &run.report;
    let took = report.took.as_secs_f64();
    let wall = begun.elapsed().as_secs_f64();
    let s = &report.statistics;
    let fishes: u64 = s.by_distance.iter().map(|t| t.fishes).sum();
    let forwards: u64 = s.by_distance.iter().map(|t| t.forwards).sum();
    let no_works: u64 = s.by_distance.iter().map(|t| t.no_works).sum();
    let steals: u64 = s.by_distance.iter().map(|t| t.steals).sum();
    let schedules: u64 = s.by_distance.iter().map(|t| t.schedules).sum();
    let rss = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let rss = rss.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("").to_owned();
    println!(
        "{what}: {cores} cores, {} PEs: {took:.4} s, efficiency {:.2} %, {} tasks; fault {:?}; \
         gone {:.4} s; full {:?}; fishes {fishes} forwards {forwards} no_works {no_works} \
         schedules {schedules} steals {steals}; {} events in {wall:.2} s = {:.2} M/s; {rss}",
        report.pes,
        100.0 * base.efficiency(&run),
        report.tasks,
        run.fault,
        report.gone.as_secs_f64(),
        report.full,
        report.events,
        report.events as f64 / wall / 1e6,
    );
    run.fault.is_none()
}
