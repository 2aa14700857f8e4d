//! Frames of a modelled network, one by one.

use super::*;
use crate::experiment::Base;
use crate::fault::InjectedFault;
use crate::machine::Machine;
use crate::network::Preset;
use crate::workload::map::Skeleton;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLISECOND;

/// Three hosts with a PE each, on a network with this jitter.
fn simulation(jitter: f64) -> Simulation {
    let machine = Machine::of_shape("3x1x1").expect("a machine");
    let base = Base::new(machine, Network::of(Preset::Gemini).with_jitter(jitter), 1);
    let workload = base.map(Skeleton::Placed, 3, |_| 1, false);
    // A fault, so that there are detectors, whose patience an overload goes by.
    let fault = (SECOND, InjectedFault::Overload(1));
    Simulation::new(base.job(workload, vec![fault]), false)
}

impl Simulation {
    #[track_caller]
    fn arrives(&mut self, from: u32, to: u32) -> u64 {
        self.frame_arrival(Pe::new(from), Pe::new(to), 0, 100).expect("it arrives")
    }

    fn costs(&self) -> Transfer {
        transfer(&self.job.traffic, Pe::new(0), Pe::new(1), 100).expect("costs").2
    }
}

#[test]
fn a_cut_holds_up_the_frames_between_two_pes_alone() {
    let mut simulation = simulation(0.1);
    simulation.broken_paths.cut(Pe::new(0), Pe::new(1), 0, 5 * SECOND);
    let held_up = [(); 3].map(|()| simulation.arrives(0, 1));
    assert!(held_up[0] > 5 * SECOND && held_up.is_sorted_by(|one, next| one < next), "{held_up:?}");
    assert!(held_up[2] < 5 * SECOND + MILLISECOND, "{held_up:?}");
    for (from, to) in [(0, 2), (2, 1), (1, 0)] {
        let at = simulation.arrives(from, to);
        assert!(at < MILLISECOND, "{from} to {to} after {at} ns");
    }
    simulation.now = 5 * SECOND;
    let next = simulation.arrives(0, 1);
    assert!(next > held_up[2] && next < 5 * SECOND + MILLISECOND, "{next} after {held_up:?}");
    simulation.broken_paths.cut(Pe::new(0), Pe::new(1), 0, u64::MAX);
    assert_eq!(simulation.frame_arrival(Pe::new(0), Pe::new(1), 0, 100), None);
}

#[test]
fn jitter_keeps_the_order_of_two_pes_and_the_message_rate() {
    const FRAMES: u64 = 1000;
    let run = |jitter: f64| {
        let mut simulation = simulation(jitter);
        // In turn to two PEs.
        let all: Vec<u64> =
            (0..FRAMES).map(|n| simulation.arrives(0, 1 + (n % 2) as u32)).collect();
        let of = |first: usize| all.iter().copied().skip(first).step_by(2).collect::<Vec<_>>();
        (of(0), of(1), simulation)
    };
    let (steady, ..) = run(0.0);
    let (one, other, simulation) = run(10.0);
    assert!(one.is_sorted_by(|one, next| one < next) && other.is_sorted_by(|one, next| one < next));
    let costs = simulation.costs();
    let sender = simulation.pes[0].as_ref().expect("the sender");
    assert_eq!(sender.transit.sends_until, FRAMES * costs.sender_port_ns);
    assert!(sender.transit.frames_under_way().count() <= 2, "an entry for each PE at most");
    let (last, jitter_max) = (one.len() - 1, 8 * 10 * costs.first_byte_ns);
    assert!(one[last] > steady[last], "they are late");
    assert!(one[last] - steady[last] < jitter_max, "{} after {}", one[last], steady[last]);
}

#[test]
fn frames_are_late_while_everything_is_overloaded() {
    let mut simulation = simulation(0.0);
    simulation.overloaded_until = SECOND;
    let late: Vec<u64> = (0..100).map(|_| simulation.arrives(0, 1)).collect();
    assert!(late[99] > SECOND && late.is_sorted_by(|one, next| one < next), "{late:?}");
    assert!(late[99] < 3 * SECOND, "two seconds of patience, and the frames' own time");
    simulation.now = late[99];
    let usual = simulation.arrives(0, 1) - simulation.now;
    assert!(usual < MILLISECOND, "{usual}");
}

#[test]
fn the_dead_take_some_of_what_is_held_up_with_them() {
    let mut simulation = simulation(0.1);
    simulation.broken_paths.cut(Pe::new(1), Pe::new(0), 0, 5 * SECOND);
    let held_up = simulation.arrives(1, 0);
    simulation.die(Pe::new(1));
    let cut = simulation.cuts[&(Pe::new(1), Pe::ROOT)];
    assert!(cut <= held_up + 1, "{cut}");
}
