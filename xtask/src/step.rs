//! The steps of `cargo xtask test`: their order, what each runs, what each needs, and which of them
//! are quick.

use std::num::NonZero;
use std::process::Command;

use clap::ValueEnum;

use crate::demo;
use crate::deny;
use crate::mpi::{Family, Mpi};
use crate::process;

/// One step; the order here is the order they run in: quick ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// The format of the code (rustfmt)
    Format,
    /// The rules of the house
    Tidy,
    /// Lints (clippy) with every feature, as errors
    Clippy,
    /// The tests of libraries and commands that launch nothing, but for what takes long
    Units,
    /// One supervised job of three processes, of which one is killed
    Smoke,
    /// Lints for the build without MPI, as errors
    ClippyNoMpi,
    /// Lints for what the demo builds: one example without what the others need
    ClippyDemo,
    /// The documentation, warnings as errors
    Docs,
    /// All tests, programs launched by MPICH
    TestMpich,
    /// The tests that launch programs, by Open MPI; all if there is no other MPI
    TestOpenMpi,
    /// Jobs survive faults at random moments, under each MPI
    Chaos,
    /// The protocol under a model checker, in random jobs, and as SPIN sees it
    Proof,
    /// The examples in the simulator's documentation
    ProofDocs,
    /// The examples in all other documentation
    DocTests,
    /// The tests that would notice that MPI and hwloc are left out
    TestNoMpi,
    /// Licences, bans and sources of the dependencies (cargo-deny)
    Deny,
}

/// What a step runs on this machine.
pub(crate) enum Work {
    Run(Command),
    /// The rules of the house are checked by this program itself.
    Tidy,
    /// A job is built and launched with this MPI.
    Smoke(Mpi),
    /// Nothing to do here, and why.
    Skip(String),
}

/// Steps that only `--quick` runs by itself: the whole has more thorough ones of the kind.
const QUICK_ONLY: [Step; 2] = [Step::Units, Step::Smoke];

impl Step {
    /// What to run before every commit: minutes from a warm build.
    pub(crate) fn quick() -> Vec<Self> {
        [&[Self::Format, Self::Tidy, Self::Clippy], &QUICK_ONLY[..]].concat()
    }

    /// What to run before a merge.
    pub(crate) fn whole() -> Vec<Self> {
        let all = Self::value_variants().iter().copied();
        all.filter(|step| !QUICK_ONLY.contains(step)).collect()
    }

    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What the step does, in a phrase.
    pub(crate) fn summary(self) -> String {
        let help = self.to_possible_value().and_then(|value| value.get_help().cloned());
        help.map_or_else(String::new, |help| help.to_string())
    }

    /// Whether the step builds what [`setup`](crate::setup) prepares.
    pub(crate) fn needs_setup(self) -> bool {
        !matches!(
            self,
            Self::Format
                | Self::Tidy
                | Self::ClippyNoMpi
                | Self::Proof
                | Self::ProofDocs
                | Self::TestNoMpi
                | Self::Deny
        )
    }

    /// What to do, given the MPIs of this machine, the preferred one first. A step that
    /// [needs setup](Self::needs_setup) is skipped without any.
    pub(crate) fn work(self, mpis: &[Mpi]) -> Work {
        match self {
            Self::Format => Work::Run(cargo(&["fmt", "--all", "--check"])),
            Self::Tidy => Work::Tidy,
            Self::Clippy => with_mpi(mpis.first(), clippy(&["--features", BENCHMARKS])),
            Self::Units => with_mpi(mpis.first(), units(has_nextest())),
            Self::Smoke => match mpis.first() {
                Some(mpi) => Work::Smoke(mpi.clone()),
                None => with_mpi(None, cargo(&[])),
            },
            Self::ClippyNoMpi => Work::Run(without_mpi(
                mpis.first(),
                clippy(&["--no-default-features", "--features", BENCHMARKS]),
            )),
            Self::ClippyDemo => {
                let mut clippy = cargo(&["clippy"]);
                clippy.args(demo::BUILT).args(["--", "-D", "warnings"]);
                with_mpi(mpis.first(), clippy)
            }
            Self::Docs => with_mpi(mpis.first(), docs()),
            Self::TestMpich => with_mpi(of(mpis, Family::Mpich), tests(built(Family::Mpich), &[])),
            Self::TestOpenMpi => {
                let is_only = mpis.iter().all(|mpi| mpi.family == Family::OpenMpi);
                let packages = if is_only { &ALL_BUT_PROOFS } else { built(Family::OpenMpi) };
                let filter = ["--filterset", OF_EACH_MPI];
                let filter = if is_only || !has_nextest() { &[][..] } else { &filter };
                let mut tests = tests(packages, filter);
                // Of two of its launchers that start at once one may fail to make their folder in
                // `$TMPDIR`: fewer do with one test at a time on each core.
                tests.env(TEST_THREADS, cores().to_string());
                with_mpi(of(mpis, Family::OpenMpi), tests)
            }
            Self::Chaos if mpis.is_empty() => with_mpi(None, cargo(&[])),
            // It chooses the MPIs itself, and takes the programs that the tests have built.
            Self::Chaos => {
                let chaos = ["xtask", "chaos", "--profile", "dev", "--brief"];
                let mut command = cargo(&chaos);
                command.args(["--runs", OTHER_FAULTS, "--classes", FAULTS]);
                Work::Run(command)
            }
            // SPIN is installed by setup where that is allowed; without it its own tests say so.
            Self::Proof => Work::Run(without_mpi(mpis.first(), proofs())),
            Self::ProofDocs => {
                let mut examples = cargo(&["test", "--package", PROOF, "--package", SIMULATOR]);
                examples.arg("--doc");
                Work::Run(without_mpi(mpis.first(), examples))
            }
            Self::DocTests => {
                let mut examples = cargo(&["test"]);
                // As the tests are built, or all would be built again.
                examples.args(ALL_BUT_PROOFS).arg("--doc");
                with_mpi(mpis.first(), examples)
            }
            Self::TestNoMpi => {
                Work::Run(without_mpi(mpis.first(), tests_without_features(has_nextest())))
            }
            Self::Deny => match deny::find() {
                Some(command) => Work::Run(command),
                // No person waits for it there, so that it may take its minutes.
                None if std::env::var_os("CI").is_some() => Work::Run(cargo(&["xtask", "deny"])),
                None => Work::Skip("no cargo-deny; `cargo xtask deny` installs and runs it".into()),
            },
        }
    }
}

/// The classes of faults: kills of some of the computations that there are (the seed says which),
/// some of roots, all ways to spoil standard error, and of each of the others this number of jobs.
const FAULTS: &str = "kill=16,root=8,stop,cut,loss,overload,stderr=4,memory,journal=3,odd=4,\
                      descriptors,launcher,proxy,guard,start-up";
const OTHER_FAULTS: &str = "2";

fn of(mpis: &[Mpi], family: Family) -> Option<&Mpi> {
    mpis.iter().find(|mpi| mpi.family == family)
}

fn with_mpi(mpi: Option<&Mpi>, mut command: Command) -> Work {
    match mpi {
        Some(mpi) => {
            mpi.apply_to(&mut command);
            Work::Run(command)
        }
        None => Work::Skip("not installed, or not the MPI that MPICC names".into()),
    }
}

/// In the folder of an MPI if there is one, where most of the dependencies are built already.
fn without_mpi(mpi: Option<&Mpi>, mut command: Command) -> Command {
    let own = || process::target_root().join("no-mpi");
    command.env("CARGO_TARGET_DIR", mpi.map_or_else(own, Mpi::target_dir));
    command
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = process::cargo();
    command.args(arguments);
    command
}

/// All programs of the examples, and what is built for `cargo xtask bench` alone.
const BENCHMARKS: &str = "ultramarine-examples/all,ultramarine-examples/bench";

fn clippy(features: &[&str]) -> Command {
    let mut command = cargo(&["clippy", "--workspace", "--all-targets"]);
    command.args(features).args(["--", "-D", "warnings"]);
    command
}

fn docs() -> Command {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// The crates whose tests take long, and need to be run once only, whatever the MPI.
const PROOF: &str = "ultramarine-proof";
const SIMULATOR: &str = "ultramarine-simulator";

/// What is built for the tests. The proofs and the simulator enable a feature of the runtime, with
/// which all would be built again.
pub(crate) const ALL_BUT_PROOFS: [&str; 5] =
    ["--workspace", "--exclude", PROOF, "--exclude", SIMULATOR];

/// What the tests build for an MPI, where there are several.
pub(crate) fn built(family: Family) -> &'static [&'static str] {
    match family {
        Family::Mpich => &ALL_BUT_PROOFS,
        Family::OpenMpi => LAUNCHING,
    }
}

/// The crates whose tests launch programs. To the others one MPI is like another.
#[rustfmt::skip]
const LAUNCHING: &[&str] = &[
    "--package", "ultramarine", "--package", "ultramarine-guard", "--package", "ultramarine-probe",
    "--package", "ultramarine-gap-job", "--package", "ultramarine-cli",
    "--package", "ultramarine-examples",
];

/// Of their tests those that are worth running under a second MPI, as a filter of nextest: not
/// those that have all PEs in one process or launch none, nor what the examples compute, some of
/// which chaos runs under each.
const OF_EACH_MPI: &str = "test(/^(faults|guest)::/) + not (package(ultramarine-examples) \
     + binary(leftovers) + binary(loads) + ((kind(lib) + kind(bin)) - package(ultramarine-guard)) \
     + (binary(jobs) & test(/^(blocked|cluster::scripts|compile_fail|drops|progress|threads)::/)) \
     + (binary(command) & (test(/^(journal|papers)::/) + (test(/^gap::/) - test(/death/)))))";

/// The tests inside the libraries and the commands, and those of jobs in one process. The proofs
/// are apart, as always, and the programs of the examples are too many to link.
#[rustfmt::skip]
const OF_ONE_PROCESS: &[&str] = &[
    "--workspace", "--exclude", PROOF, "--exclude", SIMULATOR, "--exclude", "ultramarine-examples",
    "--lib", "--bin", "ultramarine", "--bin", "xtask", "--test", "all", "--test", "leftovers",
];

/// Of these those that do not wait for silence to be noticed, as a filter of nextest.
const SOON_DONE: &str = "not test(/^detector::/)";

/// The crates that do something else without MPI or hwloc. (The runtime only lacks a lane; that it
/// compiles, the lints see.)
#[rustfmt::skip]
const WITH_FEATURES: &[&str] = &[
    "--package", "ultramarine-topology", "--package", "ultramarine",
    "--package", "ultramarine-probe", "--package", "ultramarine-gap-job",
    "--package", "ultramarine-cli",
    "--lib", "--bins", "--test", "jobs", "--test", "command", "--test", "topo",
];

/// Of their tests those that would notice, as a filter of nextest: inside one process a job runs
/// the same code either way.
const NOTICING: &str = "kind(lib) + kind(bin) + (binary(command) - test(/^gap::/)) + binary(topo) \
     + test(/^(endings|output)::/)";

fn tests(packages: &[&str], features: &[&str]) -> Command {
    tests_by(has_nextest(), packages, features)
}

/// Without nextest, which can choose, the others run as well.
fn units(has_nextest: bool) -> Command {
    let filter = ["--filterset", SOON_DONE];
    tests_by(has_nextest, OF_ONE_PROCESS, if has_nextest { &filter } else { &[] })
}

/// Tests that find nothing to test here say so, and some print tables: nextest's configuration
/// shows those that matter.
fn tests_by(has_nextest: bool, packages: &[&str], features: &[&str]) -> Command {
    let mut command = runner(has_nextest, packages);
    command.args(features);
    if !has_nextest {
        command.args(SHOW_OUTPUT);
    }
    command
}

/// As above, without MPI and hwloc.
fn tests_without_features(has_nextest: bool) -> Command {
    let filter = ["--no-default-features", "--filterset", NOTICING];
    tests_by(has_nextest, WITH_FEATURES, if has_nextest { &filter } else { &filter[..1] })
}

/// What makes libtest show what tests print that pass.
const SHOW_OUTPUT: [&str; 2] = ["--", "--show-output"];

/// How many states there are is worth reading: what the tests print is shown.
fn proofs() -> Command {
    let has_nextest = has_nextest();
    let mut command =
        runner(has_nextest, &["--package", PROOF, "--package", SIMULATOR, "--all-targets"]);
    command.args(if has_nextest { ["--success-output", "final"] } else { SHOW_OUTPUT });
    command
}

/// nextest runs each test in its own process, so one that aborts or hangs spoils no other.
/// Most tests wait more than they compute, so that two for each core take little longer than one.
fn runner(has_nextest: bool, packages: &[&str]) -> Command {
    let mut command = cargo(if has_nextest { &["nextest", "run"] } else { &["test"] });
    command.args(packages).arg("--no-fail-fast");
    command.env(TEST_THREADS, (2 * cores()).to_string());
    command
}

/// Where nextest reads how many tests to run at a time.
const TEST_THREADS: &str = "NEXTEST_TEST_THREADS";

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

fn has_nextest() -> bool {
    process::succeeds(&mut cargo(&["nextest", "--version"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mpi(family: Family, suffix: &str) -> Mpi {
        Mpi { family, mpicc: format!("mpicc.{suffix}"), mpiexec: format!("mpiexec.{suffix}") }
    }

    fn variable(step: Step, mpis: &[Mpi], name: &str) -> Option<String> {
        let Work::Run(command) = step.work(mpis) else { return None };
        let mut variables = command.get_envs();
        let value = variables.find(|(key, _)| *key == name)?.1?;
        Some(value.to_string_lossy().into_owned())
    }

    #[test]
    fn each_test_step_gets_its_own_launcher_and_folder() {
        let mpis = [mpi(Family::Mpich, "mpich"), mpi(Family::OpenMpi, "openmpi")];
        let launcher = |step| variable(step, &mpis, "MPIEXEC_FOR_TESTS");
        assert_eq!(launcher(Step::TestMpich).as_deref(), Some("mpiexec.mpich"));
        assert_eq!(launcher(Step::TestOpenMpi).as_deref(), Some("mpiexec.openmpi"));
        assert_eq!(launcher(Step::TestNoMpi), None);
        let folder = |step| variable(step, &mpis, "CARGO_TARGET_DIR").unwrap();
        assert!(folder(Step::TestMpich).ends_with("/mpich"));
        assert!(folder(Step::TestOpenMpi).ends_with("/openmpi"));
        assert!(folder(Step::TestNoMpi).ends_with("/mpich"));
    }

    #[test]
    fn a_step_without_its_mpi_is_skipped() {
        let mpis = [mpi(Family::OpenMpi, "openmpi")];
        assert!(matches!(Step::TestMpich.work(&mpis), Work::Skip(_)));
        assert!(matches!(Step::TestOpenMpi.work(&mpis), Work::Run(_)));
        assert!(matches!(Step::DocTests.work(&mpis), Work::Run(_)));
    }

    #[test]
    fn the_quick_steps_are_first_and_the_whole_leaves_their_doubles_out() {
        let names = |steps: Vec<Step>| steps.into_iter().map(Step::name).collect::<Vec<_>>();
        let quick = ["format", "tidy", "clippy", "units", "smoke"];
        assert_eq!(names(Step::quick()), quick);
        assert_eq!(names(Step::whole())[..4], ["format", "tidy", "clippy", "clippy-no-mpi"]);
        assert_eq!(Step::whole().len() + QUICK_ONLY.len(), Step::value_variants().len());
    }

    #[test]
    fn without_nextest_what_tests_print_is_shown() {
        let words = |has_nextest| {
            let command = tests_by(has_nextest, &ALL_BUT_PROOFS, &["--no-default-features"]);
            process::shown(&command).split_once(' ').map(|(_, words)| words.to_owned()).unwrap()
        };
        let common = "--workspace --exclude ultramarine-proof --exclude ultramarine-simulator \
                      --no-fail-fast";
        assert_eq!(words(true), format!("nextest run {common} --no-default-features"));
        assert_eq!(words(false), format!("test {common} --no-default-features -- --show-output"));
    }

    #[test]
    fn without_features_nextest_runs_those_that_notice() {
        let has_filter = |has_nextest| {
            let shown = process::shown(&tests_without_features(has_nextest));
            shown.contains("--no-default-features") && shown.contains(NOTICING)
        };
        assert!(has_filter(true) && !has_filter(false));
    }

    #[test]
    fn without_any_mpi_the_steps_that_need_setup_are_skipped() {
        // The tools of these may be missing, too.
        let others = [Step::Format, Step::Tidy, Step::Deny];
        for step in Step::value_variants().iter().filter(|step| !others.contains(step)) {
            let skipped = matches!(step.work(&[]), Work::Skip(_));
            assert_eq!(skipped, step.needs_setup(), "{step:?}");
        }
    }
}
