//! One style of modules: a folder is a module, and opens with its `mod.rs`. Clippy holds that for
//! what it compiles; this holds it for every file.

/// The first lines of a folder, where it is a crate or a module.
const OPENINGS: [&str; 3] = ["mod.rs", "lib.rs", "main.rs"];

/// The breaches, one line each, in the sorted paths of all Rust files.
pub(super) fn breaches(paths: &[&str]) -> Vec<String> {
    let has = |path: &str| paths.binary_search(&path).is_ok();
    let mut folders: Vec<&str> =
        paths.iter().filter_map(|path| Some(path.rsplit_once('/')?.0)).collect();
    folders.dedup();
    let mut breaches = Vec::new();
    for folder in folders {
        if has(&format!("{folder}.rs")) {
            breaches.push(format!(
                "{folder}.rs: beside the folder of its modules: move it to {folder}/mod.rs"
            ));
        } else if is_module(folder) && !OPENINGS.iter().any(|name| has(&format!("{folder}/{name}")))
        {
            breaches.push(format!("{folder}: a folder of modules without a mod.rs"));
        }
    }
    breaches
}

/// Whether the folder is one of modules: it is below one of the folders that cargo looks in, and
/// not itself a folder of programs.
fn is_module(folder: &str) -> bool {
    let Some((above, name)) = folder.rsplit_once('/') else { return false };
    name != "bin" && above.split('/').any(|name| ["src", "tests"].contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_opens_with_its_mod_rs() {
        let fine = [
            "a/src/bin/x.rs",
            "a/src/bin/y/main.rs",
            "a/src/lib.rs",
            "a/src/m/mod.rs",
            "a/tests/t.rs",
        ];
        assert_eq!(breaches(&fine), [""; 0]);
        let beside = breaches(&["a/src/m.rs", "a/src/m/n.rs"]);
        assert_eq!(
            beside,
            ["a/src/m.rs: beside the folder of its modules: move it to a/src/m/mod.rs"]
        );
        let without = breaches(&["a/src/m/n.rs", "a/tests/all/t.rs"]);
        let what = |folder| format!("{folder}: a folder of modules without a mod.rs");
        assert_eq!(without, [what("a/src/m"), what("a/tests/all")]);
    }
}
