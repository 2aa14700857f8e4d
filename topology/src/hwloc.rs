//! Levels below the host: the package and the NUMA node that this process is bound to.
//!
//! This is the only file that knows hwloc. It uses only those parts of the `hwloc2` bindings that
//! are correct with libhwloc 2.x on 64-bit machines:
//!
//! - It lists objects by type and reads their number and CPU set. The object in the bindings lacks
//!   a field that the library has had since 2.0. On 64-bit machines this field coincides with
//!   padding in the bindings, so the CPU set is where they expect it. On other machines this module
//!   returns an error.
//! - It takes NUMA nodes from the node sets of CPUs. The bindings cannot list NUMA nodes: they use
//!   a wrong depth for them and reject the right one.
//! - It never calls `name` or `Display` of objects, which free or overrun memory of the library.

use crate::{Domains, Label, LevelKind};
use hwloc2::{Bitmap, CpuBindFlags, ObjectType, Topology, TopologyObject};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

/// The index of an object to which the system gives none (`HWLOC_UNKNOWN_INDEX`).
const UNKNOWN_NUMBER: u32 = u32::MAX;

/// The part of its host that this process may use.
#[derive(Debug)]
pub(crate) struct Binding {
    /// The package and the NUMA node within it, as far as the process is bound to a single one.
    pub(crate) labels: Vec<Label>,
    /// How many cores the process may use.
    pub(crate) cores: NonZeroU32,
}

/// The binding of the calling process, all its threads together; or the reason why it is unknown.
pub(crate) fn binding() -> Result<Binding, &'static str> {
    let (host, bound) = host()?;
    host.binding(&bound).ok_or(NO_CORE)
}

/// How many parts of its host the calling process may use; or the reason why that is unknown.
pub(crate) fn domains() -> Result<Domains, &'static str> {
    let (host, bound) = host()?;
    host.domains(&bound).ok_or(NO_CORE)
}

const NO_CORE: &str = "hwloc finds no core that this process may use";

/// Returns the parts of this host, and the CPUs that the calling process may use.
fn host() -> Result<(HostParts, OsIndexes), &'static str> {
    if cfg!(not(target_pointer_width = "64")) {
        return Err("hwloc can be asked on 64-bit machines only");
    }
    let topology = Topology::new().ok_or("hwloc cannot make out this host")?;
    let bound = topology
        .get_cpubind(CpuBindFlags::CPUBIND_PROCESS)
        .and_then(|set| numbers(&set))
        .ok_or("hwloc cannot tell what this process is bound to")?;
    let objects = |kind| topology.objects_with_type(&kind).unwrap_or_default();
    let host = HostParts {
        packages: objects(ObjectType::Package).into_iter().filter_map(numbered).collect(),
        cores: objects(ObjectType::Core).into_iter().filter_map(numbered).collect(),
        numa_nodes: objects(ObjectType::PU).into_iter().filter_map(memory).collect(),
    };
    Ok((host, bound))
}

/// Indexes of CPUs or NUMA nodes, as the operating system numbers them.
type OsIndexes = BTreeSet<u32>;

/// The packages, cores and NUMA nodes of a host.
struct HostParts {
    /// Each with its number and CPUs.
    packages: Vec<(u32, OsIndexes)>,
    /// Each with its number and CPUs.
    cores: Vec<(u32, OsIndexes)>,
    /// For each CPU the NUMA nodes next to it.
    numa_nodes: BTreeMap<u32, OsIndexes>,
}

/// The indexes of the objects that contain some of these CPUs.
fn touched(objects: &[(u32, OsIndexes)], bound: &OsIndexes) -> Vec<u32> {
    let touched = objects.iter().filter(|(_, cpus)| !cpus.is_disjoint(bound));
    touched.map(|(number, _)| *number).collect()
}

impl HostParts {
    /// The cores of a process that may run on the CPUs `bound`.
    fn cores(&self, bound: &OsIndexes) -> Option<NonZeroU32> {
        let cores = touched(&self.cores, bound).len();
        // Some hosts show hwloc CPUs but no cores.
        NonZeroU32::new(if cores == 0 { bound.len() } else { cores } as u32)
    }

    /// How many parts of the host a process may use that may run on the CPUs `bound`.
    fn domains(&self, bound: &OsIndexes) -> Option<Domains> {
        let memories: BTreeSet<_> =
            bound.iter().filter_map(|cpu| self.numa_nodes.get(cpu)).collect();
        Some(Domains {
            packages: touched(&self.packages, bound).len().max(1) as u32,
            numa_nodes: memories.len().max(1) as u32,
            cores: self.cores(bound)?.get(),
        })
    }

    /// The binding of a process that may run on the CPUs `bound`.
    fn binding(&self, bound: &OsIndexes) -> Option<Binding> {
        let cores = self.cores(bound)?;
        let mut labels = Vec::new();
        if let [package] = touched(&self.packages, bound)[..]
            && package != UNKNOWN_NUMBER
        {
            labels.push(Label::new(LevelKind::Package, package.to_string()));
            labels.extend(
                self.numa_node(bound).map(|node| Label::new(LevelKind::Numa, node.to_string())),
            );
        }
        Some(Binding { labels, cores })
    }

    /// The NUMA node next to all these CPUs. Several memories next to the same CPUs (HBM beside
    /// DRAM) count as one, with the index of the first.
    fn numa_node(&self, bound: &OsIndexes) -> Option<u32> {
        let mut nodes = bound.iter().map(|cpu| self.numa_nodes.get(cpu));
        let first = nodes.next()??;
        nodes.all(|others| others == Some(first)).then(|| first.first().copied())?
    }
}

/// An object's index and its CPUs. The index is the operating system's. hwloc's logical index
/// counts only objects that this process may use: a process confined to one package, and its
/// neighbour confined to the other, would both be in package 0.
fn numbered(object: &TopologyObject) -> Option<(u32, OsIndexes)> {
    Some((object.os_index(), numbers(&object.cpuset()?)?))
}

/// A CPU's index and the NUMA nodes next to it.
fn memory(cpu: &TopologyObject) -> Option<(u32, OsIndexes)> {
    Some((cpu.os_index(), numbers(&cpu.nodeset()?)?))
}

/// The members of a set; `None` if it is empty or infinite.
fn numbers(set: &Bitmap) -> Option<OsIndexes> {
    let last = u32::try_from(set.last()).ok()?;
    Some((0..=last).filter(|&number| set.is_set(number)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packages with these CPUs, NUMA nodes next to these CPUs, two CPUs to a core.
    fn host(packages: &[&[u32]], numa_nodes: &[&[u32]]) -> HostParts {
        let set = |cpus: &[u32]| cpus.iter().copied().collect();
        let next_to = |cpu| -> OsIndexes {
            (0..).zip(numa_nodes).filter(|(_, cpus)| cpus.contains(&cpu)).map(|(i, _)| i).collect()
        };
        HostParts {
            packages: (0..).zip(packages).map(|(i, cpus)| (i, set(cpus))).collect(),
            cores: (0..4).map(|core| (core, OsIndexes::from([2 * core, 2 * core + 1]))).collect(),
            numa_nodes: (0..8).map(|cpu| (cpu, next_to(cpu))).collect(),
        }
    }

    fn bound_to(host: &HostParts, cpus: impl IntoIterator<Item = u32>) -> (String, u32) {
        let binding = host.binding(&cpus.into_iter().collect()).unwrap();
        (crate::Place::new(binding.labels).to_string(), binding.cores.get())
    }

    #[test]
    fn a_process_in_one_numa_node() {
        let host = host(&[&[0, 1, 2, 3], &[4, 5, 6, 7]], &[&[0, 1], &[2, 3], &[4, 5], &[6, 7]]);
        assert_eq!(bound_to(&host, [6]), ("package 1, numa 3".to_owned(), 1));
        assert_eq!(bound_to(&host, [6, 7]), ("package 1, numa 3".to_owned(), 1));
        assert_eq!(bound_to(&host, 4..8), ("package 1".to_owned(), 2));
    }

    #[test]
    fn a_process_across_packages_stops_at_the_host() {
        let host = host(&[&[0, 1, 2, 3], &[4, 5, 6, 7]], &[&[0, 1, 2, 3], &[4, 5, 6, 7]]);
        assert_eq!(bound_to(&host, 3..5), ("the root".to_owned(), 2));
    }

    #[test]
    fn memories_next_to_the_same_cpus_count_as_one() {
        let all = &[0, 1, 2, 3, 4, 5, 6, 7];
        let host = host(&[all], &[&[4, 5, 6, 7], &[0, 1, 2, 3], &[0, 1, 2, 3]]);
        assert_eq!(bound_to(&host, 0..4), ("package 0, numa 1".to_owned(), 2));
        assert_eq!(bound_to(&host, 0..5), ("package 0".to_owned(), 3));
    }

    #[test]
    fn the_parts_of_a_host_are_counted() {
        let host = host(&[&[0, 1, 2, 3], &[4, 5, 6, 7]], &[&[0, 1], &[2, 3], &[4, 5, 6, 7]]);
        let counted = |cpus: std::ops::Range<u32>| host.domains(&cpus.collect()).unwrap();
        assert_eq!(counted(0..8), Domains { packages: 2, numa_nodes: 3, cores: 4 });
        assert_eq!(counted(3..5), Domains { packages: 2, numa_nodes: 2, cores: 2 });
        assert_eq!(counted(4..8), Domains { packages: 1, numa_nodes: 1, cores: 2 });
    }

    #[test]
    fn a_process_without_cpus() {
        assert!(host(&[], &[]).binding(&OsIndexes::new()).is_none());
        assert!(host(&[], &[]).domains(&OsIndexes::new()).is_none());
    }

    /// Compares the library with the kernel. This fails if the objects of the library have another
    /// layout than the bindings assume.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_library_agrees_with_the_kernel() {
        let listed = |list: &str| -> OsIndexes {
            let numbers = crate::host_list::expand(&format!("[{}]", list.trim())).unwrap();
            numbers.iter().map(|number| number.parse().unwrap()).collect()
        };
        let topology = Topology::new().unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap();
        let bound = topology.get_cpubind(CpuBindFlags::CPUBIND_PROCESS).unwrap();
        let bound = numbers(&bound).unwrap();
        assert_eq!(bound, listed(allowed));

        let cpus = topology.objects_with_type(&ObjectType::PU).unwrap();
        for (cpu, nodes) in cpus.into_iter().map(|cpu| memory(cpu).unwrap()) {
            for node in nodes {
                let path = format!("/sys/devices/system/node/node{node}/cpulist");
                // Some containers hide the directory.
                let Ok(list) = std::fs::read_to_string(path) else { continue };
                assert!(listed(&list).contains(&cpu), "CPU {cpu} is not next to node {node}");
            }
        }
        let packages = topology.objects_with_type(&ObjectType::Package).unwrap_or_default();
        for (_, package) in packages.into_iter().map(|package| numbered(package).unwrap()) {
            let id = |cpu: &u32| {
                let path = "/sys/devices/system/cpu/cpu";
                let path = format!("{path}{cpu}/topology/physical_package_id");
                std::fs::read_to_string(path).ok()
            };
            let ids: BTreeSet<Option<String>> = package.iter().map(id).collect();
            assert_eq!(ids.len(), 1, "CPUs {package:?} are in packages {ids:?}");
        }
        assert!(binding().unwrap().cores.get() as usize <= bound.len());
    }
}
