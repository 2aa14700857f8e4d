//! Links and commands in the Markdown files: a relative link leads to a file that exists, an
//! anchor to a heading, and a command in a block of shell to a program and flags that exist. The
//! [messages] of one page are those of the code.
//!
//! This is no parser of Markdown. It knows fences, inline links and headings as they are written
//! here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use clap::CommandFactory as _;

use crate::messages;
use crate::source::Source;

/// The subcommands of `ultramarine`.
const COMMANDS: [&str; 10] =
    ["run", "gap", "doctor", "topo", "trace", "report", "top", "completions", "man", "help"];

/// Where programs are, in which profile's folder.
const PROFILES: [&str; 2] = ["release/", "target/mpich/demo/"];

/// What stands for a program of the reader's own in `target/release/…`.
const OWN_PROGRAMS: [&str; 1] = ["program"];

/// Every broken link and unknown command of the Markdown files of `tree`, which is that below
/// `root`, one line each.
pub(crate) fn check(root: &Path, tree: &[Source]) -> Vec<String> {
    let (pages, code): (Vec<_>, Vec<_>) = tree.iter().partition(|file| file.is_markdown());
    let mut breaches = Vec::new();
    for Source { path, text } in pages {
        let mut breach =
            |line: usize, what: String| breaches.push(format!("{path}:{}: {what}", line + 1));
        for (line, kind, content) in lines(text) {
            match kind {
                LineKind::Prose => targets(content)
                    .filter_map(|target| broken(root, &root.join(path), target))
                    .for_each(|what| breach(line, what)),
                LineKind::Shell => unknown(content, &code).for_each(|what| breach(line, what)),
                LineKind::Other => {}
            }
        }
        if path == messages::PAGE {
            breaches.extend(messages::check(text, &code));
        }
    }
    breaches
}

/// What a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LineKind {
    Prose,
    /// Inside a block of shell.
    Shell,
    /// Inside another block, or a fence.
    Other,
}

/// The lines by index, with what they are.
fn lines(text: &str) -> impl Iterator<Item = (usize, LineKind, &str)> {
    let mut inside = None;
    text.lines().enumerate().map(move |(line, content)| {
        let Some(language) = content.trim_start().strip_prefix("```") else {
            return (line, inside.unwrap_or(LineKind::Prose), content);
        };
        inside = match inside {
            Some(_) => None,
            None if ["sh", "bash"].contains(&language.trim()) => Some(LineKind::Shell),
            None => Some(LineKind::Other),
        };
        (line, LineKind::Other, content)
    })
}

/// The targets of the links and pictures in a line: `[…](target)`, `src="target"`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let pictures = line.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
    inline.chain(pictures)
}

/// Why a link of a page leads nowhere, if it does.
fn broken(root: &Path, page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.parent().unwrap_or(root);
    let file = if path.is_empty() { page.to_owned() } else { plain(&folder.join(path)) };
    if !file.starts_with(root) || !file.exists() {
        return Some(format!("the link to `{target}` leads to no file"));
    }
    if anchor.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = fs::read_to_string(&file).unwrap_or_default();
    let is_there = anchors(&text).contains(anchor);
    (!is_there).then(|| format!("the link to `{target}` leads to no heading"))
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
        plain
    })
}

/// The anchors of the headings, as GitHub makes them, and those that are written as `<a id="…">`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, kind, line) in lines(text) {
        if kind != LineKind::Prose {
            continue;
        }
        if let Some(heading) = line.strip_prefix('#') {
            let first = slug(heading.trim_start_matches('#').trim());
            let again = (1..).map(|n| format!("{first}-{n}"));
            let free = std::iter::once(first.clone()).chain(again).find(|a| !anchors.contains(a));
            anchors.extend(free);
        }
        let ids = line.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        anchors.extend(ids.map(str::to_owned));
    }
    anchors
}

/// What GitHub makes of a heading: lower case, hyphens for spaces, no other signs.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The commands of a line of shell that do not exist, as far as they are ours.
fn unknown<'a>(line: &'a str, code: &[&'a Source]) -> impl Iterator<Item = String> + use<'a> {
    let line = line.split(" #").next().unwrap_or(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut found = Vec::new();
    let mut is_ours = false;
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let mut refuse = |what: &str, name: &str| found.push(format!("`{name}` is no {what}"));
        if *word == "xtask" {
            is_ours = true;
            if crate::Arguments::command().find_subcommand(next).is_none() {
                refuse("chore of cargo xtask", next);
            }
        } else if let Some((_, name)) = PROFILES.iter().find_map(|place| word.split_once(place)) {
            is_ours = true;
            let name = name.trim_end_matches(';');
            if !OWN_PROGRAMS.contains(&name) && !is_program(name, code) {
                refuse("program of this repository", name);
            }
        }
        if (*word == "ultramarine" || word.ends_with("/ultramarine")) && !next.starts_with('-') {
            is_ours = true;
            if !COMMANDS.contains(&next) {
                refuse("subcommand of ultramarine", next);
            }
        }
        // What follows is the launcher's.
        is_ours &= *word != "--";
        if let Some(flag) = word.strip_prefix("--").filter(|flag| is_ours && !flag.is_empty()) {
            let name = flag.split('=').next().unwrap_or(flag);
            if !is_flag(name, code) {
                refuse("flag of our programs", &format!("--{name}"));
            }
        }
    }
    found.into_iter()
}

/// Whether a binary has this name: by its file, or in a manifest.
fn is_program(name: &str, code: &[&Source]) -> bool {
    let (file, folder) = (format!("/bin/{name}.rs"), format!("/bin/{name}/main.rs"));
    let entry = format!("[[bin]]\nname = \"{name}\"");
    code.iter().any(|source| {
        source.path.ends_with(&file)
            || source.path.ends_with(&folder)
            || source.text.contains(&entry)
    })
}

/// Whether some program has a flag of this name: a field of this name, or the name itself in
/// quotes. (Those of clap are known.)
fn is_flag(name: &str, code: &[&Source]) -> bool {
    let (field, quoted) = (format!("{}:", name.replace('-', "_")), format!("\"{name}\""));
    let is_said = |source: &&Source| source.text.contains(&field) || source.text.contains(&quoted);
    ["help", "version"].contains(&name) || code.iter().any(is_said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "a [b](c.md#d) e [f](g)\n```sh\n[x](y)\n```\n<img src=\"p.svg\">";
        let found: Vec<_> = lines(text)
            .filter(|(_, kind, _)| *kind == LineKind::Prose)
            .flat_map(|(_, _, line)| targets(line))
            .collect();
        assert_eq!(found, ["c.md#d", "g", "p.svg"]);
    }

    #[test]
    fn headings_become_anchors_as_on_github() {
        let text = "# `Shared` and `map_with`: once\n## Twice\n## Twice\n```\n# no\n```\n";
        let expected = ["shared-and-map_with-once", "twice", "twice-1"].map(str::to_owned);
        assert_eq!(anchors(text), BTreeSet::from(expected));
    }

    #[test]
    fn a_link_needs_a_file_and_a_heading() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("docs")).unwrap();
        fs::write(root.join("a.md"), "# One\n[ok](docs/b.md#two) [no](docs/c.md)\n").unwrap();
        let text = "# Two\n[ok](../a.md#one) [no](../a.md#three) [out](../../x) [web](https://x)\n";
        fs::write(root.join("docs/b.md"), text).unwrap();
        let found = check(root, &crate::source::read_tree(root).unwrap());
        assert_eq!(
            found,
            [
                "a.md:2: the link to `docs/c.md` leads to no file",
                "docs/b.md:2: the link to `../a.md#three` leads to no heading",
                "docs/b.md:2: the link to `../../x` leads to no file"
            ]
        );
    }

    #[test]
    fn commands_must_exist() {
        let code = [
            source("examples/src/bin/uts/main.rs", "job: bool"),
            source("examples/Cargo.toml", "[[bin]]\nname = \"mpi_empty\"\n"),
            source("launch/src/options.rs", "kill_at: Option<KillTimes>"),
        ];
        let code: Vec<_> = code.iter().collect();
        let found = |line: &str| unknown(line, &code).collect::<Vec<_>>();
        for fine in [
            "cargo xtask demo     # installs what is missing",
            "mpiexec --bind-to none -n 4 target/release/uts --job --kill-at 1",
            "target/release/mpi_empty; target/release/program",
            "ultramarine run --help -n 4 target/release/uts -- --anything",
            "salloc --nodes=2 ls",
        ] {
            assert_eq!(found(fine), [""; 0], "{fine}");
        }
        assert_eq!(found("cargo xtask dance"), ["`dance` is no chore of cargo xtask"]);
        assert_eq!(found("target/release/nuts"), ["`nuts` is no program of this repository"]);
        assert_eq!(found("ultramarine walk"), ["`walk` is no subcommand of ultramarine"]);
        assert_eq!(found("target/mpich/demo/nuts"), found("target/release/nuts"));
        assert_eq!(found("target/release/uts --no=1"), ["`--no` is no flag of our programs"]);
    }
}
