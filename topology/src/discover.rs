//! Finds the place of this process. The sources, best first:
//!
//! 1. the topology file, if the user gives one;
//! 2. the host name, read by a pattern, if the user gives one;
//! 3. Slurm's `SLURM_TOPOLOGY_ADDR`, if it names this host (see below);
//! 4. the host name, read by the [known schemes](hostname::SCHEMES).
//!
//! Below the host, hwloc adds the package and the NUMA node that the process is bound to.
//!
//! A source that the user gives on purpose (file, pattern) must work, or the job ends with an
//! error. A pattern that does not match is an error even beside a topology file. A source that
//! happens to be there (Slurm's variables, hwloc) is ignored if it cannot be used, and
//! [`Discovery::notes`] says why. Slurm's variables cannot be used if they name another host:
//! `srun` sets them for each process, but `mpiexec` in a batch script passes those of the script's
//! host to all processes, and all would seem to be on that host.
//!
//! All PEs of a job should use the same source, because places are compared label by label. A
//! single process cannot check this. The process that collects the places compares
//! [`Discovery::source`]; if the sources differ, all processes discover their places again without
//! [`Sources::slurm_addr`].

use crate::{Domains, Label, Place, TopologyError, file, hostname, slurm};
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// The inputs from which a process finds its place.
///
/// ```
/// use ultramarine_topology::{PlaceSource, Sources};
/// let sources = Sources { host_name: "r3c1n07".to_owned(), ..Sources::default() };
/// let found = sources.discover()?;
/// assert_eq!(found.source, PlaceSource::HostName);
/// assert!(found.place.to_string().starts_with("switch r3, switch c1, host r3c1n07"));
/// # Ok::<(), ultramarine_topology::TopologyError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Sources {
    /// The path of a topology file ([`crate::file`] has the format).
    pub file: Option<PathBuf>,
    /// The value of `SLURM_TOPOLOGY_ADDR`.
    pub slurm_addr: Option<String>,
    /// The value of `SLURM_TOPOLOGY_ADDR_PATTERN`.
    pub slurm_pattern: Option<String>,
    /// The name of this host, with or without a domain.
    pub host_name: String,
    /// A pattern that finds levels in host names ([`crate::hostname`] has the syntax).
    pub host_pattern: Option<String>,
}

/// The place of a process, and how it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Discovery {
    /// The place of the process.
    pub place: Place,
    /// The source of the place down to the host.
    pub source: PlaceSource,
    /// How many cores the process may use; `None` if hwloc does not know. Hardware threads of one
    /// core count once.
    pub cores: Option<NonZeroU32>,
    /// One sentence for each source that could not be used, with the reason.
    pub notes: Vec<String>,
}

/// The source of a place down to the host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlaceSource {
    /// The topology file.
    File,
    /// Slurm's variables.
    Slurm,
    /// The name of the host.
    HostName,
}

impl fmt::Display for PlaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PlaceSource::File => "topology file",
            PlaceSource::Slurm => "SLURM_TOPOLOGY_ADDR",
            PlaceSource::HostName => "host name",
        })
    }
}

impl Sources {
    /// What the system says of the calling process: Slurm's two variables, and this host's name. An
    /// empty variable counts as unset. A topology file or a pattern is the user's to name.
    ///
    /// # Errors
    /// If the name of this host cannot be read.
    pub fn from_env() -> Result<Sources, TopologyError> {
        let text = |name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
            Some(value.to_string_lossy().into_owned())
        };
        Ok(Sources {
            slurm_addr: text("SLURM_TOPOLOGY_ADDR"),
            slurm_pattern: text("SLURM_TOPOLOGY_ADDR_PATTERN"),
            host_name: host_name()?,
            ..Sources::default()
        })
    }

    /// [`Sources::discover`], and of its answer the place alone.
    ///
    /// # Errors
    /// Those of [`Sources::discover`].
    pub fn place(&self) -> Result<Place, TopologyError> {
        Ok(self.discover()?.place)
    }

    /// Finds the place of the calling process.
    ///
    /// # Errors
    /// If the topology file is unreadable, malformed or contradictory, or does not name this host;
    /// if the host pattern is malformed or does not match the host name.
    pub fn discover(&self) -> Result<Discovery, TopologyError> {
        let mut notes = Vec::new();
        let (source, place) = self.down_to_host(&mut notes)?;
        let (below, cores) = below_host(&mut notes);
        Ok(Discovery { place: place.extended(below), source, cores, notes })
    }

    /// Finds the places of other hosts by their names alone, down to the host: from the topology
    /// file, if there is one, or else from the names.
    ///
    /// ```
    /// use ultramarine_topology::Sources;
    /// let hosts = ["r1n1", "r2n1"].map(str::to_owned);
    /// let places = Sources::default().places_of(&hosts)?;
    /// assert_eq!(places[1].to_string(), "switch r2, host r2n1");
    /// # Ok::<(), ultramarine_topology::TopologyError>(())
    /// ```
    ///
    /// # Errors
    /// If the topology file is unreadable, malformed or contradictory, or does not name one of the
    /// hosts; if the host pattern is malformed or does not match one of the names.
    pub fn places_of(&self, hosts: &[String]) -> Result<Vec<Place>, TopologyError> {
        let place = |host: &String| hostname::place(host, self.host_pattern.as_deref());
        let by_name = hosts.iter().map(place).collect::<Result<_, _>>()?;
        match &self.file {
            Some(path) => Ok(file::places(path, hosts)?),
            None => Ok(by_name),
        }
    }

    /// Finds the place down to the host.
    fn down_to_host(&self, notes: &mut Vec<String>) -> Result<(PlaceSource, Place), TopologyError> {
        let by_name = hostname::place(&self.host_name, self.host_pattern.as_deref())?;
        if let Some(path) = &self.file {
            return Ok((PlaceSource::File, file::place(path, &self.host_name)?));
        }
        if let (Some(addr), None) = (&self.slurm_addr, &self.host_pattern) {
            match self.slurm_place(addr) {
                Ok(place) => return Ok((PlaceSource::Slurm, place)),
                Err(note) => notes.push(note),
            }
        }
        Ok((PlaceSource::HostName, by_name))
    }

    /// The place by Slurm's variables, or the reason why they cannot be used.
    fn slurm_place(&self, addr: &str) -> Result<Place, String> {
        let place = match &self.slurm_pattern {
            Some(pattern) => slurm::place(addr, pattern),
            None => Err(slurm::SlurmError::NoPattern { addr: addr.to_owned() }),
        }
        .map_err(|error| error.to_string())?;
        let (node, own) = (place.host().unwrap_or_default(), &self.host_name);
        if !hostname::split(node).0.eq_ignore_ascii_case(hostname::split(own).0) {
            return Err(format!(
                "SLURM_TOPOLOGY_ADDR `{addr}` is passed over, since it is about another host than \
                 this one, `{own}`; start the processes with srun to have it set for each"
            ));
        }
        // Without switches, the host name may say more.
        if place.labels().len() == 1 {
            return Err(format!("SLURM_TOPOLOGY_ADDR `{addr}` names no switches"));
        }
        Ok(place)
    }
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

#[cfg(feature = "hwloc")]
fn below_host(notes: &mut Vec<String>) -> (Vec<Label>, Option<NonZeroU32>) {
    match crate::hwloc::binding() {
        Ok(binding) => (binding.labels, Some(binding.cores)),
        Err(reason) => {
            notes.push(format!("{reason}, so all its processes are equally near each other"));
            (Vec::new(), None)
        }
    }
}

#[cfg(not(feature = "hwloc"))]
fn below_host(notes: &mut Vec<String>) -> (Vec<Label>, Option<NonZeroU32>) {
    notes.push(
        "built without hwloc, so all processes of a host are equally near each other".to_owned(),
    );
    (Vec::new(), None)
}

/// Reads the system's name for this host.
fn host_name() -> Result<String, TopologyError> {
    // The kernel's file is right inside containers, too, and needs neither a C call nor a program.
    const NAME_FILE: &str = "/proc/sys/kernel/hostname";
    let name = std::fs::read_to_string(NAME_FILE)
        .map_err(|cause| TopologyError::NoHostName { path: NAME_FILE, cause })?;
    Ok(name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(host_name: &str) -> Sources {
        Sources { host_name: host_name.to_owned(), ..Sources::default() }
    }

    fn with_slurm(host_name: &str, addr: &str, pattern: Option<&str>) -> Sources {
        let slurm_pattern = pattern.map(str::to_owned);
        Sources { slurm_addr: Some(addr.to_owned()), slurm_pattern, ..on(host_name) }
    }

    fn host_of(sources: &Sources) -> (PlaceSource, String, Vec<String>) {
        let mut notes = Vec::new();
        let (source, place) = sources.down_to_host(&mut notes).unwrap();
        (source, place.to_string(), notes)
    }

    #[test]
    fn slurm_takes_precedence_over_the_name() {
        let sources = with_slurm("r1n3.hpc", "s0.r1n3", Some("switch.node"));
        assert_eq!(
            host_of(&sources),
            (PlaceSource::Slurm, "switch s0, host r1n3".to_owned(), vec![])
        );
    }

    #[test]
    fn slurm_variables_of_another_host_are_ignored() {
        let (source, place, notes) = host_of(&with_slurm("r1n4", "s0.r1n3", Some("switch.node")));
        assert_eq!((source, place.as_str()), (PlaceSource::HostName, "switch r1, host r1n4"));
        assert!(notes[0].contains("`s0.r1n3` is passed over"), "{notes:?}");
    }

    #[test]
    fn unusable_slurm_variables_are_noted() {
        let (source, _, notes) = host_of(&with_slurm("n4", "s0.n4", Some("switch.switch.node")));
        assert_eq!(source, PlaceSource::HostName);
        assert!(notes[0].contains("has 2 components"), "{notes:?}");
        let (_, _, notes) = host_of(&with_slurm("n4", "s0.n4", None));
        assert!(notes[0].contains("PATTERN is not set"), "{notes:?}");
        let (source, place, _) = host_of(&with_slurm("r1n4", "r1n4", Some("node")));
        assert_eq!((source, place.as_str()), (PlaceSource::HostName, "switch r1, host r1n4"));
    }

    #[test]
    fn the_file_takes_precedence_and_must_work() {
        let file = Some(PathBuf::from("/nonexistent/machine.toml"));
        let sources = Sources { file, ..with_slurm("n1", "s0.n1", Some("switch.node")) };
        let error = sources.place().unwrap_err();
        assert!(matches!(error, TopologyError::File(file::FileError::Unreadable { .. })));
    }

    #[test]
    fn the_pattern_must_work() {
        let sources = Sources { host_pattern: Some("(r#)n#".to_owned()), ..on("cn12") };
        assert!(matches!(sources.place(), Err(TopologyError::HostPattern(_))));
        // Also beside other sources.
        for pattern in ["(r#)n#", "(r#"] {
            let host_pattern = Some(pattern.to_owned());
            let slurm = with_slurm("cn12", "s0.cn12", Some("switch.node"));
            let sources = Sources { host_pattern, ..slurm };
            assert!(matches!(sources.place(), Err(TopologyError::HostPattern(_))), "{pattern}");
            let sources = Sources { file: Some("/nonexistent/machine.toml".into()), ..sources };
            assert!(matches!(sources.place(), Err(TopologyError::HostPattern(_))), "{pattern}");
            let hosts = ["cn12".to_owned()];
            let places = sources.places_of(&hosts);
            assert!(matches!(places, Err(TopologyError::HostPattern(_))), "{pattern}");
        }
    }

    #[test]
    fn the_pattern_takes_precedence_over_slurm() {
        let host_pattern = Some("(r#)n#".to_owned());
        let slurm = with_slurm("r1n3", "s0.r1n3", Some("switch.node"));
        let sources = Sources { host_pattern, ..slurm };
        let expected = (PlaceSource::HostName, "switch r1, host r1n3".to_owned(), vec![]);
        assert_eq!(host_of(&sources), expected);
    }

    #[test]
    fn hwloc_only_adds_below_the_host() {
        let sources = on("r1n4");
        let found = sources.discover().unwrap();
        assert_eq!(found.place.labels()[..2], hostname::place("r1n4", None).unwrap().labels()[..]);
        // Either hwloc knows the cores, or a note says why not.
        assert!(found.cores.is_some() != (found.notes.len() == 1), "{found:?}");
    }

    #[test]
    fn the_host_name_is_read_from_the_system() {
        let sources = Sources::from_env().unwrap();
        assert!(!sources.host_name.is_empty() && !sources.host_name.contains('\n'));
    }
}
