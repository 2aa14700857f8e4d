//! `cargo xtask scaling [NAME…]`: runs the experiments of `docs/SCALING.md` again, and puts their
//! results in the page, tables and charts.
//!
//! A block of text in the page that begins with `$ cargo xtask simulate …` is what that command
//! prints. Charts go where the command says, with `--svg`.

use std::fs;
use std::process::{Command, ExitCode};

use crate::process::{self, Failure, Result};
use crate::simulate;

const PAGE: &str = "docs/SCALING.md";
const PROMPT: &str = "$ cargo xtask simulate ";
const FENCE: &str = "```";

/// Runs the experiments of these names, or all without any.
pub(crate) fn run(names: &[String]) -> Result<ExitCode> {
    let path = process::root().join(PAGE);
    let read = || fs::read_to_string(&path).map_err(|error| failure("read", &error));
    let wanted = wanted(&read()?, names)?;
    process::run(&mut simulate::build())?;
    for words in wanted {
        println!("{PROMPT}{words}");
        let printed = output_of(&words)?;
        // Read anew: a series may take hours, and the page may change meanwhile.
        let page = replaced(&read()?, &words, &printed);
        fs::write(&path, page).map_err(|error| failure("write", &error))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The arguments of the commands in the page with these names, or of all without any.
fn wanted(page: &str, names: &[String]) -> Result<Vec<String>> {
    if let Some(name) = names.iter().find(|name| !commands(page).any(|words| is_of(words, name))) {
        let mut known: Vec<&str> = commands(page).filter_map(|it| it.split(' ').next()).collect();
        known.dedup();
        return Err(Failure(format!("{PAGE} has no `{name}`; it has {}", known.join(", "))));
    }
    let is_wanted = |words: &&str| names.is_empty() || names.iter().any(|name| is_of(words, name));
    Ok(commands(page).filter(is_wanted).map(str::to_owned).collect())
}

fn failure(what: &str, error: &std::io::Error) -> Failure {
    Failure(format!("cannot {what} {PAGE}: {error}"))
}

/// What the simulator prints; its progress is shown.
fn output_of(words: &str) -> Result<String> {
    let mut command = Command::new(simulate::program());
    process::output_or_failure(command.args(words.split_whitespace()).current_dir(process::root()))
}

/// The arguments of all commands in the page.
fn commands(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix(PROMPT))
}

fn is_of(words: &str, name: &str) -> bool {
    words.split(' ').next() == Some(name)
}

/// The page with this text below the command, to the end of the block.
fn replaced(page: &str, words: &str, printed: &str) -> String {
    let mut text = String::new();
    let mut is_old = false;
    for line in page.lines() {
        is_old &= line != FENCE;
        if !is_old {
            text.push_str(line);
            text.push('\n');
        }
        if line.strip_prefix(PROMPT) == Some(words) {
            is_old = true;
            text.push_str(printed.trim_end());
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "Prose.\n```text\n$ cargo xtask simulate weak --cores 32\nold\nolder\n\
                           ```\nMore.\n```text\n$ cargo xtask simulate rack\nkept\n```\n";

    #[test]
    fn commands_are_found() {
        let found: Vec<&str> = commands(EXAMPLE).collect();
        assert_eq!(found, ["weak --cores 32", "rack"]);
        assert!(is_of(found[0], "weak") && !is_of(found[0], "we") && !is_of(found[1], "weak"));
    }

    #[test]
    fn all_names_must_be_in_the_page() {
        let wanted = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            super::wanted(EXAMPLE, &names).map_err(|failure| failure.to_string())
        };
        assert_eq!(wanted(&[]).expect("all"), ["weak --cores 32", "rack"]);
        assert_eq!(wanted(&["rack"]).expect("one"), ["rack"]);
        let refusal = "docs/SCALING.md has no `typo`; it has weak, rack".to_owned();
        assert_eq!(wanted(&["rack", "typo"]), Err(refusal));
    }

    #[test]
    fn only_what_was_printed_is_replaced() {
        let expected = EXAMPLE.replace("old\nolder", "new\nnewer");
        assert_eq!(replaced(EXAMPLE, "weak --cores 32", "new\nnewer\n"), expected);
        assert_eq!(replaced(EXAMPLE, "uts", "new"), EXAMPLE);
    }
}
