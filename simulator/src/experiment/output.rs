//! How an experiment shows its results: a table for people, JSON for programs, charts.

use super::ExperimentError;
use crate::chart::{Chart, Series};
use crate::table::{Column, Table};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How the results are shown.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Output {
    /// Print one JSON object a line instead of the table
    #[arg(long, conflicts_with = "tell")]
    pub json: bool,

    /// Write the charts into this folder, as SVG
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

/// What runs one by one, and is shown in rows.
pub trait Experiment {
    /// What a run, or a pair of them, came to.
    type Row;

    /// The columns of its table.
    fn columns(&self) -> Vec<Column<Self::Row>>;

    /// Runs it; each row is handed over as soon as it is known.
    ///
    /// # Errors
    /// If a job cannot be simulated, or does not end as it must, or if `each` fails.
    fn run(&self, each: &mut Each<'_, Self::Row>) -> Result<(), ExperimentError>;

    /// Its charts, with the names of their files, without the ending. Those without series are not
    /// written.
    fn charts(&self, rows: &[Self::Row]) -> Vec<(&'static str, Chart)>;
}

/// What takes rows.
pub type Each<'a, R> = dyn FnMut(R) -> Result<(), ExperimentError> + 'a;

/// Runs an experiment, and shows what comes of it.
///
/// # Errors
/// Those of the experiment, and if something cannot be written.
pub fn show<E: Experiment>(
    experiment: &E,
    output: &Output,
    out: &mut dyn Write,
) -> Result<Vec<E::Row>, ExperimentError> {
    if let Some(folder) = &output.svg {
        // At once, so that a long series does not run in vain.
        let failed = |cause| ExperimentError::Folder { path: folder.clone(), cause };
        std::fs::create_dir_all(folder).map_err(failed)?;
        for (name, _) in experiment.charts(&[]) {
            check_writable(&svg_file(folder, name))?;
        }
    }
    let table = Table::new(experiment.columns());
    let mut rows = Vec::new();
    experiment.run(&mut |row| {
        write_row(&table, &row, (rows.is_empty(), output.json), out)?;
        rows.push(row);
        Ok(())
    })?;
    if let Some(folder) = &output.svg {
        let charts = experiment.charts(&rows).into_iter();
        for (name, chart) in charts.filter(|(_, chart)| !chart.series.is_empty()) {
            chart.write(&svg_file(folder, name))?;
        }
    }
    Ok(rows)
}

/// Shows a row at once, the first one below the heads, unless it is to be JSON.
pub(super) fn write_row<R>(
    table: &Table<R>,
    row: &R,
    (is_first, is_json): (bool, bool),
    out: &mut dyn Write,
) -> io::Result<()> {
    if is_json {
        writeln!(out, "{}", table.json(row))?;
    } else {
        if is_first {
            writeln!(out, "{}", table.head(row))?;
        }
        writeln!(out, "{}", table.line(row))?;
    }
    out.flush()
}

fn svg_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.svg"))
}

/// Leaves a file as it is, and none behind that was not there.
fn check_writable(path: &Path) -> Result<(), ExperimentError> {
    let is_new = !path.exists();
    let opened = File::options().append(true).create(true).open(path).map(drop);
    let checked = opened.and_then(|()| if is_new { std::fs::remove_file(path) } else { Ok(()) });
    checked.map_err(|cause| ExperimentError::Unwritable { path: path.to_owned(), cause })
}

/// The rows as series of a chart: one for each name, in the order in which they come.
pub(super) fn series<'a, R: 'a>(
    rows: impl IntoIterator<Item = &'a R>,
    name: impl Fn(&R) -> String,
    point: impl Fn(&R) -> Option<(f64, f64)>,
) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows {
        let name = name(row);
        let place = all.iter().position(|series| series.name == name).unwrap_or_else(|| {
            all.push(Series::new(&name, Vec::new()));
            all.len() - 1
        });
        all[place].points.extend(point(row));
    }
    all.retain(|series| !series.points.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_name_are_one_series() {
        let rows = [("a", 1.0), ("b", 2.0), ("a", 3.0), ("c", f64::NAN)];
        let point = |row: &(&str, f64)| (!row.1.is_nan()).then_some((row.1, 10.0 * row.1));
        let expected =
            [Series::new("a", vec![(1.0, 10.0), (3.0, 30.0)]), Series::new("b", vec![(2.0, 20.0)])];
        assert_eq!(series(&rows, |row| row.0.to_owned(), point), expected);
    }
}
