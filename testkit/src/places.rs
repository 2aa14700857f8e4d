//! Small hierarchies.

use ultramarine_topology::{Label, LevelKind, Place};

/// A place for each PE below racks: for each rack the number of PEs on each of its hosts.
///
/// ```
/// // Two hosts of one PE in the first rack, one host of three in the second.
/// let places = ultramarine_testkit::racks(&[&[1, 1], &[3]]);
/// assert_eq!(places.len(), 5);
/// assert_eq!(places[2], places[4]);
/// ```
pub fn racks(racks: &[&[u32]]) -> Vec<Place> {
    let place = |rack: usize, host: usize| {
        Place::new(vec![
            Label::new(LevelKind::Switch, format!("r{rack}")),
            Label::new(LevelKind::Host, format!("r{rack}h{host}")),
        ])
    };
    let mut places = Vec::new();
    for (rack, hosts) in racks.iter().enumerate() {
        for (host, pes) in hosts.iter().enumerate() {
            places.extend((0..*pes).map(|_| place(rack, host)));
        }
    }
    places
}
