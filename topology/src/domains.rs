//! Counts the parts of this host (packages, NUMA nodes, cores), so that one process can be started
//! on each.

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

impl Domains {
    /// Asks hwloc.
    ///
    /// # Errors
    /// The reason, as a sentence, if this crate was built without hwloc or if hwloc does not know.
    pub fn of_this_host() -> Result<Self, &'static str> {
        #[cfg(feature = "hwloc")]
        return crate::hwloc::domains();
        #[cfg(not(feature = "hwloc"))]
        Err("this program was built without hwloc")
    }
}
