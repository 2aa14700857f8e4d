//! Places from a topology file that the user gives.
//!
//! A file in [TOML](https://toml.io) has one table for each group of hosts with the same levels
//! above them:
//!
//! ```toml
//! [[hosts]]
//! names = "nid[001-064,070]"
//! switches = ["core0", "rack1"]    # outermost first
//!
//! [[hosts]]
//! names = ["nid[065-069]", "login1"]
//! switches = ["core0", "rack2"]
//!
//! [[hosts]]
//! names = "gpu[01-16]"
//! site = "annexe"                  # above all switches
//! ```
//!
//! - `names` is a host range as Slurm writes it, or a list of them.
//! - `switches` are the groups of hosts: racks, chassis, islands. No switch may be above itself.
//! - `switches` and `site` are optional.
//! - The file must name each host of the job, and no host twice. A host is looked up by its full
//!   name and then, if the file does not have that, by the part before the first dot.
//! - The file must be a regular file of at most [`FILE_BYTES_MAX`] bytes.

mod read;
mod write;

pub use read::FILE_BYTES_MAX;
pub use write::{ToTomlError, to_toml};

use crate::host_list::{self, HOSTS_LIMIT, HostListError};
use crate::{DEPTH_LIMIT, Label, LevelKind, Place, hostname};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Why a topology file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be read.
    #[error(
        "cannot read the topology file {}: {cause}; it has to be readable on every host",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: std::io::Error,
    },
    /// It is a pipe, a device or a folder.
    #[error("the topology file {} is no regular file: give the path of one", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// It has more than [`FILE_BYTES_MAX`] bytes.
    #[error(
        "the topology file {} has more than {FILE_BYTES_MAX} bytes: name hosts in ranges, such as \
         nid[001-064], or see whether it is the right file", path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not TOML, or has other keys than a topology file.
    #[error("the topology file {} is malformed: {cause}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The error, with line and column.
        cause: Box<toml::de::Error>,
    },
    /// A host range is malformed.
    #[error("the topology file {} has names that cannot be read: {cause}", path.display())]
    Names {
        /// The file.
        path: PathBuf,
        /// The error.
        cause: HostListError,
    },
    /// Its ranges stand for more than [`HOSTS_LIMIT`] hosts in all.
    #[error("the topology file {} names more than {HOSTS_LIMIT} hosts", path.display())]
    TooManyHosts {
        /// The file.
        path: PathBuf,
    },
    /// A host would have more than [`DEPTH_LIMIT`] labels.
    #[error(
        "the topology file {} puts `{host}` below {depth} levels, more than the limit of {}",
        path.display(), DEPTH_LIMIT
    )]
    TooDeep {
        /// The file.
        path: PathBuf,
        /// The host.
        host: String,
        /// The number of labels above it.
        depth: usize,
    },
    /// It names a host twice.
    #[error(
        "the topology file {} names the host `{host}` twice, as `{first}` and as `{second}`; \
         a host is in one place", path.display()
    )]
    NamedTwice {
        /// The file.
        path: PathBuf,
        /// The host.
        host: String,
        /// Its place by the first entry.
        first: Place,
        /// Its place by the other entry.
        second: Place,
    },
    /// It does not name a host of the job.
    #[error(
        "the topology file {} names {named} hosts, but not `{host}`; \
         add it to the `names` of the [[hosts]] that it is among", path.display()
    )]
    NotNamed {
        /// The file.
        path: PathBuf,
        /// The host.
        host: String,
        /// The number of hosts that the file names.
        named: usize,
    },
}

/// The contents of a topology file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopologyFile {
    hosts: Vec<HostGroup>,
}

/// Hosts with the same labels above them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostGroup {
    names: Names,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    #[serde(default, deserialize_with = "distinct", skip_serializing_if = "Vec::is_empty")]
    switches: Vec<String>,
}

/// Reads names that must all differ: no switch is above itself.
fn distinct<'de, D: Deserializer<'de>>(names: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(names)?;
    match first_repeated(&names) {
        None => Ok(names),
        Some(name) => {
            let text = format!("the switch `{name}` is named twice above the same hosts");
            Err(D::Error::custom(text))
        }
    }
}

/// The first item that equals an earlier one.
fn first_repeated<T: PartialEq>(names: &[T]) -> Option<&T> {
    let mut each = names.iter().enumerate();
    each.find(|(number, name)| names[..*number].contains(name)).map(|(_, name)| name)
}

/// One host range or several.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a host range such as \"nid[001-064]\", or a list of them")]
enum Names {
    One(String),
    Several(Vec<String>),
}

/// The place of a host by the file at `path`.
pub(crate) fn place(path: &Path, host: &str) -> Result<Place, FileError> {
    Ok(places(path, &[host])?.remove(0))
}

/// The places of hosts by the file at `path`.
pub(crate) fn places(path: &Path, hosts: &[impl AsRef<str>]) -> Result<Vec<Place>, FileError> {
    places_in(&read::text(path)?, path, hosts)
}

/// The places of all hosts that the file at `path` names, in its order.
///
/// # Errors
/// If the file is unreadable, malformed or contradictory, or names too many hosts.
pub fn all_places(path: &Path) -> Result<Vec<Place>, FileError> {
    all_places_in(&read::text(path)?, path)
}

fn all_places_in(text: &str, path: &Path) -> Result<Vec<Place>, FileError> {
    let file = parse(text, path)?;
    // Refuses what is wrong with the ranges, so that they can be expanded.
    groups_by_host(&file, path)?;
    let mut places = Vec::new();
    for group in &file.hosts {
        for list in group.lists() {
            let names = host_list::expand(list)
                .map_err(|cause| FileError::Names { path: path.to_owned(), cause })?;
            places.extend(names.iter().map(|name| group.place_of(name)));
        }
    }
    Ok(places)
}

/// [`places`] by the text of the file. The path is for error messages.
fn places_in(text: &str, path: &Path, hosts: &[impl AsRef<str>]) -> Result<Vec<Place>, FileError> {
    let file = parse(text, path)?;
    let groups = groups_by_host(&file, path)?;
    let place = |host: &str| {
        let full = groups.get_key_value(host);
        match full.or_else(|| groups.get_key_value(hostname::split(host).0)) {
            Some((name, &group)) => Ok(group.place_of(name)),
            None => Err(FileError::NotNamed {
                path: path.to_owned(),
                host: host.to_owned(),
                named: groups.len(),
            }),
        }
    };
    hosts.iter().map(|host| place(host.as_ref())).collect()
}

fn parse(text: &str, path: &Path) -> Result<TopologyFile, FileError> {
    let malformed = |cause| FileError::Malformed { path: path.to_owned(), cause: Box::new(cause) };
    toml::from_str(text).map_err(malformed)
}

/// The group of each host.
fn groups_by_host<'a>(
    file: &'a TopologyFile,
    path: &Path,
) -> Result<HashMap<String, &'a HostGroup>, FileError> {
    let mut groups: HashMap<String, &HostGroup> = HashMap::new();
    for group in &file.hosts {
        for list in group.lists() {
            let names = host_list::expand(list)
                .map_err(|cause| FileError::Names { path: path.to_owned(), cause })?;
            if groups.len() + names.len() > HOSTS_LIMIT {
                return Err(FileError::TooManyHosts { path: path.to_owned() });
            }
            for host in names {
                // The host itself is one level more.
                if group.depth() >= DEPTH_LIMIT {
                    let (path, depth) = (path.to_owned(), group.depth());
                    return Err(FileError::TooDeep { path, host, depth });
                }
                if let Some(earlier) = groups.get(&host) {
                    let (first, second) = (earlier.place_of(&host), group.place_of(&host));
                    return Err(FileError::NamedTwice {
                        path: path.to_owned(),
                        host,
                        first,
                        second,
                    });
                }
                groups.insert(host, group);
            }
        }
    }
    Ok(groups)
}

impl HostGroup {
    fn lists(&self) -> &[String] {
        match &self.names {
            Names::One(list) => std::slice::from_ref(list),
            Names::Several(lists) => lists,
        }
    }

    fn depth(&self) -> usize {
        usize::from(self.site.is_some()) + self.switches.len()
    }

    fn place_of(&self, host: &str) -> Place {
        let site = self.site.iter().map(|name| Label::new(LevelKind::Site, name));
        let switches = self.switches.iter().map(|name| Label::new(LevelKind::Switch, name));
        let host = Label::new(LevelKind::Host, host);
        Place::new(site.chain(switches).chain([host]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = r#"
        [[hosts]]
        names = "nid[001-064,070]"
        switches = ["core0", "rack1"]

        [[hosts]]
        names = ["nid[065-069]", "login1"]
        switches = ["core0", "rack2"]

        [[hosts]]
        names = "gpu[01-16]"
        site = "annexe"
    "#;

    fn find(text: &str, host: &str) -> Result<String, String> {
        let places = places_in(text, Path::new("machine.toml"), &[host]);
        places.map(|places| places[0].to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn hosts_are_found_in_ranges() {
        let found = |host| find(FILE, host).unwrap();
        assert_eq!(found("nid064"), "switch core0, switch rack1, host nid064");
        assert_eq!(found("nid070"), "switch core0, switch rack1, host nid070");
        assert_eq!(found("login1"), "switch core0, switch rack2, host login1");
        assert_eq!(found("gpu01"), "site annexe, host gpu01");
    }

    #[test]
    fn a_name_with_a_domain_is_found_by_either_name() {
        assert_eq!(find(FILE, "gpu01.example.org").unwrap(), "site annexe, host gpu01");
        let full = "[[hosts]]\nnames = \"gpu1.example.org\"";
        assert_eq!(find(full, "gpu1.example.org").unwrap(), "host gpu1.example.org");
    }

    #[test]
    fn an_unreadable_file() {
        let error = place(Path::new("/nonexistent/machine.toml"), "n1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read the topology file /nonexistent/machine.toml: No such file or directory \
             (os error 2); it has to be readable on every host"
        );
    }

    #[test]
    fn the_error_for_a_malformed_file_has_the_line() {
        let error = find("[[hosts]]\nnames = [\"n1\"\nsite = 3", "n1").unwrap_err();
        assert!(error.starts_with("the topology file machine.toml is malformed: "), "{error}");
        assert!(error.contains("line 3"), "{error}");
        let error = find("[[hosts]]\nnames = \"n1\"\nrack = \"r1\"", "n1").unwrap_err();
        assert!(error.contains("line 3, column 1") && error.contains("`rack`"), "{error}");
        let error = find("[[hosts]]\nnames = 7", "n1").unwrap_err();
        assert!(error.contains("line 2") && error.contains("expected a host range"), "{error}");
    }

    #[test]
    fn names_that_cannot_be_read() {
        assert_eq!(
            find("[[hosts]]\nnames = \"n[3-1]\"", "n1").unwrap_err(),
            "the topology file machine.toml has names that cannot be read: \
             the span `3-1` in `n[3-1]` ends before it begins"
        );
    }

    #[test]
    fn all_hosts_are_listed_in_the_order_of_the_file() {
        let all = all_places_in(FILE, Path::new("machine.toml")).unwrap();
        assert_eq!(all.len(), 87);
        assert_eq!(all[64].to_string(), "switch core0, switch rack1, host nid070");
        assert_eq!(all[86].to_string(), "site annexe, host gpu16");
        let twice = "[[hosts]]\nnames = \"n1\"\n[[hosts]]\nnames = \"n1\"";
        let error = all_places_in(twice, Path::new("machine.toml")).unwrap_err();
        assert!(matches!(error, FileError::NamedTwice { .. }), "{error}");
    }

    #[test]
    fn a_host_in_two_places() {
        let text = "[[hosts]]\nnames = \"n[1-4]\"\nswitches = [\"a\"]\n\
                    [[hosts]]\nnames = \"n[4-8]\"\nswitches = [\"b\"]";
        assert_eq!(
            find(text, "n1").unwrap_err(),
            "the topology file machine.toml names the host `n4` twice, as `switch a, host n4` and \
             as `switch b, host n4`; a host is in one place"
        );
    }

    #[test]
    fn a_host_missing_from_the_file() {
        assert_eq!(
            find(FILE, "nid071").unwrap_err(),
            "the topology file machine.toml names 87 hosts, but not `nid071`; \
             add it to the `names` of the [[hosts]] that it is among"
        );
    }

    #[test]
    fn too_many_hosts_and_levels() {
        let group = "[[hosts]]\nnames = [\"a[1-600000]\", \"b[1-600000]\"]\n";
        assert!(find(group, "a1").unwrap_err().contains("more than 1048576 hosts"));
        let switches: Vec<_> = (0..32).map(|number| format!("s{number}")).collect();
        let deep = format!("[[hosts]]\nnames = \"n1\"\nswitches = {switches:?}");
        assert!(
            find(&deep, "n1").unwrap_err().contains("below 32 levels, more than the limit of 32")
        );
    }

    #[test]
    fn a_switch_that_is_above_itself() {
        let text = "[[hosts]]\nnames = \"n1\"\nswitches = [\"a\", \"b\", \"a\"]";
        let error = find(text, "n1").unwrap_err();
        assert!(error.contains("the switch `a` is named twice above the same hosts"), "{error}");
        assert!(error.contains("line 3"), "{error}");
        // Chassis in different racks may have the same name.
        let text = "[[hosts]]\nnames = \"n1\"\nswitches = [\"rack1\", \"chassis1\"]\n\
                    [[hosts]]\nnames = \"n2\"\nswitches = [\"rack2\", \"chassis1\"]";
        assert_eq!(find(text, "n2").unwrap(), "switch rack2, switch chassis1, host n2");
    }

    fn any_file() -> impl Strategy<Value = TopologyFile> {
        let names = prop_oneof![
            "[a-z0-9\\[\\]-]{1,8}".prop_map(Names::One),
            prop::collection::vec("[a-z0-9.\"]{1,8}", 0..3).prop_map(Names::Several),
        ];
        let switches = prop::collection::vec("\\PC{0,6}", 0..3)
            .prop_filter("no switch is above itself", |names| first_repeated(names).is_none());
        let group = (names, prop::option::of("\\PC{0,6}"), switches)
            .prop_map(|(names, site, switches)| HostGroup { names, site, switches });
        prop::collection::vec(group, 0..4).prop_map(|hosts| TopologyFile { hosts })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(file in any_file()) {
            let text = toml::to_string(&file).unwrap();
            prop_assert_eq!(toml::from_str::<TopologyFile>(&text).unwrap(), file);
        }

        #[test]
        fn any_text_is_read_or_refused(
            text in "(\\[\\[hosts\\]\\]|names|=|\"n\\[|1|-|\\]\"|\n| ){0,16}",
        ) {
            let _ = find(&text, "n1");
        }
    }
}
