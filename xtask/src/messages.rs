//! The messages in the guide's page on troubleshooting are those of the code: a reader who searches
//! the page for what a program said must find it.

use crate::source::Source;

/// The page.
pub(crate) const PAGE: &str = "docs/guide/troubleshooting.md";

/// Words that stand for what differs, beside `…` and numbers.
const PLACEHOLDERS: [&str; 9] = ["N", "M", "R", "T", "C", "PE", "HOST", "LIMIT", "LIBRARY"];

/// Pieces shorter than this say too little to be looked for.
const PIECE_CHARS_MIN: usize = 8;

/// Messages in the first column of the page's tables of which no file of `code` says some piece,
/// one line each. Messages of other programs stand after a word, as in `rustc's`.
pub(crate) fn check(page: &str, code: &[&Source]) -> Vec<String> {
    let code: Vec<String> = code.iter().map(|source| said_by(&source.text)).collect();
    let mut breaches = Vec::new();
    for (line, row) in page.lines().enumerate() {
        let Some(cell) = row.strip_prefix("| `").and_then(|rest| rest.split(" | ").next()) else {
            continue;
        };
        for piece in pieces(cell) {
            if !code.iter().any(|text| text.contains(&piece)) {
                let line = line + 1;
                breaches.push(format!("{PAGE}:{line}: no program says `{piece}`"));
            }
        }
    }
    breaches
}

/// A source file with its string literals in one line each, and without backticks.
fn said_by(text: &str) -> String {
    let mut lines = text.lines();
    let mut said = String::new();
    while let Some(line) = lines.next() {
        let mut line = line;
        while let Some(begun) = line.strip_suffix('\\') {
            said.push_str(begun);
            line = lines.next().unwrap_or_default().trim_start();
        }
        said.push_str(line);
        said.push('\n');
    }
    said.replace('`', "").replace("\\\"", "\"")
}

/// What of the messages in a cell must stand in the code word by word.
fn pieces(cell: &str) -> impl Iterator<Item = String> {
    let messages = cell.split("`, `").map(|message| message.replace('`', ""));
    let spans = messages.flat_map(|message| {
        let mut spans = vec![String::new()];
        for word in message.replace('…', " … ").split_whitespace() {
            let core = word.trim_matches(|c: char| ",:;()".contains(c));
            let differs = word == "…"
                || PLACEHOLDERS.contains(&core)
                || core.starts_with(|c: char| c.is_ascii_digit());
            match spans.last_mut() {
                Some(span) if !differs => {
                    span.push(' ');
                    span.push_str(word);
                }
                _ => spans.push(String::new()),
            }
        }
        spans
    });
    let bare = |span: String| span.trim_matches(|c: char| " ,:;()".contains(c)).to_owned();
    spans.map(bare).filter(|piece| piece.chars().count() >= PIECE_CHARS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_the_page_is_one_of_the_code() {
        let text = "#[error(\"{pe} does not exist: the job \\\n     has `{pes}` PEs\")]";
        let code = Source { path: "a.rs".to_owned(), text: text.to_owned() };
        let found = |row: &str| check(row, &[&code]);
        assert_eq!(found("| `PE 7 does not exist: the job has …` | Count. |"), [""; 0]);
        assert_eq!(found("| rustc's `does not compile` | Mend it. |"), [""; 0]);
        let expected = [format!("{PAGE}:2: no program says `does not live`")];
        assert_eq!(
            found("| message |\n| `does not exist`, `PE N does not live` | Oh. |"),
            expected
        );
    }
}
