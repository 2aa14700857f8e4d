//! Within a crate, too, imports run downwards, where `docs/ARCHITECTURE.md` names floors: a module
//! may name those on the floors below its own, and no other. Tests may name any.

use super::is_word;

/// The modules of a folder, by floors, the lowest first.
struct House {
    folder: &'static str,
    /// How the folder's path begins in Rust.
    path: &'static str,
    floors: &'static [&'static [&'static str]],
}

const HOUSES: [House; 5] = [
    House {
        folder: "runtime/src/",
        path: "crate::",
        floors: &[
            &["addresses", "build", "code", "error", "forked", "handshake", "lock"],
            &["large_blocks", "numbered", "os_memory", "trace", "wire"],
            &["allocator", "array"],
            &["plain", "protocol", "transport"],
            &["detector"],
            &["settings"],
            &["executor"],
        ],
    },
    House {
        folder: "runtime/src/executor/",
        path: "crate::executor::",
        floors: &[&["task"], &["schedule"], &["keep"], &["engine"], &["pe"], &["api"]],
    },
    House {
        folder: "skeletons/src/",
        path: "crate::",
        floors: &[
            &["own_thread"],
            &["join_set", "journal", "parts", "result_future", "share", "table"],
            &["bsp", "dag", "divide", "map", "search"],
            &["orbit", "reduce"],
        ],
    },
    House {
        folder: "taskset/src/",
        path: "crate::",
        floors: &[
            &["crash", "limits", "test_process"],
            &["sync"],
            &["memory", "state"],
            &["closing", "test_memory"],
            &["model"],
            &["barrier", "queue"],
            &["mapped"],
            &["board"],
        ],
    },
    House {
        folder: "taskset/src/mapped/",
        path: "crate::mapped::",
        floors: &[
            &["error", "shared"],
            &["arena"],
            &["blocks"],
            &["table", "task"],
            &["dependencies", "set"],
            &["cell", "worker"],
            &["collect", "sweep"],
            &["run"],
            &["handle", "open"],
        ],
    },
];

/// The breaches of a file with this path and this code.
pub(super) fn breaches(path: &str, code: &str) -> Vec<String> {
    if path.contains("/tests/") || path.ends_with("/tests.rs") {
        return Vec::new();
    }
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    HOUSES.iter().flat_map(|house| house.breaches(path, code)).collect()
}

impl House {
    fn breaches(&self, path: &str, code: &str) -> Vec<String> {
        let Some(own) =
            path.strip_prefix(self.folder).and_then(|path| path.split(['/', '.']).next())
        else {
            return Vec::new();
        };
        if ["lib", "mod"].contains(&own) {
            return Vec::new();
        }
        let Some(floor) = self.floor(own) else {
            let hint = "give it one in xtask/src/tidy/floors.rs";
            return vec![format!("{path}: the module `{own}` has no floor: {hint}")];
        };
        let is_below = |name: &str| name == own || self.floor(name).is_some_and(|at| at < floor);
        let upward = named(code, self.path).into_iter().filter(|(_, name)| !is_below(name));
        let hint = "what it needs of a higher floor is a trait; see `HOUSES` in xtask";
        let breach = |(at, name): (usize, &str)| {
            let line = 1 + code[..at].matches('\n').count();
            let named = self.path;
            format!("{path}:{line}: `{named}{name}` is not on a floor below `{own}`: {hint}")
        };
        upward.map(breach).collect()
    }

    fn floor(&self, module: &str) -> Option<usize> {
        self.floors.iter().position(|floor| floor.contains(&module))
    }
}

/// The name behind each `path` in the code, and where the path stands. Several names in braces are
/// one that no floor has.
fn named<'a>(code: &'a str, path: &str) -> Vec<(usize, &'a str)> {
    let name = |at: usize| {
        let rest = &code[at + path.len()..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if end == 0 { &rest[..rest.len().min(1)] } else { &rest[..end] }
    };
    let is_whole = |at: usize| !code[..at].ends_with(|c| is_word(c) || c == ':');
    let starts = code.match_indices(path).map(|(at, _)| at);
    starts.filter(|at| is_whole(*at)).map(|at| (at, name(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fine(path: &str, code: &str) {
        assert_eq!(breaches(path, code), [""; 0]);
    }

    #[track_caller]
    fn wrong(path: &str, code: &str, start: &str) {
        let found = breaches(path, code);
        assert!(found.len() == 1 && found[0].starts_with(start), "{found:?}");
    }

    #[test]
    fn modules_name_what_is_below_them() {
        fine("runtime/src/detector/frame.rs", "use crate::protocol::Notice;\nuse crate::wire;");
        fine("runtime/src/detector/mod.rs", "use crate::detector::watch;");
        let upward = "\nuse crate::executor::Context;";
        let start = "runtime/src/wire/codec.rs:2: `crate::executor` is not on a floor below `wire`";
        wrong("runtime/src/wire/codec.rs", upward, start);
        let beside = "let lane = crate::transport::tcp::Lane::new();";
        wrong("runtime/src/protocol/node.rs", beside, "runtime/src/protocol/node.rs:1: `crate::tr");
        let top = "use crate::ResultFuture;";
        wrong("skeletons/src/divide/mod.rs", top, "skeletons/src/divide/mod.rs:1: `crate::Result");
        let several = "use crate::{array, wire};";
        wrong("runtime/src/detector/mod.rs", several, "runtime/src/detector/mod.rs:1: `crate::{`");
    }

    #[test]
    fn the_floors_of_the_executor_are_its_own() {
        let code = "use crate::executor::task::Site;\nuse crate::protocol::Node;";
        fine("runtime/src/executor/pe/worker.rs", code);
        let upward = "use crate::executor::pe::Processor;";
        let start = "runtime/src/executor/task/site.rs:1: `crate::executor::pe` is not";
        wrong("runtime/src/executor/task/site.rs", upward, start);
    }

    #[test]
    fn tests_and_crate_roots_name_what_they_like() {
        let upward = "use crate::executor::Context;";
        fine("runtime/src/lib.rs", upward);
        fine("runtime/src/wire/tests.rs", upward);
        fine("runtime/src/protocol/tests/laws.rs", upward);
        fine("runtime/src/wire/mod.rs", &format!("#[cfg(test)]\nmod tests {{\n{upward}\n}}"));
        fine("launch/src/start.rs", upward);
    }

    #[test]
    fn a_new_module_needs_a_floor() {
        wrong("runtime/src/planner.rs", "", "runtime/src/planner.rs: the module `planner` has no");
    }
}
