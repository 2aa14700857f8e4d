//! `cargo xtask tidy`: the rules of the house that no compiler holds.
//!
//! They keep each foreign dependency replaceable by editing one file, `unsafe` in the few files
//! that are read with that in mind, files short and narrow, imports running one way (those of
//! crates, and of modules where floors are documented), the files that prose names where it says
//! they are, and the variables that it names in the table. The links of the Markdown files are
//! checked by [`links`](crate::links).

mod citations;
mod crates;
mod floors;
mod lines;
mod variables;

use crate::process::{self, Failure, Result};
use crate::source::{self, Source, code_and_comments};

/// Longest file, in lines. The aim is 400; past this a file surely holds a second concept.
const FILE_LINES_MAX: usize = 450;

/// Dependencies that only one file may name, so that editing it replaces them.
const ONE_FILE_CRATES: [&str; 2] = ["bincode", "hwloc2"];

/// Where `mpi::` may be named; a `*` at the end stands for anything.
/// Plain MPI programs to measure against are apart from the house.
const MPI_FILES: [&str; 5] = [
    "runtime/src/transport/mpi*",
    "launch/*",
    "guard/src/tests/*",
    "probe/src/main.rs",
    "examples/reference/*",
];

/// Where `unsafe` may be written.
const UNSAFE_FILES: [&str; 15] = [
    "launch/tests/common/mischief.rs",
    "runtime/src/allocator.rs",
    "runtime/src/array/held.rs",
    "runtime/src/array/incoming.rs",
    "runtime/src/array/within/numbers.rs",
    "runtime/src/code.rs",
    "runtime/src/executor/api/join.rs",
    "runtime/src/forked.rs",
    "runtime/src/large_blocks.rs",
    "runtime/src/os_memory.rs",
    "runtime/src/transport/mpi*",
    "guard/src/sys.rs",
    "taskset/src/mapped/arena/map.rs",
    "taskset/src/mapped/shared.rs",
    "taskset/tests/common/mod.rs",
];

/// Where no unit test would be run, since all programs would be compiled once more for it.
const WITHOUT_TESTS: &str = "examples/src/";
const BUT_WITH_TESTS: &str = "examples/src/bin/bench/";

/// Notes of unfinished work; spelt in halves because this file is checked as well.
const UNFINISHED_WORDS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const UNFINISHED_MACROS: [&str; 2] = ["todo", "unimplemented"];

/// Checks the repository; prints every breach.
///
/// # Errors
/// A rule is broken, or the tree cannot be read.
pub(crate) fn run() -> Result<()> {
    let tree = source::read_tree(process::root())
        .map_err(|error| Failure(format!("cannot read the source tree: {error}")))?;
    let paths = source::paths(process::root())
        .map_err(|error| Failure(format!("cannot list the source tree: {error}")))?;
    let mut breaches = check(&tree, &paths);
    breaches.extend(crates::breaches(&crates::metadata()?));
    breaches.extend(variables::breaches(&tree));
    breaches.extend(crate::links::check(process::root(), &tree));
    for breach in &breaches {
        println!("{breach}");
    }
    match breaches.len() {
        0 => Ok(()),
        count => Err(Failure(format!("the rules of the house are broken in {count} places"))),
    }
}

/// Every breach of a rule in `tree`, one line each. Prose may name the files with these `paths`.
fn check(tree: &[Source], paths: &[String]) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut namers = ONE_FILE_CRATES.map(|name| (name, Vec::new()));
    for file in tree {
        if file.is_markdown() {
            breaches.extend(stale(file, &file.text, paths));
        } else if file.is_rust() {
            let (code, comments) = code_and_comments(&file.text);
            breaches.extend(check_file(file, &code));
            breaches.extend(floors::breaches(&file.path, &code));
            breaches.extend(stale(file, &comments, paths));
            for (name, files) in &mut namers {
                if names_crate(&code, name).is_some() {
                    files.push(file.path.as_str());
                }
            }
        }
    }
    for (name, files) in namers.iter().filter(|(_, files)| files.len() > 1) {
        breaches.push(format!("{}: `{name}::` is named in more than one file", files.join(", ")));
    }
    breaches
}

/// The files that the prose of this one names and that do not exist.
fn stale(file: &Source, prose: &str, paths: &[String]) -> Vec<String> {
    let breach = |(line, name): &(usize, String)| {
        format!("{}:{line}: names `{name}`, and no path of the repository ends so", file.path)
    };
    citations::stale(prose, paths).iter().map(breach).collect()
}

fn check_file(file: &Source, code: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut breach =
        |line: usize, what: &str| breaches.push(format!("{}:{line}: {what}", file.path));

    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        let hint = "look for the second concept in it and give that its own file";
        breach(lines, &format!("{lines} lines, more than {FILE_LINES_MAX}: {hint}"));
    }
    if let Some((line, what)) = lines::too_wide(&file.text) {
        breach(line, &what);
    }
    for word in UNFINISHED_WORDS {
        if let Some(line) = find_word(&file.text, word) {
            breach(line, &format!("`{word}`: finish it or say it in an issue"));
        }
    }
    for name in UNFINISHED_MACROS {
        if let Some(line) = line_where(code, |code| find_macro(code, name)) {
            breach(line, &format!("`{name}!`: finish it"));
        }
    }
    let has_no_tests =
        file.path.starts_with(WITHOUT_TESTS) && !file.path.starts_with(BUT_WITH_TESTS);
    if let Some(line) = line_where(code, |line| line.contains("#[test]")).filter(|_| has_no_tests) {
        breach(line, "no test is run here: tests of the examples are in examples/tests");
    }
    if let Some(line) = find_word(code, "unsafe").filter(|_| !is_among(&file.path, &UNSAFE_FILES)) {
        breach(line, "`unsafe` outside of the files listed for it in xtask/src/tidy/mod.rs");
    }
    // A module called `mpi` is not the crate of that name.
    let own_module = find_word(code, "mod mpi").is_some();
    if let Some(line) = names_crate(code, "mpi").filter(|_| !own_module)
        && !is_among(&file.path, &MPI_FILES)
    {
        breach(line, "`mpi::` outside of the transport and launch: use the transport's traits");
    }
    breaches
}

fn is_among(path: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == *pattern,
    })
}

/// The number of the first line where `name` stands as a crate's name at the start of a path, and
/// not as a module of one's own (`transport::mpi::…`).
fn names_crate(code: &str, name: &str) -> Option<usize> {
    line_where(code, |line| {
        words(line, name).any(|(before, after)| {
            let starts_path = match before.trim_end().strip_suffix("::") {
                Some(before) => !before.ends_with(is_word),
                None => true,
            };
            let imported = before.trim_end().ends_with("use") && after.starts_with([';', ' ']);
            starts_path && (after.starts_with("::") || imported)
        })
    })
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    line_where(text, |line| words(line, word).next().is_some())
}

fn find_macro(line: &str, name: &str) -> bool {
    words(line, name).any(|(_, after)| after.starts_with('!'))
}

/// The number, from 1, of the first line that `matches`.
fn line_where(text: &str, matches: impl Fn(&str) -> bool) -> Option<usize> {
    text.lines().position(matches).map(|index| index + 1)
}

/// Where `word` stands in `line` by itself: what is before it, and what is after.
fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    line.match_indices(word)
        .map(move |(at, _)| (&line[..at], &line[at + word.len()..]))
        .filter(|(before, after)| !before.ends_with(is_word) && !after.starts_with(is_word))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(files: &[(&str, &str)]) -> Vec<String> {
        let source = |&(path, text): &(&str, &str)| Source { path: path.into(), text: text.into() };
        let tree: Vec<_> = files.iter().map(source).collect();
        let paths: Vec<_> = tree.iter().map(|file| file.path.clone()).collect();
        check(&tree, &paths)
    }

    #[track_caller]
    fn fine(path: &str, text: &str) {
        assert_eq!(breaches(&[(path, text)]), [""; 0]);
    }

    #[track_caller]
    fn wrong(path: &str, text: &str, start: &str) {
        let found = breaches(&[(path, text)]);
        assert!(found.len() == 1 && found[0].starts_with(start), "{found:?}");
    }

    #[test]
    fn one_file_may_name_bincode() {
        let named = "use bincode::config;";
        fine("runtime/src/wire.rs", named);
        let comment = ("launch/src/a.rs", "// bincode::x and \"\nlet x = \"bincode::y\";");
        assert_eq!(breaches(&[("runtime/src/wire.rs", named), comment]), [""; 0]);
        let two = breaches(&[("a.rs", named), ("b.rs", "fn f() { ::bincode::encode() }")]);
        assert_eq!(two, ["a.rs, b.rs: `bincode::` is named in more than one file"]);
    }

    #[test]
    fn no_test_is_where_none_is_run() {
        let test = "\n#[test]\nfn one_is_one() {}";
        wrong(
            "examples/src/programs/queens.rs",
            test,
            "examples/src/programs/queens.rs:2: no test",
        );
        fine("examples/src/bin/bench/idle.rs", test);
        fine("examples/tests/all/queens.rs", test);
    }

    #[test]
    fn mpi_is_named_in_its_rooms_only() {
        let named = "\nuse mpi::traits::*;";
        fine("runtime/src/transport/mpi.rs", named);
        fine("runtime/src/transport/mpi/lane.rs", named);
        fine("launch/src/start.rs", named);
        wrong("runtime/src/executor.rs", named, "runtime/src/executor.rs:2: `mpi::`");
        wrong("skeletons/src/lib.rs", "let w = ::mpi::init();", "skeletons/src/lib.rs:1: `mpi::`");
        fine("runtime/src/executor.rs", "use crate::transport::mpi::Lane;");
        fine("runtime/src/transport/mod.rs", "mod mpi;\npub use mpi::Lane;");
        fine("runtime/src/executor.rs", "rsmpi::x(); mpi_count += 1;");
    }

    #[test]
    fn unsafe_is_written_in_its_files_only() {
        let text = "fn f() {\n    unsafe { g() }\n}";
        fine("runtime/src/code.rs", text);
        wrong("runtime/src/numbered.rs", text, "runtime/src/numbered.rs:2: `unsafe`");
        fine("runtime/src/numbered.rs", "#![forbid(unsafe_code)] // unsafe\n");
    }

    #[test]
    fn nothing_is_left_unfinished() {
        wrong("a.rs", concat!("// TO", "DO: later"), "a.rs:1: `TO");
        wrong("a.rs", concat!("\n// FIX", "ME"), "a.rs:2: `FIX");
        wrong("a.rs", "fn f() { todo!() }", "a.rs:1: `todo!`");
        wrong("a.rs", "fn f() { unimplemented!(\"\") }", "a.rs:1: `unimplemented!`");
        fine("a.rs", "let todo = 1; if todo != 2 {}");
    }

    #[test]
    fn files_stay_short() {
        fine("a.rs", &"\n".repeat(FILE_LINES_MAX));
        wrong("a.rs", &"\n".repeat(FILE_LINES_MAX + 1), "a.rs:451: 451 lines, more than 450: ");
    }

    #[test]
    fn lines_are_narrow_and_names_of_files_current() {
        let wide = format!(
            "
// {}",
            "word ".repeat(20)
        );
        wrong("a.rs", &wide, "a.rs:2: comment of more than 100 columns");
        wrong(
            "a.rs",
            "
// See b.rs.",
            "a.rs:2: names `b.rs`, and no path",
        );
        wrong("a.md", "See `b.rs`.", "a.md:1: names `b.rs`, and no path");
        fine("a.md", "See `a.md`.");
        fine("a.rs", "let file = \"b.rs\";");
    }
}
