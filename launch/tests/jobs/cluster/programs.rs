//! What the processes do.

use super::{FOLDER, OWN_PORTS};
use crate::common::job::run;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use ultramarine::prelude::*;

/// Tells the test how far the job is.
pub(super) fn mark(name: &str) {
    let folder = std::env::var_os(FOLDER).expect("the test sets it");
    std::fs::write(Path::new(&folder).join(name), "").expect("the folder is the test's");
}

pub(super) fn is_marked(name: &str) -> bool {
    std::env::var_os(FOLDER).is_some_and(|folder| Path::new(&folder).join(name).exists())
}

/// How many tasks this process has run, by the rack that they came from.
static RUN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Whether a PE is in the rack of the root.
fn rack(cx: &Context, pe: Pe) -> usize {
    usize::from(cx.distance(Pe::ROOT, pe) == Distance::ONE)
}

pub(super) fn stay_in_racks() {
    const TASKS: u64 = 5_000;
    run(async |cx| {
        let beyond = (0..cx.pes()).map(Pe::new).find(|pe| rack(&cx, *pe) == 1);
        let beyond = beyond.expect("there is another rack");
        // This many tasks from each rack; each returns where it ran.
        let spread = async |cx: Context, ()| {
            let home = rack(&cx, cx.pe());
            let task = async |cx: Context, home: usize| {
                RUN[home].fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(200));
                rack(&cx, cx.pe())
            };
            let spawned = (0..TASKS).map(|_| cx.spawn(Distance::ONE.half(), task, home));
            let mut abroad = 0;
            for future in spawned.collect::<Vec<_>>() {
                abroad += u64::from(future.await? != home);
            }
            Ok::<_, TaskError>(abroad)
        };
        let both = [Pe::ROOT, beyond].map(|pe| cx.spawn_at(pe, spread, ()));
        for abroad in both {
            assert_eq!(abroad.await??, 0, "as those say who sent them");
        }
        let mut run = [[0; 2]; 2];
        for pe in (0..cx.pes()).map(Pe::new) {
            let counts = async |_, ()| [0, 1].map(|home| RUN[home].load(Ordering::Relaxed));
            let counts = cx.spawn_at(pe, counts, ()).await?;
            let row = &mut run[rack(&cx, pe)];
            (row[0], row[1]) = (row[0] + counts[0], row[1] + counts[1]);
        }
        assert_eq!(run, [[TASKS, 0], [0, TASKS]], "as those say who ran them");
        let statistics = cx.statistics().await?;
        let stolen = |far| {
            let rows = statistics.by_distance.iter();
            rows.filter(|row| (row.distance == Distance::ONE) == far).map(|r| r.steals).sum()
        };
        let (near, far): (u64, u64) = (stolen(false), stolen(true));
        assert!(near > 0 && far == 0, "{near} near, {far} far");
        Ok(())
    });
}

/// The rack that this process's host is named after.
fn rack_by_name() -> usize {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux has it");
    usize::from(name.starts_with("r2"))
}

pub(super) fn share_between_racks() {
    run(async |cx| {
        let task = |_: u32| {
            std::thread::sleep(Duration::from_micros(100));
            rack_by_name()
        };
        let racks = par_map_2level(&cx, Distance::ONE, task, 0..2000).await?;
        let beyond: usize = racks.iter().sum();
        assert_eq!(beyond, 1000, "the racks are equally strong");
        Ok(())
    });
}

pub(super) fn compare_maps() {
    // A task takes as long as the shortest message between racks.
    let task = |n: u64| {
        std::thread::sleep(Duration::from_millis(4));
        n
    };
    run(async move |cx| {
        let items = || 0..2000;
        println!("| skeleton | seconds | steals between racks |\n|---|---|---|");
        for skeleton in ["par_map", "par_map_2level", "par_map_2level_relaxed"] {
            let far = async || {
                let rows = cx.statistics().await?.by_distance;
                let far = rows.iter().filter(|row| row.distance == Distance::ONE);
                Ok::<u64, TaskError>(far.map(|row| row.steals).sum())
            };
            let (before, start) = (far().await?, std::time::Instant::now());
            let results = match skeleton {
                "par_map" => par_map(&cx, task, items()).await?,
                "par_map_2level" => par_map_2level(&cx, Distance::ONE, task, items()).await?,
                _ => par_map_2level_relaxed(&cx, Distance::ONE, task, items()).await?,
            };
            let (took, after) = (start.elapsed().as_secs_f64(), far().await?);
            assert!(results.into_iter().eq(items()));
            match skeleton {
                "par_map" => assert_ne!(before, after, "the other rack begins with nothing"),
                "par_map_2level" => assert_eq!(before, after, "no rack gives anything away"),
                _ => {}
            }
            println!("| {skeleton} | {took:.3} | {} |", after - before);
        }
        Ok(())
    });
}

pub(super) fn work_until_told() {
    run(async |cx| {
        while !is_marked("enough") {
            let sums = par_map(&cx, |n: u64| (0..n).sum::<u64>(), 0..400).await?;
            assert!(sums.into_iter().eq((0..400).map(|n: u64| n * n.saturating_sub(1) / 2)));
            mark("begun");
        }
        assert_eq!(cx.dead(), 0);
        Ok(())
    });
}

pub(super) fn work_until_asked() {
    use futures_util::StreamExt as _;
    use futures_util::future::{Either, select};
    run(async |cx| {
        let mut asked = std::pin::pin!(ultramarine::shutdown_requested());
        let mut squares = std::pin::pin!(par_map_stream(&cx, 64, |n: u64| n * n, 0..u64::MAX));
        let mut done = 0;
        while let Either::Right((Some(square), _)) = select(&mut asked, squares.next()).await {
            let (number, square) = square?;
            assert_eq!(square, (number as u64).pow(2));
            done += 1;
            if done == 1000 {
                mark("begun");
            }
        }
        assert!(done >= 1000);
        assert_eq!(cx.dead(), 0, "no PE has died of it");
        Ok(())
    });
}

/// Connects to all ports of the other hosts, and sends garbage to each that answers.
pub(super) fn scan() {
    use std::io::Write as _;
    let mut answers = 0;
    for host in [[10, 77, 1, 1], [10, 77, 1, 2], [10, 77, 2, 1]] {
        for port in 1024..=u16::MAX {
            let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::from(host)), port);
            let call = TcpStream::connect_timeout(&address, Duration::from_millis(500));
            let Ok(mut call) = call else { continue };
            answers += u32::from(OWN_PORTS.contains(&port));
            // The process may close the connection.
            let _ = call.write_all(&[port as u8; 1000]);
            // Some send it and stay connected.
            if port % 2 == 0 {
                std::mem::forget(call);
            }
        }
    }
    assert_eq!(answers, 6, "each process of ours has two ports");
    println!("all is well");
}
