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
    /// What its main task has returned,
    pub(crate) value: Option<u64>,
    /// and when, in nanoseconds.
    pub(crate) value_at: u64,
}

impl Office {
    fn of(pe: Pe, since: u64) -> Self {
        Office { pe, since, until: None, has_died: false, value: None, value_at: 0 }
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

    pub(crate) fn begin(&mut self, pe: Pe, now: u64) {
        self.0.push(Office::of(pe, now));
    }

    /// The main task of this PE has ended.
    pub(crate) fn note_value(&mut self, pe: Pe, value: u64, now: u64) {
        let own = self.0.iter_mut().find(|office| office.pe == pe);
        own.into_iter().for_each(|office| (office.value, office.value_at) = (Some(value), now));
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
