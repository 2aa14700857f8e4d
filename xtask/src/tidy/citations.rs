//! A file or folder that a comment or a Markdown text names must exist. Names go stale when files
//! move.

/// What the name of a file ends with, where it is checked.
const ENDINGS: [&str; 6] = [".rs", ".md", ".toml", ".pml", ".py", ".sbatch"];

/// The names in prose that are the end of no path of the repository, each with the number of its
/// line. What is in a block of code belongs to its example.
pub(super) fn stale(prose: &str, paths: &[String]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_example = false;
    for (index, line) in prose.lines().enumerate() {
        if line.trim_start_matches(['/', '!', ' ']).starts_with("```") {
            is_example = !is_example;
        }
        if !is_example {
            let unknown = cited(line).filter(|name| !exists(name, paths));
            found.extend(unknown.map(|name| (index + 1, name.to_owned())));
        }
    }
    found
}

/// The names of files in a line of prose, and of folders, which end with a slash. A pattern
/// (`*.rs`) names no file, a path from the root of the machine none of ours, and an address
/// neither.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./*<>{}$~".contains(c);
    let words = line.split(move |c| !is_part(c)).map(|word| word.trim_end_matches(['.', '-']));
    let is_file = |word: &str| ENDINGS.iter().any(|ending| word.ends_with(ending));
    let named = words.filter(move |word| is_file(word) || word.ends_with('/'));
    named.filter(|word| {
        let is_pattern = word.contains(['*', '<', '>', '{', '}', '$', '~']);
        !is_pattern && !word.starts_with(['/', '.']) || word.starts_with("../")
    })
}

/// Whether a path ends so. Of folders, only those are checked that are named from one at the top:
/// others may be the user's.
fn exists(name: &str, paths: &[String]) -> bool {
    let name = name.trim_start_matches("../");
    if name.ends_with('/') {
        let is_at = |folder: &str| paths.iter().any(|path| path.starts_with(folder));
        let top = name.find('/').map_or(name, |slash| &name[..=slash]);
        return !is_at(top) || is_at(name);
    }
    paths.iter().any(|path| {
        path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Vec<String> {
        ["docs/GUIDE.md", "runtime/src/pool/queues.rs", "runtime/src/lib.rs"]
            .map(String::from)
            .into()
    }

    #[track_caller]
    fn check(found: &[(usize, String)], expected: &[(usize, &str)]) {
        let found: Vec<_> = found.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_end_of_a_path_is_enough() {
        let text = "// See `queues.rs`, pool/queues.rs and [the guide](../docs/GUIDE.md).\n";
        check(&stale(text, &paths()), &[]);
        check(&stale("// `ues.rs`", &paths()), &[(1, "ues.rs")]);
        check(&stale("\n/* in\nsrc/pool.rs. */", &paths()), &[(3, "src/pool.rs")]);
        check(&stale("See `docs/HELP.md`.", &paths()), &[(1, "docs/HELP.md")]);
    }

    #[test]
    fn a_folder_is_named_from_the_top() {
        let text = "See runtime/src/, `runtime/src/pool/`, or the user's src/ and target/debug/.";
        check(&stale(text, &paths()), &[]);
        check(&stale("`runtime/pool/`", &paths()), &[(1, "runtime/pool/")]);
    }

    #[test]
    fn strings_patterns_examples_and_addresses_are_no_citations() {
        check(&stale("// of all *.rs", &paths()), &[]);
        let example = "```sh\nultramarine topo --write own.toml\n```\nGone: own.toml";
        check(&stale(example, &paths()), &[(4, "own.toml")]);
        let elsewhere = "https://example.org/a.rs, /etc/a.toml, $HOME/a.toml";
        check(&stale(elsewhere, &paths()), &[]);
    }
}
