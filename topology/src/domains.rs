//! The numbers of parts of a host (packages, NUMA nodes, cores), for starting one process on each.

/// How many parts of this host the calling process may use. A part counts if the process may use
/// some of it.
///
/// ```
/// use ultramarine_topology::Domains;
/// if let Ok(host) = Domains::of_this_host() {
///     assert!(host.packages >= 1 && host.numa_nodes >= 1 && host.cores >= 1);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domains {
    /// Processor packages (sockets).
    pub packages: u32,
    /// NUMA nodes. Several memories next to the same CPUs (HBM beside DRAM) count as one.
    pub numa_nodes: u32,
    /// Cores. Hardware threads of one core count once.
    pub cores: u32,
}
