//! Bulk-synchronous programs in jobs whose processes are killed.
#![cfg(feature = "mpi")]

use crate::common::job::{die, kill, run, run_restartable};
use crate::common::launcher::{is_well_over_each_lane, launched_with, over_each_lane};
use futures_util::future::try_join;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::skeletons::bsp::{BspError, Comm, Next, Program, Start, bsp, op};
use ultramarine_testkit::itself;

const RANKS: u32 = 8;
const LAST: u64 = 120;

/// The greatest superstep that this process has computed, and the number of all steps of its ranks.
static REACHED: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);

/// A ring of ranks that hand numbers on, and add them up.
#[derive(Serialize, Deserialize)]
struct Ring {
    number: f64,
    /// An array that travels beside the message in which it is.
    numbers: Vec<f64>,
    /// It is made again when a rank is restored.
    #[serde(skip)]
    constants: Vec<f64>,
}

fn constants() -> Vec<f64> {
    (1..5).map(|n| 1.0 / f64::from(n)).collect()
}

impl Program for Ring {
    /// In microseconds, how long a step takes at least.
    type Argument = u64;
    type Stage = ();
    type Message = Vec<f64>;
    type Output = (f64, Vec<f64>);

    fn new(start: &Start, _: &u64) -> Self {
        let number = f64::from(start.rank);
        Ring { number, numbers: vec![number; 20_000], constants: constants() }
    }

    fn restored(&mut self, _: &Start, _: &u64) {
        self.constants = constants();
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        REACHED.fetch_max(comm.superstep(), Relaxed);
        STEPS.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_micros(200));
        let number = comm.superstep() as usize;
        if let Some((from, numbers)) = comm.next() {
            assert_eq!(from, (comm.rank() + RANKS - 1) % RANKS);
            self.numbers = numbers;
            self.number = (comm.result::<f64>().unwrap() + self.number).sqrt();
        }
        self.number *= self.constants[number % 4];
        self.numbers[number] += self.number;
        if comm.superstep() == LAST {
            let numbers = self.numbers[..=number].to_vec();
            return Next::End((self.number, numbers));
        }
        comm.send((comm.rank() + 1) % RANKS, self.numbers.clone());
        comm.all_reduce(&self.number, op::sum::<f64>);
        Next::Stage(())
    }
}

/// What the ranks come to, found by one loop.
fn outputs() -> Vec<(f64, Vec<f64>)> {
    let mut ranks: Vec<_> =
        (0..RANKS).map(|n| (f64::from(n), vec![f64::from(n); LAST as usize + 1])).collect();
    let constants = constants();
    for superstep in 0..=LAST as usize {
        if superstep > 0 {
            let numbers: Vec<f64> = ranks.iter().map(|(number, _)| *number).collect();
            // In the order of a tree.
            let pairs: Vec<f64> = numbers.chunks(2).map(|pair| pair[0] + pair[1]).collect();
            let all = (pairs[0] + pairs[1]) + (pairs[2] + pairs[3]);
            let mut lists: Vec<_> = ranks.into_iter().map(|(_, list)| list).collect();
            lists.rotate_right(1);
            ranks = numbers.iter().map(|number| (all + number).sqrt()).zip(lists).collect();
        }
        for (number, numbers) in &mut ranks {
            *number *= constants[superstep % 4];
            numbers[superstep] += *number;
        }
    }
    ranks
}

/// Runs it on a ring with checkpoints, and checks its outputs.
async fn check(cx: &Context, every: Option<u64>) -> Result<(), BspError> {
    let mut ring = bsp::<Ring>(200).ranks(RANKS);
    if let Some(folder) = std::env::var_os(FOLDER) {
        ring = ring.checkpoint_dir(folder);
    }
    if let Some(every) = every.and_then(NonZeroU64::new) {
        ring = ring.checkpoint_every(every);
    }
    assert!(ring.run(cx).await? == outputs());
    Ok(())
}

/// Kills the process of a PE once this one has come to a superstep.
async fn kill_at(cx: &Context, superstep: u64, pe: Pe) -> Result<(), BspError> {
    while REACHED.load(Relaxed) < superstep {
        cx.sleep(Duration::from_millis(1)).await;
    }
    kill(cx, pe).await;
    Ok(())
}

#[test]
fn a_program_goes_on_from_its_last_checkpoint_when_processes_die() {
    is_well_over_each_lane(4, async |cx| {
        let die = async {
            kill_at(&cx, 40, Pe::new(2)).await?;
            kill_at(&cx, 80, Pe::new(3)).await
        };
        try_join(check(&cx, Some(10)), die).await?;
        // Of each superstep this PE takes 4 steps at most; what is computed again is little.
        let steps = STEPS.load(Relaxed);
        assert!(steps < 4 * (LAST + 1) + 2 * 4 * 40, "{steps} steps");
        Ok(())
    });
}

#[test]
fn without_a_checkpoint_it_begins_anew() {
    let main = async |cx: Context| {
        try_join(check(&cx, None), kill_at(&cx, 30, Pe::new(1))).await?;
        Ok(())
    };
    over_each_lane(3, || run(main)).for_each(|(_, ended)| {
        ended.is_well();
        assert!(ended.err.contains("no checkpoint is whole"), "{}", ended.err);
    });
}

#[test]
fn a_pe_and_its_partner_may_die_at_once() {
    let main = async |cx: Context| {
        let die = async {
            // The second is begun when the first is whole.
            let begun = |folder| std::fs::read_dir(folder).map_or(0, Iterator::count);
            let is_soon = || std::env::var_os(FOLDER).is_some_and(|folder| begun(folder) < 3);
            while is_soon() && REACHED.load(Relaxed) < LAST {
                cx.sleep(Duration::from_millis(1)).await;
            }
            let both = [1, 2].map(|pe| kill_at(&cx, 40, Pe::new(pe)));
            let [one, other] = both;
            try_join(one, other).await
        };
        try_join(check(&cx, Some(7)), die).await?;
        Ok(())
    };
    over_each_lane(4, || run(main)).for_each(|(_, ended)| ended.is_well());
    // With a directory nothing is lost.
    for lane in ["mpi", "tcp"] {
        let folder = tempfile::tempdir().expect("there is room");
        let variable = [(FOLDER, folder.path().join("new").into_os_string())];
        let Some(ended) = launched_with(4, lane, &variable, &itself(|| run(main))) else { return };
        ended.is_well();
        assert!(!ended.err.contains("no checkpoint is whole"), "{}", ended.err);
    }
}

#[test]
fn a_program_survives_the_root() {
    let main = async |cx: Context| {
        let is_first = cx.pe() == Pe::ROOT;
        let die = async {
            while is_first && REACHED.load(Relaxed) < 50 {
                cx.sleep(Duration::from_millis(1)).await;
            }
            if is_first {
                die();
            }
            Ok(())
        };
        try_join(check(&cx, Some(10)), die).await?;
        Ok(())
    };
    over_each_lane(3, || run_restartable(main)).for_each(|(_, ended)| ended.is_well());
}

/// A rank that has much to do if it is of the first half, and says on which processes it was.
#[derive(Serialize, Deserialize)]
struct Uneven {
    processes: Vec<u32>,
}

impl Program for Uneven {
    type Argument = ();
    type Stage = ();
    type Message = ();
    type Output = usize;

    fn new(_: &Start, (): &()) -> Self {
        Uneven { processes: Vec::new() }
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        let own = std::process::id();
        if !self.processes.contains(&own) {
            self.processes.push(own);
        }
        if comm.rank() < RANKS / 2 {
            std::thread::sleep(Duration::from_millis(20));
        }
        // The first look is after a second.
        if comm.superstep() < 40 { Next::Stage(()) } else { Next::End(self.processes.len()) }
    }
}

#[test]
fn ranks_move_to_a_pe_with_less_to_do() {
    is_well_over_each_lane(2, async |cx| {
        let moved = bsp::<Uneven>(()).ranks(RANKS).run(&cx).await?;
        assert_eq!(moved.iter().filter(|processes| **processes == 2).count(), 2, "{moved:?}");
        let stayed = bsp::<Uneven>(()).ranks(RANKS).balance(false).run(&cx).await?;
        assert_eq!(stayed, [1; RANKS as usize]);
        Ok(())
    });
}

/// The variable that names the directory for checkpoints; and the one that says whether the job is
/// to be killed.
const FOLDER: &str = "SUPERSTEPS_FOLDER";
const IS_KILLED: &str = "SUPERSTEPS_KILLED";

/// Once all processes are killed at once, and the job is started again with others.
#[test]
fn a_job_that_was_killed_goes_on_with_other_processes() {
    let main = async |cx: Context| {
        let folder = std::env::var_os(FOLDER).expect("the test names it");
        let every = const { NonZeroU64::new(10).unwrap() };
        let ring = bsp::<Ring>(200).ranks(RANKS).checkpoint_every(every).checkpoint_dir(folder);
        if std::env::var_os(IS_KILLED).is_some() {
            let all_die = async {
                // What is stored again after that has other ranks in its files.
                kill_at(&cx, 30, Pe::new(2)).await?;
                while REACHED.load(Relaxed) < 60 {
                    cx.sleep(Duration::from_millis(1)).await;
                }
                cx.tell_all(async |_: Context, ()| die(), ()).map_err(BspError::from)?;
                cx.sleep(Duration::from_mins(1)).await;
                Ok(())
            };
            drop(try_join(ring.run(&cx), all_die).await);
            unreachable!("it is killed");
        }
        assert!(ring.run(&cx).await? == outputs());
        let steps = STEPS.load(Relaxed);
        assert!(steps < u64::from(RANKS) * 110, "{steps} steps");
        Ok(())
    };
    let program = itself(|| run(main));
    for lane in ["mpi", "tcp"] {
        let folder = tempfile::tempdir().expect("there is room");
        let folder = folder.path().join("new").into_os_string();
        let killed = [(FOLDER, folder.clone()), (IS_KILLED, "1".into())];
        let Some(ended) = launched_with(4, lane, &killed, &program) else { return };
        assert!(!ended.is_success, "{}", ended.out);
        for processes in [2, 1] {
            let again = launched_with(processes, lane, &[(FOLDER, folder.clone())], &program);
            again.expect("there is a launcher").is_well();
        }
    }
}

/// A rank that leaves what was sent to it. It may also send to one that has ended.
#[derive(Serialize, Deserialize)]
struct Careless(bool);

impl Program for Careless {
    type Argument = bool;
    type Stage = u8;
    type Message = ();
    type Output = ();

    fn new(_: &Start, fails: &bool) -> Self {
        Careless(*fails)
    }

    fn step(&mut self, stage: u8, comm: &mut Comm<Self>) -> Next<Self> {
        if stage < 5 || self.0 {
            (0..comm.ranks()).for_each(|rank| comm.send_tagged(rank, 7, ()));
        }
        if stage == 5 { Next::End(()) } else { Next::Stage(stage + 1) }
    }
}

const FAILS: &str = "SUPERSTEPS_FAILS";

#[test]
fn what_is_not_taken_is_said_once() {
    let program = itself(|| {
        let fails = std::env::var_os(FAILS).is_some();
        run(async move |cx| {
            match bsp::<Careless>(fails).ranks(3).run(&cx).await {
                Ok(_) => assert!(!fails),
                Err(error) => assert!(error.to_string().contains(", which had ended"), "{error}"),
            }
            Ok(())
        });
    });
    // In the first, all PEs have ranks that leave something. In the second, both may find out.
    for (flag, most) in [(&[][..], 1), (&[(FAILS, "1".into())], 2)] {
        let Some(ended) = launched_with(2, "mpi", flag, &program) else { return };
        ended.is_well();
        let said = ended.err.matches("messages with tag 7 were not taken in stage 1").count();
        assert!((1..=most).contains(&said), "{}", ended.err);
    }
}
