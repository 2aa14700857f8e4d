//! What the compiler says to a program whose task captures a variable.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

/// Compiles a program with this main task. The compiler looks at constants only when it makes
/// machine code; linking is left out.
fn compile(name: &str, main: &str) -> Output {
    let folder = std::env::current_exe().expect("on Linux").parent().map(Path::to_owned);
    let folder = folder.expect("a program is in a folder");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.rs"));
    let text = format!(
        "use ultramarine::prelude::*;\n\
         fn main() -> ultramarine::Result<()> {{\n\
             ultramarine::run(async |cx| {{ let factor = 3u64; {main} }})\n\
         }}\n"
    );
    std::fs::write(&source, text).expect("the folder is the tests' own");
    let library = library(&folder);
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "--crate-type", "bin", "--emit", "obj", "-o"])
        .arg(source.with_extension("o"))
        .arg("-L")
        .arg(format!("dependency={}", folder.display()))
        .arg("--extern")
        .arg(format!("ultramarine={}", library.display()))
        .arg(&source)
        .output()
        .expect("the compiler that built this test")
}

#[test]
fn a_task_that_captures_nothing_compiles() {
    let task = "cx.spawn_fn(Distance::ONE, |(n, factor)| n * factor, (5, factor)).await?; Ok(())";
    let output = compile("passing", task);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_task_that_captures_is_refused_with_what_to_do() {
    for (name, task) in [
        ("spawn_fn", "cx.spawn_fn(Distance::ONE, move |n: u64| n * factor, 5)"),
        ("spawn", "cx.spawn(Distance::ONE, move |_, n: u64| async move { n * factor }, 5)"),
        ("spawn_at", "cx.spawn_at(Pe::ROOT, move |_, n: u64| async move { n * factor }, 5)"),
        ("par_map", "par_map(&cx, move |n: u64| n * factor, 0..5)"),
        ("par_map_2level", "par_map_2level(&cx, Distance::ONE, move |n: u64| n * factor, 0..5)"),
        ("push_map", "push_map(&cx, move |n: u64| n * factor, 0..5)"),
    ] {
        let output = compile(name, &format!("{task}.await?; Ok(())"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name} compiles");
        for words in ["must not capture variables", "pass what it needs as the argument"] {
            assert!(said.contains(words), "{name}:\n{said}");
        }
    }
}
