//! φ as GAP computes it: times that were recorded.

use super::costs::dice_of;

/// The first integer of an octave, and how long GAP took for tasks that begin there, in
/// milliseconds of its own time. A line that begins with `#` is a remark.
const RECORDED: &str = include_str!("phi_by_gap.txt");

/// The integers of each recorded task.
const INTEGERS: u64 = 1953;

/// Sum Euler where GAP computes φ: chunks of this many integers, the first of which begins at 1. A
/// task takes as long as a random one of those that were recorded in its octave.
///
/// ```
/// use ultramarine_simulator::workload::gap::phi_by_gap;
/// // Tasks at ten thousand take a few milliseconds, those at ten billion longer.
/// let costs = phi_by_gap(1953, 1);
/// assert!((1_000_000..10_000_000).contains(&costs(5)));
/// assert!(costs(3_000_000) > 10 * costs(5));
/// ```
pub fn phi_by_gap(chunk: u64, seed: u64) -> impl Fn(u64) -> u64 {
    let octaves = octaves();
    let chunk = chunk.max(1);
    move |item| {
        let begin = item * chunk + 1;
        let number = octaves.partition_point(|(from, _)| *from <= begin).saturating_sub(1);
        let times_ms = &octaves[number].1;
        let drawn = dice_of(seed, item).next() % times_ms.len() as u64;
        times_ms[drawn as usize] * 1_000_000 * chunk / INTEGERS
    }
}

/// What was recorded, in ascending order.
fn octaves() -> Vec<(u64, Vec<u64>)> {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let octaves = lines.map(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse().unwrap_or_default());
        (numbers.next().unwrap_or_default(), numbers.collect())
    });
    octaves.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_octave_was_recorded_and_takes_longer_than_those_before() {
        let mut octaves = octaves();
        assert_eq!(octaves.len(), 23);
        let mut before = 0;
        for (number, (from, times_ms)) in octaves.iter_mut().enumerate() {
            assert_eq!((*from, times_ms.len()), (1 << (10 + number), 16));
            assert!(times_ms.iter().all(|ms| (1..10_000).contains(ms)), "{from}");
            // Not the mean: now and then GAP collects its garbage.
            times_ms.sort_unstable();
            let median = times_ms[8];
            assert!(median >= before, "{from}: {median} after {before}");
            before = median;
        }
    }

    #[test]
    fn half_of_the_integers_take_half_of_the_time() {
        let (whole, half) = (phi_by_gap(1953, 7), phi_by_gap(1953 / 2, 7));
        let sum =
            |costs: &dyn Fn(u64) -> u64, items: std::ops::Range<u64>| items.map(costs).sum::<u64>();
        let (whole, half) = (sum(&whole, 100_000..101_000), sum(&half, 200_000..202_000));
        assert!((0.98..1.02).contains(&(whole as f64 / half as f64)), "{whole} and {half}");
    }
}
