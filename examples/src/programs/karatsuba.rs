//! The product of two long numbers by Karatsuba's algorithm, as a graph (Leliveld, listing 2.6).
//!
//! A product of long factors is made of three products of factors half as long. The graph has a
//! node for each product: a source for one that is short enough to be multiplied at once, and a
//! combination of three others for the rest.

use crate::{GraphFlags, Job, JournalFlags, read_text, run_program};
use num_bigint::BigUint;
use std::path::PathBuf;
use std::time::Instant;
use ultramarine::skeletons::dag::{Builder, Node, dag};
use ultramarine::{Error, Result};

/// Multiply two whole numbers by Karatsuba's algorithm, as a graph.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// A factor, in decimal digits; or `@FILE`, for a file that holds them.
    #[arg(value_parser = factor)]
    a: Factor,
    /// The other factor.
    #[arg(value_parser = factor)]
    b: Factor,
    /// Multiply factors of at most this many bits at once.
    #[arg(long, value_name = "BITS", default_value_t = 4096)]
    #[arg(value_parser = clap::value_parser!(u64).range(8..))]
    threshold: u64,
    #[command(flatten)]
    graph: GraphFlags,
    #[command(flatten)]
    journal: JournalFlags,
}

/// A command line takes some 100,000 digits, a file any number of them.
#[derive(Clone)]
enum Factor {
    Number(BigUint),
    File(PathBuf),
}

/// What is longer is no number that could be multiplied here.
const FILE_BYTES_MAX: u64 = 64 << 20;

impl Factor {
    fn read(self) -> Result<BigUint> {
        let path = match self {
            Factor::Number(number) => return Ok(number),
            Factor::File(path) => path,
        };
        let text = read_text(&path, "number", FILE_BYTES_MAX)?;
        let number = decimal(text.trim_ascii());
        number.map_err(|error| Error::other(format!("{}: {error}", path.display())))
    }
}

fn factor(text: &str) -> std::result::Result<Factor, String> {
    match text.strip_prefix('@') {
        Some(path) => Ok(Factor::File(path.into())),
        None => decimal(text).map(Factor::Number),
    }
}

fn decimal(text: &str) -> std::result::Result<BigUint, String> {
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_decimal.then(|| BigUint::parse_bytes(text.as_bytes(), 10)).flatten();
    number.ok_or_else(|| "decimal digits are expected, such as 1234567890".to_owned())
}

/// A number's bits from this one on, and those before.
fn split(number: &BigUint, at: u64) -> (BigUint, BigUint) {
    let high = number >> at;
    let low = number - (&high << at);
    (high, low)
}

/// The node of a product. A journal keeps those of this many levels.
fn product(
    g: &mut Builder,
    (x, y): (BigUint, BigUint),
    threshold: u64,
    kept: u32,
) -> Node<BigUint> {
    let bits = x.bits().max(y.bits());
    if bits <= threshold {
        return g.source(|(x, y): &(BigUint, BigUint)| x * y, (x, y));
    }
    let half = bits / 2;
    let ((high_x, low_x), (high_y, low_y)) = (split(&x, half), split(&y, half));
    let sums = (&high_x + &low_x, &high_y + &low_y);
    let below = kept.saturating_sub(1);
    let low = product(g, (low_x, low_y), threshold, below);
    let middle = product(g, sums, threshold, below);
    let high = product(g, (high_x, high_y), threshold, below);
    let product = g.zip(
        |half, (low, middle, high): (&BigUint, &BigUint, &BigUint)| {
            (high << (2 * half)) + ((middle - high - low) << *half) + low
        },
        half,
        (low, middle, high),
    );
    if kept > 0 {
        g.keep(product);
    }
    product
}

/// The levels of products that a journal keeps: 121 of them.
const KEPT: u32 = 5;

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("karatsuba", run)
}

async fn run(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { a, b, threshold, graph, journal } = arguments;
    let mut graph = graph.begin("dag", Some(journal))?;
    let (a, b) = (a.read()?, b.read()?);
    let build = |g: &mut Builder, (a, b, threshold): &(BigUint, BigUint, u64)| {
        product(g, (a.clone(), b.clone()), *threshold, KEPT)
    };
    let start = Instant::now();
    let product = graph.run(&job, dag(build, (a, b, threshold))).await?.to_string();
    job.report("dag", start, product).await?.print()?;
    graph.finish()
}
