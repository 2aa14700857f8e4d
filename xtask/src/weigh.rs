//! `cargo xtask weigh`: how many bytes of a program's machine code and tables a task adds to it,
//! and a call of each skeleton. Programs with one call and with nine are built as a user's own
//! crate would be, and compared; the calls differ in their functions. What debuggers read is no
//! part.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::process::{self, Failure, Result};
use crate::setup;

/// A kind of call, and the code of the call of this number, which adds to `total`.
type Kind = (&'static str, fn(u32) -> String);

const KINDS: [Kind; 12] = [
    ("spawn_fn", |n| {
        format!("total += cx.spawn_fn(Distance::ONE, |x: u64| x * {n}, total).await?;")
    }),
    ("spawn", |n| {
        format!("total += cx.spawn(Distance::ONE, async |_, x: u64| x * {n}, total).await?;")
    }),
    ("spawn, types of its own", |n| {
        format!(
            "{{ #[derive(Serialize, Deserialize)] \
             struct S {{ n: u64, s: String, v: Vec<(u32, f64)> }} \
             let s = S {{ n: total, s: String::new(), v: vec![] }}; \
             let f = async |_: Context, s: S| S {{ n: s.n * {n}, ..s }}; \
             total += cx.spawn(Distance::ONE, f, s).await?.n; }}"
        )
    }),
    ("spawn_at", |n| {
        format!("total += cx.spawn_at(Pe::ROOT, async |_, x: u64| x * {n}, total).await?;")
    }),
    ("tell", |n| {
        format!(
            "cx.tell(Pe::ROOT, async |_, x: u64| {{ std::hint::black_box(x * {n}); }}, total)?;"
        )
    }),
    ("par_map", |n| {
        format!("total += par_map(&cx, |x: u64| x * {n}, 0..total).await?.len() as u64;")
    }),
    ("map(…).reduce", |n| {
        format!("total += map(|x: u64| x * {n}, 0..total).reduce(|| 0, |a, b| a + b, &cx).await?;")
    }),
    ("map(…).journal", |n| {
        format!(
            "total += map(|x: u64| x * {n}, 0..total).journal(\"x\").run(&cx).await?.len() as u64;"
        )
    }),
    ("map_async", |n| {
        format!(
            "let f = async |_: Context, x: u64| x * {n}; \
             total += map_async(f, 0..total).run(&cx).await?.len() as u64;"
        )
    }),
    ("par_divide_and_conquer", |n| {
        format!(
            "total += par_divide_and_conquer(&cx, |_| Distance::ONE, DivideAndConquer::new(\
             |x: &u64| *x < {n}, |x| x, |x| [x - 1, x - 2], |_, [a, b]| a + b), total).await?;"
        )
    }),
    ("dag, a source and a map", |n| {
        format!(
            "total += dag(|g: &mut Builder, x: &u64| {{ let a = g.source(|x: &u64| x + {n}, *x); \
             g.map(|(): &(), x: &u64| x * {n}, (), a) }}, total).run(&cx).await?;"
        )
    }),
    ("par_enumerate", |n| {
        format!(
            "{{ #[derive(Clone, Serialize, Deserialize)] struct T; impl Tree for T {{ \
             type Node = u64; fn children(&self, x: u64) -> impl Iterator<Item = u64> + Send {{ \
             (0..x).map(|y| y / {n}) }} }} total += par_enumerate(&cx, Splitting::StealDriven, \
             |_: &T, _: &u64, f: &mut u64| *f += 1, |f: &mut u64, o| *f += o, T, total).await?; }}"
        )
    }),
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
    let mut build = process::cargo();
    build.args(["build", "--release", "--bins", "--manifest-path"]).arg(package.join("Cargo.toml"));
    mpi.apply_to(&mut build);
    process::run(&mut build)?;
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
            let calls_of_it = (0..calls).fold(String::new(), |mut text, n| {
                let _ = writeln!(text, "{}", code(n + 3));
                text
            });
            write(name(kind, calls), program(&calls_of_it))?;
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
        let (_, code) = KINDS[0];
        assert!(program(&code(7)).contains("|x: u64| x * 7, total).await?;"));
        assert_eq!(name(2, MANY), "weigh_2_9");
    }
}
