//! Where this process is: the sources of places put together, best first.
//!
//! 1. the topology file, if the user gives one;
//! 2. the host's name, read by the pattern that the user gives;
//! 3. Slurm's `SLURM_TOPOLOGY_ADDR`, if it is this host's (below);
//! 4. the host's name, read by the [schemes](hostname::SCHEMES) that are known.
//!
//! Below the host, hwloc adds the package and NUMA node that the process is bound to.
//!
//! What the user gave on purpose (file, pattern) has to work, else the job ends with an error: a
//! pattern that does not fit also where the file, which goes before it, would do without. What
//! happens to be there (Slurm's variables, hwloc) is left out when it is of no use, and
//! [`Discovery::notes`] says why. Slurm's variables are of no use when they name another host: they
//! are set for each process by `srun`, but `mpiexec` in a batch script hands those of the script's
//! own host to all processes, and all would seem to be there.
//!
//! All PEs of a job should use the same source, since places are compared label by label. One
//! process cannot see whether they do; the one that gathers the places compares
//! [`Discovery::source`] and, where they differ, has all discover again with
//! [`Sources::slurm_addr`] left out.

use crate::{Label, Place, TopologyError, file, hostname, slurm};
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// What a process can find out its place from.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Sources {
    /// A topology file ([`crate::file`] tells its format).
    pub file: Option<PathBuf>,
    /// The value of `SLURM_TOPOLOGY_ADDR`.
    pub slurm_addr: Option<String>,
    /// The value of `SLURM_TOPOLOGY_ADDR_PATTERN`.
    pub slurm_pattern: Option<String>,
    /// The name of this host, with or without its domain.
    pub host_name: String,
    /// How levels are read off host names ([`crate::hostname`] tells how patterns look).
    pub host_pattern: Option<String>,
}

/// Where a process is, and how that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Discovery {
    /// The place of the process.
    pub place: Place,
    /// What the place was found out from, down to the host.
    pub source: Source,
    /// How many cores the process may use, where hwloc can tell. Hardware threads of one core
    /// count once.
    pub cores: Option<NonZeroU32>,
    /// What could not be used, and why; one sentence each.
    pub notes: Vec<String>,
}

/// A source of places down to the host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// The topology file.
    File,
    /// Slurm's variables.
    Slurm,
    /// The name of the host.
    HostName,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Source::File => "topology file",
            Source::Slurm => "SLURM_TOPOLOGY_ADDR",
            Source::HostName => "host name",
        })
    }
}

impl Sources {
    /// The sources of the calling process, from its environment (`ULTRAMARINE_TOPOLOGY`, the path
    /// of a topology file; `ULTRAMARINE_HOST_PATTERN`; Slurm's two variables; each counts as not
    /// set when empty) and the system's name for this host.
    ///
    /// # Errors
    /// When the system does not tell the name of this host.
    pub fn from_env() -> Result<Sources, TopologyError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
        Ok(Sources {
            file: variable("ULTRAMARINE_TOPOLOGY").map(PathBuf::from),
            slurm_addr: text("SLURM_TOPOLOGY_ADDR"),
            slurm_pattern: text("SLURM_TOPOLOGY_ADDR_PATTERN"),
            host_name: host_name()?,
            host_pattern: text("ULTRAMARINE_HOST_PATTERN"),
        })
    }

    /// The place of the calling process.
    ///
    /// # Errors
    /// See [`Sources::discover`].
    pub fn place(&self) -> Result<Place, TopologyError> {
        Ok(self.discover()?.place)
    }

    /// The place of the calling process, with how it was found.
    ///
    /// # Errors
    /// When the topology file is unreadable, malformed or contradictory or does not name this
    /// host; when the host pattern is malformed or does not match the host's name.
    pub fn discover(&self) -> Result<Discovery, TopologyError> {
        let mut notes = Vec::new();
        let (source, place) = self.down_to_host(&mut notes)?;
        let (below, cores) = below_host(&mut notes);
        Ok(Discovery { place: place.extended(below), source, cores, notes })
    }

    /// The places of hosts of which only the names are known, down to the host: from the topology
    /// file or else from the names. Where this process is does not matter.
    ///
    /// # Errors
    /// When the topology file is unreadable, malformed or contradictory or does not name one of the
    /// hosts; when the host pattern is malformed or does not match one of the names.
    pub fn places_of(&self, hosts: &[String]) -> Result<Vec<Place>, TopologyError> {
        let place = |host: &String| hostname::place(host, self.host_pattern.as_deref());
        let by_name = hosts.iter().map(place).collect::<Result<_, _>>()?;
        match &self.file {
            Some(path) => Ok(file::places(path, hosts)?),
            None => Ok(by_name),
        }
    }

    /// The place of this host.
    fn down_to_host(&self, notes: &mut Vec<String>) -> Result<(Source, Place), TopologyError> {
        let by_name = hostname::place(&self.host_name, self.host_pattern.as_deref())?;
        if let Some(path) = &self.file {
            return Ok((Source::File, file::place(path, &self.host_name)?));
        }
        if let (Some(addr), None) = (&self.slurm_addr, &self.host_pattern) {
            match self.slurm_place(addr) {
                Ok(place) => return Ok((Source::Slurm, place)),
                Err(note) => notes.push(note),
            }
        }
        Ok((Source::HostName, by_name))
    }

    /// The place that Slurm tells, or why it is of no use.
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
        // A node without switches tells nothing that its name might not tell better.
        if place.labels().len() == 1 {
            return Err(format!("SLURM_TOPOLOGY_ADDR `{addr}` names no switches"));
        }
        Ok(place)
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

/// The system's name for this host.
fn host_name() -> Result<String, TopologyError> {
    // The kernel's own word, which follows containers; it needs neither a C call nor a program.
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

    fn host_of(sources: &Sources) -> (Source, String, Vec<String>) {
        let mut notes = Vec::new();
        let (source, place) = sources.down_to_host(&mut notes).unwrap();
        (source, place.to_string(), notes)
    }

    #[test]
    fn slurm_goes_before_the_name() {
        let sources = with_slurm("r1n3.hpc", "s0.r1n3", Some("switch.node"));
        assert_eq!(host_of(&sources), (Source::Slurm, "switch s0, host r1n3".to_owned(), vec![]));
    }

    #[test]
    fn the_word_of_slurm_about_another_host_is_passed_over() {
        let (source, place, notes) = host_of(&with_slurm("r1n4", "s0.r1n3", Some("switch.node")));
        assert_eq!((source, place.as_str()), (Source::HostName, "switch r1, host r1n4"));
        assert!(notes[0].contains("`s0.r1n3` is passed over"), "{notes:?}");
    }

    #[test]
    fn what_slurm_tells_badly_is_noted() {
        let (source, _, notes) = host_of(&with_slurm("n4", "s0.n4", Some("switch.switch.node")));
        assert_eq!(source, Source::HostName);
        assert!(notes[0].contains("has 2 components"), "{notes:?}");
        let (_, _, notes) = host_of(&with_slurm("n4", "s0.n4", None));
        assert!(notes[0].contains("PATTERN is not set"), "{notes:?}");
        let (source, place, _) = host_of(&with_slurm("r1n4", "r1n4", Some("node")));
        assert_eq!((source, place.as_str()), (Source::HostName, "switch r1, host r1n4"));
    }

    #[test]
    fn the_file_goes_before_all_and_has_to_work() {
        let file = Some(PathBuf::from("/nonexistent/machine.toml"));
        let sources = Sources { file, ..with_slurm("n1", "s0.n1", Some("switch.node")) };
        let error = sources.place().unwrap_err();
        assert!(matches!(error, TopologyError::File(file::FileError::Unreadable { .. })));
    }

    #[test]
    fn the_pattern_has_to_work() {
        let sources = Sources { host_pattern: Some("(r#)n#".to_owned()), ..on("cn12") };
        assert!(matches!(sources.place(), Err(TopologyError::HostPattern(_))));
        // Whatever else is there.
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
    fn the_pattern_goes_before_slurm() {
        let host_pattern = Some("(r#)n#".to_owned());
        let slurm = with_slurm("r1n3", "s0.r1n3", Some("switch.node"));
        let sources = Sources { host_pattern, ..slurm };
        let expected = (Source::HostName, "switch r1, host r1n3".to_owned(), vec![]);
        assert_eq!(host_of(&sources), expected);
    }

    #[test]
    fn hwloc_only_adds_below_the_host() {
        let sources = on("r1n4");
        let found = sources.discover().unwrap();
        assert_eq!(found.place.labels()[..2], hostname::place("r1n4", None).unwrap().labels()[..]);
        // Either hwloc has told something or there is a note why not.
        assert!(found.cores.is_some() != (found.notes.len() == 1), "{found:?}");
    }

    #[test]
    fn the_system_names_this_host() {
        let sources = Sources::from_env().unwrap();
        assert!(!sources.host_name.is_empty() && !sources.host_name.contains('\n'));
    }
}
