//! Hosts that die or are cut off, the root's too.

use super::programs::{is_marked, mark, share_between_racks};
use super::{FOLDER, Folder};
use crate::common::cluster::{Cluster, run_program};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine_journal::inspect;
use ultramarine_testkit::{Ended, eventually, itself};

#[test]
fn a_host_dies() {
    let program = itself(|| match std::env::var_os(FOLDER) {
        Some(_) => outlive_a_host(),
        None => share_between_racks(),
    });
    let Some(cluster) = Cluster::up() else { return };
    let folder = Folder::new();
    let job = folder.begin(cluster.srun(2), &program);
    cluster.tell(&["kill-host", "r2n1"]);
    // Of these faults only a cut cable is repaired.
    folder.mark("healed");
    job.join().expect("it is awaited").is_well();
    // When it is brought back it is in order.
    cluster.tell(&["up"]);
    run_program(cluster.srun(1), &program).is_well();
}

/// Its host is there, and says so.
#[test]
fn the_roots_process_dies() {
    let program = itself(outlive_the_root);
    let Some(cluster) = Cluster::up() else { return };
    let folder = Folder::new();
    let job = folder.begin(cluster.srun(2), &program);
    let process = std::fs::read_to_string(folder.join("root")).expect("the root writes it");
    cluster.run_on("r1n1", &["kill", "-KILL", &process]).succeeded();
    let ended = job.join().expect("it is awaited");
    ended.is_well();
    assert!(ended.out.contains("all is well in attempt 2 on PE 1"), "{}", ended.out);
}

#[test]
fn the_roots_host_dies() {
    // Open MPI ends a process whose send to a dead host fails, and Slurm the step with it. All send
    // their results to the root: so these are small.
    let program = itself(|| {
        ultramarine::run_restartable(go_on_without_a_host::<20>).expect("the job ends well");
    });
    let Some(cluster) = Cluster::up() else { return };
    let folder = Folder::new();
    let job = folder.begin(cluster.srun(2), &program);
    cluster.tell(&["kill-host", "r1n1"]);
    folder.mark("healed");
    let ended = job.join().expect("it is awaited");
    ended.is_well();
    assert!(ended.out.contains("all is well in attempt 2 on PE 2"), "{}", ended.out);
}

/// Each host has a disk of its own, that is, a folder.
#[test]
fn a_copy_of_the_journal_outlives_the_roots_host() {
    let program = itself(go_on_with_a_copy);
    let Some(cluster) = Cluster::up() else { return };
    let folder = Folder::new();
    let job = folder.begin_a_copy(&cluster, &program);
    cluster.tell(&["kill-host", "r1n1"]);
    let ended = job.join().expect("it is awaited");
    ended.is_well();
    assert!(ended.out.contains("all is well in attempt 2 on PE 2"), "{}", ended.out);
    let numbers = |name: &str| -> BTreeSet<u64> {
        let text = std::fs::read_to_string(folder.join(name)).expect("the program writes it");
        text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
    };
    let (copied, computed) = (numbers("copied"), numbers("computed"));
    assert!(copied.len() > 50, "{} are found again", copied.len());
    assert!(copied.is_disjoint(&computed), "what is in the copy is not computed again");
    let all: BTreeSet<u64> = copied.union(&computed).copied().collect();
    assert_eq!(all, (0..400).collect(), "{} were copied", copied.len());
    // The new root's journal has a copy as well.
    assert_eq!(folder.kept_on("r1n2"), 400);
    assert_eq!(folder.kept_on("r2n1"), 400);
}

#[test]
fn another_host_keeps_the_copy_when_one_dies() {
    let program = itself(go_on_with_a_copy);
    let Some(cluster) = Cluster::up() else { return };
    let folder = Folder::new();
    let job = folder.begin_a_copy(&cluster, &program);
    cluster.tell(&["kill-host", "r1n2"]);
    let ended = job.join().expect("it is awaited");
    ended.is_well();
    assert!(ended.out.contains("all is well in attempt 1 on PE 0"), "{}", ended.out);
    assert_eq!(folder.kept_on("r1n1"), 400);
    assert_eq!(folder.kept_on("r2n1"), 400);
    assert!(folder.kept_on("r1n2") < 400);
}

impl Folder {
    /// Starts the program that copies its journal, and waits until the first copy has some results.
    fn begin_a_copy(&self, cluster: &Cluster, program: &[OsString]) -> JoinHandle<Ended> {
        let job = self.begin(cluster.srun(2), program);
        eventually("some results are copied", || self.kept_on("r1n2") > 50);
        job
    }

    /// How many results the journal of this host has, if there is one yet.
    fn kept_on(&self, host: &str) -> u64 {
        let found = inspect(self.join(host).join("squares.journal"));
        found.map_or(0, |found| found.report.done.count())
    }
}

#[test]
fn the_roots_host_is_cut_off_for_a_while() {
    the_larger_part_goes_on(|cluster| cluster.tell(&["partition", "r1n1"]));
}

/// A firewall answers in place of the hosts, as if all processes there were gone.
#[test]
fn the_roots_host_is_cut_off_and_all_calls_are_refused() {
    the_larger_part_goes_on(|cluster| {
        // By one command: a PE that is refused by one host only holds that one for dead.
        let paths = |[other, how]: [&'static str; 2]| ["r1n1", other, how, other, "r1n1", how];
        let others = [["r1n2", "reset"], ["r2n1", "reset"], ["r2n2", "refuse"]];
        cluster.tell(&[&["cut"], others.map(paths).as_flattened()].concat());
    });
}

fn the_larger_part_goes_on(cut: impl FnOnce(&Cluster)) {
    let program = itself(outlive_the_roots_host);
    let Some(cluster) = Cluster::up() else { return };
    let folder = Folder::new();
    let job = folder.begin(cluster.srun(2), &program);
    cut(&cluster);
    // In the first attempt the root loses a PE of each of two hosts before it knows that it has
    // lost all of them.
    folder.await_file("without-the-host-in-attempt-2");
    for host in ["r1n1", "r1n2", "r2n1", "r2n2"] {
        cluster.tell(&["heal", host]);
    }
    folder.mark("healed");
    let ended = job.join().expect("it is awaited");
    // The larger part goes on. The others leave, with an error, and no main task has two results.
    assert_eq!(ended.out.matches("all is well").count(), 1, "{}\n{}", ended.out, ended.err);
    let is_right = ended.out.contains("all is well in attempt 2 on PE 2");
    assert!(is_right, "{}\n{}", ended.out, ended.err);
    assert!(ended.err.contains("PE 0 leaves"), "{}", ended.err);
    for pe in 2..8 {
        assert!(!ended.err.contains(&format!("PE {pe} leaves")), "{}", ended.err);
    }
}

#[test]
fn a_host_is_cut_off_for_a_while() {
    let program = itself(outlive_a_host);
    let Some(cluster) = Cluster::up() else { return };
    let folder = Folder::new();
    let job = folder.begin(cluster.srun(2), &program);
    cluster.tell(&["partition", "r1n2"]);
    folder.await_file("without-the-host-in-attempt-1");
    cluster.tell(&["heal", "r1n2"]);
    folder.mark("healed");
    let ended = job.join().expect("it is awaited");
    // The processes that were cut off learn that they were given up, and leave; but only they do.
    assert!(ended.out.contains("all is well"), "{}\n{}", ended.out, ended.err);
    assert_eq!(ended.out.matches("all is well").count(), 1, "{}", ended.out);
    for pe in [2, 3] {
        let left = format!("PE {pe} leaves: the others hold it for dead");
        assert!(ended.err.contains(&left), "{}", ended.err);
    }
    for pe in [1, 4, 5, 6, 7] {
        assert!(!ended.err.contains(&format!("PE {pe} leaves")), "{}", ended.err);
    }
}

fn outlive_a_host() {
    ultramarine::run(go_on_without_a_host::<20_000>).expect("the job ends well");
}

/// The same for a host that may be the root's.
fn outlive_the_roots_host() {
    ultramarine::run_restartable(go_on_without_a_host::<20_000>).expect("the job ends well");
}

fn outlive_the_root() {
    let main = async |cx: Context| {
        if cx.attempt() == 1 {
            std::fs::write(folder().join("root"), std::process::id().to_string())?;
            mark("begun");
        }
        // The first attempt has no end.
        let mut rounds = 0;
        while rounds < 3 || cx.attempt() == 1 {
            let squares = par_map(&cx.supervised(), |n: u64| n * n, 0..1000).await?;
            assert!(squares.into_iter().eq((0..1000).map(|n| n * n)));
            rounds += 1;
        }
        println!("all is well in attempt {} on {}", cx.attempt(), cx.pe());
        Ok(())
    };
    ultramarine::run_restartable(main).expect("the job ends well");
}

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("the test sets it").into()
}

/// Adds a number to a file that all hosts share.
fn note(file: &str, number: u64) {
    let file = OpenOptions::new().create(true).append(true).open(folder().join(file));
    // In one piece: others write there, too.
    let line = format!("{number}\n");
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the folder is ours");
}

fn go_on_with_a_copy() {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let own = folder().join(host);
    std::fs::create_dir_all(&own).expect("the folder is the test's");
    std::env::set_current_dir(own).expect("it is there");
    let main = async |cx: Context| {
        if cx.attempt() > 1 {
            // Nothing of the first attempt runs any more.
            cx.sleep(Duration::from_millis(200)).await;
            let found = inspect("squares.journal")?;
            found.report.done.ranges().flatten().for_each(|n| note("copied", n));
        }
        let task = |n: u64| {
            if is_marked("copied") {
                note("computed", n);
            } else if n == 0 {
                mark("begun");
            }
            std::thread::sleep(Duration::from_millis(20));
            square(n)
        };
        let squares = map(task, 0..400).journal("squares.journal").copies(2);
        let squares = squares.run(&cx.supervised()).await?;
        assert!(squares.into_iter().eq((0..400).map(square)));
        println!("all is well in attempt {} on {}", cx.attempt(), cx.pe());
        Ok(())
    };
    ultramarine::run_restartable(main).expect("the job ends well");
}

/// A number in 8,000: what there is when a copy begins takes several batches.
fn square(n: u64) -> Vec<u64> {
    vec![n * n; 8000]
}

/// `LENGTH` is that of the tasks' results.
async fn go_on_without_a_host<const LENGTH: usize>(cx: Context) -> ultramarine::Result<()> {
    let task = |n: u64| {
        std::thread::sleep(Duration::from_millis(2));
        n * n
    };
    // Arrays are on their way between the hosts all the time.
    let array = |n: u64| vec![n * n; LENGTH];
    // Until both processes of the host are gone, and a little longer.
    let mut rounds = 0;
    while cx.dead() < 2 || rounds < 5 {
        let squares = par_map(&cx.supervised(), array, 0..400).await?;
        assert!(squares.into_iter().eq((0..400).map(array)));
        rounds = if cx.dead() < 2 { 0 } else { rounds + 1 };
        mark("begun");
    }
    mark(&format!("without-the-host-in-attempt-{}", cx.attempt()));
    let push = push_map(&cx.supervised(), task, 0..400).await?;
    assert_eq!(push.into_iter().sum::<u64>(), (0..400).map(|n: u64| n * n).sum::<u64>());
    while !is_marked("healed") {
        cx.sleep(Duration::from_millis(10)).await;
    }
    // The processes that were cut off could connect again now.
    cx.sleep(Duration::from_secs(3)).await;
    assert_eq!(cx.dead(), 2, "no PE comes back, and no other dies");
    println!("all is well in attempt {} on {}", cx.attempt(), cx.pe());
    Ok(())
}
