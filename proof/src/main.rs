//! x
use stateright::{Checker, Model};
use std::time::Instant;
use ultramarine_proof::supervision::{Case, Task};
fn main() {
    if std::env::args().nth(1).unwrap() == "s" {
        let a: Vec<u64> = std::env::args().skip(2).map(|a| a.parse().unwrap()).collect();
        let start = Instant::now();
        if a.len() == 1 {
            println!("{:#?}", ultramarine_proof::simulation::run(a[0], true));
            return;
        }
        let (mut graces, mut lost, mut events, mut tasks, mut deaths, mut faults) =
            (0, 0, 0, 0, 0, 0);
        for seed in a[0]..a[0] + a[1] {
            match ultramarine_proof::simulation::run(seed, false) {
                Ok(r) => {
                    graces += u32::from(r.graces > 0);
                    if r.roots_lost > 0 && a.len() > 2 {
                        println!("{seed} {r:?}");
                    }
                    lost += r.roots_lost;
                    events += r.events;
                    tasks += r.tasks;
                    deaths += r.deaths;
                }
                Err(f) => {
                    faults += 1;
                    if faults < 20 {
                        println!("{seed}: {} {:?}", f.what, f.report)
                    }
                }
            }
        }
        println!(
            "graces {graces} lost {lost} events {events} tasks {tasks} deaths {deaths} faults {faults} {:?}",
            start.elapsed()
        );
        return;
    }
    if std::env::args().nth(1).unwrap() == "m" {
        let a: Vec<u32> = std::env::args().skip(2).map(|a| a.parse().unwrap()).collect();
        let case = ultramarine_proof::membership::Case {
            pes: a[0],
            crashes: a[1],
            slandered: a[2],
            lost: a[3],
            root_may_crash: a[4] == 1,
        };
        let start = Instant::now();
        let checker = case.checker().threads(2).spawn_dfs().join();
        println!(
            "{:?} unique {} total {} depth {} in {:?}",
            a,
            checker.unique_state_count(),
            checker.state_count(),
            checker.max_depth(),
            start.elapsed()
        );
        for (name, path) in checker.discoveries() {
            println!(
                "{name}: {} steps {:?}",
                path.clone().into_actions().len(),
                checker.discovery_classification(name).to_string()
            );
            if checker.discovery_classification(name).to_string() == "counterexample" {
                println!("{:?}", path.last_state());
                for a in path.into_actions() {
                    println!("   {a:?}");
                }
            }
        }
        return;
    }
    let a: Vec<u32> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let tasks = match a[3] {
        1 => vec![Task::Supervised],
        2 => vec![Task::Supervised; 2],
        3 => vec![Task::Supervised, Task::Unsupervised],
        4 => vec![Task::Placed(1)],
        _ => vec![Task::Supervised, Task::Placed(1)],
    };
    let mutant = match a.get(5) {
        Some(1) => Some(ultramarine_runtime::protocol::supervision::Mutant::ForgetsTheDead),
        Some(2) => Some(ultramarine_runtime::protocol::supervision::Mutant::IgnoresAge),
        _ => None,
    };
    let case =
        Case { workers: a[0], deaths: a[1], hops: a[2], tasks, accused_live_on: a[4] == 1, mutant };
    let start = Instant::now();
    let b = case.checker().threads(2);
    let checker = b.spawn_dfs().join();
    println!(
        "{:?} unique {} total {} depth {} in {:?}",
        a,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        start.elapsed()
    );
    for (name, path) in checker.discoveries() {
        println!(
            "{name}: {} steps {:?}",
            path.clone().into_actions().len(),
            checker.discovery_classification(name).to_string()
        );
        if checker.discovery_classification(name).to_string() == "counterexample" {
            for a in path.into_actions() {
                println!("   {a:?}");
            }
        }
    }
}
