//! What makes the hosts of a machine differ: some compute slowly, some have fewer cores.

use super::{MachineError, WORKERS_MAX};
use crate::dice::Dice;
use std::str::FromStr;

/// How the parts of a machine differ. The default: they do not.
#[derive(Clone, Debug, Default)]
pub struct Variation {
    /// Some hosts are slow: all PEs on them (`--slow-hosts`).
    pub slow_hosts: Option<Slow>,
    /// Some PEs are slow, wherever they are (`--slow-pes`). A slow PE on a slow host is slowed down
    /// twice.
    pub slow_pes: Option<Slow>,
    /// The worker threads of each PE, by host (`--unequal`).
    pub unequal: Option<Unequal>,
    /// Which are slow follows from this seed alone.
    pub seed: u64,
}

/// A fraction of the hosts or PEs that computes at a fraction of the speed: `FRACTION:FACTOR`.
///
/// `0.1:2` is a tenth, which takes twice as long. The count is rounded to the nearest whole number
/// and is at least 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slow {
    /// Which part of them is slow: above 0, at most 1.
    pub fraction: f64,
    /// How many times as long they take: 1 to 1000.
    pub factor: f64,
}

impl FromStr for Slow {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        let numbers = text.split_once(':').and_then(|(fraction, factor)| {
            Some((fraction.trim().parse().ok()?, factor.trim().parse().ok()?))
        });
        let is_slow = |(fraction, factor): &(f64, f64)| {
            *fraction > 0.0 && *fraction <= 1.0 && (1.0..=1000.0).contains(factor)
        };
        let slow = numbers.filter(is_slow).map(|(fraction, factor)| Slow { fraction, factor });
        slow.ok_or_else(|| MachineError::Slow(text.to_owned()))
    }
}

/// Worker threads of each PE on the first host, the second …; then from the start again: `A,B,…`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unequal(Vec<u32>);

impl Unequal {
    /// The worker threads of each PE on the host with this number.
    pub(super) fn workers(&self, host: usize) -> u32 {
        self.0[host % self.0.len()]
    }
}

impl FromStr for Unequal {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        let number = |part: &str| {
            part.trim().parse().ok().filter(|workers| (1..=WORKERS_MAX).contains(workers))
        };
        let numbers: Option<Vec<u32>> = text.split(',').map(number).collect();
        numbers.map(Unequal).ok_or_else(|| MachineError::Unequal(text.to_owned()))
    }
}

/// What time is multiplied by, in thousandths.
pub(super) const NOMINAL: u32 = 1000;

impl Variation {
    /// How long each PE takes for what takes a nominal one 1000, by the host of each PE. Hosts are
    /// numbered from 0 without gaps.
    pub(super) fn slowness(&self, host_of: &[u32]) -> Vec<u32> {
        let hosts = host_of.iter().max().map_or(0, |last| *last as usize + 1);
        let mut dice = Dice::new(self.seed);
        let host_slowness = draw(hosts, self.slow_hosts, &mut dice);
        let pe_slowness = draw(host_of.len(), self.slow_pes, &mut dice);
        let both = |(pe, host): (&f64, &u32)| {
            // At most a million times as long.
            (pe * host_slowness[*host as usize] * f64::from(NOMINAL)).round() as u32
        };
        pe_slowness.iter().zip(host_of).map(both).collect()
    }
}

/// The factor of each of these many; the slow ones are drawn without replacement.
fn draw(many: usize, slow: Option<Slow>, dice: &mut Dice) -> Vec<f64> {
    let mut factors = vec![1.0; many];
    let Some(Slow { fraction, factor }) = slow else { return factors };
    let count = ((many as f64 * fraction).round() as usize).clamp(1, many);
    let mut order: Vec<usize> = (0..many).collect();
    for next in 0..count {
        let left = (many - next) as u128;
        let pick = (u128::from(dice.next()) * left) >> u64::BITS;
        order.swap(next, next + pick as usize);
        factors[order[next]] = factor;
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(text: &str) -> Slow {
        text.parse().expect(text)
    }

    #[test]
    fn a_fraction_and_a_factor() {
        assert_eq!(slow("0.1:2"), Slow { fraction: 0.1, factor: 2.0 });
        assert_eq!(slow("1:1.5"), Slow { fraction: 1.0, factor: 1.5 });
        for text in ["", "0.1", "0:2", "1.1:2", "-0.1:2", "NaN:2", "0.1:NaN", "0.1:0.5", "0.1:1001"]
        {
            let error = text.parse::<Slow>().expect_err(text).to_string();
            assert!(error.contains("the fraction is above 0 and at most 1"), "{error}");
        }
    }

    #[test]
    fn a_list_of_workers() {
        let list: Unequal = "16, 8,4".parse().expect("a list");
        assert_eq!([0, 1, 2, 3].map(|host| list.workers(host)), [16, 8, 4, 16]);
        for text in ["", "16,", "0", "16,x", "65537"] {
            let error = text.parse::<Unequal>().expect_err(text).to_string();
            assert!(error.contains("the hosts take them in turn"), "{error}");
        }
    }

    #[test]
    fn slow_hosts_are_whole_and_follow_from_the_seed() {
        // 20 hosts of 4 PEs.
        let host_of: Vec<u32> = (0..80).map(|pe| pe / 4).collect();
        let slowness = |seed| {
            let variation =
                Variation { slow_hosts: Some(slow("0.1:2")), seed, ..Variation::default() };
            variation.slowness(&host_of)
        };
        let first = slowness(1);
        assert_eq!(first.iter().filter(|slowness| **slowness == 2000).count(), 8);
        assert_eq!(first.iter().filter(|slowness| **slowness == 1000).count(), 72);
        assert!(first.chunks(4).all(|host| host.iter().all(|pe| *pe == host[0])));
        assert_eq!(first, slowness(1));
        assert!((2..10).any(|seed| slowness(seed) != first), "other seeds, other hosts");
    }

    #[test]
    fn slow_on_slow_is_slowed_down_twice() {
        let slow_all = Variation {
            slow_hosts: Some(slow("1:2")),
            slow_pes: Some(slow("1:1.5")),
            ..Variation::default()
        };
        assert_eq!(slow_all.slowness(&[0, 0, 1]), [3000; 3]);
    }

    #[test]
    fn a_small_fraction_is_at_least_one() {
        let one = Variation { slow_pes: Some(slow("0.001:2")), ..Variation::default() };
        let slowness = one.slowness(&[0; 7]);
        assert_eq!(slowness.iter().filter(|slowness| **slowness != NOMINAL).count(), 1);
    }
}
