//! What hwloc tells about a host with two packages, made up by hwloc's own means. The library
//! reads them from the environment, so each case runs in a process of its own: this test program
//! once more, with only `tell_place` to run.
#![cfg(all(feature = "hwloc", target_os = "linux"))]

use std::process::Command;
use ultramarine_topology::Sources;

/// Prints the place of the process, for the cases below.
#[test]
#[ignore = "run by the other tests of this file"]
fn tell_place() {
    let sources = Sources { host_name: "h".to_owned(), ..Sources::default() };
    let found = sources.discover().unwrap();
    println!("<{}; cores {:?}; notes {:?}>", found.place, found.cores, found.notes);
}

/// What `tell_place` prints on a host of this shape when it may run on CPU 0 alone.
fn place_on(shape: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("taskset")
        .args(["--cpu-list", "0"])
        .arg(program)
        .args(["--ignored", "--exact", "hwloc_host::tell_place", "--nocapture"])
        .env("HWLOC_SYNTHETIC", shape)
        .env("HWLOC_THISSYSTEM", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let (_, told) = text.split_once('<').unwrap();
    told.split_once('>').unwrap().0.to_owned()
}

#[test]
fn a_process_bound_to_a_numa_node_of_a_package() {
    // CPUs counted backwards: CPU 0 is in the last NUMA node of the last package.
    assert_eq!(
        place_on("pack:2 numa:2 core:2 pu:1(indexes=7,6,5,4,3,2,1,0)"),
        "host h, package 1, numa 3; cores Some(1); notes []"
    );
}

#[test]
fn a_package_of_one_numa_node_and_two_threads_to_a_core() {
    assert_eq!(
        place_on("pack:2 [numa] core:2 pu:2"),
        "host h, package 0, numa 0; cores Some(1); notes []"
    );
}
