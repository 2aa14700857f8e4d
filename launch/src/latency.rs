//! How long a small task takes to another PE and back, by distance.
//!
//! ```
//! # fn main() -> ultramarine::Result<()> {
//! use ultramarine::{Distance, Options, latency};
//!
//! Options::default().pes(2).threads(1).run(async |cx| {
//!     let [all] = &latency::by_distance(&cx).await?[..] else { panic!("two PEs, one distance") };
//!     assert_eq!(all.distance, Distance::ONE);
//!     println!("half of the round trips took less than {:?}", all.quantile(0.5));
//!     Ok(())
//! })
//! # }
//! ```

use std::fmt;
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::{Ball, Distance, LevelKind, Pe, Topology};

/// The most pairs of PEs that are asked at each distance, one after the other.
pub const PAIRS_MAX: usize = 8;

/// The most round trips of a pair that count.
pub const ROUND_TRIPS_MAX: usize = 200;

/// Round trips before these, which do not count: connections are made, and workers wake up.
const WARM_UP: usize = 20;

/// No other round trip of a pair is begun after this. With at most 32 distances all is over within
/// seconds.
const PAIR_TIME_MAX: Duration = Duration::from_millis(40);

/// The round trips between PEs at one distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// How far the PEs of each pair are from each other.
    pub distance: Distance,
    /// The innermost level that the PEs of a pair have in common.
    pub shared: Option<LevelKind>,
    /// How many pairs there were.
    pub pairs: usize,
    /// How long each round trip took, ascending; at least one.
    round_trips: Vec<Duration>,
}

impl Latency {
    /// Round trips that took this long, between this many pairs.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn of(
        distance: Distance,
        shared: Option<LevelKind>,
        pairs: usize,
        mut round_trips: Vec<Duration>,
    ) -> Self {
        assert!(!round_trips.is_empty(), "a latency is known of round trips");
        round_trips.sort_unstable();
        Latency { distance, shared, pairs, round_trips }
    }

    /// How many round trips counted.
    pub fn count(&self) -> usize {
        self.round_trips.len()
    }

    /// The time that the fraction `q` (0 to 1) of the round trips did not exceed.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (self.count() as f64 * q).ceil() as usize;
        self.round_trips[rank.clamp(1, self.count()) - 1]
    }
}

/// Measures round trips between PEs at each distance that occurs, from several PEs; by ascending
/// distance. The number of round trips is bounded, whatever the size of the job, and so is the
/// time.
///
/// # Errors
///
/// [`TaskError::Lost`] when a PE that was asked has died.
pub async fn by_distance(cx: &Context) -> Result<Vec<Latency>, TaskError> {
    // What was measured elsewhere would be another distance.
    let (cx, mut table) = (cx.unsupervised(), Vec::new());
    for &distance in cx.topology().radii().iter().filter(|radius| **radius > Distance::ZERO) {
        let pairs = pairs(cx.topology(), distance);
        let shared = pairs.first().and_then(|(p, q)| shared(cx.topology(), *p, *q));
        let mut round_trips = Vec::new();
        // One after the other, so that none is in another's way.
        for (from, to) in &pairs {
            let nanos = cx.spawn_at(*from, round_trips_to, *to).await??;
            round_trips.extend(nanos.into_iter().map(Duration::from_nanos));
        }
        table.push(Latency::of(distance, shared, pairs.len(), round_trips));
    }
    Ok(table)
}

/// How many nanoseconds each round trip from here took.
async fn round_trips_to(cx: Context, to: Pe) -> Result<Vec<u64>, TaskError> {
    let begin = Instant::now();
    let (mut nanos, mut warm) = (Vec::new(), 0);
    while nanos.len() < ROUND_TRIPS_MAX {
        let start = Instant::now();
        cx.spawn_at(to, async |_, ()| (), ()).await?;
        if warm < WARM_UP && begin.elapsed() < PAIR_TIME_MAX / 4 {
            warm += 1;
            continue;
        }
        nanos.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        if begin.elapsed() > PAIR_TIME_MAX {
            break;
        }
    }
    Ok(nanos)
}

/// Some pairs of PEs at this distance, spread over the job; no pair occurs twice.
fn pairs(job: &Topology, distance: Distance) -> Vec<(Pe, Pe)> {
    let balls = balls(job, distance);
    // As many balls as there may be pairs or, if there are fewer, each several times.
    let asked = balls.len().min(PAIRS_MAX);
    let mut pairs = Vec::new();
    for turn in 0..if asked > 0 { PAIRS_MAX } else { 0 } {
        let ball = balls[turn % asked * balls.len() / asked];
        let (lap, laps) = ((turn / asked) as u32, PAIRS_MAX.div_ceil(asked) as u32);
        let source = ball.at(lap * ball.len() / laps);
        let pair = (source, counterpart(job, ball, source, distance));
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

/// The balls of this radius in which some are that far from each other.
fn balls(job: &Topology, radius: Distance) -> Vec<Ball> {
    let (mut balls, mut next) = (Vec::new(), 0);
    while next < job.pes() {
        let ball = job.ball(Pe::new(next), radius);
        if ball != job.ball(Pe::new(next), radius.half()) {
            balls.push(ball);
        }
        next = ball.numbers().end;
    }
    balls
}

/// A PE of the ball that is exactly its radius away from `source`: the one half-way round, if it
/// is.
fn counterpart(job: &Topology, ball: Ball, source: Pe, radius: Distance) -> Pe {
    let near = job.ball(source, radius.half());
    let half_way = source.number() - ball.first().number() + ball.len() / 2;
    let candidate = ball.at(half_way % ball.len());
    if !near.contains(candidate) {
        return candidate;
    }
    let next = Pe::new(near.numbers().end);
    if ball.contains(next) { next } else { ball.first() }
}

/// The innermost level that two PEs have in common.
fn shared(job: &Topology, p: Pe, q: Pe) -> Option<LevelKind> {
    let labels = job.place(p).labels().iter().zip(job.place(q).labels());
    labels.take_while(|(own, other)| own == other).last().map(|(own, _)| own.kind)
}

/// A distance that the latency does not grow with, as said to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The smaller distance, at which round trips take longer.
    pub nearer: Distance,
    /// The greater distance, at which they take less time.
    pub farther: Distance,
    text: String,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Distances that promise what is not so: PEs that are nearer answer later, and by more than noise
/// (half of all round trips overlap in neither direction, and the medians differ by a quarter).
/// `table` is by ascending distance.
pub fn doubts(table: &[Latency]) -> Vec<Doubt> {
    let is_slower = |near: &Latency, far: &Latency| {
        near.quantile(0.25) > far.quantile(0.75) && near.quantile(0.5) * 4 >= far.quantile(0.5) * 5
    };
    let doubt = |(place, near): (usize, &Latency)| {
        let far = table[place + 1..].iter().find(|far| is_slower(near, far))?;
        let micros = |latency: &Latency| latency.quantile(0.5).as_secs_f64() * 1e6;
        let advice = match near.shared {
            None | Some(LevelKind::Site | LevelKind::Switch) => {
                "give a topology file without it (`ultramarine topo --write FILE` makes one to \
                 edit)"
            }
            Some(LevelKind::Host) => "look whether a host runs more processes than it has cores",
            Some(LevelKind::Package | LevelKind::Numa) => {
                "look whether the launcher binds each process to cores of its own"
            }
        };
        let shared = near.shared.map_or("place".to_owned(), |kind| kind.to_string());
        let text = format!(
            "PEs that share a {shared}, at distance {}, answer later (half of them after {:.1} µs) \
             than those at distance {} ({:.1} µs): this level makes no difference, or the wrong \
             one. If that is so each time, {advice}",
            near.distance,
            micros(near),
            far.distance,
            micros(far)
        );
        Some(Doubt { nearer: near.distance, farther: far.distance, text })
    };
    table.iter().enumerate().filter_map(doubt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_topology::{Label, Place};

    fn latency(exponent: u8, shared: Option<LevelKind>, micros: &[u64]) -> Latency {
        let round_trips = micros.iter().map(|n| Duration::from_micros(*n)).collect();
        Latency::of(Distance::from_exponent(exponent), shared, 1, round_trips)
    }

    #[test]
    fn quantiles_are_of_those_measured() {
        let some = latency(0, None, &(1..=200).collect::<Vec<_>>());
        let micros = |q| some.quantile(q).as_micros();
        assert_eq!([micros(0.0), micros(0.5), micros(0.99), micros(1.0)], [1, 100, 198, 200]);
    }

    #[test]
    fn what_grows_with_distance_is_not_doubted_nor_is_noise() {
        let one = latency(0, None, &[20, 21, 22, 90]);
        for near in [[10, 11, 12, 13], [20, 22, 24, 26], [21, 23, 23, 24], [22, 22, 90, 95]] {
            let near = latency(1, Some(LevelKind::Switch), &near);
            assert_eq!(doubts(&[near.clone(), one.clone()]), [], "{near:?}");
        }
    }

    #[test]
    fn a_level_that_promises_too_much_is_doubted() {
        let table = [
            latency(2, Some(LevelKind::Host), &[30, 31, 32, 33]),
            latency(1, Some(LevelKind::Switch), &[40, 41, 42, 43]),
            latency(0, None, &[20, 21, 22, 23]),
        ];
        let found = doubts(&table);
        let [host, switch] = &found[..] else { panic!("{found:?}") };
        assert_eq!((host.nearer, host.farther), (Distance::from_exponent(2), Distance::ONE));
        assert!(host.to_string().ends_with("more processes than it has cores"), "{host}");
        assert_eq!(
            switch.to_string(),
            "PEs that share a switch, at distance 1/2, answer later (half of them after 41.0 µs) \
             than those at distance 1 (21.0 µs): this level makes no difference, or the wrong one. \
             If that is so each time, give a topology file without it (`ultramarine topo --write \
             FILE` makes one to edit)"
        );
    }

    /// Racks, each with this many hosts, each with this many PEs.
    fn job(racks: &[&[u32]]) -> Topology {
        let mut places = Vec::new();
        for (rack, hosts) in racks.iter().enumerate() {
            for (host, pes) in hosts.iter().enumerate() {
                let rack = Label::new(LevelKind::Switch, rack.to_string());
                let host = Label::new(LevelKind::Host, host.to_string());
                places.extend((0..*pes).map(|_| Place::new(vec![rack.clone(), host.clone()])));
            }
        }
        Topology::new(&places, &vec![1; places.len()]).expect("a topology")
    }

    #[test]
    fn pairs_are_few_and_exactly_so_far_apart() {
        for racks in [
            &[&[2][..]][..],
            &[&[2, 2], &[2, 2]],
            &[&[1], &[7, 1, 1], &[2]],
            &[&[1; 100][..]; 50],
            &[&[3; 3][..]; 3],
        ] {
            let job = job(racks);
            for distance in job.radii().iter().filter(|radius| **radius > Distance::ZERO) {
                let pairs = pairs(&job, *distance);
                assert!((1..=PAIRS_MAX).contains(&pairs.len()), "{racks:?}");
                for (p, q) in &pairs {
                    assert_eq!(job.distance(*p, *q), *distance, "{racks:?}");
                }
            }
        }
    }

    #[test]
    fn pairs_begin_at_several_pes_all_over_the_job() {
        let all = job(&[&[1; 100][..]; 50]);
        let half = pairs(&all, Distance::ONE.half());
        let mut racks: Vec<_> =
            half.iter().map(|(p, _)| all.place(*p).labels()[0].clone()).collect();
        racks.dedup();
        assert_eq!(racks.len(), PAIRS_MAX);
        assert_eq!(pairs(&job(&[&[2]]), Distance::ONE).len(), 2, "there and back");
    }

    #[test]
    fn the_level_shared_is_told() {
        let job = job(&[&[2, 1], &[1]]);
        let shared = |q| shared(&job, Pe::ROOT, Pe::new(q));
        let all = [shared(1), shared(2), shared(3)];
        assert_eq!(all, [Some(LevelKind::Host), Some(LevelKind::Switch), None]);
    }
}
