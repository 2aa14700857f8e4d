//! `cargo xtask mutants`: small mistakes are made in the code, one at a time, and the quick tests
//! should notice each.
//!
//! All mistakes are built into one set of test programs, in a copy of the tree, and one of them is
//! switched on by an environment variable: what would take hours with a build for each takes
//! minutes. The copy is kept in `target/mutants`, so that the next run builds only what has
//! changed.
//!
//! | file | what |
//! |---|---|
//! | `site`, `find` | one mistake at one place, and the code with a switch; finds the places |
//! | `catalogue` | the areas of the code, and all their places |
//! | `tree`, `compile` | the copy of the tree; builds it, without the mutants that do not compile |
//! | `exam` | runs the tests without mutants, and those that reach a mutant with it |
//! | `equal` | the mutants that no test can notice, in `equal.txt`, with the reasons |
//! | `tally` | the table at the end |

mod catalogue;
mod compile;
mod equal;
mod exam;
mod find;
mod site;
mod tally;
mod tree;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use catalogue::{AREAS, Catalogue};
use compile::Builder;
use exam::{Exam, Fate};
use tree::Tree;

use crate::chaos::draw;
use crate::chaos::interrupt;
use crate::process::{self, Failure, Result};
use crate::setup::{self, Wanted};

/// Which mistakes to make.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Draw the mutants of this seed again [default: a new seed, which is printed]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// How many mutants to draw
    #[arg(long, value_name = "N", default_value_t = 100)]
    count: usize,
    /// Only in files whose paths contain this
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// These mutants instead of drawn ones; their numbers hold while the tree stays as it is
    #[arg(long, value_name = "NUMBER", num_args = 1..)]
    id: Vec<u32>,
    /// List the mutants that could be drawn, and run nothing
    #[arg(long)]
    list: bool,
    /// List the mutants that no quick test reaches, and run no mutant
    #[arg(long)]
    unreached: bool,
}

/// Of the mutants that are not equal, at least this share must be caught, in percent.
const CAUGHT_MIN_PERCENT: usize = 85;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let start = Instant::now();
    let mpis = setup::ensure(Wanted::OneMpi)?;
    let mut catalogue = Catalogue::read(process::root())?;
    let folder = process::target_root().join("mutants");
    let tree = Tree::copy(&catalogue, folder.join("tree"))?;
    let builder = Builder { tree, target: folder.join("build"), mpi: mpis.first() };
    builder.settle(&mut catalogue, &folder.join("refused"))?;
    let equal: BTreeSet<u32> = equal::numbers(&catalogue)?.into_iter().collect();
    let seed = arguments.seed.unwrap_or_else(draw::any_seed);
    let all: Vec<u32> = catalogue
        .accepted()
        .filter(|(_, file, _)| file.path.contains(&arguments.only))
        .map(|(number, ..)| number)
        .collect();
    if arguments.list {
        all.iter().for_each(|number| println!("{}", shown(&catalogue, *number)));
        return Ok(ExitCode::SUCCESS);
    }
    let drawn = if arguments.id.is_empty() {
        println!(
            "seed {seed} (again by --seed {seed}), {} mutants of {}",
            arguments.count,
            all.len()
        );
        drawn(all.clone(), arguments.count, seed)
    } else {
        arguments.id.clone()
    };
    if let Some(number) = drawn.iter().find(|number| catalogue.get(**number).is_none()) {
        return Err(Failure(format!("there is no mutant {number}")));
    }
    let programs = builder.build()?;
    println!("built in {:.0} s", start.elapsed().as_secs_f64());

    interrupt::catch()?;
    let exam = Exam::prepare(&builder, &programs, folder.join("tmp"))?;
    println!("measured after {:.0} s", start.elapsed().as_secs_f64());
    let area_of = |number: &u32| {
        let (file, _) = catalogue.get(*number)?;
        Some((*number, AREAS[file.area]))
    };
    if arguments.unreached {
        let all = all.iter().filter_map(area_of);
        let unreached = all.filter(|(number, area)| !exam.is_reached(*number, *area));
        unreached.for_each(|(number, _)| println!("{}", shown(&catalogue, number)));
        return Ok(ExitCode::SUCCESS);
    }
    // One that is named as equal is tried only if it is asked for.
    let is_tried = |number: &u32| !equal.contains(number) || !arguments.id.is_empty();
    let tried: Vec<u32> = drawn.iter().copied().filter(is_tried).collect();
    let mutants: Vec<_> = tried.iter().filter_map(area_of).collect();
    let fates = exam.examine(&mutants, &|number, fate| {
        println!("{}: {}", shown(&catalogue, number), word(fate));
    })?;

    let fates: Vec<_> = tried.into_iter().zip(fates).collect();
    for (number, fate) in &fates {
        if let (Fate::Survived(tests), Some((file, site))) = (fate, catalogue.get(*number)) {
            let (path, line) = (&file.path, site.line(&file.text).0);
            println!("\n{path}:{line}: survives {tests} tests: {} ({number})", site.change);
            print!("{}", site.diff(&file.text));
        }
    }
    let table = tally::of(&catalogue, &all, &drawn, &fates);
    println!("\n{}", tally::table(&table));
    let total = tally::total(&table);
    println!("seed {seed}, {:.1} minutes", start.elapsed().as_secs_f64() / 60.0);
    let is_enough = total.caught * 100 >= CAUGHT_MIN_PERCENT * total.tried();
    if !is_enough {
        println!("fewer than {CAUGHT_MIN_PERCENT} % are caught");
    }
    Ok(if is_enough { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A number of them, as the seed says.
fn drawn(mut all: Vec<u32>, count: usize, seed: u64) -> Vec<u32> {
    draw::random(seed, 0).shuffle(&mut all);
    all.truncate(count);
    all
}

fn shown(catalogue: &Catalogue, number: u32) -> String {
    let Some((file, site)) = catalogue.get(number) else { return String::new() };
    let (line, text) = site.line(&file.text);
    format!("{number:>5}  {}:{line}: {} in `{text}`", file.path, site.change)
}

fn word(fate: &Fate) -> String {
    match fate {
        Fate::Caught(test) => format!("caught by {test}"),
        Fate::Survived(0) => "NOT REACHED by any quick test".to_owned(),
        Fate::Survived(tests) => format!("SURVIVED {tests} tests"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_again_and_none_twice() {
        let all: Vec<u32> = (1..=50).collect();
        let ten = drawn(all.clone(), 10, 7);
        assert_eq!(ten, drawn(all.clone(), 10, 7));
        assert_ne!(ten, drawn(all.clone(), 10, 8));
        let mut every = drawn(all.clone(), 100, 7);
        every.sort_unstable();
        assert_eq!(every, all);
    }
}
