//! Dependencies between the crates of the house run one way. Those of tests do not count: these may
//! run whole jobs.

use serde_json::Value;

use crate::process::{self, Failure, Result};

/// The crates, each of which may depend on those before it and on no other. The last is for tests.
const CRATES: [&str; 21] = [
    "ultramarine-subprocess",
    "ultramarine-status",
    "ultramarine-environment",
    "ultramarine-guard",
    "ultramarine-topology",
    "ultramarine-journal",
    "ultramarine-taskset",
    "ultramarine-trace",
    "ultramarine-runtime",
    "ultramarine-group",
    "ultramarine-skeletons",
    "ultramarine-uts",
    "ultramarine-gap",
    "ultramarine",
    "ultramarine-probe",
    "ultramarine-gap-job",
    "ultramarine-cli",
    "ultramarine-examples",
    "ultramarine-proof",
    "ultramarine-simulator",
    "ultramarine-testkit",
];

/// Outside of this order: it stands beside the house.
const BESIDE: [&str; 1] = ["xtask"];

/// What cargo says of the crates.
///
/// # Errors
/// It cannot read a manifest.
pub(super) fn metadata() -> Result<Value> {
    let mut command = process::cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let said = process::output_or_failure(&mut command)?;
    serde_json::from_str(&said).map_err(|error| Failure(format!("cargo metadata: {error}")))
}

/// The breaches, one line each, in what cargo says.
pub(super) fn breaches(metadata: &Value) -> Vec<String> {
    let mut breaches = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        if BESIDE.contains(&name) {
            continue;
        }
        let Some(rank) = CRATES.iter().position(|known| *known == name) else {
            let hint = "say in CRATES in xtask/src/tidy/crates.rs what it may stand on";
            breaches.push(format!("{name}: a crate without a place in the house: {hint}"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"].as_str().unwrap_or_default();
            if CRATES[rank..].contains(&on) && dependency["kind"] != "dev" {
                let order = CRATES.join(" ← ");
                breaches.push(format!("{name}: depends on `{on}` against {order}"));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dependencies_run_one_way() {
        let found = |name: &str, on: &str, kind: Option<&str>| {
            let dependencies = [json!({ "name": on, "kind": kind })];
            let package = json!({ "name": name, "dependencies": dependencies });
            breaches(&json!({ "packages": [package] })).concat()
        };
        let (launch, runtime) = ("ultramarine", "ultramarine-runtime");
        assert_eq!(found(launch, runtime, None), "");
        let upward = "ultramarine-runtime: depends on `ultramarine` against ";
        assert!(found(runtime, launch, None).starts_with(upward));
        assert!(found(runtime, launch, Some("build")).starts_with(upward));
        assert_eq!(found(runtime, launch, Some("dev")), "");
        assert_eq!(found("xtask", runtime, None), "");
        let new = found("planner", "serde", None);
        assert!(new.starts_with("planner: a crate without a place in the house"), "{new}");
    }

    #[test]
    fn every_crate_has_a_place() {
        assert_eq!(breaches(&metadata().expect("cargo reads the manifests")), [""; 0]);
    }
}
