//! How near two PEs are, as a network sees it: what they share decides which way a message takes.

use ultramarine_topology::{Distance, LevelKind, Pe, Topology};

/// The innermost thing that two PEs share; nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Tier {
    /// A processor package or a NUMA node.
    Package,
    /// A host: messages go through its memory.
    Host,
    /// A rack, or another switch with hosts directly on it.
    Rack,
    /// The machine: messages cross several switches. PEs of different sites count as such, too: no
    /// wide-area network is modelled.
    Machine,
}

impl Tier {
    /// All of them, nearest first.
    pub const ALL: [Tier; 4] = [Tier::Package, Tier::Host, Tier::Rack, Tier::Machine];

    /// What two different PEs share.
    pub fn between(topology: &Topology, p: Pe, q: Pe) -> Tier {
        let [own, other] = [p, q].map(|pe| topology.place(pe).labels());
        let common = own.iter().zip(other).take_while(|(own, other)| own == other).count();
        // A switch with hosts on it, and not only with other switches.
        let part_at_hosts = || {
            [own, other]
                .iter()
                .all(|labels| labels.get(common).is_none_or(|label| label.kind >= LevelKind::Host))
        };
        match own[..common].last().map(|label| label.kind) {
            Some(LevelKind::Package | LevelKind::Numa) => Tier::Package,
            Some(LevelKind::Host) => Tier::Host,
            Some(LevelKind::Switch) if part_at_hosts() => Tier::Rack,
            Some(LevelKind::Switch | LevelKind::Site) | None => Tier::Machine,
        }
    }
}

/// What PEs share that are 1, 1/2, 1/4 … apart: the distances of a job have no gaps.
///
/// In a job of one shape a distance means one tier. Where it does not, as in a topology file with
/// racks here and none there, the first pair of PEs at the distance decides.
pub(super) fn tiers(topology: &Topology) -> Vec<Tier> {
    let positive = topology.radii().iter().rev().filter(|radius| **radius > Distance::ZERO);
    let tier = |radius: &Distance| {
        let pair = first_pair(topology, *radius);
        pair.map_or(Tier::Machine, |(p, q)| Tier::between(topology, p, q))
    };
    positive.map(tier).collect()
}

/// The first two PEs that are exactly this far apart.
fn first_pair(topology: &Topology, distance: Distance) -> Option<(Pe, Pe)> {
    let mut next = 0;
    while next < topology.pes() {
        let p = Pe::new(next);
        let [near, ball] = [distance.half(), distance].map(|radius| topology.ball(p, radius));
        if ball != near {
            // `p` is the first of the ball, and so of the smaller one.
            return Some((p, Pe::new(near.numbers().end)));
        }
        next = ball.numbers().end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_topology::{Label, LevelKind::*, Place};

    fn job(places: &[&[(LevelKind, &str)]]) -> Topology {
        let place = |labels: &&[(LevelKind, &str)]| {
            Place::new(labels.iter().map(|(kind, name)| Label::new(*kind, *name)).collect())
        };
        let places: Vec<Place> = places.iter().map(place).collect();
        Topology::new(&places, &vec![1; places.len()]).expect("a topology")
    }

    #[test]
    fn what_pes_share_decides() {
        let job = job(&[
            &[(Switch, "g"), (Switch, "r"), (Host, "a"), (Package, "0")],
            &[(Switch, "g"), (Switch, "r"), (Host, "a"), (Package, "0")],
            &[(Switch, "g"), (Switch, "r"), (Host, "a"), (Package, "1")],
            &[(Switch, "g"), (Switch, "r"), (Host, "b"), (Package, "0")],
            &[(Switch, "g"), (Switch, "s"), (Host, "c"), (Package, "0")],
            &[(Switch, "h"), (Switch, "r"), (Host, "d"), (Package, "0")],
        ]);
        let to = |q| Tier::between(&job, Pe::ROOT, Pe::new(q));
        let expected = [Tier::Package, Tier::Host, Tier::Rack, Tier::Machine, Tier::Machine];
        assert_eq!([1, 2, 3, 4, 5].map(to), expected);
        assert_eq!(
            tiers(&job),
            [Tier::Machine, Tier::Machine, Tier::Rack, Tier::Host, Tier::Package]
        );
    }

    #[test]
    fn hosts_without_racks_and_pes_without_places() {
        let hosts = job(&[&[(Host, "a")], &[(Host, "a")], &[(Host, "b")]]);
        assert_eq!(tiers(&hosts), [Tier::Machine, Tier::Host]);
        assert_eq!(tiers(&Topology::flat(1)), []);
        assert_eq!(tiers(&Topology::flat(2)), [Tier::Machine]);
    }

    #[test]
    fn sites_are_far_apart() {
        let job = job(&[
            &[(Site, "x"), (Host, "a")],
            &[(Site, "x"), (Host, "b")],
            &[(Site, "y"), (Host, "c")],
        ]);
        assert_eq!(Tier::between(&job, Pe::new(0), Pe::new(1)), Tier::Machine);
        assert_eq!(Tier::between(&job, Pe::new(0), Pe::new(2)), Tier::Machine);
    }
}
