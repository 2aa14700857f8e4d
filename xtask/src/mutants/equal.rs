//! The mutants that are named as equal: what they do cannot be told from the code as it is, or is
//! as right. The list holds by what stands in a line, not by its number.

use std::collections::BTreeSet;

use super::catalogue::Catalogue;
use crate::process::{Failure, Result};

/// The list.
const LIST: &str = include_str!("equal.txt");

/// Stands for every mutant in a function, whose line is that of its `fn`.
const WHOLE_FUNCTION: &str = "any";

/// One of them.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    path: &'a str,
    line: &'a str,
    change: &'a str,
}

/// The numbers of those that are named.
///
/// # Errors
/// The list is broken, or names what does not exist any more, or not in one line only.
pub(crate) fn numbers(catalogue: &Catalogue) -> Result<Vec<u32>> {
    numbers_in(LIST, catalogue)
}

fn numbers_in(list: &str, catalogue: &Catalogue) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in entries(list)? {
        let of_file = catalogue.accepted().filter(|(_, file, _)| file.path == entry.path);
        let is_it = of_file.filter(|(_, file, site)| match entry.change {
            WHOLE_FUNCTION => site.signature(&file.text) == entry.line,
            change => site.line(&file.text).1 == entry.line && site.change.to_string() == change,
        });
        let found: Vec<_> =
            is_it.map(|(number, file, site)| (number, site.line(&file.text).0)).collect();
        let lines: BTreeSet<usize> = found.iter().map(|(_, line)| *line).collect();
        let is_one = lines.len() == 1 || entry.change == WHOLE_FUNCTION && !lines.is_empty();
        if !is_one {
            let Entry { path, line, change } = entry;
            let count = lines.len();
            return Err(Failure(format!(
                "equal.txt names a mutant of {count} lines: {path}: `{line}`: {change}"
            )));
        }
        numbers.extend(found.into_iter().map(|(number, _)| number));
    }
    Ok(numbers)
}

/// The entries, which are paragraphs of four lines: file, line, mutant and reason. Lines that begin
/// with `#` say something to the reader.
fn entries(list: &str) -> Result<Vec<Entry<'_>>> {
    let lines = list.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let lines: Vec<_> = lines.collect();
    let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    paragraphs
        .map(|lines| match lines {
            [path, line, change, reason] if reason.starts_with("Why: ") => {
                Ok(Entry { path, line, change })
            }
            _ => Err(Failure(format!(
                "equal.txt: not a file, a line, a mutant and a `Why: `: {}",
                lines.join(" | ")
            ))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_file_a_line_a_mutant_and_a_reason() {
        let list = "# All of them.\n\na/b.rs\n  if a < b {\n`<` becomes `<=`\nWhy: a is not b.\n";
        let entry = Entry { path: "a/b.rs", line: "if a < b {", change: "`<` becomes `<=`" };
        assert_eq!(entries(list), Ok(vec![entry]));
        assert!(entries("a/b.rs\nif a < b {\n`<` becomes `<=`\n").is_err());
    }

    #[test]
    fn a_reason_may_be_that_of_a_whole_function() {
        let catalogue = Catalogue::read(crate::process::root()).expect("the tree is whole");
        let entry = "journal/src/positions.rs\n\
                     pub fn contains(&self, position: u64) -> bool {\n\
                     any\n\
                     Why: for this test.\n";
        let found = numbers_in(entry, &catalogue).expect("there is such a function");
        let lines = found.iter().filter_map(|number| {
            let (file, site) = catalogue.get(*number)?;
            Some(site.line(&file.text).1)
        });
        assert!(!found.is_empty() && lines.clone().all(|line| line.contains("position < *end")));
        assert!(numbers_in(&entry.replace("any", "some"), &catalogue).is_err());
    }

    #[test]
    fn the_list_names_what_there_is() {
        let catalogue = Catalogue::read(crate::process::root()).expect("the tree is whole");
        numbers(&catalogue).expect("the list is up to date");
    }
}
