//! The table at the end: what became of the mutants of each area.

use super::catalogue::{AREAS, Catalogue};
use super::exam::Fate;
use crate::table::aligned;

/// A row of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    name: &'static str,
    /// Mutants that could be drawn.
    places: usize,
    /// Those that were, and of them those that are named as equal and were not tried.
    drawn: usize,
    equal: usize,
    pub(crate) caught: usize,
    unreached: usize,
}

impl Row {
    /// The number of mutants that the tests had a chance with.
    pub(crate) fn tried(&self) -> usize {
        self.drawn - self.equal
    }
}

/// A row for each area, of the places in `all`.
pub(crate) fn of(
    catalogue: &Catalogue,
    all: &[u32],
    drawn: &[u32],
    fates: &[(u32, Fate)],
) -> Vec<Row> {
    let row = |(area, one): (usize, &super::catalogue::Area)| {
        let is_in = |number: &&u32| catalogue.get(**number).is_some_and(|(f, _)| f.area == area);
        let fates: Vec<_> =
            fates.iter().filter(|(number, _)| is_in(&number)).map(|(_, fate)| fate).collect();
        let drawn = drawn.iter().filter(is_in).count();
        Row {
            name: one.name,
            places: all.iter().filter(is_in).count(),
            drawn,
            equal: drawn - fates.len(),
            caught: fates.iter().filter(|fate| matches!(fate, Fate::Caught(_))).count(),
            unreached: fates.iter().filter(|fate| ***fate == Fate::Survived(0)).count(),
        }
    };
    AREAS.iter().enumerate().map(row).collect()
}

/// The sums.
pub(crate) fn total(rows: &[Row]) -> Row {
    let sum = |of: fn(&Row) -> usize| rows.iter().map(of).sum();
    Row {
        name: "all",
        places: sum(|row| row.places),
        drawn: sum(|row| row.drawn),
        equal: sum(|row| row.equal),
        caught: sum(|row| row.caught),
        unreached: sum(|row| row.unreached),
    }
}

/// The rows in words, with their sums.
pub(crate) fn table(rows: &[Row]) -> String {
    let headings = "area|mutants|drawn|equal|caught|survived|of them not reached|caught";
    let line = |row: &Row| {
        let Row { name, places, drawn, equal, caught, unreached } = *row;
        let percent = (100 * caught).checked_div(row.tried());
        let percent = percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"));
        let survived = row.tried() - caught;
        let numbers = [places, drawn, equal, caught, survived, unreached].map(|n| n.to_string());
        [name.to_owned()].into_iter().chain(numbers).chain([percent]).collect()
    };
    aligned(headings, rows.iter().chain([&total(rows)]).map(line).collect(), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ones_do_not_count() {
        let row = Row { name: "journal", places: 9, drawn: 5, equal: 1, caught: 3, unreached: 1 };
        assert_eq!(row.tried(), 4);
        let text = table(&[row]);
        let last: Vec<_> = text.lines().last().expect("the sum").split_whitespace().collect();
        assert_eq!(last, ["all", "9", "5", "1", "3", "1", "1", "75", "%"]);
    }
}
