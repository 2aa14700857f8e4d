//! What became of some jobs, in numbers.

use super::ended::{Ended, Judgement};

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) jobs: usize,
    /// To which something was done.
    pub(crate) disturbed: usize,
    pub(crate) right: usize,
    pub(crate) ended: usize,
    pub(crate) wrong: usize,
    pub(crate) hung: usize,
    pub(crate) left: usize,
    pub(crate) innocents: usize,
    pub(crate) slow: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, ended: &Ended, slow: bool) {
        self.jobs += 1;
        self.disturbed += usize::from(!ended.done.is_empty() || ended.before.is_some());
        match ended.judgement {
            Judgement::Right => self.right += 1,
            Judgement::Ended => self.ended += 1,
            Judgement::Wrong(_) => self.wrong += 1,
            Judgement::Hung => self.hung += 1,
        }
        self.left += ended.left.len();
        self.innocents += ended.innocents;
        self.slow += usize::from(slow);
    }

    /// In the order of the columns of the table of classes.
    pub(crate) fn numbers(self) -> [usize; 9] {
        let Counts { jobs, disturbed, right, ended, wrong, hung, left, innocents, slow } = self;
        [jobs, disturbed, right, ended, wrong, hung, left, innocents, slow]
    }
}
