//! This host: its cores, its clock, its name and its ports.

use super::check::Check;
use crate::run::allocation::Allocation;
use rustix::system::uname;
use rustix::thread::sched_getaffinity;
use rustix::time::{ClockId, clock_getres};
use std::net::{Ipv4Addr, TcpListener, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_environment::flags::JobFlags;
use ultramarine_environment::interface::Interface;
use ultramarine_environment::variables;
use ultramarine_topology::Domains;

/// Each process listens on two ports.
const PORTS_EACH: usize = 2;

/// What a name server may take.
const RESOLVES_WITHIN: Duration = Duration::from_secs(10);

/// A coarser clock would show in what the runtime measures.
const CLOCK_STEP_MAX: Duration = Duration::from_micros(10);

/// What hwloc sees, and whether the process may use all of it.
pub(super) fn cores() -> Check {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    let bound = sched_getaffinity(None).map_or(allowed, |set| set.count() as usize);
    let seen = match Domains::of_this_host() {
        Ok(Domains { packages, numa_nodes, cores }) => {
            format!("hwloc finds cores: {cores}, NUMA nodes: {numa_nodes}, packages: {packages}")
        }
        Err(reason) => {
            let mend = "build with the feature `hwloc`, so that PEs know which share a package";
            return Check::warning("cores", format!("{bound} CPUs, but {reason}"), mend);
        }
    };
    // The standard library reads the quota of the control group.
    if allowed < bound {
        let found = format!("{seen}, and a quota allows {allowed} CPUs' time of {bound}");
        let mend = format!(
            "ask for a larger CPU quota (cgroup cpu.max), or bind this shell to {allowed} CPUs \
             (taskset)"
        );
        return Check::warning("cores", found, mend);
    }
    Check::ok("cores", format!("{seen}; this process may use {bound} CPUs"))
}

/// How fine the clock is by which the runtime measures.
pub(super) fn clock() -> Check {
    let resolution = clock_getres(ClockId::Monotonic);
    let resolution = Duration::new(resolution.tv_sec as u64, resolution.tv_nsec as u32);
    let step = (0..100).map(|_| next_step()).min().unwrap_or_default();
    let found = format!("it shows {resolution:?}, and steps by {step:?}");
    if resolution.max(step) <= CLOCK_STEP_MAX {
        return Check::ok("clock", found);
    }
    let mend = "have the kernel use a better clock (clocksource=tsc); latencies are measured badly \
                until then";
    Check::warning("clock", found, mend)
}

/// The time until the clock shows another.
fn next_step() -> Duration {
    let start = Instant::now();
    loop {
        let step = start.elapsed();
        if !step.is_zero() {
            return step;
        }
    }
}

/// What this host calls itself.
pub(super) fn own_name() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// What networks this host is on, and whether it has the one that was chosen.
pub(super) fn network() -> Check {
    let flags = match JobFlags::default().completed(variables::text) {
        Ok(flags) => flags,
        Err(error) => {
            return Check::wrong("network", error.to_string(), "mend or unset the variable");
        }
    };
    let all = match Interface::all() {
        Ok(all) => all,
        Err(error) => {
            let mend = "jobs go on by the addresses that host names stand for";
            let found = format!("this host's network interfaces are not known ({error})");
            return Check::warning("network", found, mend);
        }
    };
    let list = all.iter().map(Interface::to_string).collect::<Vec<_>>().join(", ");
    let Some(choice) = flags.interface else {
        return Check::ok("network", format!("{list}; the fastest that all hosts have is taken"));
    };
    if let Some(interface) = choice.of(&all) {
        return Check::ok("network", format!("{interface}, chosen by ULTRAMARINE_INTERFACE"));
    }
    let found = format!("ULTRAMARINE_INTERFACE is {choice}, and there is {list}");
    Check::wrong("network", found, "name one of these, or one of their networks")
}

/// Whether the host's name stands for an address that other hosts can reach.
pub(super) fn name(allocation: Option<&Allocation>) -> Check {
    let name = own_name();
    let (send, answer) = mpsc::channel();
    let asked = name.clone();
    // A name server that does not answer is not waited for.
    thread::spawn(move || {
        let found = (asked.as_str(), 0).to_socket_addrs();
        drop(send.send(found.map(|all| all.map(|address| address.ip()).collect::<Vec<_>>())));
    });
    let answer = answer.recv_timeout(RESOLVES_WITHIN);
    let problem = match answer {
        Ok(Ok(all)) => match all.iter().find(|address| !address.is_loopback()) {
            Some(address) => {
                return Check::ok("name", format!("{name} is {address}, which others can call"));
            }
            None => format!("{name} stands only for addresses that no other host can reach"),
        },
        Ok(Err(error)) => format!("{name} stands for no address ({error})"),
        Err(_) => format!("{name}: no name server says in {RESOLVES_WITHIN:?} what it stands for"),
    };
    let mend = "give it an address of its own in /etc/hosts or the name service; jobs on this host \
                alone do without";
    if allocation.and_then(|allocation| allocation.nodes).is_some_and(|nodes| nodes > 1) {
        return Check::wrong("name", problem, mend);
    }
    Check::warning("name", problem, mend)
}

/// Whether this many processes can listen here.
pub(super) fn ports(processes: u32) -> Check {
    let needed = processes as usize * PORTS_EACH;
    let range = match JobFlags::default().completed(variables::text) {
        Ok(flags) => flags.ports,
        Err(error) => {
            return Check::wrong("ports", error.to_string(), "mend or unset the variable");
        }
    };
    let bind = |port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port));
    let Some(range) = range else {
        return match bind(0) {
            Ok(_) => Check::ok("ports", "processes can listen on any free port"),
            Err(error) => {
                let mend = "confine them to ports that are open here, as in \
                            ULTRAMARINE_PORTS=40000-40100";
                Check::wrong("ports", format!("no process can listen ({error})"), mend)
            }
        };
    };
    let (low, high, all) = (*range.start(), *range.end(), range.len());
    let free = range.filter(|port| bind(*port).is_ok()).count();
    let found = format!("{free} of the {all} ports {low}-{high} (ULTRAMARINE_PORTS) are free");
    if free >= needed {
        return Check::ok("ports", found);
    }
    let mend = format!(
        "{processes} processes on this host need {needed}; name a wider range, or one that no \
         other program uses"
    );
    Check::wrong("ports", found, mend)
}
