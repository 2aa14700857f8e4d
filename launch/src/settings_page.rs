//! The guide's page on settings has all flags, settings and variables, with their defaults, and no
//! others.

use crate::{Options, Settings};
use clap::Args as _;
use ultramarine_environment::{launcher, variables};
use ultramarine_runtime::settings::NAMES;

const PAGE: &str = include_str!("../../docs/guide/settings.md");

/// Worker threads of the PE whose defaults are looked at: no default is this many by chance.
const THREADS: usize = 3;

/// The cells of the page's rows that begin with code.
fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let row = |line: &'static str| line.strip_prefix("| ")?.strip_suffix(" |");
    let rows = PAGE.lines().filter_map(row).filter(|row| row.starts_with('`'));
    rows.map(|row| row.split(" | ").collect())
}

/// The code in a cell.
fn code_in(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// A default as a setting's value; `None` where words say what it is.
fn value(cell: &str) -> Option<String> {
    let (number, rest) = cell.split_once(' ').unwrap_or((cell, ""));
    let unit = rest.split(',').next().unwrap_or_default();
    let shift = ["", "KiB", "MiB", "GiB"].iter().position(|of| *of == unit).map(|of| 10 * of);
    match (cell, shift) {
        ("its worker threads", _) => Some(THREADS.to_string()),
        (_, Some(shift @ 10..)) => Some((number.parse::<u64>().ok()? << shift).to_string()),
        _ if rest.is_empty() => Some(number.to_owned()),
        _ => None,
    }
}

#[test]
fn each_setting_has_its_row_and_default() {
    let with = |changes: &[(String, String)]| {
        let settings = Settings::from_texts(THREADS, [], changes, &[]).expect("the page is right");
        format!("{settings:?}")
    };
    let rows: Vec<_> = rows().filter(|cells| NAMES.contains(&cells[0].trim_matches('`'))).collect();
    let names: Vec<_> = rows.iter().map(|cells| cells[0].trim_matches('`')).collect();
    // It is a flag, and has its row there.
    let of_page = NAMES.iter().filter(|name| **name != "threads");
    let missing: Vec<_> = of_page.filter(|name| !names.contains(name)).collect();
    assert!(missing.is_empty(), "docs/guide/settings.md does not have {missing:?}");
    for (name, cells) in names.iter().zip(&rows) {
        match value(cells[2]) {
            Some(value) => {
                let change = ((*name).to_owned(), value);
                assert_eq!(with(&[]), with(&[change]), "the default of {name} is another");
            }
            None => assert!(with(&[]).contains(&format!("{name}: None")), "{name} has a default"),
        }
    }
}

#[test]
fn each_flag_has_its_row_variable_and_default() {
    let command = Options::augment_args(clap::Command::new("job"));
    let flags = command.get_arguments().filter(|flag| flag.get_long() != Some("set"));
    for flag in flags {
        let name = flag.get_long().expect("it is a flag");
        let variable = variables::of_setting(&name.replace('-', "_"));
        assert!(variables::named(&variable).is_some(), "the table does not have {variable}");
        let help = flag.get_help().expect("it has help").to_string();
        assert!(help.contains(&format!("[env: `{variable}`")), "the help of --{name}: {help}");
        let is_its_own = |cells: &Vec<&str>| {
            let own = cells[0].trim_start_matches("`--").split([' ', '[', '`']).next();
            own == Some(name)
        };
        let row = rows().find(is_its_own).unwrap_or_else(|| panic!("--{name} has no row"));
        assert_eq!(row[1], format!("`{variable}`"));
        if let Some((_, default)) = help.split_once("[default: ") {
            assert_eq!(Some(row[3].replace('`', "").as_str()), default.split(']').next(), "{name}");
        }
    }
}

#[test]
fn each_variable_is_on_the_page_and_no_other() {
    let settings = NAMES.iter().map(|name| variables::of_setting(name));
    let own = variables::TABLE.iter().map(|variable| variable.name);
    for name in own.clone().chain(variables::FOREIGN.iter().copied()) {
        assert!(PAGE.contains(&format!("`{name}`")), "{name} is not on the page");
    }
    let foreign = variables::FOREIGN.iter().chain(launcher::VARIABLES).copied();
    let known: Vec<_> = own.chain(foreign).map(str::to_owned).chain(settings).collect();
    let is_variable = |code: &&str| {
        let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        code.len() > 1 && code.chars().all(is_part) && *code != variables::PREFIX
    };
    // Of the tables, the first cells are names; of `NAME=value` the first part is.
    let named = PAGE.lines().flat_map(code_in).filter_map(|code| code.split('=').next());
    for name in named.filter(is_variable) {
        assert!(known.iter().any(|known| known == name), "the page names {name}: there is none");
    }
    for cells in rows().filter(|cells| cells.len() == 3 && !cells[0].contains("--")) {
        let name = cells[0].trim_matches('`');
        assert!(NAMES.contains(&name), "the page has {name}, which is no setting");
    }
}
