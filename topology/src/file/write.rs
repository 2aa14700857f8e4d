//! The way back: a topology file that says where the hosts of a job stand.

use super::{HostGroup, Names, TopologyFile, first_repeated};
use crate::LevelKind::{Host, Site, Switch};
use crate::{Label, LevelKind, Pe, Place, Topology, host_list};
use std::collections::HashMap;

/// What a reader should know.
const COMMENT: &str = "\
# Where the hosts of a job stand, for --topology or ULTRAMARINE_TOPOLOGY.
#
# Each [[hosts]] names hosts with the same levels above them; `switches` (racks, chassis, islands)
# stand outermost first, and a `site` is above them. Leave out a level that makes no difference.
# What is below a host (packages, NUMA nodes) does not stand here: each process finds that out
# itself.
";

/// A place that a topology file cannot express.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a topology file cannot express `{place}`: {reason}")]
pub struct Inexpressible {
    /// The place.
    pub place: Place,
    /// What does not fit.
    pub reason: &'static str,
}

/// The text of a topology file for the hosts of this job. Who reads it finds each of them at the
/// same place, down to the host.
///
/// ```
/// use ultramarine_topology::{LevelKind::*, Place, Topology, file};
/// let places = ["n1", "n2"].map(|host| Place::from_pairs([(Switch, "rack1"), (Host, host)]));
/// let text = file::to_toml(&Topology::new(&places, &[1; 2])?)?;
/// assert!(text.ends_with("[[hosts]]\nnames = \"n[1-2]\"\nswitches = [\"rack1\"]\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When a PE is on no host, or below its host or a switch there is what a file has only above it;
/// when two switches above a host have the same name; when the name of a host means something else
/// in a host range; when two hosts have the same name.
pub fn to_toml(topology: &Topology) -> Result<String, Inexpressible> {
    let mut groups: Vec<(Above<'_>, Vec<&str>)> = Vec::new();
    let mut known: HashMap<Above<'_>, usize> = HashMap::new();
    let mut group_of: HashMap<&str, usize> = HashMap::new();
    for place in (0..topology.pes()).map(|pe| topology.place(Pe::new(pe))) {
        let refuse = |reason| Inexpressible { place: place.clone(), reason };
        let (above, host) = cut(place).map_err(refuse)?;
        let group = *known.entry(above).or_insert_with(|| {
            groups.push((above, Vec::new()));
            groups.len() - 1
        });
        match group_of.insert(host, group) {
            None => groups[group].1.push(host),
            Some(former) if former == group => {}
            Some(_) => return Err(refuse("another host has the same name")),
        }
    }
    let hosts = groups.into_iter().map(|(above, hosts)| {
        let lists = host_list::compress(hosts).map_err(|name| Inexpressible {
            place: Place::from_pairs([(Host, name)]),
            reason: "brackets and commas have a meaning of their own in a host range",
        })?;
        Ok(above.group(lists))
    });
    let file = TopologyFile { hosts: hosts.collect::<Result<_, _>>()? };
    let text = toml::to_string(&file).expect("tables of strings are TOML");
    Ok(format!("{COMMENT}\n{text}"))
}

/// The labels above a host.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Above<'a> {
    site: Option<&'a Label>,
    switches: &'a [Label],
}

/// A place down to its host, or what does not fit.
fn cut(place: &Place) -> Result<(Above<'_>, &str), &'static str> {
    let labels = place.labels();
    let host = labels.iter().position(|label| label.kind == Host).ok_or("it names no host")?;
    let (site, switches) = match &labels[..host] {
        [first, rest @ ..] if first.kind == Site => (Some(first), rest),
        rest => (None, rest),
    };
    if switches.iter().any(|label| label.kind != Switch) {
        return Err("above a host there is at most one site, and then only switches");
    }
    if first_repeated(switches).is_some() {
        return Err("two switches above it have the same name");
    }
    let is_inside = |kind: LevelKind| kind > Host;
    if !labels[host + 1..].iter().all(|label| is_inside(label.kind)) {
        return Err("below a host there are only parts of it");
    }
    Ok((Above { site, switches }, &labels[host].name))
}

impl Above<'_> {
    fn group(self, lists: Vec<String>) -> HostGroup {
        HostGroup {
            names: match <[String; 1]>::try_from(lists) {
                Ok([list]) => Names::One(list),
                Err(lists) => Names::Several(lists),
            },
            site: self.site.map(|label| label.name.clone()),
            switches: self.switches.iter().map(|label| label.name.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places_in;
    use super::*;
    use crate::LevelKind::{Numa, Package};
    use proptest::prelude::*;
    use std::path::Path;

    fn text_of(places: &[Place]) -> Result<String, Inexpressible> {
        to_toml(&Topology::new(places, &vec![1; places.len()]).unwrap())
    }

    #[test]
    fn hosts_with_the_same_levels_above_share_a_group() {
        let hosts = [("r1", "n1"), ("r2", "n3"), ("r1", "n2"), ("r1", "login")];
        let place = |(rack, host)| {
            Place::from_pairs([(Site, "hall"), (Switch, rack), (Host, host), (Package, "0")])
        };
        let text = text_of(&hosts.map(place)).unwrap();
        assert!(text.starts_with("# Where the hosts of a job stand"), "{text}");
        assert_eq!(
            text.split_once("\n\n").unwrap().1,
            "[[hosts]]\nnames = [\"login\", \"n[1-2]\"]\nsite = \"hall\"\nswitches = [\"r1\"]\n\n\
             [[hosts]]\nnames = \"n3\"\nsite = \"hall\"\nswitches = [\"r2\"]\n"
        );
    }

    #[test]
    fn what_a_file_cannot_express_is_told() {
        let error = |labels: &[&[(LevelKind, &str)]]| {
            let place = |labels: &&[_]| Place::from_pairs(labels.iter().copied());
            let places: Vec<_> = labels.iter().map(place).collect();
            text_of(&places).unwrap_err().to_string()
        };
        assert_eq!(
            error(&[&[(Switch, "s")]]),
            "a topology file cannot express `switch s`: it names no host"
        );
        assert!(error(&[&[(Switch, "s"), (Site, "x"), (Host, "a")]]).contains("at most one site"));
        assert!(error(&[&[(Host, "a"), (Switch, "s")]]).contains("only parts of it"));
        let twice = [(Switch, "s"), (Switch, "t"), (Switch, "s"), (Host, "a")];
        assert!(error(&[&twice]).contains("two switches above it have the same name"));
        assert!(error(&[&[(Host, "a[1]")]]).contains("`host a[1]`: brackets and commas"));
        let twins: [&[_]; 2] = [&[(Site, "x"), (Host, "a")], &[(Site, "y"), (Host, "a")]];
        assert!(error(&twins).contains("`site y, host a`: another host has the same name"));
    }

    /// Places of several hosts, each with some PEs, by rank.
    fn any_places() -> impl Strategy<Value = Vec<Place>> {
        let labels = |kind, names| {
            prop::collection::vec(names, 0..3).prop_map(move |names: Vec<String>| {
                names.into_iter().map(|name| Label::new(kind, name)).collect::<Vec<_>>()
            })
        };
        let host = "[a-c]?[0-9]{1,2}[a-cé]?[0-9]{0,2}|[^\\[\\], ][^\\[\\],\\pC]{0,4}";
        let switches = labels(Switch, "[a-b]|\\PC{0,3}")
            .prop_filter("no switch is above itself", |names| first_repeated(names).is_none());
        let above = (prop::option::of("\\PC{0,3}"), switches);
        let pes = prop::collection::vec(labels(Numa, "[0-1]"), 1..3);
        prop::collection::btree_map(host, (above, pes), 1..12).prop_map(|hosts| {
            let mut places = Vec::new();
            for (host, ((site, switches), pes)) in hosts {
                let site = site.map(|name| Label::new(Site, name));
                let path = site.into_iter().chain(switches).chain([Label::new(Host, host)]);
                let place = Place::new(path.collect());
                places.extend(pes.into_iter().map(|below| place.clone().extended(below)));
            }
            // Ranks are not in the order of the hierarchy.
            let half = places.len() / 2;
            places.rotate_left(half);
            places
        })
    }

    proptest! {
        #[test]
        fn what_is_written_and_read_is_the_same_hierarchy(places in any_places()) {
            let powers = vec![1; places.len()];
            let job = Topology::new(&places, &powers).unwrap();
            let text = to_toml(&job).unwrap();
            let hosts: Vec<&str> = places.iter().map(|place| place.host().unwrap()).collect();
            let read = places_in(&text, Path::new("written.toml"), &hosts).unwrap();
            let read: Vec<Place> = read.into_iter().zip(&places).map(|(read, place)| {
                // What is below the host each process adds itself.
                read.extended(place.labels().iter().filter(|label| label.kind > Host).cloned())
            }).collect();
            prop_assert_eq!(&read, &places);
            let again = Topology::new(&read, &powers).unwrap();
            prop_assert_eq!(again.to_string(), job.to_string());
        }
    }
}
