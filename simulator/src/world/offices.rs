//! Which PEs were the root, one after the other or on two sides, and what their main tasks came to.

use ultramarine_topology::Pe;

/// A PE's time as the root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Office {
    pub(crate) pe: Pe,
    /// When it took office, in nanoseconds.
    pub(crate) since: u64,
    /// When it left or died, in nanoseconds; `None`: it is there.
    pub(crate) until: Option<u64>,
    pub(crate) has_died: bool,
    /// Whether its main task has ended.
    pub(crate) has_ended: bool,
    /// What that has returned, once it counts, and when, in nanoseconds.
    pub(crate) value: Option<(u64, u64)>,
}

impl Office {
    fn of(pe: Pe, since: u64) -> Self {
        Office { pe, since, until: None, has_died: false, has_ended: false, value: None }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Offices(Vec<Office>);

impl Default for Offices {
    fn default() -> Self {
        Offices(vec![Office::of(Pe::ROOT, 0)])
    }
}

impl Offices {
    /// In the order in which they began.
    pub(crate) fn all(&self) -> &[Office] {
        &self.0
    }

    /// The values that count.
    pub(crate) fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().filter_map(|office| office.value.map(|(value, _)| value))
    }

    pub(crate) fn begin(&mut self, pe: Pe, now: u64) {
        self.0.push(Office::of(pe, now));
    }

    /// The main task of this PE has ended, and the others are asked whether its value counts.
    pub(crate) fn note_end(&mut self, pe: Pe) {
        let own = self.0.iter_mut().find(|office| office.pe == pe);
        own.into_iter().for_each(|office| office.has_ended = true);
    }

    /// The value of the main task of this PE counts.
    pub(crate) fn note_value(&mut self, pe: Pe, value: u64, now: u64) {
        let own = self.0.iter_mut().find(|office| office.pe == pe);
        own.into_iter().for_each(|office| office.value = Some((value, now)));
    }

    /// A PE has died, or leaves.
    pub(crate) fn end(&mut self, pe: Pe, now: u64, dies: bool) {
        let own = self.0.iter_mut().filter(|office| office.pe == pe && office.until.is_none());
        own.for_each(|office| (office.until, office.has_died) = (Some(now), dies));
    }

    /// Whether a root has left with the result.
    pub(crate) fn is_delivered(&self) -> bool {
        let has_left = |office: &Office| office.until.is_some() && !office.has_died;
        self.0.iter().any(|office| has_left(office) && office.value.is_some())
    }
}
