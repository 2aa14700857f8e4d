//! What the compiler says of a program whose task is written wrong: it must name what to do, and
//! the line of the program.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the compiler does with a program.
#[derive(Clone, Copy, PartialEq)]
enum Effort {
    /// `cargo check`.
    Check,
    /// `cargo build`, but for the linking.
    Build,
}

/// The library that this test was built with: the newest, if there are several.
fn library(folder: &Path) -> PathBuf {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libultramarine-") && path.extension().is_some_and(|kind| kind == "rlib")
    };
    let files = std::fs::read_dir(folder).expect("the folder that this test is in");
    let libraries = files.filter_map(|file| Some(file.ok()?.path())).filter(is_library);
    let age = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    libraries.max_by_key(age).expect("the library stands beside its tests")
}

/// Compiles a program whose main task has this code on its line 7. What the compiler says if it
/// refuses it.
fn compile(name: &str, effort: Effort, code: &str) -> Result<(), String> {
    let folder = std::env::current_exe().expect("on Linux").parent().map(Path::to_owned);
    let folder = folder.expect("a program is in a folder");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.rs"));
    let text = format!(
        "use ultramarine::{{prelude::*, skeletons}};\n\
         struct Bare(u64);\n\
         fn main() -> ultramarine::Result<()> {{\n\
         ultramarine::run(async |cx| {{\n\
         let factor = 3u64;\n\
         let text = String::new();\n\
         {code}.await?;\n\
         Ok(())\n\
         }})\n\
         }}\n"
    );
    std::fs::write(&source, text).expect("the folder is the tests' own");
    let emit = if effort == Effort::Check { "metadata" } else { "obj" };
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "--crate-type", "bin", "-A", "warnings", "--emit", emit])
        .arg("-o")
        .arg(source.with_extension(emit))
        .arg("-L")
        .arg(format!("dependency={}", folder.display()))
        .arg("--extern")
        .arg(format!("ultramarine={}", library(&folder).display()))
        .arg(&source)
        .output()
        .expect("the compiler that built this test");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

/// The first error that the compiler has with this code has these words, and names its line.
fn refused(name: &str, effort: Effort, code: &str, words: &[&str]) {
    let said = compile(name, effort, code).expect_err("it compiles");
    let first = said.split("\nerror").next().unwrap_or_default();
    for words in words {
        assert!(first.contains(words), "{name}: `{words}` is not in the first error of\n{said}");
    }
    let place = format!("{name}.rs:7:");
    let mut places = first.lines().filter_map(|line| line.split_once("--> "));
    let is_named = places.any(|(_, file)| file.contains(&place));
    assert!(is_named, "{name}: no place in the first error is in line 7 of\n{said}");
}

const NO_CAPTURE: &str = "must not capture variables";

#[test]
fn a_task_that_captures_nothing_compiles() {
    let task = "cx.spawn_fn(Distance::ONE, |(n, factor)| n * factor, (5, factor))";
    compile("passing", Effort::Build, task).expect("it is right");
}

/// All that `Stateless::CHECKED` guards: it names the closure, and so the line.
#[test]
fn a_task_that_captures_is_refused_when_it_is_built() {
    for (name, task) in [
        ("spawn_fn", "cx.spawn_fn(Distance::ONE, move |n: u64| n * factor, 5)"),
        ("spawn", "cx.spawn(Distance::ONE, move |_, n: u64| async move { n * factor }, 5)"),
        ("spawn_at", "cx.spawn_at(Pe::ROOT, move |_, n: u64| async move { n * factor }, 5)"),
        ("par_map", "par_map(&cx, move |n: u64| n * factor, 0..5)"),
        ("chunked", "skeletons::par_map_chunked(&cx, 2, move |n: u64| n * factor, 0..5)"),
        ("par_map_2level", "par_map_2level(&cx, Distance::ONE, move |n: u64| n * factor, 0..5)"),
        ("push_map", "push_map(&cx, move |n: u64| n * factor, 0..5)"),
        ("reduce", "par_map_reduce(&cx, 2, 0..5, || 0, move |n| n * factor, |a, b| a + b)"),
        (
            "divide",
            "par_divide_and_conquer(&cx, |_| Distance::ONE, DivideAndConquer::new(\
             |n: &u64| *n < 2, move |n| n * factor, |n| [n - 1, n - 2], |_, [a, b]| a + b), 5)",
        ),
    ] {
        let words = [NO_CAPTURE, "pass what it needs as the argument"];
        refused(name, Effort::Build, task, &words);
    }
}

#[test]
fn a_task_that_takes_or_borrows_a_variable_is_refused_when_it_is_checked() {
    let taking = "cx.spawn_fn(Distance::ONE, move |n: usize| n + text.len(), 5)";
    refused("taking", Effort::Check, taking, &[NO_CAPTURE, "pass what it needs as the argument"]);
    let borrowing = "cx.spawn_fn(Distance::ONE, |n: u64| n * factor, 5)";
    refused("borrowing", Effort::Check, borrowing, &["`factor` is borrowed here"]);
}

#[test]
fn a_value_that_cannot_travel_is_refused_with_what_to_do() {
    let words = ["cannot travel from PE to PE", "#[derive(serde::Serialize, serde::Deserialize)]"];
    let argument = "cx.spawn_fn(Distance::ONE, |bare: Bare| bare.0, Bare(5))";
    refused("argument", Effort::Check, argument, &words);
    let result = "cx.spawn_fn(Distance::ONE, |n: u64| Bare(n), 5)";
    refused("result", Effort::Check, result, &words);
    let item = "par_map(&cx, |n: u64| Bare(n), 0..5)";
    refused("item", Effort::Check, item, &words);

    let counted = "cx.spawn(Distance::ONE, async |_, n: u64| std::rc::Rc::new(n), 5)";
    let words = ["cannot travel from PE to PE", "the value itself for an `Rc`"];
    refused("counted", Effort::Check, counted, &words);
    let borrowed = "cx.spawn_fn(Distance::ONE, |s: &[u64]| s.len(), &[5u64, 6][..])";
    refused("borrowed", Effort::Check, borrowed, &["cannot travel", "a `Vec` for a slice"]);

    // Of a tuple it is serde that says so, and names the part.
    let part = "cx.spawn_fn(Distance::ONE, |(n, bare): (u64, Bare)| n, (5, Bare(6)))";
    refused("part", Effort::Check, part, &["not implemented for `Bare`", "serde::Serialize"]);
}

#[test]
fn a_builder_returns_nodes() {
    let graph = |wanted: &str| {
        let build = format!(
            "|g: &mut Builder, (): &()| {{ let node = g.source(|n: &u64| *n, 5); {wanted} }}"
        );
        format!("use skeletons::dag::{{Builder, dag}}; dag({build}, ()).run(&cx)")
    };
    let nodes = |count| format!("({})", ["node"].repeat(count).join(", "));
    for right in ["node".to_owned(), "vec![node]".to_owned(), nodes(2), nodes(8)] {
        compile("wanted", Effort::Check, &graph(&right)).expect(&right);
    }
    for wrong in ["5".to_owned(), nodes(9)] {
        let words = ["a builder cannot return", "a tuple of two to eight nodes"];
        refused("unwanted", Effort::Check, &graph(&wrong), &words);
    }
}
