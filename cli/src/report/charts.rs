//! Pictures of a job. Their colours of text are those of the page.

use super::figures::{CLASSES, Summary};
use super::page::duration;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plotters::prelude::*;
use std::ops::Range;

/// The colour of what is busy.
const BUSY: RGBColor = RGBColor(0x2a, 0x6f, 0xdb);

/// Lines of the grid, which are seen on light and dark.
const GRID: RGBAColor = RGBAColor(0x80, 0x80, 0x80, 0.3);

/// The size of a chart in pixels. The page shows it as wide as there is room.
const SIZE: (u32, u32) = (900, 240);

/// More PEs than this share rows of the heat map.
const ROWS_MAX: usize = 256;

/// Draws a chart into SVG with this drawing function.
fn draw(
    x: Range<f64>,
    (y, y_title): (Range<f64>, &str),
    x_label: &dyn Fn(&f64) -> String,
    rectangles: &[[(f64, f64); 2]],
) -> Option<String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .margin_right(48)
        .x_label_area_size(36)
        .y_label_area_size(72)
        .build_cartesian_2d(x, y)
        .ok()?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(GRID)
        .label_style(("sans-serif", 15))
        .x_labels(10)
        .y_labels(6)
        .x_label_formatter(x_label)
        .y_desc(y_title)
        .draw()
        .ok()?;
    let bars = rectangles.iter().map(|corners| Rectangle::new(*corners, BUSY.filled()));
    chart.draw_series(bars).ok()?;
    drop(chart);
    area.present().ok()?;
    drop(area);
    Some(svg)
}

/// How many pieces of time there are, if there are any.
fn pieces(job: &Summary<'_>) -> Option<usize> {
    job.busy.first().map(Vec::len).filter(|pieces| *pieces > 0)
}

/// The share of all workers that compute, over time.
pub(super) fn utilisation(job: &Summary<'_>) -> Option<String> {
    let pieces = pieces(job)?;
    let mean = |piece: usize| {
        let busy = job.busy.iter().zip(&job.workers_of);
        let sum: f64 = busy.map(|(row, workers)| row[piece] * *workers as f64).sum();
        100.0 * sum / job.workers as f64
    };
    let bar = |piece: usize| {
        let begin = piece as f64 * job.piece_s;
        [(begin, 0.0), (begin + job.piece_s, mean(piece))]
    };
    let bars: Vec<_> = (0..pieces).map(bar).collect();
    let seconds = |at: &f64| format!("{at:.3} s");
    draw(0.0..pieces as f64 * job.piece_s, (0.0..100.0, "busy, %"), &seconds, &bars)
}

/// How many runs of a function took how long.
pub(super) fn durations(classes: &[u64; CLASSES]) -> Option<String> {
    let first = classes.iter().position(|runs| *runs > 0)?;
    let last = classes.iter().rposition(|runs| *runs > 0)?;
    let most = classes.iter().copied().max()?;
    let bar =
        |class: usize| [(class as f64 + 0.05, 0.0), (class as f64 + 0.95, classes[class] as f64)];
    let bars: Vec<_> = (first..=last).map(bar).collect();
    let label = |class: &f64| duration(2f64.powf(*class) as u64);
    draw(first as f64..last as f64 + 1.0, (0.0..1.05 * most as f64, "runs"), &label, &bars)
}

/// How busy each PE was, over time: a row for each, or for some together. It is an image in a URL.
pub(super) fn heat_map(job: &Summary<'_>) -> Option<String> {
    let (rows, pieces) = (&job.busy, pieces(job)?);
    let together = rows.len().div_ceil(ROWS_MAX);
    let mut pixels = Vec::new();
    for some in rows.chunks(together) {
        for piece in 0..pieces {
            let busy = some.iter().map(|row| row[piece]).sum::<f64>() / some.len() as f64;
            let RGBColor(red, green, blue) = BUSY;
            pixels.extend([red, green, blue, (255.0 * busy) as u8]);
        }
    }
    let mut png = Vec::new();
    let height = rows.len().div_ceil(together) as u32;
    let mut encoder = png::Encoder::new(&mut png, pieces as u32, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.write_header().ok()?.write_image_data(&pixels).ok()?;
    Some(format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png)))
}
