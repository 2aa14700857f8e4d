//! Lines are at most 100 columns wide. Rustfmt holds most code to that, but neither comments nor
//! strings nor what is inside a macro.

/// The widest line, in columns.
const COLUMNS_MAX: usize = 100;

/// The first line of Rust code in `text` that is too wide: its number, and what it is.
pub(super) fn too_wide(text: &str) -> Option<(usize, String)> {
    let index =
        text.lines().position(|line| line.chars().count() > COLUMNS_MAX && is_breakable(line))?;
    let is_comment = text.lines().nth(index)?.trim_start().starts_with("//");
    let what = if is_comment { "comment" } else { "code" };
    Some((index + 1, format!("{what} of more than {COLUMNS_MAX} columns")))
}

/// Whether the line could go on in the next one. The row of a table in a comment cannot, nor can a
/// single long word, such as the address of a page.
fn is_breakable(line: &str) -> bool {
    let line = line.trim();
    let text = line.trim_start_matches(['/', '!']);
    let is_comment = text.len() < line.len();
    let text = text.trim_start();
    !(is_comment && text.starts_with('|')) && text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(usize, &str)>) {
        let found = too_wide(text);
        assert_eq!(found.as_ref().map(|(line, what)| (*line, what.as_str())), expected);
    }

    /// `start` and words after it, up to this number of columns.
    fn words(start: &str, columns: usize) -> String {
        let filled = format!("{start}{}", " word".repeat(columns));
        filled.chars().take(columns).collect()
    }

    #[test]
    fn comments_and_code_are_narrow() {
        check(&words("    //", 100), None);
        check(&words("größer", 100), None);
        check(
            &format!("\n{}", words("    ///", 101)),
            Some((2, "comment of more than 100 columns")),
        );
        check(&words("let x = \"", 101), Some((1, "code of more than 100 columns")));
    }

    #[test]
    fn a_row_of_a_table_and_a_long_word_stay_whole() {
        check(&words("//! | row |", 200), None);
        check(&words("    | pattern |", 200), Some((1, "code of more than 100 columns")));
        check(&format!("/// <https://example.org/{}>", "x".repeat(100)), None);
        check(&format!("    \"{}\",", "x".repeat(100)), None);
    }
}
