//! What the items of a map cost: Sum Euler in two ways, the Liouville function, and nothing.
//!
//! Costs follow from formulas, so that an item costs a microsecond or less to know. This module
//! must never know how the items are spread, nor on which machine they run.
//!
//! ```
//! use ultramarine_simulator::workload::costs::naive_totient;
//! // The sum to 20,000 in 400 chunks: 5.27 s.
//! let costs = naive_totient(20_000, 50, 5.27);
//! let seconds = (0..400).map(costs).sum::<u64>() as f64 / 1e9;
//! assert!((seconds - 5.27).abs() < 0.01);
//! ```

use crate::dice::Dice;
use std::ops::RangeInclusive;

/// Steps of Euclid's algorithm for n: the first times ln n, plus the second.
const EUCLID: (f64, f64) = (0.843, 1.47);

/// φ by its definition: φ(n) takes n greatest common divisors. An item is a chunk of consecutive
/// integers; the first begins at 1. It is as fast as is needed for the sum up to `integers` to take
/// this long, in seconds.
///
/// Euclid's algorithm takes 0.843 ln n + 1.47 steps for two numbers up to n on average (Knuth, *The
/// Art of Computer Programming*, §4.5.3).
pub fn naive_totient(integers: u64, chunk: u64, seconds: f64) -> impl Fn(u64) -> u64 + Clone {
    let step_ns = seconds * 1e9 / steps_below(integers as f64 + 0.5);
    let chunk = chunk.max(1);
    move |item| {
        // The integral from half below the first to half above the last.
        let begin = (item * chunk) as f64 + 0.5;
        let steps = steps_below(begin + chunk as f64) - steps_below(begin).max(0.0);
        (steps * step_ns) as u64
    }
}

/// The steps for all integers below this one: the integral of n (0.843 ln n + 1.47).
fn steps_below(end: f64) -> f64 {
    end * end / 2.0 * (EUCLID.0 * (end.ln() - 0.5) + EUCLID.1)
}

/// φ by trial division, for Sum Euler in weak scaling, where GAP computes it from the factors:
/// chunks of this many integers, the first of which begins at 1; what a division takes, in
/// nanoseconds; a seed for the factors.
///
/// With P₁ ≥ P₂ the largest prime factors of n, trial division ends after about max(P₂, √P₁)
/// divisors. How large they are is drawn by breaking sticks: ln P / ln n is distributed as in a
/// Poisson–Dirichlet process of parameter 1 (Donnelly, Grimmett, *On the asymptotic distribution of
/// large prime factors*, 1993).
///
/// A task's cost is that of [`SAMPLES`] random integers of its range, times the integers of the
/// chunk over the samples. So tasks differ by about half their mean, which is much more than sums
/// over a real chunk do: the schedule is harder than the real one.
pub fn trial_division(chunk: u64, division_ns: f64, seed: u64) -> impl Fn(u64) -> u64 {
    let chunk = chunk.max(1);
    move |item| {
        let mut dice = dice_of(seed, item);
        let begin = item * chunk + 1;
        let mut divisions = 0.0;
        for _ in 0..SAMPLES {
            let integer = (begin + dice.next() % chunk) as f64;
            divisions += integer.powf(divisor_size(&mut dice));
        }
        let each_ns = divisions / SAMPLES as f64 * division_ns;
        (each_ns * chunk as f64) as u64
    }
}

/// How many random integers stand for a task of [`trial_division`].
pub const SAMPLES: u64 = 8;

/// ln of the last divisor over ln n, at most ½: max(x₂, x₁ / 2), where x₁ ≥ x₂ are the longest
/// pieces of a stick of length 1.
fn divisor_size(dice: &mut Dice) -> f64 {
    let (mut first, mut second, mut left) = (0.0_f64, 0.0_f64, 1.0_f64);
    // A rest that is shorter than the second piece changes nothing.
    while left > second {
        // 53 bits: what a float holds.
        let part = (dice.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let piece = left * part;
        left -= piece;
        if piece > first {
            (first, second) = (piece, first);
        } else {
            second = second.max(piece);
        }
    }
    second.max(first / 2.0)
}

/// L(5·10⁸) on one node of the Beowulf with 6 cores, in seconds (HdpH-RS, appendix A.1.6).
const LIOUVILLE_TO_500M_S: f64 = 6.0 * 1711.5;

/// The Liouville function of all integers of a chunk, by their factors. Tasks are nearly equal: in
/// a chunk of a million integers, only their mean counts. As in the papers, L(3·10⁸) in chunks of
/// 10⁶ is 300 tasks (`SymGridPar2` §6.3).
pub fn liouville(chunk: u64) -> impl Fn(u64) -> u64 + Clone {
    let (low, high) = (1e6_f64, 5e8_f64);
    // The cost of an integer n is `factor` n^`power`.
    let power = (mean_divisions(high) / mean_divisions(low)).ln() / (high / low).ln();
    // The integral of n^power to 5·10⁸.
    let integral = high.powf(power + 1.0) / (power + 1.0);
    let factor = LIOUVILLE_TO_500M_S * 1e9 / integral;
    let ns_below = move |end: f64| factor * end.powf(power + 1.0) / (power + 1.0);
    let chunk = chunk.max(1);
    move |item| {
        let begin = (item * chunk) as f64;
        (ns_below(begin + chunk as f64) - ns_below(begin)) as u64
    }
}

/// The mean number of divisions for integers of about this size.
fn mean_divisions(integer: f64) -> f64 {
    const DRAWS: u32 = 4096;
    let mut dice = Dice::new(1);
    let sum: f64 = (0..DRAWS).map(|_| integer.powf(divisor_size(&mut dice))).sum();
    sum / f64::from(DRAWS)
}

/// The cost of an item is anything in this range of nanoseconds, all equally likely; they come from
/// the seed.
pub fn between(ns: RangeInclusive<u64>, seed: u64) -> impl Fn(u64) -> u64 {
    move |item| dice_of(seed, item).within(ns.clone())
}

/// The chance of an item.
pub(super) fn dice_of(seed: u64, item: u64) -> Dice {
    Dice::new(seed ^ item.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_between_two_are_spread_evenly_and_stay_the_same() {
        let costs = between(80..=400, 1);
        let items: Vec<u64> = (0..10_000).map(&costs).collect();
        assert!(items.iter().all(|ns| (80..=400).contains(ns)));
        let mean = items.iter().sum::<u64>() / 10_000;
        assert!((235..=245).contains(&mean), "{mean}");
        assert!(items.contains(&80) && items.contains(&400));
        assert_eq!(items[17], costs(17));
    }

    fn seconds(costs: impl Fn(u64) -> u64, items: u64) -> f64 {
        (0..items).map(costs).sum::<u64>() as f64 / 1e9
    }

    /// As fast as `bench sum-euler` was on one core of a machine of 2020.
    fn measured(chunk: u64) -> impl Fn(u64) -> u64 {
        naive_totient(20_000, chunk, 5.27)
    }

    #[test]
    fn naive_sums_take_what_was_measured() {
        assert!((seconds(measured(50), 400) - 5.27).abs() < 1e-3);
        let published = naive_totient(96_000, 25, 780.2);
        assert!((seconds(published, 3840) - 780.2).abs() < 0.01);
    }

    #[test]
    fn a_naive_item_by_hand() {
        // n² (0.843 (ln n - 1/2) + 1.47) / 2 steps: 1.8797e9 to 20,000, so 2.80 ns each.
        // φ(100): 100 divisors of 0.843 ln 100 + 1.47 = 5.352 steps of 2.804 ns.
        let one = measured(1)(99);
        assert!((1495..=1507).contains(&one), "{one}");
        // The second half of the integers costs about three quarters of all.
        let part = measured(10_000)(1) as f64 / 5.27e9;
        assert!((0.75..0.78).contains(&part), "{part}");
    }

    #[test]
    fn the_last_divisor_is_at_most_the_root() {
        let mut dice = Dice::new(3);
        let sizes: Vec<f64> = (0..20_000).map(|_| divisor_size(&mut dice)).collect();
        assert!(sizes.iter().all(|size| (0.0..=0.5).contains(size)));
        // Golomb and Dickman: x₁ is 0.6243 on average, x₂ is 0.2096, so x₁ / 2 is mostly the
        // greater; and the root of a prime is rare.
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((0.33..0.38).contains(&mean), "{mean}");
    }

    #[test]
    fn trial_division_is_irregular_and_grows() {
        let costs = trial_division(1953, 100.0, 1);
        assert_eq!(costs(70), costs(70));
        let mean = |from: u64| seconds(|item| costs(from + item), 2000) / 2000.0;
        let (low, high) = (mean(1_000), mean(3_000_000));
        // From about 4·10⁶ to 6·10⁹: the mean grows as n^0.4.
        assert!((10.0..30.0).contains(&(high / low)), "{low} s, {high} s");
        let of = |item: u64| costs(3_000_000 + item) as f64 / 1e9;
        let variance = (0..2000).map(|item| (of(item) - high).powi(2)).sum::<f64>() / 2000.0;
        let deviation = variance.sqrt() / high;
        assert!((0.2..0.6).contains(&deviation), "{deviation}");
    }

    #[test]
    fn liouville_takes_what_was_published() {
        let costs = liouville(1_000_000);
        let to_500m = seconds(&costs, 500);
        assert!((to_500m - 10_269.0).abs() < 1.0, "{to_500m} s");
        // The cost grows as n^0.43, so the last chunk costs 1.43 times the mean.
        let last = costs(499) as f64 / (to_500m * 1e9 / 500.0);
        assert!((1.4..1.46).contains(&last), "{last}");
    }
}
