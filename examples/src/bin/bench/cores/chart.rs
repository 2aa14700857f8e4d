//! The efficiencies as a picture: a line for each work and manner.

use super::{Cell, Manner, WORKS};
use crate::Sample;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (1000, 620);

/// Draws the efficiencies of the cells that have any.
///
/// # Errors
///
/// The file cannot be written.
pub(super) fn write(cells: &[Cell], cores: u32, path: &Path) -> Result<(), Box<dyn Error>> {
    let right = f64::from(cores).log2().max(1.0);
    let efficiencies = cells.iter().flat_map(|cell| &cell.found).map(|found| &found.2);
    let top = efficiencies.filter(|sample| sample.len() > 0).map(Sample::median);
    let top = top.fold(100.0, f64::max) * 1.1;

    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    // The names stand to the right of the lines.
    let mut chart = ChartBuilder::on(&area)
        .caption("Efficiency against one core under the same load", ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..1.4 * right, 0.0..top)?;
    let shown = |x: &f64| {
        let is_count = x.fract() == 0.0 && *x <= right;
        if is_count { x.exp2().to_string() } else { String::new() }
    };
    let (labels, shown): (usize, &dyn Fn(&f64) -> String) = (3 * right.ceil() as usize, &shown);
    let mut mesh = chart.configure_mesh();
    let mesh = mesh.light_line_style(TRANSPARENT).x_labels(labels).x_label_formatter(shown);
    mesh.x_desc("cores").y_desc("efficiency, %").draw()?;
    for (number, work) in WORKS.iter().enumerate() {
        let colour = HSLColor(number as f64 / WORKS.len() as f64, 0.8, 0.4);
        for (kind, width) in [("processes", 1), ("threads", 2), ("NUMA domains", 4)] {
            let point = |(cell, manner): (&Cell, &(Manner, _, crate::Sample))| {
                (f64::from(cell.cores).log2(), manner.2.median())
            };
            let own = cells.iter().filter(|cell| cell.work.name == work.name);
            let all = own.flat_map(|cell| cell.found.iter().map(move |found| (cell, found)));
            let of_kind = all.filter(|(_, found)| found.0.name() == kind && found.2.len() > 0);
            let points: Vec<_> = of_kind.map(point).collect();
            if points.is_empty() {
                continue;
            }
            let style = colour.stroke_width(width);
            let line = LineSeries::new(points, style).point_size(2 + width);
            let legend = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style);
            let name = format!("{}, {kind}", work.name);
            chart.draw_series(line)?.label(name).legend(legend);
        }
    }
    let mut labels = chart.configure_series_labels();
    let labels = labels.background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3));
    labels.position(SeriesLabelPosition::UpperRight).draw()?;
    area.present()?;
    Ok(())
}
