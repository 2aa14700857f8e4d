//! Chance in the network: how much later than usual a message comes.
//!
//! The delay is exponential, as if each message met a random queue. It is looked up in a table of
//! quantiles, so that a draw costs a multiplication, and the same seed gives the same run on any
//! machine.

/// How many quantiles the table has. The largest is 7.6 times the mean.
const QUANTILES: usize = 1024;

/// The quantiles of the exponential distribution of mean 1, in 1/1024.
#[derive(Clone, Debug)]
pub(super) struct Exponential(Box<[u32; QUANTILES]>);

impl Exponential {
    pub(super) fn new() -> Self {
        let mut table = Box::new([0; QUANTILES]);
        for (place, quantile) in table.iter_mut().enumerate() {
            let below = (place as f64 + 0.5) / QUANTILES as f64;
            *quantile = (-(1.0 - below).ln() * 1024.0).round() as u32;
        }
        Exponential(table)
    }

    /// An exponential delay of this mean, by a uniformly random number.
    #[inline]
    pub(super) fn draw(&self, mean: u64, random: u64) -> u64 {
        // Ten bits: never out of the table.
        let quantile = self.0[(random >> (u64::BITS - 10)) as usize];
        mean.saturating_mul(quantile.into()) >> 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_and_the_tail_are_exponential() {
        let table = Exponential::new();
        let draw = |place: u64| table.draw(1_000_000, place << 54);
        let mean = (0..1024).map(draw).sum::<u64>() / 1024;
        assert!((995_000..=1_001_000).contains(&mean), "{mean}");
        let median = draw(512);
        assert!((690_000..=696_000).contains(&median), "ln 2: {median}");
        assert!((7_500_000..=7_700_000).contains(&draw(1023)), "{}", draw(1023));
        assert!(draw(0) < 1_000);
    }

    #[test]
    fn no_mean_no_delay() {
        assert_eq!(Exponential::new().draw(0, u64::MAX), 0);
    }
}
