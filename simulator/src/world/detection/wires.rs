//! The connections between detectors, with their two ends.

use ultramarine_runtime::detector::watch::ConnectionNumber;
use ultramarine_topology::Pe;

/// A connection that was dialled. It is kept as long as it has an end.
#[derive(Debug)]
pub(super) struct Wire {
    /// The dialler, and the PE that is dialled.
    pub(super) ends: [WireEnd; 2],
}

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireEnd {
    pub(super) pe: Pe,
    /// The system of its host has it. (The dialled host has it only when the call comes.)
    pub(super) is_there: bool,
    /// The watch of its PE knows it.
    pub(super) is_known: bool,
    /// When the last packet arrives that it has sent.
    pub(super) arrives: u64,
}

impl Wire {
    /// The end of this PE.
    pub(super) fn end(&mut self, pe: Pe) -> &mut WireEnd {
        let [dialler, other] = &mut self.ends;
        if dialler.pe == pe { dialler } else { other }
    }

    /// The PE at the other end.
    pub(super) fn other(&self, pe: Pe) -> Pe {
        let [dialler, other] = &self.ends;
        if dialler.pe == pe { other.pe } else { dialler.pe }
    }
}

/// All connections. A number consists of a place in the list, and of how many connections had it
/// before.
#[derive(Debug, Default)]
pub(super) struct Wires {
    places: Vec<(u32, Option<Wire>)>,
    free: Vec<u32>,
}

impl Wires {
    /// A PE dials another.
    pub(super) fn add(&mut self, from: Pe, to: Pe) -> ConnectionNumber {
        let end = |pe, is_there| WireEnd { pe, is_there, is_known: is_there, arrives: 0 };
        let wire = Wire { ends: [end(from, true), end(to, false)] };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let (generation, entry) = &mut self.places[place as usize];
        *generation += 1;
        *entry = Some(wire);
        ConnectionNumber((*generation as usize) << 32 | place as usize)
    }

    pub(super) fn get_mut(&mut self, number: ConnectionNumber) -> Option<&mut Wire> {
        let (generation, entry) = self.places.get_mut(number.0 & u32::MAX as usize)?;
        entry.as_mut().filter(|_| *generation as usize == number.0 >> 32)
    }

    /// The end of this PE is gone. Returns the PE at the other end, if the watch knew of it.
    pub(super) fn remove_end(&mut self, number: ConnectionNumber, pe: Pe) -> Option<Pe> {
        let wire = self.get_mut(number)?;
        let other = wire.other(pe);
        let end = wire.end(pe);
        let is_known = std::mem::take(&mut end.is_known);
        end.is_there = false;
        if wire.ends.iter().all(|end| !end.is_there) {
            let place = number.0 & u32::MAX as usize;
            self.places[place].1 = None;
            self.free.push(place as u32);
        }
        is_known.then_some(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_there_until_both_ends_are_gone_and_its_number_is_never_used_again() {
        let (one, two) = (Pe::new(1), Pe::new(2));
        let mut wires = Wires::default();
        let number = wires.add(one, two);
        wires.get_mut(number).unwrap().end(two).is_there = true;
        assert_eq!(wires.remove_end(number, one), Some(two));
        assert!(wires.get_mut(number).is_some());
        assert_eq!(wires.remove_end(number, two), None, "its watch never knew of it");
        assert!(wires.get_mut(number).is_none());
        let next = wires.add(two, one);
        assert_ne!(next, number);
        assert!(wires.get_mut(number).is_none() && wires.get_mut(next).is_some());
    }
}
