//! The laws of distances, balls and bases (`SymGridPar2` §4.1, 4.3) over random hierarchies.

use proptest::prelude::*;
use std::collections::BTreeSet;
use ultramarine_topology::{Distance, Label, LevelKind, Pe, Place, Topology};

/// A job of up to 23 PEs with places of up to 4 labels and few names, so that many places share a
/// prefix and some are prefixes of others.
fn any_job() -> impl Strategy<Value = (Vec<Place>, Vec<u64>)> {
    let place = prop::collection::vec(0..3u8, 0..=4).prop_map(|names| {
        let kinds = [LevelKind::Switch, LevelKind::Switch, LevelKind::Host, LevelKind::Package];
        let labels = kinds.into_iter().zip(names);
        Place::new(labels.map(|(kind, name)| Label::new(kind, name.to_string())).collect())
    });
    prop::collection::vec((place, 1..9u64), 1..24).prop_map(|pes| pes.into_iter().unzip())
}

fn any_topology() -> impl Strategy<Value = Topology> {
    any_job().prop_map(|(places, powers)| Topology::new(&places, &powers).unwrap())
}

fn pes(job: &Topology) -> impl Iterator<Item = Pe> + Clone + use<> {
    (0..job.pes()).map(Pe::new)
}

/// The radii of the job, and some that are not distances between its PEs.
fn radii(job: &Topology) -> Vec<Distance> {
    let beyond = [40, 254].map(Distance::from_exponent);
    let halves = job.radii().iter().map(|r| r.half());
    halves.chain(job.radii().iter().copied()).chain(beyond).collect()
}

/// The distance by definition: `2^-n`, where `n` counts the levels that separate PEs of the job
/// above the level where the two places part.
fn distance_by_definition(places: &[Place], p: usize, q: usize) -> Distance {
    fn parting(a: &Place, b: &Place) -> usize {
        a.labels().iter().zip(b.labels()).take_while(|(a, b)| a == b).count()
    }
    if p == q {
        return Distance::ZERO;
    }
    // A level separates PEs if two of them part there.
    let separating: BTreeSet<usize> = (0..places.len())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .map(|(i, j)| parting(&places[i], &places[j]))
        .collect();
    let level = parting(&places[p], &places[q]);
    Distance::from_exponent(separating.range(..level).count() as u8)
}

/// A pseudorandom generator.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    }
}

proptest! {
    #[test]
    fn distances_are_as_defined((places, powers) in any_job()) {
        let job = Topology::new(&places, &powers).unwrap();
        for p in 0..places.len() {
            for q in 0..places.len() {
                let [a, b] = [p, q].map(|rank| job.pe_of(rank as u32));
                prop_assert_eq!(job.distance(a, b), distance_by_definition(&places, p, q));
            }
        }
    }

    #[test]
    fn distances_are_an_ultrametric(job in any_topology()) {
        for p in pes(&job) {
            for q in pes(&job) {
                prop_assert_eq!(job.distance(p, q), job.distance(q, p));
                prop_assert_eq!(job.distance(p, q) == Distance::ZERO, p == q);
                for s in pes(&job) {
                    prop_assert!(job.distance(p, s) <= job.distance(p, q).max(job.distance(q, s)));
                }
            }
        }
    }

    #[test]
    fn radii_are_the_range_of_the_distance_without_gaps(job in any_topology()) {
        let found: BTreeSet<Distance> =
            pes(&job).flat_map(|p| pes(&job).map(move |q| (p, q)))
                .map(|(p, q)| job.distance(p, q)).collect();
        prop_assert!(found.iter().eq(job.radii()));
        prop_assert_eq!(job.radii()[0], Distance::ZERO);
        for pair in job.radii()[1..].windows(2) {
            prop_assert_eq!(pair[0], pair[1].half());
        }
        if job.pes() > 1 {
            prop_assert_eq!(job.radii().last(), Some(&Distance::ONE));
        }
    }

    #[test]
    fn balls_are_closed_and_each_member_is_a_centre(job in any_topology()) {
        for p in pes(&job) {
            for r in radii(&job) {
                let ball = job.ball(p, r);
                for q in pes(&job) {
                    prop_assert_eq!(ball.contains(q), job.distance(p, q) <= r);
                    if ball.contains(q) {
                        prop_assert_eq!(job.ball(q, r), ball, "B1");
                    }
                }
                let members: Vec<Pe> = pes(&job).filter(|&q| ball.contains(q)).collect();
                prop_assert!(ball.iter().eq(members.iter().copied()));
                prop_assert_eq!(ball.len() as usize, members.len());
                let power: u64 = members.iter().map(|&q| job.power(q)).sum();
                prop_assert_eq!(job.power_of(ball), power);
            }
        }
    }

    #[test]
    fn balls_are_partitioned_by_those_of_half_the_radius(job in any_topology()) {
        for p in pes(&job) {
            for &r in job.radii() {
                for q in job.ball(p, r).iter() {
                    for s in job.ball(p, r).iter() {
                        let [own, other] = [q, s].map(|centre| job.ball(centre, r.half()));
                        prop_assert!(own == other || job.distance(q, s) == r, "B2");
                    }
                }
            }
        }
    }

    #[test]
    fn bases_partition_the_ball_and_are_equidistant(job in any_topology(), seed: u64) {
        let mut rng = numbers(seed);
        for p in pes(&job) {
            for r in radii(&job) {
                let ball = job.ball(p, r);
                let basis = job.equidistant_basis(p, r, &mut rng);
                prop_assert_eq!(basis[0].0, p);
                let mut covered = BTreeSet::new();
                for &(q, power) in &basis {
                    let part = job.ball(q, r.half());
                    prop_assert_eq!(power, job.power_of(part));
                    prop_assert!(part.iter().all(|s| covered.insert(s)), "parts overlap");
                    for &(s, _) in basis.iter().filter(|(s, _)| *s != q) {
                        prop_assert_eq!(job.distance(q, s), r);
                    }
                }
                prop_assert!(ball.iter().eq(covered));
                let powers: u64 = basis.iter().map(|(_, power)| power).sum();
                prop_assert_eq!(powers, job.power_of(ball));
            }
        }
    }

    #[test]
    fn numbers_and_ranks_belong_together((places, powers) in any_job()) {
        let job = Topology::new(&places, &powers).unwrap();
        prop_assert_eq!(job.pe_of(0), Pe::ROOT);
        for rank in 0..job.pes() {
            let pe = job.pe_of(rank);
            prop_assert_eq!(job.rank_of(pe), rank);
            prop_assert_eq!(job.place(pe), &places[rank as usize]);
            prop_assert_eq!(job.power(pe), powers[rank as usize]);
        }
        // Sibling subtrees are ordered by their smallest ranks.
        let smallest = |ball: ultramarine_topology::Ball| {
            ball.iter().map(|pe| job.rank_of(pe)).min()
        };
        for r in radii(&job) {
            for p in pes(&job) {
                let ball = job.ball(p, r);
                let end = ball.numbers().end;
                if end < job.pes() {
                    let next = Pe::new(end);
                    // Compare only subtrees of the same parent.
                    let parent = job.distance(p, next);
                    let [own, other] = [p, next].map(|q| job.ball(q, parent.half()));
                    prop_assert!(own == other || smallest(own) < smallest(other));
                }
            }
        }
    }

    #[test]
    fn picks_stay_in_the_ball_and_reach_all_of_it(job in any_topology(), seed: u64) {
        let mut rng = numbers(seed);
        for r in radii(&job) {
            let ball = job.ball(Pe::ROOT, r);
            prop_assert!(ball.contains(ball.pick(rng())));
            let step = u64::MAX / u64::from(ball.len());
            let picked: BTreeSet<Pe> =
                (0..u64::from(ball.len())).map(|i| ball.pick(i * step + step / 2)).collect();
            prop_assert!(ball.iter().eq(picked));
        }
    }

    #[test]
    fn any_job_can_be_drawn(job in any_topology()) {
        let text = job.to_string();
        let first_line = text.lines().next().unwrap();
        let counted = first_line.contains(&format!(": {} PE", job.pes()));
        prop_assert!(counted, "{}", text);
    }
}

#[test]
fn the_ball_of_a_host_has_its_pes_and_no_other() {
    let on = |rack: &str, host: &str| {
        let label = |kind, name: &str| Label::new(kind, name.to_owned());
        Place::new(vec![label(LevelKind::Switch, rack), label(LevelKind::Host, host)])
    };
    let hosts = [("r", "a"), ("r", "a"), ("r", "b"), ("r", "c"), ("s", "d"), ("s", "d")];
    let job = Topology::new(&hosts.map(|(rack, host)| on(rack, host)), &[1; 6]).unwrap();
    let balls: Vec<_> = pes(&job).map(|pe| job.host_of(pe).numbers()).collect();
    assert_eq!(balls, [0..2, 0..2, 2..3, 3..4, 4..6, 4..6]);
}
