//! Divide and conquer with a memo: an edit distance and the positions of a game, whose parts
//! overlap, beside one thread with an array or a map; and a product whose parts never do, beside
//! the same without a memo. Each also where one of two PEs kills itself in the middle.

use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use clap::ValueEnum;
use foldhash::fast::FixedState;
use num_bigint::BigUint;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::skeletons::table::table;
use ultramarine::{Error, Result};

const ROUNDS: usize = 5;
/// The length of each text, and the side of a block: a problem.
const LETTERS: usize = 20_000;
const BLOCK: usize = 500;
/// The rows and columns of the bar that is eaten.
const ROWS: usize = 6;
const COLUMNS: u8 = 6;
const BITS: u64 = 1 << 19;
/// Shorter factors than these are multiplied at once, and those that are not shorter than the
/// second have keys.
const AT_ONCE_BITS: u64 = 1 << 13;
const KEYED_BITS: u64 = 1 << 16;

#[derive(Clone, Copy, ValueEnum)]
enum Problem {
    Distance,
    Game,
    Product,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    Memo,
    NoMemo,
    Sequential,
}

/// Solves one problem.
#[derive(clap::Args)]
pub(crate) struct Job {
    problem: Problem,
    way: Way,
    /// Tasks that are lost run again.
    #[arg(long)]
    supervised: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Times {
    seconds: f64,
    result: u64,
    /// The number of PEs that have died.
    dead: u32,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Times> {
        let begun = Instant::now();
        let cx = &if self.supervised { cx.supervised() } else { cx.clone() };
        let result = match self.problem {
            Problem::Distance => distance(cx, self.way).await?,
            Problem::Game => game(cx, self.way).await?,
            Problem::Product => product(cx, self.way).await?,
        };
        Ok(Times { seconds: begun.elapsed().as_secs_f64(), result, dead: cx.dead() })
    }
}

/// Texts without order.
fn text(mut seed: u64) -> Vec<u8> {
    let letter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 62) as u8
    };
    std::iter::repeat_with(letter).take(LETTERS).collect()
}

type Texts = [Vec<u8>; 2];
/// A block: the texts, its row and its column.
type Block = (Shared<Texts>, usize, usize);
/// The last row and the last column of a block, each from the corner on.
type Edges = [Vec<u32>; 2];

/// A block from the row above it and the column on its left.
fn block((texts, row, column): &(&Texts, usize, usize), above: &[u32], left: &[u32]) -> Edges {
    let (down, right) = (&texts[0][row * BLOCK..], &texts[1][column * BLOCK..]);
    let (mut current, mut last) = (above.to_vec(), vec![above[BLOCK]]);
    for y in 0..BLOCK {
        let mut diagonal = std::mem::replace(&mut current[0], left[y + 1]);
        for x in 0..BLOCK {
            let replaced = diagonal + u32::from(down[y] != right[x]);
            diagonal = current[x + 1];
            current[x + 1] = replaced.min(1 + diagonal.min(current[x]));
        }
        last.push(current[BLOCK]);
    }
    [current, last]
}

/// What lies above the first row, or on the left of the first column, at this block.
fn border(at: usize) -> Vec<u32> {
    (0..=BLOCK).map(|n| (at * BLOCK + n) as u32).collect()
}

async fn distance(cx: &Context, way: Way) -> Result<u64> {
    let texts = [text(1), text(2)];
    let last = LETTERS / BLOCK - 1;
    if way == Way::Sequential {
        let mut rows: Vec<Vec<u32>> = (0..=last).map(border).collect();
        for row in 0..=last {
            let mut left = border(row);
            for (column, above) in rows.iter_mut().enumerate() {
                [*above, left] = block(&(&texts, row, column), above, &left);
            }
        }
        return Ok(u64::from(rows[last][BLOCK]));
    }
    let blocks = DivideAndConquer::new(
        |_: &Block| false,
        |_| unreachable!("no block is trivial"),
        |(texts, row, column): &Block| {
            let above = row.checked_sub(1).map(|above| (texts.clone(), above, *column));
            let left = column.checked_sub(1).map(|left| (texts.clone(), *row, left));
            above.into_iter().chain(left).collect::<Vec<Block>>()
        },
        |(texts, row, column), edges: Vec<Edges>| {
            let mut edges = edges.into_iter();
            let [above, _] = edges.next_if(row > 0).unwrap_or_else(|| [border(column), vec![]]);
            let [_, left] = edges.next_if(column > 0).unwrap_or_else(|| [vec![], border(row)]);
            block(&(&texts, row, column), &above, &left)
        },
    );
    let known = table::<(usize, usize), Edges>(cx, "blocks").open()?;
    let whole = (cx.share(texts), last, last);
    let problem = divide_and_conquer(|_: &Block| Distance::ONE, blocks, whole);
    let [row, _] = problem.memo(&known, |(_, row, column)| Some((*row, *column))).run(cx).await?;
    Ok(u64::from(row[BLOCK]))
}

/// Takes the next if it is there at all.
trait NextIf: Iterator {
    fn next_if(&mut self, is_there: bool) -> Option<Self::Item> {
        if is_there { self.next() } else { None }
    }
}

impl<I: Iterator> NextIf for I {}

/// The squares that are left in each row of a bar: from one square on all behind it and below it
/// are eaten. Who eats the first square of all has lost (Chomp; Gale 1974).
type Bar = [u8; ROWS];

fn bites(bar: Bar) -> Vec<Bar> {
    let squares = (0..ROWS).flat_map(|row| (0..bar[row]).map(move |column| (row, column)));
    let bite = |(row, column)| {
        std::array::from_fn(|at| if at < row { bar[at] } else { bar[at].min(column) })
    };
    squares.map(bite).collect()
}

/// Whether who bites next can win. Nothing left: the other has lost.
async fn game(cx: &Context, way: Way) -> Result<u64> {
    fn wins(bar: Bar, known: &mut HashMap<Bar, bool, FixedState>) -> bool {
        if let Some(wins) = known.get(&bar) {
            return *wins;
        }
        let all: Vec<bool> = bites(bar).into_iter().map(|bar| wins(bar, known)).collect();
        let wins = bar[0] == 0 || !all.into_iter().all(|wins| wins);
        known.insert(bar, wins);
        wins
    }
    let whole = [COLUMNS; ROWS];
    if way == Way::Sequential {
        let mut known = HashMap::default();
        wins(whole, &mut known);
        return Ok(known.values().filter(|wins| **wins).count() as u64);
    }
    let positions = DivideAndConquer::new(
        |bar: &Bar| bar[0] == 0,
        |_| true,
        |bar| bites(*bar),
        |_, all: Vec<bool>| !all.into_iter().all(|wins| wins),
    );
    let known = table::<Bar, bool>(cx, "positions").open()?;
    let problem = divide_and_conquer(|_: &Bar| Distance::ONE, positions, whole);
    problem.memo(&known, |bar| Some(*bar)).run(cx).await?;
    let count = async |cx: Context, known: ultramarine::skeletons::table::TableRef<Bar, bool>| {
        let mut count = 0;
        known.on(&cx)?.for_each_local(|_, wins| count += u64::from(*wins)).await;
        Ok::<u64, ultramarine::skeletons::table::TableError>(count)
    };
    // The empty bar is no problem with a key.
    let mut all = 1;
    for pe in (0..cx.pes()).map(Pe::new).filter(|pe| !cx.is_dead(*pe)) {
        all += cx.spawn_at(pe, count, known.reference()).await??;
    }
    Ok(all)
}

type Factors = (BigUint, BigUint);

fn number(seed: u64) -> BigUint {
    let words = (1..).map(|n: u64| n.wrapping_mul(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) as u32);
    BigUint::new(words.take((BITS / 32) as usize).collect())
}

fn halves(number: &BigUint, bits: u64) -> (BigUint, BigUint) {
    let high = number >> bits;
    let low = number - (&high << bits);
    (high, low)
}

fn bits((a, b): &Factors) -> u64 {
    a.bits().max(b.bits())
}

async fn product(cx: &Context, way: Way) -> Result<u64> {
    let factors = (number(3), number(5));
    let karatsuba = DivideAndConquer::new(
        |factors: &Factors| bits(factors) <= AT_ONCE_BITS,
        |(a, b)| a * b,
        |factors| {
            let half = bits(factors) / 2;
            let ((high, low), (other_high, other_low)) =
                (halves(&factors.0, half), halves(&factors.1, half));
            let sums = (&high + &low, &other_high + &other_low);
            [(low, other_low), sums, (high, other_high)]
        },
        |factors, [low, middle, high]: [BigUint; 3]| {
            let half = bits(&factors) / 2;
            (&high << (2 * half)) + ((middle - &high - &low) << half) + low
        },
    );
    let product = match way {
        Way::Sequential => fork_divide_and_conquer(karatsuba, factors),
        Way::NoMemo => par_divide_and_conquer(cx, |_| Distance::ONE, karatsuba, factors).await?,
        Way::Memo => {
            let known = table::<Factors, BigUint>(cx, "products").open()?;
            let problem = divide_and_conquer(|_: &Factors| Distance::ONE, karatsuba, factors);
            let key = |factors: &Factors| (bits(factors) >= KEYED_BITS).then(|| factors.clone());
            problem.memo(&known, key).run(cx).await?
        }
    };
    let low = product.iter_u64_digits().fold(0, |all, word| all ^ word);
    Ok(low >> 1)
}

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let cases = [
        ("distance", "an edit distance", "sequential"),
        ("game", "all positions of a game", "sequential"),
        ("product", "a product", "no-memo"),
    ];
    for (problem, name, beside) in cases {
        let job = |pes, job_flags: &str, way: &str| {
            let flags = format!("--threads 1 {job_flags} memo {problem} {way}");
            bench.on(pes, &bench.child(&flags))
        };
        let mut jobs = [(1, beside), (1, "memo"), (2, beside), (2, "memo")]
            .map(|(pes, way)| job(pes, "", way));
        let (mut found, mut killed) = ([(); 4].map(|()| Sample::new()), Sample::new());
        let mut known = None;
        let mut right = |times: Times| {
            let Times { result, .. } = times;
            let is_right = *known.get_or_insert(result) == result;
            let wrong = || Error::other(format!("{name}: {result} is another result"));
            is_right.then_some(times).ok_or_else(wrong)
        };
        for _ in 0..bench.rounds(ROUNDS) {
            let mut usual = 0.0;
            for (job, found) in jobs.iter_mut().zip(&mut found) {
                usual = right(launch::run(job)?.json()?)?.seconds;
                found.push(usual);
            }
            let middle = format!("--kill-at {:.3}", usual / 2.0);
            let mut job = job(2, &middle, "memo --supervised");
            let times = right(launch::run_quietly(&mut job)?.json()?)?;
            // Another run has ended before the death.
            if times.dead > 0 {
                killed.push(times.seconds);
            }
        }
        let [beside_one, one, beside_two, two] = found;
        report.figure(&format!("{name}, {beside}"), &beside_one, Unit::SECONDS);
        report.figure(&format!("{name}, memo on 1 PE"), &one, Unit::SECONDS);
        report.figure(&format!("{name}, memo on 2 PEs"), &two, Unit::SECONDS);
        if killed.len() > 0 {
            let what = format!("{name}, memo on 2 PEs, of which one dies in the middle");
            report.figure(&what, &killed, Unit::SECONDS);
        }
        let over = one.over(&two);
        report.goal(&format!("{name}, 1 PE over 2 PEs"), &over, Unit::TIMES, None::<Goal>);
        if beside == "no-memo" {
            let what = format!("{name}, with a memo that never helps, over none, 2 PEs");
            report.goal(&what, &two.over(&beside_two), Unit::TIMES, None::<Goal>);
        }
    }
    Ok(())
}
