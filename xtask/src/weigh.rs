//! `cargo xtask weigh`: how many bytes of a program's machine code and tables a task adds to it,
//! and a call of each skeleton. Programs with one call and with nine are built as a user's own
//! crate would be, and compared; the calls differ in their functions. What debuggers read is no
//! part.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::process::{self, Failure, Result};
use crate::setup;

/// The kinds of calls, each with the code of a call, which adds to `total`; `$n` stands for the
/// call's number.
const KINDS: [(&str, &str); 12] = [
    ("spawn_fn", "total += cx.spawn_fn(Distance::ONE, |x: u64| x * $n, total).await?;"),
    ("spawn", "total += cx.spawn(Distance::ONE, async |_, x: u64| x * $n, total).await?;"),
    (
        "spawn, types of its own",
        "{ #[derive(Serialize, Deserialize)] struct S { n: u64, s: String, v: Vec<(u32, f64)> } \
         let s = S { n: total, s: String::new(), v: vec![] }; \
         let f = async |_: Context, s: S| S { n: s.n * $n, ..s }; \
         total += cx.spawn(Distance::ONE, f, s).await?.n; }",
    ),
    ("spawn_at", "total += cx.spawn_at(Pe::ROOT, async |_, x: u64| x * $n, total).await?;"),
    ("tell", "cx.tell(Pe::ROOT, async |_, x: u64| { std::hint::black_box(x * $n); }, total)?;"),
    ("par_map", "total += par_map(&cx, |x: u64| x * $n, 0..total).await?.len() as u64;"),
    (
        "map(…).reduce",
        "total += map(|x: u64| x * $n, 0..total).reduce(|| 0, |a, b| a + b, &cx).await?;",
    ),
    (
        "map(…).journal",
        "total += map(|x: u64| x * $n, 0..total).journal(\"x\").run(&cx).await?.len() as u64;",
    ),
    (
        "map_async",
        "let f = async |_: Context, x: u64| x * $n; \
         total += map_async(f, 0..total).run(&cx).await?.len() as u64;",
    ),
    (
        "par_divide_and_conquer",
        "total += par_divide_and_conquer(&cx, |_| Distance::ONE, DivideAndConquer::new(\
         |x: &u64| *x < $n, |x| x, |x| [x - 1, x - 2], |_, [a, b]| a + b), total).await?;",
    ),
    (
        "dag, a source and a map",
        "total += dag(|g: &mut Builder, x: &u64| { let a = g.source(|x: &u64| x + $n, *x); \
         g.map(|(): &(), x: &u64| x * $n, (), a) }, total).run(&cx).await?;",
    ),
    (
        "par_enumerate",
        "{ #[derive(Clone, Serialize, Deserialize)] struct T; impl Tree for T { type Node = u64; \
         fn children(&self, x: u64) -> impl Iterator<Item = u64> + Send { \
         (0..x).map(|y| y / $n) } } total += par_enumerate(&cx, Splitting::StealDriven, \
         |_: &T, _: &u64, f: &mut u64| *f += 1, |f: &mut u64, o| *f += o, T, total).await?; }",
    ),
];

/// The numbers of calls that are compared.
const FEW: u32 = 1;
const MANY: u32 = 9;

/// Builds the programs, and prints the table.
///
/// # Errors
/// A program cannot be built, or read.
pub(crate) fn run() -> Result<ExitCode> {
    let mpi = setup::one_mpi()?;
    let package = process::target_root().join("weigh");
    write_programs(&package)?;
    let manifest = package.join("Cargo.toml").display().to_string();
    mpi.build(&["--release", "--bins", "--manifest-path", &manifest])?;
    print_table(&mpi.target_dir().join("release"))?;
    Ok(ExitCode::SUCCESS)
}

fn name(kind: usize, calls: u32) -> String {
    format!("weigh_{kind}_{calls}")
}

fn write_programs(package: &Path) -> Result<()> {
    let failed = |error| Failure(format!("cannot write below {}: {error}", package.display()));
    let binaries = package.join("src/bin");
    fs::create_dir_all(&binaries).map_err(failed)?;
    let launch = process::root().join("launch");
    let manifest = format!(
        "[package]\nname = \"weigh\"\nedition = \"2024\"\n\n[dependencies]\n\
         ultramarine = {{ path = \"{}\" }}\n\
         serde = {{ version = \"1\", features = [\"derive\"] }}\n\n\
         [workspace]\n",
        launch.display()
    );
    fs::write(package.join("Cargo.toml"), manifest).map_err(failed)?;
    // The same versions of everything.
    fs::copy(process::root().join("Cargo.lock"), package.join("Cargo.lock")).map_err(failed)?;
    let write = |name: String, text| fs::write(binaries.join(name + ".rs"), text).map_err(failed);
    write("weigh_nothing".into(), program(""))?;
    for (kind, (_, code)) in KINDS.iter().enumerate() {
        for calls in [FEW, MANY] {
            let call = |n: u32| code.replace("$n", &(n + 3).to_string()) + "\n";
            write(name(kind, calls), program(&(0..calls).map(call).collect::<String>()))?;
        }
    }
    Ok(())
}

fn program(calls: &str) -> String {
    format!(
        "#![allow(unused)]\nuse serde::{{Deserialize, Serialize}};\nuse ultramarine::prelude::*;\n\
         use ultramarine::{{Context, skeletons::dag::{{Builder, Node, dag}}}};\n\
         fn main() -> ultramarine::Result<()> {{\nultramarine::run(async |cx| {{\n\
         let mut total = 0_u64;\n{calls}println!(\"{{total}}\");\nOk(())\n}})\n}}\n"
    )
}

fn print_table(folder: &Path) -> Result<()> {
    let bytes = |name: &str| bytes_loaded(&folder.join(name));
    let nothing = bytes("weigh_nothing")?;
    println!("a program without a task: {nothing} bytes\n");
    println!("{:26}{:>12}{:>14}", "a call of", "the first", "each further");
    for (kind, (call, _)) in KINDS.iter().enumerate() {
        let (few, many) = (bytes(&name(kind, FEW))?, bytes(&name(kind, MANY))?);
        let each = many.saturating_sub(few) / u64::from(MANY - FEW);
        println!("{call:26}{:>12}{each:>14}", few.saturating_sub(nothing));
    }
    Ok(())
}

/// The bytes of a program that are loaded when it runs: what `size` of the binutils adds up.
fn bytes_loaded(program: &Path) -> Result<u64> {
    let said = process::output_of(Command::new("size").arg(program));
    let read = |said: String| said.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok();
    said.and_then(read).ok_or_else(|| Failure(format!("`size {}` says nothing", program.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_its_calls() {
        assert!(program("total += 1;\n").contains("\ntotal += 1;\nprintln!"));
        assert_eq!(name(2, MANY), "weigh_2_9");
    }
}
