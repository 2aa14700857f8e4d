//! Whole programs beside plain MPI, as in NEWT, tables 5.1 and 5.2: without checkpoints, with about
//! ten, and with these and a PE that kills itself in the middle.
//!
//! The dead PE's ranks go to the other PE, which has one core. So a death in the middle makes a run
//! about half as long again, even if nothing is computed again. That, and what is computed again,
//! is in the time that a death costs: the recovery itself takes less.

use super::{PES, ROUNDS};
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use std::fmt::Write as _;
use ultramarine::Result;

const CHECKPOINTS: u64 = 10;

struct Work {
    program: &'static str,
    flags: &'static str,
    /// The number of supersteps.
    supersteps: u64,
    /// The most that it may take over MPI by hand without checkpoints.
    goal: Option<Goal>,
}

const WORKS: [Work; 5] = [
    Work {
        program: "conjugate_gradient",
        flags: "--laplacian 500 --iterations 400",
        supersteps: 1203,
        goal: Some(Goal::AtMost(1.05)),
    },
    Work {
        program: "k_medoids",
        flags: "--random 25000 --k 100",
        supersteps: 45,
        goal: Some(Goal::AtMost(1.05)),
    },
    Work {
        program: "pagerank",
        flags: "--random 1000000 --edges 10000000 --rounds 20",
        supersteps: 22,
        goal: Some(Goal::AtMost(1.1)),
    },
    Work { program: "pi", flags: "--intervals 500000000", supersteps: 2, goal: None },
    Work {
        program: "stencil",
        flags: "--rows 512 --columns 1024 --steps 5000",
        supersteps: 5001,
        goal: Some(Goal::AtMost(1.1)),
    },
];

/// How a program is run on two PEs, in turn.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Saved,
    Killed,
    RootKilled,
}

const KINDS: [(Kind, &str); 4] = [
    (Kind::Plain, "2 PEs"),
    (Kind::Saved, "checkpoints"),
    (Kind::Killed, "a PE killed"),
    (Kind::RootKilled, "the root killed"),
];

/// The runs of one kind.
#[derive(Default)]
struct Runs {
    seconds: Sample,
    /// The same over MPI by hand, in the same round.
    over: Sample,
    /// In which supersteps PEs were killed.
    killed_in: Sample,
    /// How many have ended before the death came. They count nowhere else.
    early: usize,
}

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let rounds = bench.rounds(ROUNDS);
    let mut table = format!("medians of {rounds} runs in turn, seconds (over MPI by hand):\n");
    // Writing into a string cannot fail.
    let _ = write!(table, "{:<20}{:>11}{:>13}", "", "supersteps", "MPI by hand");
    for (_, name) in &KINDS {
        let _ = write!(table, "{name:>17}");
    }
    for work in &WORKS {
        let (mpi, runs) = work.run(bench)?;
        let (program, supersteps) = (work.program, work.supersteps);
        report.figure(&format!("{program}: MPI by hand"), &mpi, Unit::SECONDS);
        let _ = write!(table, "\n{program:<20}{supersteps:>11}{:>13.3}", mpi.median());
        for ((_, name), runs) in KINDS.iter().zip(&runs) {
            let name = format!("{program}: {name}");
            if runs.early > 0 {
                let early = format!("{} of {rounds} runs ended before the death", runs.early);
                report.text(&format!("{name}: {early}, and do not count"));
            }
            let mut cell = "–".to_owned();
            if runs.seconds.len() > 0 {
                report.figure(&name, &runs.seconds, Unit::SECONDS);
                cell = format!("{:.3} ({:.2})", runs.seconds.median(), runs.over.median());
            }
            if runs.killed_in.len() > 0 {
                let what = format!("{name}, of {supersteps} supersteps in");
                report.figure(&what, &runs.killed_in, Unit::COUNT);
            }
            let _ = write!(table, "{cell:>17}");
        }
        report.goal(&format!("{program}, over MPI by hand"), &runs[0].over, Unit::TIMES, work.goal);
        let [_, saved, killed, root_killed] = &runs;
        for (killed, whose) in [(killed, "a PE"), (root_killed, "the root")] {
            if killed.seconds.len() > 0 && work.supersteps > 2 {
                let longer = killed.seconds.with(&saved.seconds, |killed, saved| killed - saved);
                let what = format!("{program}: {whose} killed, longer than with checkpoints");
                report.goal(&what, &longer, Unit::SECONDS, Goal::AtMost(1.0));
            }
        }
    }
    report.text(&table);
    Ok(())
}

impl Work {
    /// Runs it by MPI and in each way, in turn. All come to the same result.
    fn run(&self, bench: &Bench) -> Result<(Sample, [Runs; KINDS.len()])> {
        let twin = bench.program(&format!("{}_mpi", self.program), self.flags);
        let (mut twin, mut known) = (bench.on(PES, &twin), None);
        let (mut mpi, mut found) = (Sample::new(), KINDS.map(|_| Runs::default()));
        for _ in 0..bench.rounds(ROUNDS) {
            let theirs = launch::run(&mut twin)?.printed(&mut known)?.seconds;
            mpi.push(theirs);
            let (mut usual, mut apart) = (0.0, 0.0);
            for ((kind, _), runs) in KINDS.iter().zip(&mut found) {
                let Some(flags) = self.flags_of(*kind, usual) else { continue };
                let program = bench.program(self.program, &flags);
                let finished = launch::run_quietly(&mut bench.on(PES, &program))?;
                let printed = finished.printed(&mut known)?;
                if matches!(kind, Kind::Killed | Kind::RootKilled) && printed.dead == 0 {
                    runs.early += 1;
                    continue;
                }
                if let Some(superstep) = finished.number_after("killed in superstep ") {
                    runs.killed_in.push(superstep);
                }
                let mut seconds = printed.seconds;
                match kind {
                    Kind::Plain => usual = seconds,
                    Kind::Saved => (),
                    Kind::Killed => apart = printed.whole - seconds,
                    // A new root's clock begins with it. Start and end take as long as in the run
                    // before, which has lost a PE, too.
                    Kind::RootKilled => seconds = printed.whole - apart,
                }
                runs.seconds.push(seconds);
                runs.over.push(seconds / theirs);
            }
        }
        Ok((mpi, found))
    }

    /// The flags for this kind, if it can be, where a run usually takes this many seconds.
    fn flags_of(&self, kind: Kind, usual: f64) -> Option<String> {
        let Work { flags, supersteps, .. } = self;
        let every = (supersteps / (CHECKPOINTS + 1)).max(1);
        let saved = format!("--checkpoint-every {every}");
        // Where all is computed in one superstep, only the time says when the middle is.
        let middle = match supersteps / 2 {
            ..2 => format!("--kill-at {:.3}", usual / 2.0),
            middle => format!("--kill-in {middle}"),
        };
        let more = match kind {
            Kind::Plain => String::new(),
            Kind::Saved => saved,
            Kind::Killed => format!("{saved} {middle} --restartable"),
            Kind::RootKilled if *supersteps < 4 => return None,
            Kind::RootKilled => format!("{saved} {middle} --kill-root --restartable"),
        };
        Some(format!("{flags} --ranks 2 --threads 1 --json {more}"))
    }
}
