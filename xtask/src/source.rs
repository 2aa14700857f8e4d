//! Reading the source tree: its Rust files, with their code and their comments apart, its manifests
//! and its Markdown texts.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

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

/// The text with comments, strings and character literals blanked, and the text with all but the
/// comments blanked; line breaks stay where they are. A text that is not Rust is code.
pub(crate) fn code_and_comments(text: &str) -> (String, String) {
    let Ok(tokens) = text.parse() else { return (text.to_owned(), blank(text)) };
    let (mut code, mut comments, mut end) = (String::new(), String::new(), 0);
    for (place, is_code) in places(text, tokens) {
        // Between two tokens are space and comments.
        let (between, token) = (&text[end..place.start], &text[place.clone()]);
        code += &blank(between);
        code += &if is_code { token.to_owned() } else { blank(token) };
        comments += between;
        comments += &blank(token);
        end = place.end;
    }
    (code + &blank(&text[end..]), comments + &text[end..])
}

fn blank(piece: &str) -> String {
    piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

/// The places of all tokens, each with whether it is code: texts are not. Documentation is a token
/// to the compiler, and a comment here.
fn places(text: &str, tokens: TokenStream) -> Vec<(Range<usize>, bool)> {
    let mut found = Vec::new();
    for token in tokens {
        let place = token.span().byte_range();
        let piece = &text[place.clone()];
        match token {
            _ if piece.starts_with("//") || piece.starts_with("/*") => {}
            TokenTree::Group(group) => {
                found.push((group.span_open().byte_range(), true));
                found.extend(places(text, group.stream()));
                found.push((group.span_close().byte_range(), true));
            }
            TokenTree::Literal(_) => {
                found.push((place, piece.starts_with(|c: char| c.is_ascii_digit())));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => found.push((place, true)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, words: &str) {
        let code = code_and_comments(text).0;
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), words);
    }

    #[test]
    fn comments_go() {
        check("a // b\nc", "a c");
        check("a /* b /* c */ d */ e", "a e");
        check("/// `x::y`\nfn f() {}", "fn f() {}");
        check("mod a { //! x::y\n b!(/** c */) }", "mod a { b!( ) }");
        check("no \"Rust", "no \"Rust");
    }

    #[test]
    fn comments_stand_alone() {
        let (_, comments) = code_and_comments("a // b\n\"// c\" /* d\n*/ '/' / /// e");
        let lines: Vec<_> = comments.lines().map(str::trim).collect();
        assert_eq!(lines, ["// b", "/* d", "*/       /// e"]);
    }

    #[test]
    fn texts_go_and_numbers_lifetimes_and_raw_names_stay() {
        check(r"a '\'' b '/' c r#type", "a b c r#type");
        check("a \"b\" r#\"c \" d\"# 1u8 (b\"e\")", "a 1u8 ( )");
        check("fn f<'a>(x: &'a str) -> &'static str", "fn f<'a>(x: &'a str) -> &'static str");
        check("größe /* ü */ 'ü' end", "größe end");
    }

    #[test]
    fn lines_keep_their_numbers() {
        let text = "a\n\"b\nc\"\n/*\n*/ d";
        let code = code_and_comments(text).0;
        assert_eq!(code.lines().count(), text.lines().count());
        assert_eq!(code.lines().nth(4).unwrap().trim(), "d");
    }
}
