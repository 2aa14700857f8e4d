//! One small mistake that could be made at one place of a file, and the code that has both: the
//! code as it is, and with the mistake, which is switched on while the program runs.

use std::fmt;
use std::ops::Range;

/// What is wrong in a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Another operator, or another number.
    Becomes(&'static str, &'static str),
    /// The condition of an `if` or a `while`.
    Negated,
    /// The guard of a match arm always holds, or never.
    Guard(bool),
    /// A call or an assignment is left out.
    Dropped,
    /// A `return`, `break` or `continue` is left out.
    ExitDropped,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Becomes(from, to) => write!(f, "`{from}` becomes `{to}`"),
            Change::Negated => f.write_str("condition negated"),
            Change::Guard(holds) => write!(f, "guard becomes {holds}"),
            Change::Dropped => f.write_str("statement dropped"),
            Change::ExitDropped => f.write_str("exit dropped"),
        }
    }
}

/// A place, and what would be wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// Its bytes in the file.
    pub(crate) range: Range<usize>,
    pub(crate) change: Change,
    /// What the mutant has there.
    pub(crate) mutated: String,
    /// The bytes of the function around it, from its `fn` on.
    pub(crate) function: Range<usize>,
}

impl Site {
    /// What stands before and after the code as it is, given the switch's name.
    fn wrapping(&self, switch: &str) -> (String, &'static str) {
        match self.change {
            Change::Becomes(..) => {
                (format!("(if {switch} {{ ({}) }} else {{ (", self.mutated), ") })")
            }
            Change::Negated => (format!("{switch} != ("), ")"),
            Change::Guard(true) => (format!("{switch} || ("), ")"),
            Change::Guard(false) => (format!("!{switch} && ("), ")"),
            Change::Dropped | Change::ExitDropped => (format!("if !{switch} {{ "), " }"),
        }
    }

    /// The lines around the place as a small diff.
    pub(crate) fn diff(&self, text: &str) -> String {
        let Range { start, end } = self.range;
        let first = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let last = text[end..].find('\n').map_or(text.len(), |at| end + at);
        let mutated = [&text[first..start], &self.mutated, &text[end..last]].concat();
        let signed = |sign: &str, lines: &str| -> String {
            let lines = lines.lines().filter(|line| !line.trim().is_empty());
            lines.flat_map(|line| ["  ", sign, " ", line, "\n"]).collect()
        };
        signed("-", &text[first..last]) + &signed("+", &mutated)
    }

    /// The line that the place begins in: its number from 1, and its text without the spaces
    /// around.
    pub(crate) fn line<'a>(&self, text: &'a str) -> (usize, &'a str) {
        line_at(text, self.range.start)
    }

    /// The first line of the signature of the function around it.
    pub(crate) fn signature<'a>(&self, text: &'a str) -> &'a str {
        line_at(text, self.function.start).1
    }
}

fn line_at(text: &str, at: usize) -> (usize, &str) {
    let number = text[..at].matches('\n').count() + 1;
    (number, text.lines().nth(number - 1).unwrap_or_default().trim())
}

/// A file with switches, and where each of its bytes comes from.
#[derive(Debug, Default)]
pub(crate) struct Switched {
    pub(crate) text: String,
    /// The bytes of the new text that each of the sites has become, the outer ones first.
    pub(crate) sites: Vec<(Range<usize>, usize)>,
    /// Where pieces begin that are as they were: in the new text, and in the old.
    copied: Vec<(usize, usize)>,
}

impl Switched {
    /// The old `text` with a switch at each of these sites, which are given with their indices, the
    /// outer ones before those inside. `switch` names that of an index.
    pub(crate) fn new(
        text: &str,
        sites: &[(usize, &Site)],
        switch: &dyn Fn(usize) -> String,
    ) -> Self {
        let mut switched = Switched::default();
        switched.emit(text, 0..text.len(), sites, switch);
        switched
    }

    fn emit(
        &mut self,
        text: &str,
        within: Range<usize>,
        mut sites: &[(usize, &Site)],
        switch: &dyn Fn(usize) -> String,
    ) {
        let mut at = within.start;
        while let Some(((index, site), after)) = sites.split_first() {
            self.copy(text, at..site.range.start);
            let inside = after.iter().take_while(|(_, one)| one.range.start < site.range.end);
            let (inside, after) = after.split_at(inside.count());
            let (start, place) = (self.text.len(), self.sites.len());
            let (before, behind) = site.wrapping(&switch(*index));
            self.sites.push((start..start, *index));
            self.text += &before;
            self.emit(text, site.range.clone(), inside, switch);
            self.text += behind;
            self.sites[place].0.end = self.text.len();
            at = site.range.end;
            sites = after;
        }
        self.copy(text, at..within.end);
    }

    fn copy(&mut self, text: &str, range: Range<usize>) {
        self.copied.push((self.text.len(), range.start));
        self.text += &text[range];
    }

    /// The byte in the old text that this one comes from, or the last one before it.
    pub(crate) fn origin(&self, at: usize) -> usize {
        let next = self.copied.partition_point(|(new, _)| *new <= at);
        self.copied[..next].last().map_or(0, |(new, old)| old + (at - new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn f() {\n    if a < b {\n        c();\n    }\n}\n";

    fn site(of: &str, change: Change, mutated: &str) -> Site {
        let start = TEXT.find(of).expect("it is there");
        let range = start..start + of.len();
        Site { range, change, mutated: mutated.to_owned(), function: 0..TEXT.len() }
    }

    #[test]
    fn a_diff_has_the_lines_that_change() {
        let other = site("a < b", Change::Becomes("<", "<="), "a <= b");
        assert_eq!(other.diff(TEXT), "  -     if a < b {\n  +     if a <= b {\n");
        let dropped = site("c();", Change::Dropped, "");
        assert_eq!(dropped.diff(TEXT), "  -         c();\n");
        assert_eq!(dropped.line(TEXT), (3, "c();"));
        assert_eq!(dropped.signature(TEXT), "fn f() {");
    }

    #[test]
    fn each_byte_knows_where_it_comes_from() {
        let negated = site("a < b", Change::Negated, "!(a < b)");
        let dropped = site("c();", Change::Dropped, "");
        let sites = [(0, &negated), (1, &dropped)];
        let switched = Switched::new(TEXT, &sites, &|index| format!("m{index}"));
        for word in ["fn f", "< b", "c()", "}\n}"] {
            let at = switched.text.find(word).expect("it is kept");
            assert_eq!(switched.origin(at), TEXT.find(word).expect("it is there"), "{word}");
        }
        let places: Vec<_> =
            switched.sites.iter().map(|(range, _)| &switched.text[range.clone()]).collect();
        assert_eq!(places, ["m0 != (a < b)", "if !m1 { c(); }"]);
    }
}
