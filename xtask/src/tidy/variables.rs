//! Every environment variable of this project that a text names is in the table, or is a setting's:
//! help, messages and documents have the names in words.

use crate::source::Source;

/// What the names begin with; in halves because this file is checked as well.
const PREFIX: &str = concat!("ULTRA", "MARINE_");

/// Where the names are listed.
const TABLE: &str = "environment/src/variables.rs";
const SETTINGS: &str = "runtime/src/settings/mod.rs";

/// Variables of tests alone.
const OF_TESTS: &str = "SIMULATOR_";

/// Names of variables that do not exist, one line each. Tests misspell some on purpose.
pub(super) fn breaches(tree: &[Source]) -> Vec<String> {
    let text_of = |path| tree.iter().find(|file| file.path == path).map_or("", |file| &*file.text);
    // The rows of the table are `PES, Job, "…";`, and those of the settings `"max_hops" => …`.
    let row = |line: &str| Some(line.strip_suffix(';')?.trim().split_once(", ")?.0.to_owned());
    let setting = |line: &str| {
        Some(line.trim().strip_prefix('"')?.split_once("\" => ")?.0.to_ascii_uppercase())
    };
    let known: Vec<String> = text_of(TABLE).lines().filter_map(row).collect();
    let settings: Vec<String> = text_of(SETTINGS).lines().filter_map(setting).collect();
    let is_known = |name: &str| known.iter().chain(&settings).any(|known| known == name);

    let mut breaches = Vec::new();
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    for file in tree.iter().filter(|file| !is_test(&file.path)) {
        let text = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            for after in line.split(PREFIX).skip(1) {
                let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
                let name = &after[..after.find(|c| !is_part(c)).unwrap_or(after.len())];
                if !name.is_empty() && !name.starts_with(OF_TESTS) && !is_known(name) {
                    let at = format!("{}:{}", file.path, index + 1);
                    breaches.push(format!("{at}: {PREFIX}{name} is no variable: see {TABLE}"));
                }
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_the_table_or_a_setting() {
        let file = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let named = |name: &str| {
            breaches(&[
                file(TABLE, "    PES, Job, \"the number of PEs (`--pes`)\";\n"),
                file(SETTINGS, "    \"max_hops\" => fishing.max_hops,\n"),
                file("a.md", &format!("\nSet `{PREFIX}{name}`.")),
                file("a/tests/b.rs", &format!("{PREFIX}NONE")),
            ])
        };
        for name in ["PES=4", "MAX_HOPS", "", "SIMULATOR_SEED"] {
            assert_eq!(named(name), [""; 0]);
        }
        let start = format!("a.md:2: {PREFIX}MAX_HOP is no variable");
        let found = named("MAX_HOP=3");
        assert!(found.len() == 1 && found[0].starts_with(&start), "{found:?}");
    }
}
