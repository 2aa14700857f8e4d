//! A job drawn from a seed: the machine, the program, the network, and what goes wrong.

use super::layout::{Block, Layout, blocks};
use crate::dice::Dice;
use crate::fault::InjectedFault;
use crate::job::{Detection, SimulatedJob};
use crate::pe::workers::PeSpeed;
use crate::traffic::{RandomTraffic, Traffic};
use crate::workload::graph::BEGINS_NS;
use crate::workload::random_tree::{Program, RandomTree, TaskSpec, radii};
use crate::workload::supersteps::StencilRun;
use crate::workload::tables::{Plan, TableRun};
use crate::workload::{SpawnMode, SpawnPlace};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::protocol::{FishingSettings, ProtocolSettings};
use ultramarine_runtime::transport::PortSettings;
use ultramarine_skeletons::bsp::machine::{Saving, When};
use ultramarine_topology::Pe;

const MICROSECOND: u64 = 1000;
const MILLISECOND: u64 = 1000 * MICROSECOND;

/// No run takes this many events unless it never ends, for each hundred PEs.
const EVENTS_MAX: u64 = 5_000_000;

/// How long the end of a job waits. Longer than detectors have patience with a PE that has never
/// been heard, which is 5 s.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// A shorter silence says nothing, for messages may take some milliseconds.
const DEAD_AFTER_MIN: Duration = Duration::from_millis(50);

/// One job in this many is larger than the others.
const LARGE_ONE_IN: u64 = 250;

/// One job in this many goes on when its root dies.
const RESTARTABLE_ONE_IN: u64 = 3;

/// How long some of these jobs compute, in nanoseconds: long enough for elections, one after the
/// other. They have at most this many PEs.
const LONG_NS: RangeInclusive<u64> = 500 * MILLISECOND..=7_000 * MILLISECOND;
const LONG_PES_MAX: u32 = 30;

/// Each of these jobs keeps this many workers busy for that time, or one for longer.
const LONG_WORKERS: u64 = 3;

/// What the chances of roots, of witnesses, of programs in supersteps and of tables differ by from
/// all others of a seed.
const ROOTS: u64 = 0x0072_6f6f_7473;
const WITNESSES: u64 = 0x7769_746e_6573;
const SUPERSTEPS: u64 = 0x7374_6570_7321;
const TABLES: u64 = 0x7461_626c_6573;

/// About the longest step of a program in supersteps.
const STEP_NS_MAX: u64 = 200 * MILLISECOND;

/// The longest that it takes to do something with the entries of a table.
const WORK_NS_MAX: u64 = 100 * MILLISECOND;

/// One job in this many has no guards.
const UNGUARDED_ONE_IN: u64 = 3;

/// The number of PEs of most jobs, and of large ones.
const PES: [RangeInclusive<u64>; 2] = [3..=30, 31..=1000];

fn pes(dice: &mut Dice) -> u32 {
    let [usual, large] = PES;
    let pes = if dice.one_in(LARGE_ONE_IN) { dice.skewed(large) } else { dice.within(usual) };
    pes as u32
}

/// The job of this seed. Some jobs go on when their roots die; all, if `outlives_root`.
pub(super) fn job(seed: u64, outlives_root: bool) -> SimulatedJob {
    let mut dice = Dice::new(seed);
    let pes = pes(&mut dice);
    let layout = Layout::random(pes, &mut dice);
    let topology = layout.topology();
    let threads = dice.within(1..=3) as usize;
    let mut program = Program {
        compute_ns: MICROSECOND..=dice.skewed(10 * MICROSECOND..=100 * MILLISECOND),
        children: dice.within(0..=1)..=dice.within(1..=4),
        unsupervised_one_in: dice.one_in(3).then(|| dice.within(2..=20)),
        placed_one_in: dice.within(2..=20),
        radii: radii(&topology),
        pes,
    };
    let mut main = program_of(&program, &mut dice);
    let deaths = if dice.one_in(8) { 0 } else { dice.skewed(1..=u64::from(pes) - 1) };
    let slanders = if dice.one_in(4) { dice.within(1..=2) } else { 0 };
    let cuts = if dice.one_in(4) { cuts(pes, &mut dice) } else { Vec::new() };
    let root_dies = dice.one_in(12);
    // Of its own, so that the other jobs are not drawn anew.
    let mut root_dice = Dice::new(seed ^ ROOTS);
    let mut witness_dice = Dice::new(seed ^ WITNESSES);
    let outlives_root = root_dice.one_in(RESTARTABLE_ONE_IN) || outlives_root;
    let roots =
        if outlives_root { root_dice.within(0..=3.min(u64::from(pes) - 2)) as u32 } else { 0 };
    let mut blocks = blocks(&layout, root_dies || outlives_root, &mut dice);
    if outlives_root && blocks.is_empty() && root_dice.one_in(4) {
        blocks.extend(layout.partition(&mut root_dice));
    }
    let block_pes: u64 = blocks.iter().map(|block| block.pes(pes, outlives_root)).sum();
    let losses = deaths + slanders + cuts.len() as u64 + block_pes + u64::from(roots);
    let mut max_replicas = 2 * losses as u32 + 4;
    // Poison needs enough PEs that die of it, and one that lives.
    let poisons = if dice.one_in(4) { dice.within(1..=2) } else { 0 };
    let kills = poisons * (u64::from(max_replicas) + 1);
    if poisons > 0 && kills + losses + slanders + 2 <= u64::from(pes) {
        for _ in 0..poisons {
            let spec = TaskSpec { is_poison: true, depth: 0, seed: dice.next() };
            let place = SpawnPlace::At(Pe::new(1 + dice.next() as u32 % (pes - 1)));
            main.push((spec, SpawnMode { is_supervised: true, place }));
        }
    } else {
        max_replicas += 4;
    }
    let (_, compute_ns) = extent(&main, &program);
    let mut span = compute_ns / (u64::from(pes) * threads as u64).max(1) + 2 * MILLISECOND;
    if outlives_root && pes <= LONG_PES_MAX && root_dice.one_in(3) {
        span = root_dice.within(LONG_NS);
        program.slow_down(LONG_WORKERS * span / compute_ns.max(1));
    }
    // Seldom in a large job, or most of its events are heartbeats.
    let heartbeat = Duration::from_millis(dice.within(5..=200) + u64::from(pes / 5));
    let dead_after = (heartbeat * dice.within(2..=10) as u32).max(DEAD_AFTER_MIN);
    let plan = FaultPlan {
        pes,
        deaths,
        slanders,
        cuts,
        blocks,
        root_dies,
        first_mortal: u32::from(!outlives_root),
        span,
        dead_after,
    };
    let protocol = settings(threads, max_replicas, pes, &mut dice);
    let mut faults = injected_faults(&plan, &mut dice);
    faults.extend(root_deaths(roots, span, &mut root_dice));
    let latency_ns = MICROSECOND..=dice.skewed(5 * MICROSECOND..=MILLISECOND);
    let late_one_in = dice.skewed(10..=10_000);
    let late_ns = dice.skewed(100 * MICROSECOND..=50 * MILLISECOND);
    let sees_after_ns = 10 * MICROSECOND..=dice.skewed(MILLISECOND..=1000 * MILLISECOND);
    let port = port(dead_after, &mut dice);
    let mut frame_bytes_max = |range| dice.skewed(range) as usize;
    let frame_bytes_max = [frame_bytes_max(128..=4096), frame_bytes_max(128..=65536)];
    let has_fallback = !dice.one_in(4);
    let lost_one_in = dice.one_in(4).then(|| dice.skewed(20..=2000));
    let speed = PeSpeed { threads, slowness: 1.0, task_ns: 0 };
    SimulatedJob {
        seed,
        speeds: vec![speed; pes as usize],
        workload: Arc::new(RandomTree { program: Arc::new(program), main }),
        topology: Arc::new(topology),
        protocol,
        fishes_by_workers: false,
        pace: None,
        traffic: Traffic::Random(RandomTraffic { latency_ns, late_one_in, late_ns, lost_one_in }),
        port,
        frame_bytes_max,
        has_fallback,
        faults,
        outlives_root,
        detection: Some(Detection {
            heartbeat,
            dead_after,
            sees_after_ns,
            is_guarded: !witness_dice.one_in(UNGUARDED_ONE_IN),
            cuts_answer: witness_dice.one_in(2),
        }),
        shutdown_grace: SHUTDOWN_GRACE,
        events_max: EVENTS_MAX * u64::from(1 + pes / 100) * if outlives_root { 4 } else { 1 },
    }
}

/// The same machine, network and faults, and a program in supersteps that goes on when its root
/// dies. Most faults come amid the run, and some before it begins.
pub(super) fn supersteps(seed: u64) -> SimulatedJob {
    let mut dice = Dice::new(seed ^ SUPERSTEPS);
    let mut job = job(seed, true);
    let pes = job.topology.pes();
    let ranks = dice.within(1..=2 * u64::from(pes)) as u32;
    let last = job.faults.iter().map(|(at, _)| *at).max().unwrap_or(MILLISECOND);
    let supersteps = dice.within(1..=20).max(last / STEP_NS_MAX);
    let when = if dice.one_in(4) { When::Never } else { When::Every(dice.within(1..=5)) };
    let step_ns = (last / supersteps).max(10 * MICROSECOND);
    if !dice.one_in(4) {
        job.faults.iter_mut().for_each(|(at, _)| *at += BEGINS_NS);
    }
    let plan = StencilRun::plan(ranks, supersteps, Saving::in_memory(when), step_ns);
    job.workload = Arc::new(StencilRun::new(plan, &job.topology));
    job
}

/// The same machine, network and faults, and a table. Most faults come while PEs update it.
pub(super) fn tables(seed: u64) -> SimulatedJob {
    let mut dice = Dice::new(seed ^ TABLES);
    let mut job = job(seed, true);
    let copies = dice.within(0..=3) as usize;
    let updates = dice.skewed(1..=50);
    let last = job.faults.iter().map(|(at, _)| *at).max().unwrap_or(MILLISECOND);
    // A PE does about as many things as there are updates of one, for each of the holders.
    let works = (2 + copies as u64) * updates;
    let work_ns = (last / works).clamp(10 * MICROSECOND, WORK_NS_MAX);
    if !dice.one_in(4) {
        job.faults.iter_mut().for_each(|(at, _)| *at += BEGINS_NS);
    }
    let plan = Plan { copies, updates, work_ns, dead_before: Vec::new(), topology: None };
    job.workload = Arc::new(TableRun::new(plan, &job.topology));
    job
}

fn port(dead_after: Duration, dice: &mut Dice) -> PortSettings {
    let mut skewed = |range| dice.skewed(range) as usize;
    PortSettings {
        window_frames: skewed(4..=1024) as u32,
        credit_bytes_max: skewed(1 << 12..=1 << 26),
        backlog_bytes_max: skewed(1 << 10..=1 << 30),
        single_copy: false,
        resend_after: dead_after / 2,
        ..PortSettings::default()
    }
}

/// Paths to be cut, in one direction or both: for how long, in nanoseconds.
fn cuts(pes: u32, dice: &mut Dice) -> Vec<(Pe, Pe, u64)> {
    let one = dice.next() as u32 % pes;
    let other = (one + 1 + dice.next() as u32 % (pes - 1)) % pes;
    let ns = if dice.one_in(2) { u64::MAX } else { dice.skewed(MILLISECOND..=5000 * MILLISECOND) };
    let (one, other) = (Pe::new(one), Pe::new(other));
    let mut cuts = vec![(one, other, ns)];
    if dice.one_in(2) {
        cuts.push((other, one, ns));
    }
    cuts
}

/// The children of the main task: not too many, and not too few.
fn program_of(program: &Program, dice: &mut Dice) -> Vec<(TaskSpec, SpawnMode)> {
    let wanted = dice.skewed(1..=300);
    let mut main = Vec::new();
    while extent(&main, program).0 < wanted {
        let depth = dice.within(0..=4) as u8;
        let parent = TaskSpec::good(dice.next(), depth + 1);
        let children = parent.stages(program).into_iter().flatten();
        let left = wanted - extent(&main, program).0;
        let fitting = children.filter(|(child, _)| child.extent(program).0 <= 4 * left);
        main.extend(fitting.take(1));
        if dice.one_in(50) {
            break;
        }
    }
    main
}

fn extent(main: &[(TaskSpec, SpawnMode)], program: &Program) -> (u64, u64) {
    let all = main.iter().map(|(spec, _)| spec.extent(program));
    all.fold((0, 0), |(tasks, ns), (more, longer)| (tasks + more, ns + longer))
}

fn settings(threads: usize, max_replicas: u32, pes: u32, dice: &mut Dice) -> ProtocolSettings {
    let mut fishing = FishingSettings::for_threads(threads);
    // In a large job most PEs have no work at all, and would fish most of the time.
    fishing.min_fish_delay *= 1 + pes / 31;
    fishing.max_fish_delay *= 1 + pes / 31;
    fishing.max_fish = dice.within(0..=3) as usize;
    fishing.min_sched = dice.within(0..=3) as usize;
    fishing.max_hops = dice.within(0..=8) as u8;
    fishing.fish_deadline = Duration::from_millis(dice.skewed(1..=250));
    fishing.schedule_tasks_max = dice.skewed(1..=32) as usize;
    fishing.schedule_bytes_max = dice.skewed(64..=4096) as usize;
    ProtocolSettings { max_replicas, ..ProtocolSettings::new(fishing) }
}

/// What goes wrong, before the moments are drawn.
struct FaultPlan {
    pes: u32,
    deaths: u64,
    slanders: u64,
    cuts: Vec<(Pe, Pe, u64)>,
    blocks: Vec<Block>,
    root_dies: bool,
    /// The first PE that may die or be slandered.
    first_mortal: u32,
    /// About how long the program takes, in nanoseconds.
    span: u64,
    dead_after: Duration,
}

/// One in four dies with its host.
fn death(pe: Pe, dice: &mut Dice) -> InjectedFault {
    if dice.one_in(4) { InjectedFault::SilentDeath(pe) } else { InjectedFault::Death(pe) }
}

fn injected_faults(plan: &FaultPlan, dice: &mut Dice) -> Vec<(u64, InjectedFault)> {
    let FaultPlan { pes, deaths, slanders, root_dies, first_mortal, span, dead_after, .. } = *plan;
    let mut mortals: Vec<u32> = (first_mortal..pes).collect();
    let mut injected_faults = Vec::new();
    // Some die together.
    let mut at = dice.within(0..=span);
    for _ in 0..deaths {
        if !dice.one_in(3) {
            at = dice.within(0..=2 * span);
        }
        let victim = Pe::new(mortals.swap_remove(dice.next() as usize % mortals.len()));
        injected_faults.push((at, death(victim, dice)));
    }
    let mut anyone = || Pe::new(first_mortal + dice.next() as u32 % (pes - first_mortal));
    let slandered: Vec<_> = (0..slanders).map(|_| (anyone(), anyone())).collect();
    for (by, whom) in slandered.into_iter().filter(|(by, whom)| by != whom) {
        injected_faults.push((dice.within(0..=2 * span), InjectedFault::Slander { by, whom }));
    }
    // Each at most once: two stops in a row may be longer than a stall may last.
    let mut stopped = BTreeSet::new();
    while dice.one_in(2) {
        let pe = Pe::new(dice.next() as u32 % pes);
        if !stopped.insert(pe) {
            continue;
        }
        // Longer than any silence that means death, but shorter than a stall may last.
        let longest = dead_after.as_nanos() as u64 * 6;
        let ns = dice.skewed(MILLISECOND..=longest);
        injected_faults.push((dice.within(0..=span), InjectedFault::Stop(pe, ns)));
    }
    for (from, to, ns) in &plan.cuts {
        injected_faults
            .push((dice.within(0..=span), InjectedFault::Cut { from: *from, to: *to, ns: *ns }));
    }
    for block in &plan.blocks {
        injected_faults.push((dice.within(0..=2 * span), block.fault()));
    }
    if dice.one_in(6) {
        let ns = dead_after.as_nanos() as u64 * dice.within(1..=5);
        injected_faults.push((dice.within(0..=span), InjectedFault::Overload(ns)));
    }
    if root_dies {
        injected_faults.push((dice.within(0..=2 * span), InjectedFault::Death(Pe::ROOT)));
    }
    injected_faults
}

/// The deaths of the first PEs, most often in turn: of the root, of the one that takes its place,
/// and so on.
fn root_deaths(roots: u32, span: u64, dice: &mut Dice) -> Vec<(u64, InjectedFault)> {
    let mut at = 0;
    let mut deaths = Vec::new();
    for root in (0..roots).map(Pe::new) {
        at = if dice.one_in(4) { dice.within(0..=at) } else { at + dice.within(0..=span) };
        deaths.push((at, death(root, dice)));
    }
    deaths
}
