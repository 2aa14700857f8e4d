//! What the tests of several examples share.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use ultramarine_testkit::{Ended, alone, run};

/// Skeletons that spread the work over all PEs.
pub(crate) const SKELETONS: [&str; 9] = [
    "par-map",
    "par-map-chunked",
    "par-map-sliced",
    "push-map",
    "push-map-chunked",
    "push-map-sliced",
    "par-map-local",
    "par-map-2level",
    "par-map-2level-relaxed",
];

/// Skeletons that keep the work on the root.
pub(crate) const SKELETONS_OF_ROOT: [&str; 3] = ["fork-map", "rayon", "sequential"];

/// Ways to divide and conquer.
pub(crate) const DIVISIONS: [&str; 5] = [
    "par-divide-and-conquer",
    "push-divide-and-conquer",
    "fork-divide-and-conquer",
    "rayon",
    "sequential",
];

/// A program of the examples, by its file.
#[derive(Clone, Copy)]
pub(crate) struct Program(pub(crate) &'static str);

pub(crate) const CHOLESKY: Program = Program(env!("CARGO_BIN_EXE_cholesky"));
pub(crate) const CONJUGATE_GRADIENT: Program = Program(env!("CARGO_BIN_EXE_conjugate_gradient"));
pub(crate) const CUBE: Program = Program(env!("CARGO_BIN_EXE_cube"));
pub(crate) const FIBONACCI: Program = Program(env!("CARGO_BIN_EXE_fibonacci"));
pub(crate) const K_MEDOIDS: Program = Program(env!("CARGO_BIN_EXE_k_medoids"));
pub(crate) const KARATSUBA: Program = Program(env!("CARGO_BIN_EXE_karatsuba"));
pub(crate) const KNAPSACK: Program = Program(env!("CARGO_BIN_EXE_knapsack"));
pub(crate) const LIOUVILLE: Program = Program(env!("CARGO_BIN_EXE_liouville"));
pub(crate) const MANDELBROT: Program = Program(env!("CARGO_BIN_EXE_mandelbrot"));
pub(crate) const MAXCLIQUE: Program = Program(env!("CARGO_BIN_EXE_maxclique"));
pub(crate) const MERGE_SORT: Program = Program(env!("CARGO_BIN_EXE_merge_sort"));
pub(crate) const NAPS: Program = Program(env!("CARGO_BIN_EXE_naps"));
pub(crate) const ORBIT: Program = Program(env!("CARGO_BIN_EXE_orbit"));
pub(crate) const PAGERANK: Program = Program(env!("CARGO_BIN_EXE_pagerank"));
pub(crate) const PI: Program = Program(env!("CARGO_BIN_EXE_pi"));
pub(crate) const PUZZLE: Program = Program(env!("CARGO_BIN_EXE_puzzle"));
pub(crate) const QUADRATURE: Program = Program(env!("CARGO_BIN_EXE_quadrature"));
pub(crate) const QUEENS: Program = Program(env!("CARGO_BIN_EXE_queens"));
pub(crate) const STENCIL: Program = Program(env!("CARGO_BIN_EXE_stencil"));
pub(crate) const SUM_EULER: Program = Program(env!("CARGO_BIN_EXE_sum_euler"));
pub(crate) const SWEEP: Program = Program(env!("CARGO_BIN_EXE_sweep"));
pub(crate) const TASK_BENCH: Program = Program(env!("CARGO_BIN_EXE_task_bench"));
pub(crate) const UTS: Program = Program(env!("CARGO_BIN_EXE_uts"));
pub(crate) const WAVEFRONT: Program = Program(env!("CARGO_BIN_EXE_wavefront"));
pub(crate) const WORDCOUNT: Program = Program(env!("CARGO_BIN_EXE_wordcount"));

impl AsRef<OsStr> for Program {
    fn as_ref(&self) -> &OsStr {
        self.0.as_ref()
    }
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        self.0.rsplit('/').next().unwrap_or(self.0)
    }

    /// It with these flags, in an environment without launchers and settings.
    pub(crate) fn command(self, flags: &str) -> Command {
        alone(self, flags)
    }

    /// It for what is in a file.
    pub(crate) fn given(self, file: &Path, flags: &str) -> Command {
        let mut command = self.command(flags);
        command.arg("--file").arg(file);
        command
    }

    /// It refuses what is no file of these things.
    #[track_caller]
    pub(crate) fn refuses_what_is_no_file(self, things: &str) {
        for (path, why) in
            [("/nowhere", "No such file"), ("/", ""), ("/dev/zero", "it is not a regular file")]
        {
            let ended = run(&mut self.given(Path::new(path), ""));
            ended.fails_with(&format!("cannot read the {things} {path}: {why}"));
        }
    }

    /// Runs it alone.
    #[track_caller]
    pub(crate) fn run(self, flags: &str) -> Ended {
        run(&mut self.command(flags))
    }

    /// What it reports, run alone with these flags.
    #[track_caller]
    pub(crate) fn report(self, flags: &str) -> Value {
        self.run(&format!("{flags} --json")).report()
    }

    /// The result among that.
    #[track_caller]
    pub(crate) fn result(self, flags: &str) -> Value {
        self.report(flags)["result"].clone()
    }

    /// It succeeds, and prints these texts.
    #[track_caller]
    pub(crate) fn shows(self, flags: &str, texts: &[&str]) {
        let ended = self.run(flags);
        let shown = ended.succeeded();
        texts.iter().for_each(|text| assert!(shown.contains(text), "`{text}` is not in {shown}"));
    }

    /// It fails with each of these flags, and says this.
    #[track_caller]
    pub(crate) fn refuses(self, cases: &[(&str, &str)]) {
        cases.iter().for_each(|(flags, text)| self.run(flags).fails_with(text));
    }

    /// This many ranks of it, under the launcher that belongs to this build.
    #[cfg(feature = "mpi")]
    pub(crate) fn launched(self, ranks: u32, flags: &str) -> Option<Command> {
        launched(self, ranks, flags)
    }

    /// Runs it on one to `most` ranks, over each lane; looks at what it reports.
    #[cfg(feature = "mpi")]
    #[track_caller]
    pub(crate) fn on_ranks(self, most: u32, flags: &str, check: impl Fn(&Value)) {
        for (ranks, lane) in (1..=most).flat_map(|ranks| ["mpi", "tcp"].map(|lane| (ranks, lane))) {
            let flags = format!("{flags} --json --lane {lane}");
            let Some(mut command) = self.launched(ranks, &flags) else { return };
            let report = run(&mut command).report();
            assert_eq!(report["pes"], ranks, "{flags}");
            check(&report);
        }
    }

    /// Runs it on four ranks, some of which die at these moments; looks at what it reports.
    #[cfg(feature = "mpi")]
    #[track_caller]
    pub(crate) fn survives(self, moments: &str, flags: &str, check: impl Fn(&Value)) {
        let flags = format!("{flags} --threads 1 --json --supervised --kill-at {moments}");
        let Some(mut command) = self.launched(4, &flags) else { return };
        let (ended, deaths) = (run(&mut command), moments.split(',').count());
        check(&ended.report());
        assert_eq!(ended.err.matches("kills itself").count(), deaths, "{flags}: {}", ended.err);
    }
}

/// The launcher that belongs to this build, starting this many ranks of a program.
pub(crate) fn launched(program: impl AsRef<OsStr>, ranks: u32, flags: &str) -> Option<Command> {
    let mut command = launcher()?;
    command.args(["-n", &ranks.to_string()]).arg(program).args(flags.split_whitespace());
    Some(command)
}

/// The launcher that belongs to this build, for PEs with one worker each.
pub(crate) fn launcher() -> Option<Command> {
    let mut command = ultramarine_testkit::launcher()?;
    command.env("ULTRAMARINE_THREADS", "1");
    Some(command)
}
