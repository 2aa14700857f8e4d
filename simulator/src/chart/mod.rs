//! Line charts as SVG: how something grows with the number of cores or PEs.
//!
//! ```
//! use ultramarine_simulator::chart::{Axis, Chart, Series};
//! let series = vec![Series::new("hdr", vec![(32.0, 99.0), (64.0, 98.5), (128.0, 98.0)])];
//! let axes = (Axis::log2("cores"), Axis::percent("efficiency, %"));
//! let chart = Chart {
//!     references: vec![Series::new("a paper, fig. 1", vec![(128.0, 90.0)])],
//!     goals: vec![("goal: 70 %".to_owned(), 70.0)],
//!     ..Chart::new("Weak scaling", axes, series)
//! };
//! assert!(chart.svg()?.starts_with("<svg"));
//! # Ok::<(), ultramarine_simulator::chart::ChartError>(())
//! ```
//!
//! Series differ in colour and mark. References, which others have published, are black, dashed and
//! hollow. Goals are dotted lines from side to side. The legend is below the chart, where it covers
//! nothing. This module must never know what is drawn.

mod axis;
mod mark;

pub use axis::{Axis, Scale};

use axis::Laid;
use mark::Look;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::{Path, PathBuf};

/// Width and height of the chart without its legend, in pixels.
const SIZE: (u32, u32) = (860, 520);
const LEGEND_LINE: u32 = 20;
/// What is free of curves at each side: for the title, and for the names of the axes.
const MARGIN: i32 = 14;
const FONT: &str = "sans-serif";
const GOAL: RGBColor = RGBColor(90, 90, 90);

/// A chart of lines.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// What it shows, in a line.
    pub title: String,
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// Lines with marks. Of more than six, some look alike.
    pub series: Vec<Series>,
    /// What others have published; names say who. A single point is a mark without a line.
    pub references: Vec<Series>,
    /// Heights to reach, or not to exceed, with what they are called in the legend.
    pub goals: Vec<(String, f64)>,
}

/// A line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What it is called in the legend.
    pub name: String,
    /// By ascending x.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A line of this name through these points.
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Series { name: name.to_owned(), points }
    }
}

/// Why a chart, with this title, cannot be drawn, or not be written into this file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    /// There is nothing to draw.
    #[error("the chart `{0}` has no points")]
    NoPoints(String),
    /// A point of this series, reference or goal has no place on an axis: where it is to the right,
    /// and upwards.
    #[error(
        "the chart `{0}` cannot show the point ({2}, {3}) of `{1}`: numbers are finite, and above \
         0 on a logarithmic axis"
    )]
    NoPlace(String, String, f64, f64),
    /// The drawing library failed, and said this.
    #[error("the chart `{0}` cannot be drawn: {1}")]
    Drawing(String, String),
    /// The file cannot be written.
    #[error("cannot write the chart {path}: {1}", path = .0.display())]
    Unwritable(PathBuf, std::io::Error),
}

impl Chart {
    /// A chart of these lines on these axes, to the right and upwards, and of nothing else.
    pub fn new(title: impl Into<String>, (x, y): (Axis, Axis), series: Vec<Series>) -> Self {
        let (title, references, goals) = (title.into(), Vec::new(), Vec::new());
        Chart { title, x, y, series, references, goals }
    }

    /// Writes the chart into a file.
    ///
    /// # Errors
    /// Those of [`Chart::svg`], and if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ChartError> {
        let unwritable = |cause| ChartError::Unwritable(path.to_owned(), cause);
        std::fs::write(path, self.svg()?).map_err(unwritable)
    }

    /// The chart as the text of an SVG file.
    ///
    /// # Errors
    /// If it has no points, or one that has no place on an axis.
    pub fn svg(&self) -> Result<String, ChartError> {
        self.check()?;
        let mut svg = String::new();
        let (width, height) = SIZE;
        let size = (width, height + LEGEND_LINE * self.legend_lines() + MARGIN as u32);
        self.draw(&SVGBackend::with_string(&mut svg, size).into_drawing_area())
            .map_err(|cause| ChartError::Drawing(self.title.clone(), cause.to_string()))?;
        Ok(svg)
    }

    fn lines(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().chain(&self.references)
    }

    fn check(&self) -> Result<(), ChartError> {
        let title = self.title.clone();
        if self.lines().all(|series| series.points.is_empty()) {
            return Err(ChartError::NoPoints(title));
        }
        let of_line = |line: &Series| {
            let is_wrong = |&&(x, y): &&(f64, f64)| !(self.x.can_show(x) && self.y.can_show(y));
            line.points.iter().find(is_wrong).map(|(x, y)| (line.name.clone(), *x, *y))
        };
        let of_goal = |(name, y): &(String, f64)| {
            (!self.y.can_show(*y)).then(|| (name.clone(), f64::NAN, *y))
        };
        match self.lines().find_map(of_line).or_else(|| self.goals.iter().find_map(of_goal)) {
            None => Ok(()),
            Some((name, x, y)) => Err(ChartError::NoPlace(title, name, x, y)),
        }
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        area.fill(&WHITE)?;
        let (plot, legend) = area.split_vertically(SIZE.1);
        let points = || self.lines().flat_map(|series| &series.points);
        let x = Laid::of(&self.x, points().map(|point| point.0));
        let heights = points().map(|point| point.1).chain(self.goals.iter().map(|(_, y)| *y));
        let y = Laid::of(&self.y, heights);
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, (FONT, self.title_size()))
            .margin(MARGIN)
            .margin_right(2 * MARGIN)
            .x_label_area_size(52)
            .y_label_area_size(74)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .bold_line_style(BLACK.mix(0.12))
            .light_line_style(TRANSPARENT)
            .label_style((FONT, 15))
            .axis_desc_style((FONT, 17))
            .x_label_formatter(&|tick| x.label(*tick))
            .y_label_formatter(&|tick| y.label(*tick))
            .x_labels(x.ticks.len())
            .y_labels(y.ticks.len())
            .x_desc(&self.x.name)
            .y_desc(&self.y.name)
            .draw()?;
        let shown = |series: &Series| -> Vec<(f64, f64)> {
            series.points.iter().map(|point| (x.place(point.0), y.place(point.1))).collect()
        };
        for (_, goal) in &self.goals {
            let ends = [x.ends.0, x.ends.1].map(|end| (end, y.place(*goal)));
            chart.draw_series(DashedLineSeries::new(ends, 2, 4, goal_style()))?;
        }
        for (number, series) in self.references.iter().enumerate() {
            let line = shown(series).into_iter();
            let style = Look::of_reference(number).colour.stroke_width(2);
            chart.draw_series(DashedLineSeries::new(line, 7, 5, style))?;
        }
        for (number, series) in self.series.iter().enumerate() {
            let style = Look::of_series(number).colour.stroke_width(2);
            chart.draw_series(LineSeries::new(shown(series), style))?;
        }
        // Marks come last, so that no line crosses them.
        for (look, series) in self.looks() {
            for point in shown(series) {
                look.draw(&plot, chart.backend_coord(&point))?;
            }
        }
        self.draw_legend(&legend)?;
        area.present()
    }

    /// The font size with which the title fits: a letter is a little less than half as wide as it
    /// is high.
    fn title_size(&self) -> f64 {
        let letters = self.title.chars().count().max(1) as f64;
        (f64::from(SIZE.0) * 0.95 / (letters * 0.45)).clamp(10.0, 22.0)
    }

    /// All lines with their looks: series first.
    fn looks(&self) -> impl Iterator<Item = (Look, &Series)> {
        let series = self.series.iter().enumerate();
        let references = self.references.iter().enumerate();
        series
            .map(|(number, series)| (Look::of_series(number), series))
            .chain(references.map(|(number, series)| (Look::of_reference(number), series)))
    }

    /// How many names stand side by side in the legend: two, if all are short.
    fn legend_columns(&self) -> u32 {
        let names = self.lines().map(|series| &series.name);
        let longest =
            names.chain(self.goals.iter().map(|(name, _)| name)).map(|n| n.chars().count());
        // A letter is about 7 pixels wide.
        if longest.max().unwrap_or(0) > 48 { 1 } else { 2 }
    }

    fn legend_lines(&self) -> u32 {
        let names = self.series.len() + self.references.len() + self.goals.len();
        (names as u32).div_ceil(self.legend_columns())
    }

    fn draw_legend<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        let column = (SIZE.0 - 90) / self.legend_columns();
        let at = |place: usize| {
            let lines = self.legend_lines() as usize;
            let (right, down) = (place / lines, place % lines);
            (86 + (right as u32 * column) as i32, 10 + (down as u32 * LEGEND_LINE) as i32)
        };
        let name = |name: &str, (x, y): (i32, i32)| {
            area.draw(&Text::new(name.to_owned(), (x + 44, y - 6), (FONT, 15).into_font()))
        };
        let mut place = 0;
        for (look, series) in self.looks() {
            let (x, y) = at(place);
            let is_reference = place >= self.series.len();
            let dashes: &[(i32, i32)] = match (is_reference, series.points.len()) {
                (false, _) => &[(0, 36)],
                (true, 1) => &[],
                (true, _) => &[(0, 7), (12, 24), (29, 36)],
            };
            for (from, to) in dashes {
                let ends = [(x + from, y), (x + to, y)];
                area.draw(&PathElement::new(ends, look.colour.stroke_width(2)))?;
            }
            look.draw(area, (x + 18, y))?;
            name(&series.name, (x, y))?;
            place += 1;
        }
        for (goal, _) in &self.goals {
            let (x, y) = at(place);
            for dot in (0..36).step_by(6) {
                let ends = [(x + dot, y), (x + dot + 2, y)];
                area.draw(&PathElement::new(ends, goal_style()))?;
            }
            name(goal, (x, y))?;
            place += 1;
        }
        Ok(())
    }
}

fn goal_style() -> ShapeStyle {
    GOAL.stroke_width(2)
}

#[cfg(test)]
mod tests;
