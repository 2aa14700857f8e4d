//! The ways to run a job, tried in turn: launcher, lane, program, skeleton.

use std::fmt;
use std::path::PathBuf;

use super::arguments::takes;
use super::input::{Answer, Input};
use crate::mpi::Mpi;

/// What may carry the messages.
pub(crate) const LANES: [&str; 2] = ["mpi", "tcp"];

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
const DIVISIONS: &[&str] = &["par-divide-and-conquer", "push-divide-and-conquer"];
/// Results of graphs are lost with the PEs that hold them, and computed again.
const GRAPH: &[&str] = &["dag"];
/// All that is found is in a table, whose copies outlive all PEs but one.
const STATES: &[&str] = &["table"];
/// Ranks go back to a checkpoint.
const SUPERSTEPS: &[&str] = &["ranks"];
const ONLY: &[&str] = &[""];

/// A program without input, which has this result.
const fn program(
    name: &'static str,
    flags: &'static str,
    skeletons: &'static [&'static str],
    tasks: u64,
    result: &'static str,
) -> Program {
    let (input, answer) = (Input::Nothing, Answer::Is(result));
    Program { name, flags, skeletons, tasks, input, answer }
}

pub(crate) const SUM_EULER: Program =
    program("sum_euler", "--upto 10000 --tasks 300", MAPS, 300, "30397486");
/// Its tasks sleep; one of them does more, if that is asked for.
pub(crate) const ODD_TASKS: Program = program("odd_tasks", "--tasks 300", MAPS, 300, "8955050");
/// Each PE waits for its neighbours at each step. There are few: where packets are lost, a step
/// takes a tenth of a second.
const STENCIL: &str = "--rows 1000 --columns 500 --steps 100 --ranks 16 --checkpoint-every 50";
/// Each rank sends each other 200 KB in a round.
const PAGERANK: &str = "--random 200000 --edges 8000000 --rounds 10 --checkpoint-every 4";
const K_MEDOIDS: &str = "--random 30000 --k 64 --ranks 16 --checkpoint-every 5";
const UTS: &str = "-t 1 -a 3 -d 11 -b 4 -r 19";
const TASK_BENCH: &str = "--pattern random-nearest --width 40 --steps 100 --iterations 8000";

pub(crate) const PROGRAMS: [Program; 19] = [
    SUM_EULER,
    program("liouville", "--upto 100000000 --tasks 200", MAPS, 200, "-3884"),
    program("queens", "--board 15", DIVISIONS, 100, "2279184"),
    // What PEs that die had to do lies in an arena, where the others find it.
    Program { input: Input::Arena, ..program("queens", "--board 14", ONLY, 100, "365596") },
    program("uts", UTS, &["par-enumerate"], 100, "16526523"),
    // Megabytes go to each task, and come back.
    program("merge_sort", "--numbers 8000000 --tasks 40", MAPS, 40, "7832592921160045307"),
    // All tasks read one table, which is fetched from a PE that has it.
    program(
        "sweep",
        "--points 300 --table-mb 20",
        &["map", "push-map"],
        300,
        "5880121169931680734",
    ),
    program("stencil", STENCIL, SUPERSTEPS, 10, "5945733120749905884"),
    program("pagerank", PAGERANK, SUPERSTEPS, 10, "6270409040061037785"),
    program("k_medoids", K_MEDOIDS, SUPERSTEPS, 10, "1447.9781866335106"),
    program("knapsack", "--items 100 --seed 27", &["par-maximise"], 100, "3579587"),
    program("quadrature", "--function peak --tolerance 1e-8", DIVISIONS, 100, "9839707.230341071"),
    Program {
        input: Input::Numbers(100_000),
        answer: Answer::Product(100_000),
        ..program("karatsuba", "--threshold 256", ONLY, 265_000, "")
    },
    // Results are arrays of 128 KiB, dropped once read: what was lost needs what was dropped.
    Program {
        answer: Answer::Small,
        ..program("cholesky", "--size 3072 --tile 128 --drop-used", GRAPH, 3500, "")
    },
    // At first all PEs wait for the root.
    Program {
        input: Input::Sequences(24_000),
        ..program("wavefront", "--tile 512 --copies 4", &["dag", "memo"], 4500, "10645")
    },
    program("puzzle", "--copies 4", STATES, 10, "181440"),
    Program {
        input: Input::Words(2_000_000),
        ..program("wordcount", "--part-kib 64", ONLY, 160, "2000000")
    },
    program("task_bench", TASK_BENCH, &["dag", "blocks", "stream"], 4000, "-1487977757492390968"),
    ODD_TASKS,
];

/// The most skeletons that a program has a choice of.
const SKELETONS_MAX: usize = 3;

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
        let lack_it = ["sweep", "cholesky", "wavefront", "puzzle", "wordcount", "task_bench"];
        self.skeletons != SUPERSTEPS && !self.has_arena() && !lack_it.contains(&self.name)
    }

    /// Whether it keeps its results in an arena.
    pub(crate) fn has_arena(&self) -> bool {
        self.input == Input::Arena
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
pub(crate) fn all(mpis: &[Mpi], lane: &str, program: &str) -> Vec<Configuration> {
    let programs = PROGRAMS.iter().filter(|one| takes(program, one.name));
    let mut all = Vec::new();
    for nth in 0..SKELETONS_MAX {
        for program in programs.clone() {
            let Some(skeleton) = program.skeletons.get(nth) else { continue };
            for lane in LANES.into_iter().filter(|one| takes(lane, one)) {
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
    use crate::chaos::arguments::ALL;
    use crate::mpi::Family;

    fn mpis() -> [Mpi; 2] {
        Family::ALL.map(|family| Mpi { family, mpicc: "mpicc".into(), mpiexec: "mpiexec".into() })
    }

    #[test]
    fn all_means_every_combination_once() {
        let all = all(&mpis(), ALL, ALL);
        assert_eq!(all.len(), 116);
        let unequal = |i: usize| all[i + 1..].iter().all(|other| *other != all[i]);
        assert!((0..116).all(unequal));
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
        for program in PROGRAMS.iter().filter(|program| !program.has_arena()) {
            let file = folder.join(program.name).join("mod.rs");
            let file =
                if file.exists() { file } else { folder.join(program.name).with_extension("rs") };
            let source = std::fs::read_to_string(file).expect("each program has a file");
            let takes_it = ["JournalFlags", "MapFlags", "DivideFlags", "SearchFlags"]
                .iter()
                .any(|flags| source.contains(flags));
            assert_eq!(program.has_journal(), takes_it, "{}", program.name);
        }
    }

    #[test]
    fn choices_narrow_it_down() {
        let all = all(&mpis()[..1], "tcp", "sum_euler");
        assert_eq!(all.len(), MAPS.len());
        assert!(all.iter().all(|one| one.lane == "tcp" && one.program == SUM_EULER));
    }
}
