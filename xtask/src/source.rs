//! Reading the source tree: its Rust files, with their code, their comments and their literals
//! apart, its manifests and its Markdown texts.
//!
//! This is no parser. It knows just enough of Rust's lexis that a word in a comment or a string is
//! not taken for code.

use std::fs;
use std::io;
use std::path::Path;

/// A text file of the repository.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Relative to the root, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Whether this is Rust code.
    pub(crate) fn is_rust(&self) -> bool {
        has_extension(&self.path, "rs")
    }

    /// Whether this is a text in Markdown. A file that is neither is a manifest.
    pub(crate) fn is_markdown(&self) -> bool {
        has_extension(&self.path, "md")
    }
}

fn has_extension(path: &str, wanted: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == wanted)
}

/// Every `*.rs`, `*.md` and `Cargo.toml` below `root`, sorted by path; hidden folders and `target`
/// are left out.
///
/// # Errors
/// A folder or file cannot be read, or is not UTF-8.
pub(crate) fn read_tree(root: &Path) -> io::Result<Vec<Source>> {
    let is_read = |path: &String| {
        let is_hidden = path.split('/').any(|part| part.starts_with('.'));
        let is_manifest = Path::new(path).file_name().is_some_and(|name| name == "Cargo.toml");
        !is_hidden && (has_extension(path, "rs") || has_extension(path, "md") || is_manifest)
    };
    let read = |path: String| {
        let text = fs::read_to_string(root.join(&path))?;
        Ok(Source { path, text })
    };
    paths(root)?.into_iter().filter(is_read).map(read).collect()
}

/// The path of every file below `root`, sorted, without those in `.git` and `target`.
///
/// # Errors
/// A folder cannot be read.
pub(crate) fn paths(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    collect(root, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && ![".git", "target"].contains(&name.as_str()) {
            collect(&entry.path(), &format!("{path}/"), found)?;
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// The text with comments, strings and character literals blanked; line breaks stay where they are.
pub(crate) fn code_of(text: &str) -> String {
    code_and_comments(text).0
}

/// The text with all but the comments blanked; line breaks stay where they are.
pub(crate) fn comments_of(text: &str) -> String {
    code_and_comments(text).1
}

fn code_and_comments(text: &str) -> (String, String) {
    let mut code = String::with_capacity(text.len());
    let mut comments = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after_word = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = not_code(rest, after_word);
        let (piece, after) = rest.split_at(if length == 0 { first.len_utf8() } else { length });
        let is_comment = piece.starts_with("//") || piece.starts_with("/*");
        code.push_str(&if length == 0 { piece.to_owned() } else { blank(piece) });
        comments.push_str(&if is_comment { piece.to_owned() } else { blank(piece) });
        rest = after;
    }
    (code, comments)
}

fn blank(piece: &str) -> String {
    piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

/// How many bytes at the start of `rest` are a comment or a literal; 0 if it starts with code.
fn not_code(rest: &str, after_word: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('"') {
        return escaped(rest, '"');
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    if after_word { 0 } else { raw_string(rest) }
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_u32;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// A literal between two `quote`s, with backslash escapes.
fn escaped(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if c == '\\' {
            characters.next();
        } else if c == quote {
            return at + quote.len_utf8();
        }
    }
    rest.len()
}

/// A character literal, but not a lifetime: `'a'` and `'\n'`, not `'a`.
fn character(rest: &str) -> usize {
    let mut characters = rest.chars().skip(1);
    let (inside, after) = (characters.next(), characters.next());
    if inside == Some('\\') || after == Some('\'') { escaped(rest, '\'') } else { 0 }
}

/// `r"…"`, `r#"…"#`, `br#"…"#`, …
fn raw_string(rest: &str) -> usize {
    let marker = rest.strip_prefix("br").or_else(|| rest.strip_prefix("cr"));
    let Some(marker) = marker.or_else(|| rest.strip_prefix('r')) else { return 0 };
    let opened = marker.trim_start_matches('#');
    if !opened.starts_with('"') {
        return 0;
    }
    let hashes = marker.len() - opened.len();
    let start = rest.len() - opened.len() + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, words: &str) {
        assert_eq!(code_of(text).split_whitespace().collect::<Vec<_>>().join(" "), words);
    }

    #[test]
    fn comments_go() {
        check("a // b\nc", "a c");
        check("a /* b /* c */ d */ e", "a e");
        check("a /* never closed", "a");
        check("/// `x::y`\nfn f() {}", "fn f() {}");
    }

    #[test]
    fn comments_stand_alone() {
        let comments = comments_of("a // b\n\"// c\" /* d\n*/ '/' / /// e");
        let lines: Vec<_> = comments.lines().map(str::trim).collect();
        assert_eq!(lines, ["// b", "/* d", "*/       /// e"]);
    }

    #[test]
    fn literals_go() {
        check(r#"a "b \" // c" d"#, "a d");
        check("a r\"b \\\" c r#\"d \" e\"# f br##\"\"# \"## g", "a c f g");
        check(r"a '\'' b '/' c '\u{1F}' d", "a b c d");
        check("bar\"x\" b\"y\"", "bar b");
    }

    #[test]
    fn lifetimes_raw_names_and_non_ascii_stay() {
        check("fn f<'a>(x: &'a str) -> &'static str", "fn f<'a>(x: &'a str) -> &'static str");
        check("r#type + rest", "r#type + rest");
        check("größe /* ü */ 'ü' end", "größe end");
    }

    #[test]
    fn lines_keep_their_numbers() {
        let text = "a\n\"b\nc\"\n/*\n*/ d";
        assert_eq!(code_of(text).lines().count(), text.lines().count());
        assert_eq!(code_of(text).lines().nth(4).unwrap().trim(), "d");
    }
}
