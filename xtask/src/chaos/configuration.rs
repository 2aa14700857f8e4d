//! The ways to run a job, tried in turn: launcher, lane, program, skeleton.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;

use super::input::{Answer, Input};
use crate::mpi::Mpi;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LaneChoice {
    Mpi,
    Tcp,
    All,
}

/// A computation with a known result, of about a second on one core or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    flags: &'static str,
    /// Lazy, and eager where there is such a thing. Without a choice: one that has no name.
    skeletons: &'static [&'static str],
    /// Of about this many tasks some may be lost and have to be run again.
    pub(crate) tasks: u64,
    pub(crate) input: Input,
    pub(crate) answer: Answer,
}

const MAPS: &[&str] = &["par-map", "push-map"];
pub(crate) const SUM_EULER: Program = Program {
    name: "sum_euler",
    flags: "--upto 10000 --tasks 300",
    skeletons: MAPS,
    tasks: 300,
    input: Input::Nothing,
    answer: Answer::Is("30397486"),
};
const LIOUVILLE: Program = Program {
    name: "liouville",
    flags: "--upto 100000000 --tasks 200",
    skeletons: MAPS,
    tasks: 200,
    input: Input::Nothing,
    answer: Answer::Is("-3884"),
};
const QUEENS: Program = Program {
    name: "queens",
    flags: "--board 15",
    skeletons: &["par-divide-and-conquer", "push-divide-and-conquer"],
    tasks: 100,
    input: Input::Nothing,
    answer: Answer::Is("2279184"),
};
const UTS: Program = Program {
    name: "uts",
    flags: "-t 1 -a 3 -d 11 -b 4 -r 19",
    skeletons: &["par-enumerate"],
    tasks: 100,
    input: Input::Nothing,
    answer: Answer::Is("16526523"),
};
/// Megabytes go to each task, and come back.
const MERGE_SORT: Program = Program {
    name: "merge_sort",
    flags: "--numbers 8000000 --tasks 40",
    skeletons: MAPS,
    tasks: 40,
    input: Input::Nothing,
    answer: Answer::Is("7832592921160045307"),
};
/// All tasks read one table, which is fetched from a PE that has it.
const SWEEP: Program = Program {
    name: "sweep",
    flags: "--points 300 --table-mb 20",
    skeletons: &["map", "push-map"],
    tasks: 300,
    input: Input::Nothing,
    answer: Answer::Is("5880121169931680734"),
};
/// Each PE waits for its neighbours at each step. There are few: where packets are lost, a step
/// takes a tenth of a second.
const STENCIL: Program = Program {
    name: "stencil",
    flags: "--rows 1000 --columns 500 --steps 100 --round 50",
    skeletons: &["bands"],
    tasks: 10,
    input: Input::Nothing,
    answer: Answer::Is("5945733120749905884"),
};
const KNAPSACK: Program = Program {
    name: "knapsack",
    flags: "--items 100 --seed 27",
    skeletons: &["par-maximise"],
    tasks: 100,
    input: Input::Nothing,
    answer: Answer::Is("3579587"),
};
const QUADRATURE: Program = Program {
    name: "quadrature",
    flags: "--function peak --tolerance 1e-8",
    skeletons: &["par-divide-and-conquer", "push-divide-and-conquer"],
    tasks: 100,
    input: Input::Nothing,
    answer: Answer::Is("9839707.230341071"),
};
/// The programs on graphs, whose results are lost with the PEs that hold them, and computed again.
const GRAPH: &[&str] = &["dag"];
const ONLY: &[&str] = &[""];
const KARATSUBA: Program = Program {
    name: "karatsuba",
    flags: "--threshold 256",
    skeletons: ONLY,
    tasks: 265_000,
    input: Input::Numbers(100_000),
    answer: Answer::Product(100_000),
};
/// Results are arrays of 128 KiB, dropped once read: what was lost needs what was dropped.
const CHOLESKY: Program = Program {
    name: "cholesky",
    flags: "--size 3072 --tile 128 --drop-used",
    skeletons: GRAPH,
    tasks: 3500,
    input: Input::Nothing,
    answer: Answer::Small,
};
/// At first all PEs wait for the root.
const WAVEFRONT: Program = Program {
    name: "wavefront",
    flags: "--tile 512",
    skeletons: GRAPH,
    tasks: 4500,
    input: Input::Sequences(24_000),
    answer: Answer::Is("10645"),
};
const WORDCOUNT: Program = Program {
    name: "wordcount",
    flags: "--part-kib 64",
    skeletons: ONLY,
    tasks: 160,
    input: Input::Words(2_000_000),
    answer: Answer::Is("2000000"),
};
const TASK_BENCH: Program = Program {
    name: "task_bench",
    flags: "--pattern random-nearest --width 40 --steps 100 --iterations 8000",
    skeletons: &["dag", "blocks", "stream"],
    tasks: 4000,
    input: Input::Nothing,
    answer: Answer::Is("-1487977757492390968"),
};
/// Its tasks sleep; one of them does more, if that is asked for.
pub(crate) const ODD_TASKS: Program = Program {
    name: "odd_tasks",
    flags: "--tasks 300",
    skeletons: MAPS,
    tasks: 300,
    input: Input::Nothing,
    answer: Answer::Is("8955050"),
};
pub(crate) const PROGRAMS: [Program; 15] = [
    SUM_EULER, LIOUVILLE, QUEENS, UTS, MERGE_SORT, SWEEP, STENCIL, KNAPSACK, QUADRATURE, KARATSUBA,
    CHOLESKY, WAVEFRONT, WORDCOUNT, TASK_BENCH, ODD_TASKS,
];

/// What is said to try all programs.
pub(crate) const ALL: &str = "all";

/// The most skeletons that a program has a choice of.
const SKELETONS_MAX: usize = 3;

/// What may be said to choose a program.
pub(crate) fn choices() -> PossibleValuesParser {
    PROGRAMS.iter().map(|program| program.name).chain([ALL]).collect::<Vec<_>>().into()
}

/// One way to run a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Configuration {
    pub(crate) mpi: Mpi,
    pub(crate) lane: &'static str,
    pub(crate) program: Program,
    pub(crate) skeleton: &'static str,
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Configuration { mpi, lane, program, skeleton } = self;
        let launcher = mpi.family.name();
        write!(f, "{launcher:<8}  {lane:<4}  {:<14}  {skeleton:<23}", program.name)
    }
}

impl Program {
    /// Whether it can keep its results in a journal.
    pub(crate) fn has_journal(&self) -> bool {
        let lack_it = ["stencil", "sweep", "cholesky", "wavefront", "wordcount", "task_bench"];
        !lack_it.contains(&self.name)
    }
}

impl Configuration {
    /// The program's file, in this folder of a build.
    pub(crate) fn file(&self, folder: &str) -> PathBuf {
        let path = self.mpi.target_dir().join(folder).join(self.program.name);
        // As the system knows it.
        path.canonicalize().unwrap_or(path)
    }

    /// Whether it is the same but for the lane.
    pub(crate) fn takes_as_long_as(&self, other: &Self) -> bool {
        *self == Configuration { lane: self.lane, ..other.clone() }
    }

    /// The program's arguments.
    pub(crate) fn arguments(&self) -> Vec<&'static str> {
        let mut words: Vec<_> = self.program.flags.split(' ').collect();
        words.extend(["--threads", "1", "--lane", self.lane, "--supervised", "--json"]);
        if !self.skeleton.is_empty() {
            words.extend(["--skeleton", self.skeleton]);
        }
        words
    }
}

/// All that are chosen. What differs most changes fastest, so that a few runs see much.
pub(crate) fn all(mpis: &[Mpi], lane: LaneChoice, program: &str) -> Vec<Configuration> {
    let lanes: &[&str] = match lane {
        LaneChoice::Mpi => &["mpi"],
        LaneChoice::Tcp => &["tcp"],
        LaneChoice::All => &["mpi", "tcp"],
    };
    let programs = PROGRAMS.iter().filter(|one| program == ALL || program == one.name);
    let mut all = Vec::new();
    for nth in 0..SKELETONS_MAX {
        for program in programs.clone() {
            let Some(skeleton) = program.skeletons.get(nth) else { continue };
            for lane in lanes {
                for mpi in mpis {
                    let (mpi, program) = (mpi.clone(), *program);
                    all.push(Configuration { mpi, lane, program, skeleton });
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::Family;

    fn mpis() -> [Mpi; 2] {
        Family::ALL.map(|family| Mpi { family, mpicc: "mpicc".into(), mpiexec: "mpiexec".into() })
    }

    #[test]
    fn all_means_every_combination_once() {
        let all = all(&mpis(), LaneChoice::All, ALL);
        assert_eq!(all.len(), 96);
        let unequal = |i: usize| all[i + 1..].iter().all(|other| *other != all[i]);
        assert!((0..96).all(unequal));
        assert!(PROGRAMS.iter().all(|program| program.skeletons.len() <= SKELETONS_MAX));
        // The first few differ in launcher and lane.
        assert_ne!(all[0].mpi.family, all[1].mpi.family);
        assert_ne!(all[0].lane, all[2].lane);
        assert!(all[0].takes_as_long_as(&all[2]) && !all[0].takes_as_long_as(&all[1]));
    }

    /// Otherwise it would refuse the flag, and each seed tries only a few of them.
    #[test]
    fn what_has_a_journal_is_what_takes_the_flag() {
        let folder = crate::process::root().join("examples/src/programs");
        for program in PROGRAMS {
            let file = folder.join(program.name).join("mod.rs");
            let file =
                if file.exists() { file } else { folder.join(program.name).with_extension("rs") };
            let source = std::fs::read_to_string(file).expect("each program has a file");
            let takes_it = ["JournalFlags", "MapFlags"].iter().any(|flags| source.contains(flags));
            assert_eq!(program.has_journal(), takes_it, "{}", program.name);
        }
    }

    #[test]
    fn choices_narrow_it_down() {
        let all = all(&mpis()[..1], LaneChoice::Tcp, "sum_euler");
        assert_eq!(all.len(), MAPS.len());
        assert!(all.iter().all(|one| one.lane == "tcp" && one.program == SUM_EULER));
    }
}
