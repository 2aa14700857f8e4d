//! The hierarchy of a job that is only described.

use crate::error::StartError;
use crate::options::Options;
use std::collections::HashSet;
use ultramarine_environment::launcher::launched;
use ultramarine_environment::variables;
use ultramarine_topology::{Place, Topology, host_list};

/// The most PEs that can be described.
const DESCRIBED_PES_MAX: usize = 1 << 20;

impl Options {
    /// The hierarchy that a job would have with this many PEs on each of these hosts, given as in
    /// `r1n[01-16],login`. No job is started: where the hosts stand is read from the topology file
    /// or from their names, and what is below a host is not known. The power of a PE is its
    /// `threads`, 1 if none are given. Ranks are dealt out host by host.
    ///
    /// ```
    /// # fn main() -> Result<(), ultramarine::StartError> {
    /// use ultramarine::{Distance, Options, Pe};
    ///
    /// let job = Options::default().describe("r1n[1-2],r2n1", 2)?;
    /// assert_eq!(job.pes(), 6);
    /// assert_eq!(job.distance(Pe::new(0), Pe::new(2)), Distance::ONE.half());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The list is malformed, empty or too long, or names a host twice; a host has no place in the
    /// topology file or by the host pattern; a launcher has started several processes.
    pub fn describe(self, hosts: &str, per_host: u32) -> Result<Topology, StartError> {
        let refuse = |reason: String| Err(StartError::Options(reason));
        if let Some(launched) = launched(variables::text).filter(|launched| launched.processes > 1)
        {
            return refuse(format!(
                "a job is to be described without starting it, but {} says that a launcher started \
                 {} processes: leave out the launcher",
                launched.variable, launched.processes
            ));
        }
        let options = self.completed(variables::text)?;
        if hosts.trim().is_empty() {
            return refuse("no hosts are named: give some, as in r1n[01-16],login".to_owned());
        }
        let hosts = host_list::expand(hosts).map_err(|error| {
            StartError::Options(format!("hosts cannot be read: {error}; write r1n[01-16],login"))
        })?;
        let mut seen = HashSet::new();
        if let Some(host) = hosts.iter().find(|host| !seen.insert(host.as_str())) {
            return refuse(format!("the host `{host}` is named twice: name each once"));
        }
        let pes = hosts.len().saturating_mul(per_host as usize);
        if pes == 0 || pes > DESCRIBED_PES_MAX {
            return refuse(format!(
                "{} hosts with {per_host} PEs each are {pes} PEs, and from 1 to \
                 {DESCRIBED_PES_MAX} can be described",
                hosts.len()
            ));
        }
        let places = options.sources()?.places_of(&hosts)?;
        let each = |place: Place| std::iter::repeat_n(place, per_host as usize);
        let places: Vec<Place> = places.into_iter().flat_map(each).collect();
        let power = options.thread_count().unwrap_or(1) as u64;
        Ok(Topology::new(&places, &vec![power; places.len()])?)
    }
}
