//! How an experiment shows its results: a table for people, JSON for programs, charts.

use super::ExperimentError;
use crate::chart::{Axis, Chart, Series};
use crate::published::Published;
use crate::table::Row;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// How the results are shown.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Output {
    /// Print one JSON object a line instead of the table
    #[arg(long, conflicts_with = "tell")]
    json: bool,
    /// Write the charts into this folder, as SVG
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

/// What runs one by one, and is shown in rows.
pub(super) trait Experiment {
    /// Runs it; each row is handed over as soon as it is known.
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError>;

    /// Its charts, with the names of their files, without the ending. Those without series are not
    /// written.
    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)>;
}

/// What takes rows.
pub(super) type Each<'a> = dyn FnMut(Row) -> Result<(), ExperimentError> + 'a;

impl Output {
    /// Runs an experiment, and shows what comes of it.
    pub(super) fn show(
        &self,
        experiment: &dyn Experiment,
        out: &mut dyn Write,
    ) -> Result<(), ExperimentError> {
        if let Some(folder) = &self.svg {
            // At once, so that a long series does not run in vain.
            let failed = |cause| ExperimentError::Path("make the folder", folder.clone(), cause);
            std::fs::create_dir_all(folder).map_err(failed)?;
            for (name, _) in experiment.charts(&[]) {
                check_writable(&svg_file(folder, name))?;
            }
        }
        let mut rows = Vec::new();
        experiment.run(&mut |row| {
            row.write((rows.is_empty(), self.json), out)?;
            rows.push(row);
            Ok(())
        })?;
        if let Some(folder) = &self.svg {
            let charts = experiment.charts(&rows).into_iter();
            for (name, chart) in charts.filter(|(_, chart)| !chart.series.is_empty()) {
                chart.write(&svg_file(folder, name))?;
            }
        }
        Ok(())
    }
}

fn svg_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.svg"))
}

/// Leaves a file as it is, and none behind that was not there.
fn check_writable(path: &Path) -> Result<(), ExperimentError> {
    let is_new = !path.exists();
    let opened = File::options().append(true).create(true).open(path).map(drop);
    let checked = opened.and_then(|()| if is_new { std::fs::remove_file(path) } else { Ok(()) });
    checked.map_err(|cause| ExperimentError::Path("write", path.to_owned(), cause))
}

/// The rows as lines of a chart: one for each name, in the order in which they come. The columns of
/// a point are to the right, and upwards; rows without one of them have none.
pub(super) fn lines<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    name: impl Fn(&Row) -> String,
    (right, up): (&str, &str),
) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows {
        let name = name(row);
        let place = all.iter().position(|series| series.name == name).unwrap_or_else(|| {
            all.push(Series::new(&name, Vec::new()));
            all.len() - 1
        });
        all[place].points.extend(row.number(right).zip(row.number(up)));
    }
    all.retain(|series| !series.points.is_empty());
    all
}

/// Names lines by the words in this column.
pub(super) fn by(column: &str) -> impl Fn(&Row) -> String {
    move |row| row.words(column).to_owned()
}

/// Efficiency over cores, a line for each name in this column.
pub(super) fn efficiency_chart(title: &str, rows: &[Row], column: &str) -> Chart {
    let series = lines(rows, by(column), ("cores", "efficiency %"));
    Chart::new(title, (Axis::log2("cores"), Axis::percent("efficiency, %")), series)
}

/// A published speedup in such a chart, with a word on it.
pub(super) fn reference(it: &Published, word: &str) -> Series {
    let cores = f64::from(it.cores);
    Series::new(&format!("{}{word}", it.label()), vec![(cores, 100.0 * it.value / cores)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_name_are_one_line() {
        let row = |(name, x): (&str, Option<f64>)| {
            Row::default().text("name", "", name).real("x", "", x, 0).count("y", "", 5_u64)
        };
        let rows = [("a", Some(1.0)), ("b", Some(2.0)), ("a", Some(3.0)), ("c", None)].map(row);
        let expected =
            [Series::new("a", vec![(1.0, 5.0), (3.0, 5.0)]), Series::new("b", vec![(2.0, 5.0)])];
        assert_eq!(lines(&rows, by("name"), ("x", "y")), expected);
    }
}
