//! The example of the paper (`SymGridPar2`, figure 3 and §4.3): a hierarchy of four levels, and the
//! result of `equiDist 1/2` on PE `u`.

use std::collections::BTreeSet;
use ultramarine_topology::{Distance, LevelKind, Pe, Place, Topology};

/// Two rooms, each with two racks of one quad-core host and a third rack of two such hosts. Each
/// core is a PE.
fn hierarchy() -> Topology {
    let hosts = [
        ["a", "rack1", "u"],
        ["a", "rack2", "v"],
        ["a", "rack3", "x"],
        ["a", "rack3", "z"],
        ["b", "rack1", "u"],
        ["b", "rack2", "v"],
        ["b", "rack3", "x"],
        ["b", "rack3", "z"],
    ];
    let places: Vec<Place> = hosts
        .iter()
        .map(|[room, rack, host]| {
            let (switch, leaf) = (LevelKind::Switch, LevelKind::Host);
            Place::from_pairs([(switch, *room), (switch, *rack), (leaf, *host)])
        })
        .flat_map(|place| [place.clone(), place.clone(), place.clone(), place])
        .collect();
    Topology::new(&places, &[1; 32]).unwrap()
}

#[test]
fn distances_at_the_four_levels() {
    let job = hierarchy();
    let u = Pe::ROOT;
    let to = |q| job.distance(u, Pe::new(q)).to_string();
    assert_eq!(
        [to(0), to(1), to(4), to(8), to(15), to(16)],
        ["0", "1/8", "1/2", "1/2", "1/2", "1"]
    );
    // Inside the rack with two hosts.
    assert_eq!(job.distance(Pe::new(8), Pe::new(12)).to_string(), "1/4");
    assert_eq!(format!("{:?}", job.radii()), "[0, 1/8, 1/4, 1/2, 1]");
}

#[test]
fn the_basis_on_u_is_one_of_those_in_the_paper() {
    let job = hierarchy();
    let (u, half) = (Pe::ROOT, Distance::ONE.half());
    let mut last_picked = BTreeSet::new();
    for random in (0..64).map(|i: u64| i << 58) {
        let basis = job.equidistant_basis(u, half, &mut || random);
        let [(q0, 4), (q1, 4), (q2, 8)] = basis[..] else { panic!("{basis:?}") };
        assert_eq!(q0, u);
        assert!((4..8).contains(&q1.number()), "{q1} is not beside v");
        assert!((8..16).contains(&q2.number()), "{q2} is not beside x and z");
        last_picked.insert(q2);
    }
    assert_eq!(last_picked.len(), 8, "any PE of the ball may be picked");
}

#[test]
fn radii_that_are_no_distance_of_a_pe() {
    let job = hierarchy();
    let u = Pe::ROOT;
    let none = &mut || 0;
    // The rack of u has only one host, so 1/4 adds nothing to 1/8.
    let [quarter, eighth, sixteenth] = [2, 3, 4].map(Distance::from_exponent);
    assert_eq!(job.ball(u, quarter), job.ball(u, eighth));
    assert_eq!(job.equidistant_basis(u, quarter, none), [(u, 4)]);
    assert_eq!(job.equidistant_basis(u, eighth, none).len(), 4);
    assert_eq!(job.ball(u, sixteenth).len(), 1);
    assert_eq!(job.equidistant_basis(u, sixteenth, none), [(u, 1)]);
    assert_eq!(job.equidistant_basis(u, Distance::ZERO, none), [(u, 1)]);
}
