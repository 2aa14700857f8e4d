//! Small hierarchies.

use ultramarine_topology::{Label, LevelKind, Place};

/// A place for each PE below racks with this many hosts each, of `each` PEs.
///
/// ```
/// let places = ultramarine_testkit::racks(&[2, 1], 3);
/// assert_eq!(places.len(), 9);
/// assert!(places[0] == places[2] && places[2] != places[3]);
/// ```
pub fn racks(hosts: &[u32], each: u32) -> Vec<Place> {
    let place = |rack: usize, host: u32| {
        Place::new(vec![
            Label::new(LevelKind::Switch, format!("r{rack}")),
            Label::new(LevelKind::Host, format!("r{rack}h{host}")),
        ])
    };
    let rack =
        |(rack, hosts): (usize, &u32)| (0..hosts * each).map(move |pe| place(rack, pe / each));
    hosts.iter().enumerate().flat_map(rack).collect()
}
