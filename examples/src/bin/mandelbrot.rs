//! The Mandelbrot set: how often `z² + c` can be applied before `z` is farther than 2 from the origin,
//! for each point `c` of a picture. Points of the set take the whole depth, those outside few steps,
//! so that the cost of a row is known only afterwards.
//!
//! By map and reduce over the rows: what comes back are a checksum and, if they are asked for, the
//! colours of the pixels.

use clap::{Parser, ValueEnum};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine_examples::{JobFlags, Picture, Report, name_of, with_progress};

/// Count the steps to escape for each pixel of a picture of the Mandelbrot set.
///
/// The result is a checksum: the sum, over all pixels, of a pixel's count times its number (from 1,
/// row by row), modulo 2^53.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The picture's width in pixels.
    #[arg(long, value_name = "W", default_value_t = 1200, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=PIXELS_MAX))]
    width: u32,
    /// The picture's height in pixels.
    #[arg(long, value_name = "H", default_value_t = 900, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=PIXELS_MAX))]
    height: u32,
    /// The most steps that are tried.
    #[arg(long, value_name = "D", default_value_t = 1000, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=DEPTH_MAX))]
    depth: u32,
    /// How many rows are not divided any more; 0 counts as 1.
    #[arg(long, value_name = "T", default_value_t = 8, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..))]
    threshold: u32,
    /// Paint the picture into this PNG file, when all is done.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How the work is spread.
    #[arg(long, value_enum, default_value_t = Reduction::ParMapReduce)]
    skeleton: Reduction,
    #[command(flatten)]
    job: JobFlags,
}

/// How the rows are mapped and reduced.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Reduction {
    /// Halves of the rows wait for a PE that steals them.
    ParMapReduce,
    /// Halves are placed at once, until each PE has as many rows as any other.
    PushMapReduce,
    /// By rayon, on the root alone.
    Rayon,
    /// One after the other, on the root alone.
    Sequential,
}

/// Width and height fit 15 bits.
const PIXELS_MAX: i64 = 20_000;

/// The depth fits 18 bits.
const DEPTH_MAX: i64 = 200_000;

/// What the picture shows at least: a rectangle around this point.
const CENTRE: f64 = -0.65;
const SPANS: (f64, f64) = (3.2, 2.4);

/// The colours of the set itself and, from far away from it to near, of what is around it.
const SET: [u8; 3] = [4, 4, 22];
const AROUND: [(f64, [u8; 3]); 6] = [
    (0.0, [10, 8, 60]),
    (0.25, [18, 10, 143]),
    (0.5, [65, 102, 245]),
    (0.72, [160, 196, 255]),
    (0.88, [255, 255, 255]),
    (1.0, [255, 214, 120]),
];

/// A picture of the set.
#[derive(Clone, Copy, Debug, PartialEq)]
struct View {
    width: u32,
    height: u32,
    depth: u32,
    /// Whether the pixels' colours are wanted.
    is_painted: bool,
}

impl View {
    /// The numbers of all rows. The range of a map is all that travels, so a number tells which
    /// picture the row belongs to: from the left, 1 bit whether it is painted, 18 the depth, 15 each
    /// the width, the height, and which row it is.
    fn rows(self) -> std::ops::Range<u64> {
        let View { width, height, depth, is_painted } = self;
        let fields = [(1, u32::from(is_painted)), (18, depth), (15, width), (15, height), (15, 0)];
        let first = fields.iter().fold(0, |all, (bits, field)| all << bits | u64::from(*field));
        first..first + u64::from(height)
    }

    /// The picture that the row with this number belongs to, and which one it is.
    fn of_row(number: u64) -> (View, u32) {
        let field = |shift: u32, bits: u32| (number >> shift & ((1 << bits) - 1)) as u32;
        let (width, height, depth) = (field(30, 15), field(15, 15), field(45, 18));
        (View { width, height, depth, is_painted: field(63, 1) == 1 }, field(0, 15))
    }

    /// The point in the middle of a pixel.
    fn point(self, column: u32, row: u32) -> (f64, f64) {
        let (width, height) = (f64::from(self.width), f64::from(self.height));
        let scale = (SPANS.0 / width).max(SPANS.1 / height);
        let across = |pixel: u32, pixels: f64| (f64::from(pixel) + 0.5 - pixels / 2.0) * scale;
        (CENTRE + across(column, width), across(row, height))
    }
}

/// What comes of some rows that follow each other.
#[derive(Default, Serialize, Deserialize)]
struct Rows {
    /// Of their pixels' part in the checksum, modulo 2⁶⁴.
    sum: u64,
    /// The colour of each pixel, if it is painted.
    #[serde(with = "serde_bytes")]
    pixels: Vec<u8>,
}

impl Rows {
    fn and(mut self, mut below: Rows) -> Rows {
        self.pixels.append(&mut below.pixels);
        Rows { sum: self.sum.wrapping_add(below.sum), ..self }
    }

    fn checksum(&self) -> u64 {
        self.sum & ((1 << 53) - 1)
    }
}

fn row(number: u64) -> Rows {
    let (view, row) = View::of_row(number);
    let before = u64::from(row) * u64::from(view.width);
    let mut done = Rows::default();
    for column in 0..view.width {
        let point = view.point(column, row);
        let (count, z) = escape(point, view.depth);
        let product = u64::from(count) * (before + u64::from(column) + 1);
        done.sum = done.sum.wrapping_add(product);
        if view.is_painted {
            done.pixels.push(if count == view.depth { 0 } else { colour(point, count, z) });
        }
    }
    done
}

/// How often the step can be taken while `z` is within 2 of the origin, up to the depth, and `z`.
fn escape(c: (f64, f64), depth: u32) -> (u32, (f64, f64)) {
    let (mut count, mut z) = (0, (0.0, 0.0));
    while count < depth && z.0 * z.0 + z.1 * z.1 <= 4.0 {
        z = step(z, c);
        count += 1;
    }
    (count, z)
}

fn step((x, y): (f64, f64), c: (f64, f64)) -> (f64, f64) {
    (x * x - y * y + c.0, 2.0 * x * y + c.1)
}

/// Which colour of the palette a point outside the set has. Between the counts it is interpolated by
/// how far `z` has come, some steps later, when `c` does not matter beside it any more.
fn colour(c: (f64, f64), count: u32, z: (f64, f64)) -> u8 {
    let (x, y) = (0..4).fold(z, |z, _| step(z, c));
    let smooth = f64::from(count) + 4.0 - x.hypot(y).ln().log2();
    let near = smooth.max(1.0).ln() / 200_f64.ln();
    1 + (near.min(1.0) * 254.0).round() as u8
}

/// Red, green and blue of each colour.
fn palette() -> Vec<u8> {
    let around = (0..255).flat_map(|n| {
        let near = f64::from(n) / 254.0;
        let next = AROUND.iter().position(|(at, _)| *at >= near).unwrap_or(0).max(1);
        let ((from, low), (to, high)) = (AROUND[next - 1], AROUND[next]);
        let part = (near - from) / (to - from);
        let mixed = |i: usize| f64::from(low[i]) * (1.0 - part) + f64::from(high[i]) * part;
        [0, 1, 2].map(|i| mixed(i).round() as u8)
    });
    SET.into_iter().chain(around).collect()
}

impl Reduction {
    async fn rows(
        self,
        spawner: &impl Spawner,
        rows_per_task: u64,
        view: View,
    ) -> Result<Rows, TaskError> {
        let (none, rows) = (Rows::default, view.rows());
        match self {
            Reduction::ParMapReduce => {
                par_map_reduce_range_thresh(spawner, rows_per_task, rows, none, row, Rows::and)
                    .await
            }
            Reduction::PushMapReduce => {
                push_map_reduce_range_thresh(spawner, rows_per_task, rows, none, row, Rows::and)
                    .await
            }
            Reduction::Rayon => Ok(rows.into_par_iter().map(row).reduce(none, Rows::and)),
            Reduction::Sequential => Ok(rows.map(row).fold(none(), Rows::and)),
        }
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    arguments.job.options.clone().run(async move |cx| mandelbrot(cx, arguments).await)
}

async fn mandelbrot(cx: Context, arguments: Arguments) -> Result<()> {
    let Arguments { width, height, depth, threshold, out, skeleton, job } = arguments;
    if job.show_topology {
        print!("{}", cx.topology());
    }
    let picture = out.map(|path| Picture::at(&path)).transpose()?;
    let view = View { width, height, depth, is_painted: picture.is_some() };
    let start = Instant::now();
    let work = async {
        if job.supervised {
            skeleton.rows(&cx.supervised(), threshold.into(), view).await
        } else {
            skeleton.rows(&cx, threshold.into(), view).await
        }
    };
    let rows = with_progress(&cx, job.progress, None, work).await?;
    let of = (name_of(&skeleton), &job);
    let report = Report::gather(&cx, "mandelbrot", of, start, rows.checksum()).await?;
    if let Some(picture) = picture {
        picture.save((width, height), &palette(), &rows.pixels)?;
    }
    report.print(&job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_its_picture() {
        for (pixels, depth) in [(1, 1), (7, 1000), (PIXELS_MAX as u32, DEPTH_MAX as u32)] {
            for is_painted in [false, true] {
                let view = View { width: pixels, height: pixels, depth, is_painted };
                let rows = view.rows();
                assert_eq!(rows.end - rows.start, u64::from(pixels));
                assert_eq!(View::of_row(rows.start), (view, 0));
                assert_eq!(View::of_row(rows.end - 1), (view, pixels - 1));
            }
        }
    }

    #[test]
    fn known_points_escape_when_they_should() {
        for (point, count) in [
            ((0.0, 0.0), 100),
            ((-2.0, 0.0), 100),
            ((1.0, 0.0), 3),
            ((0.5, 0.0), 5),
            ((3.0, 0.0), 1),
        ] {
            assert_eq!(escape(point, 100).0, count, "{point:?}");
        }
    }

    #[test]
    fn the_palette_has_all_colours_and_smooth_shades() {
        let palette = palette();
        assert_eq!(palette.len(), 256 * 3);
        assert_eq!((&palette[..3], &palette[3..6]), (&SET[..], &AROUND[0].1[..]));
        assert_eq!(&palette[255 * 3..], AROUND[5].1);
        for (one, next) in palette[3..].chunks(3).zip(palette[6..].chunks(3)) {
            assert!(one.iter().zip(next).all(|(a, b)| a.abs_diff(*b) < 8), "{one:?} {next:?}");
        }
    }
}
