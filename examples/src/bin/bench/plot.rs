//! Charts of recovery as SVG files: the time of a job by the moment at which processes died.

use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (760, 460);
const COLOURS: [RGBColor; 2] = [RGBColor(31, 90, 160), RGBColor(200, 70, 30)];

/// A chart. Moments are in percent of the failure-free time, heights in seconds.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// At most two.
    pub(crate) series: Vec<Series>,
}

/// The results of one way to spread the work.
pub(crate) struct Series {
    pub(crate) name: String,
    /// The moment and the time of each job.
    pub(crate) dots: Vec<(f64, f64)>,
    /// The moment, and the mean number of tasks that were run again.
    pub(crate) again: Vec<(f64, f64)>,
    /// The failure-free times of all PEs and of the survivors, with names.
    pub(crate) levels: Vec<(String, f64)>,
}

impl Chart {
    /// Writes the chart.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let dots = self.series.iter().flat_map(|series| &series.dots).map(|dot| dot.1);
        let levels = self.series.iter().flat_map(|series| &series.levels).map(|level| level.1);
        let top = dots.chain(levels).fold(0.0, f64::max) * 1.3;
        let again = self.series.iter().flat_map(|series| &series.again).map(|dot| dot.1);
        let again_top = again.fold(1.0, f64::max) * 1.3;

        let area = SVGBackend::new(path, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(50)
            .right_y_label_area_size(50)
            .build_cartesian_2d(0.0..100.0, 0.0..top)?
            .set_secondary_coord(0.0..100.0, 0.0..again_top);
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("death, in % of the failure-free time")
            .y_desc("time of the job, s")
            .draw()?;
        chart.configure_secondary_axes().y_desc("tasks given out again").draw()?;
        for (series, colour) in self.series.iter().zip(COLOURS) {
            let dots = series.dots.iter().map(|dot| Circle::new(*dot, 3, colour.filled()));
            let legend = move |(x, y)| Circle::new((x + 10, y), 3, colour.filled());
            chart.draw_series(dots)?.label(series.name.clone()).legend(legend);
            let again = LineSeries::new(series.again.iter().copied(), colour.mix(0.4));
            let legend = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.mix(0.4));
            let name = format!("{}: tasks given out again (right)", series.name);
            chart.draw_secondary_series(again)?.label(name).legend(legend);
            for ((name, level), width) in series.levels.iter().zip([2, 1]) {
                let style = colour.stroke_width(width);
                let line = LineSeries::new([(0.0, *level), (100.0, *level)], style);
                let legend = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style);
                chart.draw_series(line)?.label(name.clone()).legend(legend);
            }
        }
        let mut labels = chart.configure_series_labels();
        let labels = labels.background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3));
        labels.position(SeriesLabelPosition::LowerLeft).draw()?;
        area.present()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_shows_its_names_and_dots() {
        let series = Series {
            name: "lazy".to_owned(),
            dots: vec![(10.0, 1.5), (50.0, 1.25)],
            again: vec![(10.0, 30.0), (50.0, 4.0)],
            levels: vec![("10 PEs, no deaths".to_owned(), 1.0)],
        };
        let chart = Chart { title: "A death".to_owned(), series: vec![series] };
        let path = std::env::temp_dir().join(format!("bench-plot-{}.svg", std::process::id()));
        chart.write(&path).expect("the folder is there");
        let text = std::fs::read_to_string(&path).expect("it was written");
        std::fs::remove_file(&path).expect("it is ours");
        assert!(text.starts_with("<svg"), "{text}");
        for part in ["A death", "lazy", "10 PEs, no deaths", "tasks given out again"] {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
        // Two dots, and one more in the legend.
        assert_eq!(text.matches("<circle").count(), 3, "{text}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let chart = Chart { title: String::new(), series: vec![] };
        assert!(chart.write(Path::new("/nowhere/chart.svg")).is_err());
    }
}
