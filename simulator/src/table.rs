//! Results as a table for people and as JSON for programs, from one description of each row.
//!
//! ```
//! use ultramarine_simulator::table::Row;
//! let run = |cores: u64, time_s: f64| {
//!     Row::default().count("cores", "cores", cores).real("time s", "time_s", time_s, 2)
//! };
//! let runs = [run(32, 10.0), run(131_072, 9.875)];
//! assert_eq!(runs[0].head(), "   cores    time s");
//! assert_eq!(runs[0].line(), "      32     10.00");
//! assert_eq!(runs[1].line(), "  131072      9.88");
//! assert_eq!(runs[1].json(), r#"{"cores":131072,"time_s":9.875}"#);
//! assert_eq!(runs[1].number("time_s"), Some(9.875));
//! ```
//!
//! The columns have fixed widths, so that a row can be shown before the next one is known. A value
//! that is too wide shifts the rest of its line.
//!
//! This module must never know what the rows are of.

use serde_json::Value;
use std::io::{self, Write};

/// The values of a row, in the order of their columns.
///
/// A column has a head, which ends in its unit, and a key in JSON, where the unit is a part of the
/// key. Without a head it is for programs alone, and without a key for people alone.
#[derive(Clone, Debug, Default)]
pub struct Row(Vec<Column>);

#[derive(Clone, Debug)]
struct Column {
    head: &'static str,
    key: &'static str,
    cell: Cell,
    /// In characters, unless the head is wider.
    width: usize,
}

#[derive(Clone, Debug)]
enum Cell {
    /// A word or a few; aligned to the left.
    Text(String),
    Count(u64),
    /// A number, and how many digits are written after the point; whole in JSON.
    Real(f64, usize),
    /// Not known: `-`, and `null` in JSON.
    Missing,
}

/// The width of a column, in characters, unless it says otherwise or its head is wider.
const WIDTH: usize = 8;

impl Row {
    /// The row with a word more, or a few.
    #[must_use]
    pub fn text(self, head: &'static str, key: &'static str, text: impl Into<String>) -> Self {
        self.with(head, key, Cell::Text(text.into()))
    }

    /// The row with one whole number more.
    #[must_use]
    pub fn count(self, head: &'static str, key: &'static str, count: impl Into<u64>) -> Self {
        self.with(head, key, Cell::Count(count.into()))
    }

    /// The row with one number more, if it is known, of which people see this many digits after
    /// the point.
    #[must_use]
    pub fn real(
        self,
        head: &'static str,
        key: &'static str,
        value: impl Into<Option<f64>>,
        digits: usize,
    ) -> Self {
        let cell = value.into().map_or(Cell::Missing, |value| Cell::Real(value, digits));
        self.with(head, key, cell)
    }

    fn with(mut self, head: &'static str, key: &'static str, cell: Cell) -> Self {
        self.0.push(Column { head, key, cell, width: WIDTH });
        self
    }

    /// The row with this width of its last column, in characters.
    #[must_use]
    pub fn wide(mut self, width: usize) -> Self {
        self.0.last_mut().into_iter().for_each(|last| last.width = width);
        self
    }

    /// The row, and another one to its right.
    #[must_use]
    pub fn and(mut self, other: Row) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The number in the column of this head or key; `None` if it is not known.
    pub fn number(&self, column: &str) -> Option<f64> {
        match self.cell(column)? {
            Cell::Count(count) => Some(*count as f64),
            Cell::Real(value, _) => Some(*value),
            Cell::Text(_) | Cell::Missing => None,
        }
    }

    /// The words in the column of this head or key; empty if it has none.
    pub fn words(&self, column: &str) -> &str {
        match self.cell(column) {
            Some(Cell::Text(text)) => text,
            _ => "",
        }
    }

    fn cell(&self, name: &str) -> Option<&Cell> {
        let found = self.0.iter().find(|column| [column.head, column.key].contains(&name));
        found.map(|column| &column.cell)
    }

    /// The heads of the columns, aligned as the values. The line ends without spaces, and without
    /// its end, as all do.
    pub fn head(&self) -> String {
        self.aligned(|column| column.head.to_owned())
    }

    /// The values as one line below the heads.
    pub fn line(&self) -> String {
        self.aligned(|column| match &column.cell {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Real(value, digits) => format!("{value:.digits$}"),
            Cell::Missing => "-".to_owned(),
        })
    }

    /// A text for each column, on the left where there are words.
    fn aligned(&self, text: impl Fn(&Column) -> String) -> String {
        let aligned = |column: &Column| {
            let (text, width) = (text(column), column.width.max(column.head.chars().count()));
            match column.cell {
                Cell::Text(_) => format!("{text:<width$}"),
                _ => format!("{text:>width$}"),
            }
        };
        let shown = self.0.iter().filter(|column| !column.head.is_empty());
        shown.map(aligned).collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }

    /// The values as one line of JSON, without its end: an object, with the keys in the order of
    /// the columns. Numbers that JSON does not have are `null`.
    pub fn json(&self) -> String {
        let member = |column: &Column| {
            let value = match &column.cell {
                Cell::Text(text) => Value::from(text.as_str()),
                Cell::Count(count) => Value::from(*count),
                Cell::Real(value, _) => Value::from(*value),
                Cell::Missing => Value::Null,
            };
            format!("{}:{value}", Value::from(column.key))
        };
        let shown = self.0.iter().filter(|column| !column.key.is_empty());
        format!("{{{}}}", shown.map(member).collect::<Vec<_>>().join(","))
    }

    /// Shows the row at once, as JSON or as a line of a table, the first one below the heads.
    pub(crate) fn write(
        &self,
        (is_first, is_json): (bool, bool),
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match (is_json, is_first) {
            (true, _) => writeln!(out, "{}", self.json())?,
            (false, true) => writeln!(out, "{}\n{}", self.head(), self.line())?,
            (false, false) => writeln!(out, "{}", self.line())?,
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(network: &str, percent: Option<f64>) -> Row {
        let row = Row::default().text("network", "network", network);
        row.real("efficiency %", "efficiency_percent", percent, 1)
    }

    #[test]
    fn columns_are_aligned_and_have_units() {
        let first = row("größer", Some(98.76));
        assert_eq!(first.head(), "network   efficiency %");
        assert_eq!(first.line(), "größer            98.8");
        assert_eq!(row("hdr", None).line(), "hdr                  -");
        assert_eq!(row("a longer name", Some(5.0)).line(), "a longer name           5.0");
    }

    #[test]
    fn people_and_programs_may_see_different_columns() {
        let bytes = 5_u64 << 20;
        let row = Row::default().count("memory MB", "", bytes >> 20).count("", "rss_bytes", bytes);
        assert_eq!((&*row.head(), &*row.line()), ("memory MB", "        5"));
        assert_eq!(row.json(), r#"{"rss_bytes":5242880}"#);
    }

    #[test]
    fn rows_are_objects_that_json_reads() {
        let line = row("a \"b\"", Some(0.5)).json();
        assert_eq!(line, r#"{"network":"a \"b\"","efficiency_percent":0.5}"#);
        assert!(serde_json::from_str::<Value>(&line).is_ok());
        let unknown = r#"{"network":"","efficiency_percent":null}"#;
        assert_eq!(row("", None).json(), unknown);
        assert_eq!(row("", Some(f64::NAN)).json(), unknown);
    }

    #[test]
    fn values_are_found_by_head_and_by_key() {
        let row = row("hdr", Some(0.5));
        assert_eq!(["efficiency %", "efficiency_percent"].map(|it| row.number(it)), [Some(0.5); 2]);
        assert_eq!(
            (row.words("network"), row.number("network"), row.words("x")),
            ("hdr", None, "")
        );
    }
}
