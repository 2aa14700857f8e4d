//! How many parts this host has, to start a process for each.

/// The parts of this host that the calling process may use some of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domains {
    /// Packages: what a socket holds.
    pub packages: u32,
    /// NUMA nodes. Several memories next to the same CPUs count as one.
    pub numa_nodes: u32,
    /// Cores.
    pub cores: u32,
}

impl Domains {
    /// The parts of this host.
    ///
    /// # Errors
    ///
    /// Why they cannot be told.
    pub fn of_this_host() -> Result<Self, &'static str> {
        #[cfg(feature = "hwloc")]
        return crate::hwloc::domains();
        #[cfg(not(feature = "hwloc"))]
        Err("this program was built without hwloc")
    }
}
