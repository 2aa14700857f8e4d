//! Results as a table for people and as JSON for programs, from one description of the columns.
//!
//! ```
//! use ultramarine_simulator::table::{Cell, Column, Table};
//! struct Run { cores: u64, time_s: f64 }
//! let table = Table::new(vec![
//!     Column::new("cores", "", "cores", |run: &Run| Cell::Count(run.cores)),
//!     Column::new("time", "s", "time_s", |run: &Run| Cell::Real(run.time_s, 2)),
//! ]);
//! let runs = [Run { cores: 32, time_s: 10.0 }, Run { cores: 131_072, time_s: 9.875 }];
//! assert_eq!(table.head(&runs[0]), "   cores    time s");
//! assert_eq!(table.line(&runs[0]), "      32     10.00");
//! assert_eq!(table.line(&runs[1]), "  131072      9.88");
//! assert_eq!(table.json(&runs[1]), r#"{"cores":131072,"time_s":9.875}"#);
//! ```
//!
//! The columns have fixed widths, so that a row can be shown before the next one is known. A value
//! that is too wide shifts the rest of its line.
//!
//! This module must never know what the rows are of.

use serde_json::Value;

/// A value in a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// A word or a few; aligned to the left.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number, and how many digits are written after the point; whole in JSON.
    Real(f64, usize),
    /// Not known: `-`, and `null` in JSON.
    Missing,
}

impl Cell {
    /// A number if it is known.
    pub fn real(value: Option<f64>, digits: usize) -> Cell {
        value.map_or(Cell::Missing, |value| Cell::Real(value, digits))
    }

    fn text(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Real(value, digits) => format!("{value:.digits$}"),
            Cell::Missing => "-".to_owned(),
        }
    }

    /// Numbers that JSON does not have are `null`.
    fn json(&self) -> Value {
        match self {
            Cell::Text(text) => text.as_str().into(),
            Cell::Count(count) => (*count).into(),
            Cell::Real(value, _) => (*value).into(),
            Cell::Missing => Value::Null,
        }
    }
}

/// A column of a table of rows `R`.
pub struct Column<R> {
    head: String,
    key: &'static str,
    cell: Box<dyn Fn(&R) -> Cell>,
    /// In characters, at least those of the head.
    width: usize,
    is_in_text: bool,
    is_in_json: bool,
}

/// The width of a column, in characters, unless it says otherwise or its head is wider.
const WIDTH: usize = 8;

impl<R> Column<R> {
    /// A column with this head and unit (which may be empty), with this key in JSON, where a unit
    /// is part of the key.
    pub fn new(
        name: &str,
        unit: &str,
        key: &'static str,
        cell: impl Fn(&R) -> Cell + 'static,
    ) -> Self {
        let head = format!("{name} {unit}").trim_end().to_owned();
        let column = Column {
            head,
            key,
            cell: Box::new(cell),
            width: 0,
            is_in_text: true,
            is_in_json: true,
        };
        column.wide(WIDTH)
    }

    /// The same column with this width in characters, or that of its head if that is wider.
    #[must_use]
    pub fn wide(self, width: usize) -> Self {
        Column { width: width.max(self.head.chars().count()), ..self }
    }

    /// The same column, for people alone: programs have another with the value in its basic unit.
    #[must_use]
    pub fn only_in_text(self) -> Self {
        Column { is_in_json: false, ..self }
    }

    /// The same column, for programs alone.
    #[must_use]
    pub fn only_in_json(self) -> Self {
        Column { is_in_text: false, ..self }
    }
}

/// The columns of a table.
pub struct Table<R> {
    columns: Vec<Column<R>>,
}

impl<R> Table<R> {
    /// A table with these columns.
    pub fn new(columns: Vec<Column<R>>) -> Self {
        Table { columns }
    }

    /// The heads of the columns, aligned as the cells of the first row. The line ends without
    /// spaces, and without its end, as all do.
    pub fn head(&self, first: &R) -> String {
        self.aligned(first, |column, _| column.head.clone())
    }

    /// A row as one line below the heads.
    pub fn line(&self, row: &R) -> String {
        self.aligned(row, |_, cell| cell.text())
    }

    /// A text for each column, on the left where the row has words.
    fn aligned(&self, row: &R, text: impl Fn(&Column<R>, &Cell) -> String) -> String {
        let aligned = |column: &Column<R>| {
            let cell = (column.cell)(row);
            let (text, width) = (text(column, &cell), column.width);
            match cell {
                Cell::Text(_) => format!("{text:<width$}"),
                _ => format!("{text:>width$}"),
            }
        };
        let shown = self.columns.iter().filter(|column| column.is_in_text);
        let texts: Vec<String> = shown.map(aligned).collect();
        texts.join("  ").trim_end().to_owned()
    }

    /// A row as one line of JSON, without its end: an object, with the keys in the order of the
    /// columns.
    pub fn json(&self, row: &R) -> String {
        let member = |column: &Column<R>| {
            format!("{}:{}", Value::from(column.key), (column.cell)(row).json())
        };
        let shown = self.columns.iter().filter(|column| column.is_in_json);
        let members: Vec<String> = shown.map(member).collect();
        format!("{{{}}}", members.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<(&'static str, Option<f64>)> {
        Table::new(vec![
            Column::new("network", "", "network", |row: &(&str, _)| Cell::Text(row.0.to_owned())),
            Column::new("efficiency", "%", "efficiency_percent", |row: &(&str, Option<f64>)| {
                Cell::real(row.1, 1)
            }),
        ])
    }

    #[test]
    fn columns_are_aligned_and_have_units() {
        let lines = [
            table().head(&("größer", Some(98.76))),
            table().line(&("größer", Some(98.76))),
            table().line(&("hdr", None)),
            table().line(&("a longer name", Some(5.0))),
        ];
        let expected = [
            "network   efficiency %",
            "größer            98.8",
            "hdr                  -",
            "a longer name           5.0",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn people_and_programs_may_see_different_columns() {
        let table = Table::new(vec![
            Column::new("memory", "MB", "", |bytes: &u64| Cell::Count(bytes >> 20)).only_in_text(),
            Column::new("", "", "rss_bytes", |bytes: &u64| Cell::Count(*bytes)).only_in_json(),
        ]);
        assert_eq!(table.head(&(5 << 20)), "memory MB");
        assert_eq!(table.line(&(5 << 20)), "        5");
        assert_eq!(table.json(&(5 << 20)), r#"{"rss_bytes":5242880}"#);
    }

    #[test]
    fn rows_are_objects_that_json_reads() {
        let line = table().json(&("a \"b\"", Some(0.5)));
        assert_eq!(line, r#"{"network":"a \"b\"","efficiency_percent":0.5}"#);
        assert!(serde_json::from_str::<Value>(&line).is_ok());
        let unknown = r#"{"network":"","efficiency_percent":null}"#;
        assert_eq!(table().json(&("", None)), unknown);
        assert_eq!(table().json(&("", Some(f64::NAN))), unknown);
    }
}
