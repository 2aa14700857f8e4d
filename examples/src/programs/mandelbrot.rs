//! The Mandelbrot set: for each point `c` of a picture, the number of steps `z² + c` until `z` is
//! farther than 2 from the origin. Points of the set take the whole depth and other points few
//! steps, so the cost of a row is unknown in advance.
//!
//! An example of map and reduce over rows. The result is a checksum and, on request, the colours of
//! the pixels.

use crate::whole_file::WholeFile;
use crate::{Job, JournalFlags, name_of, ranged, run_program};
use clap::ValueEnum;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Result, skeletons};

/// Count the steps to escape for each pixel of a picture of the Mandelbrot set.
///
/// The result is a checksum: the sum over all pixels of the pixel's count times its number (counted
/// from 1, row by row), modulo 2^53.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// The picture's width in pixels.
    #[arg(long, value_name = "W", default_value_t = 1200)]
    #[arg(value_parser = ranged::<u32>(1..=PIXELS_MAX))]
    width: u32,
    /// The picture's height in pixels.
    #[arg(long, value_name = "H", default_value_t = 900)]
    #[arg(value_parser = ranged::<u32>(1..=PIXELS_MAX))]
    height: u32,
    /// The largest number of steps tried for a pixel.
    #[arg(long, value_name = "D", default_value_t = 1000)]
    #[arg(value_parser = ranged::<u32>(1..=DEPTH_MAX))]
    depth: u32,
    /// The number of rows that are not divided further. 0 counts as 1.
    #[arg(long, value_name = "T", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..))]
    threshold: u32,
    /// Write the picture to this PNG file at the end.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::ParMapReduce)]
    skeleton: Skeleton,
    #[command(flatten)]
    journal: JournalFlags,
}

/// A skeleton that maps and reduces the rows, or a program without one to compare with.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Skeleton {
    /// Halves of the rows wait for other PEs to steal them.
    ParMapReduce,
    /// Halves of the rows are placed at once, until all PEs have equal numbers of rows.
    PushMapReduce,
    /// The threads of the root only, by rayon.
    Rayon,
    /// One thread of the root, row after row.
    Sequential,
}

/// The largest width and height. All colours fit the root's memory.
const PIXELS_MAX: i64 = 20_000;

/// The largest depth. With it the largest picture takes about a day on one core.
const DEPTH_MAX: i64 = 200_000;

/// The picture shows at least a rectangle of this size around this point.
const CENTRE: f64 = -0.65;
const SPANS: (f64, f64) = (3.2, 2.4);

/// The colour of the set.
pub const SET: [u8; 3] = [4, 4, 22];
/// The colours of its surroundings, from far to near.
pub const AROUND: [(f64, [u8; 3]); 6] = [
    (0.0, [10, 8, 60]),
    (0.25, [18, 10, 143]),
    (0.5, [65, 102, 245]),
    (0.72, [160, 196, 255]),
    (0.88, [255, 255, 255]),
    (1.0, [255, 214, 120]),
];

/// The size and depth of a picture of the set.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PictureSpec {
    width: u32,
    height: u32,
    depth: u32,
    /// Whether the colours of the pixels are wanted.
    is_painted: bool,
}

impl PictureSpec {
    /// The point in the middle of a pixel.
    fn point(self, column: u32, row: u32) -> (f64, f64) {
        let (width, height) = (f64::from(self.width), f64::from(self.height));
        let scale = (SPANS.0 / width).max(SPANS.1 / height);
        let across = |pixel: u32, pixels: f64| (f64::from(pixel) + 0.5 - pixels / 2.0) * scale;
        (CENTRE + across(column, width), across(row, height))
    }
}

/// The result for some consecutive rows.
#[derive(Default, Serialize, Deserialize)]
struct Rows {
    /// Their part of the checksum, modulo 2⁶⁴.
    sum: u64,
    /// The colour of each pixel, if colours are wanted.
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

fn row(spec: &PictureSpec, row: u64) -> Rows {
    let before = row * u64::from(spec.width);
    let mut done = Rows::default();
    for column in 0..spec.width {
        let point = spec.point(column, row as u32);
        let (count, z) = escape(point, spec.depth);
        let product = u64::from(count) * (before + u64::from(column) + 1);
        done.sum = done.sum.wrapping_add(product);
        if spec.is_painted {
            done.pixels.push(if count == spec.depth { 0 } else { colour(point, count, z) });
        }
    }
    done
}

/// The number of steps until `z` is farther than 2 from the origin, at most the depth; and `z`.
pub fn escape(c: (f64, f64), depth: u32) -> (u32, (f64, f64)) {
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

/// The colour of a point outside the set. It is interpolated between the counts by the size of `z`
/// some steps later, when `z` is so large that `c` no longer matters.
fn colour(c: (f64, f64), count: u32, z: (f64, f64)) -> u8 {
    let (x, y) = (0..4).fold(z, |z, _| step(z, c));
    let smooth = f64::from(count) + 4.0 - x.hypot(y).ln().log2();
    let near = smooth.max(1.0).ln() / 200_f64.ln();
    1 + (near.min(1.0) * 254.0).round() as u8
}

/// Red, green and blue of each colour.
pub fn palette() -> Vec<u8> {
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

impl Skeleton {
    async fn rows(
        self,
        cx: &Context,
        journal: &JournalFlags,
        threshold: u64,
        spec: PictureSpec,
    ) -> Result<Rows> {
        let (none, rows) = (Rows::default, 0..u64::from(spec.height));
        if let Some(file) = &journal.file {
            // Halves of a range have no journal; chunks of it have.
            let map = map_with(spec, row, rows).chunks(threshold as usize);
            let map = match self {
                Skeleton::ParMapReduce => map,
                Skeleton::PushMapReduce => map.push(),
                Skeleton::Rayon | Skeleton::Sequential => {
                    journal.refuse_for(&self)?;
                    map
                }
            };
            return Ok(journal.set(map.journal(file)).reduce(none, Rows::and, cx).await?);
        }
        Ok(match self {
            Skeleton::ParMapReduce => {
                par_map_reduce_range_thresh(cx, threshold, rows, spec, none, row, Rows::and).await?
            }
            Skeleton::PushMapReduce => {
                skeletons::push_map_reduce_range_thresh(
                    cx,
                    threshold,
                    rows,
                    spec,
                    none,
                    row,
                    Rows::and,
                )
                .await?
            }
            Skeleton::Rayon => rows.into_par_iter().map(|n| row(&spec, n)).reduce(none, Rows::and),
            Skeleton::Sequential => rows.map(|n| row(&spec, n)).fold(none(), Rows::and),
        })
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("mandelbrot", mandelbrot)
}

async fn mandelbrot(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { width, height, depth, threshold, out, skeleton, journal } = arguments;
    let picture = out.map(|path| WholeFile::at(&path, "picture")).transpose()?;
    let spec = PictureSpec { width, height, depth, is_painted: picture.is_some() };
    let start = Instant::now();
    let work = skeleton.rows(&job.cx, &journal, threshold.into(), spec);
    let rows = job.progress(None, work).await?;
    let report = job.report(name_of(&skeleton), start, rows.checksum()).await?;
    // The report comes before the picture, so that it is not lost if the picture cannot be saved.
    report.print()?;
    picture.map_or(Ok(()), |file| save(file, (width, height), &rows.pixels))
}

/// Writes the picture as a PNG file. `pixels` are indexes into the palette, row by row.
fn save(file: WholeFile, (width, height): (u32, u32), pixels: &[u8]) -> Result<()> {
    file.save(|file| {
        let mut buffer = BufWriter::new(file);
        let mut encoder = png::Encoder::new(&mut buffer, width, height);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(palette());
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        writer.finish()?;
        buffer.flush()
    })
}
