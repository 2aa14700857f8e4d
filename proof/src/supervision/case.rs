//! The jobs to be searched.

use ultramarine_runtime::protocol::supervision::SupervisionMutant;
use ultramarine_runtime::protocol::{FishingSettings, ProtocolSettings, settings};
use ultramarine_topology::Pe;

/// A job to be searched: its PEs, its tasks, and how much goes wrong.
#[derive(Clone, Debug)]
pub struct SupervisionCase {
    /// The number of PEs, including the root. At most 32.
    pub pes: u32,
    /// The PE that spawns the tasks and supervises them. Neither it nor the root dies; all other
    /// PEs are mortal.
    pub home: u32,
    /// The tasks that it spawns.
    pub tasks: Vec<Task>,
    /// The most PEs that die.
    pub deaths: u32,
    /// The most steps of copies, in all, from PEs other than their home.
    pub hops: u32,
    /// PEs may hear of a death before it happens: the PE that they take for dead goes on for a
    /// while, and then leaves.
    pub accused_live_on: bool,
    /// Arguments and results are large: a message with one may be overtaken by later messages.
    pub are_values_large: bool,
    /// The number of lost tasks that a PE handles in one step.
    pub losses_per_turn: usize,
    /// A rule of the protocol to leave out.
    pub mutant: Option<SupervisionMutant>,
}

/// A task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Any PE may steal it, and it is run again when it is lost.
    Supervised,
    /// Any PE may steal it, and it ends with an error when it is lost.
    Unsupervised,
    /// It is supervised, and placed on this PE.
    Placed(u32),
}

impl SupervisionCase {
    /// The root supervises these tasks, with three workers, of which at most `deaths` die.
    pub fn new(tasks: &[Task], deaths: u32, hops: u32) -> SupervisionCase {
        let tasks = tasks.to_vec();
        let losses_per_turn = settings::LOSSES_PER_TURN;
        let (pes, home, mutant) = (4, 0, None);
        let (accused_live_on, are_values_large) = (false, false);
        SupervisionCase {
            pes,
            home,
            tasks,
            deaths,
            hops,
            accused_live_on,
            are_values_large,
            losses_per_turn,
            mutant,
        }
    }

    /// The cases that take seconds.
    pub fn quick() -> Vec<(&'static str, SupervisionCase)> {
        use Task::{Placed, Supervised, Unsupervised};
        vec![
            ("a task, and all workers die", SupervisionCase::new(&[Supervised], 3, 2)),
            (
                "a task, and the dead live on",
                SupervisionCase::new(&[Supervised], 1, 1).accused_live_on(),
            ),
            ("two tasks", SupervisionCase::new(&[Supervised, Supervised], 1, 1)),
            (
                "two tasks that are lost in two turns",
                SupervisionCase {
                    losses_per_turn: 1,
                    ..SupervisionCase::new(&[Supervised, Supervised], 1, 1)
                },
            ),
            (
                "two tasks with large values",
                SupervisionCase {
                    are_values_large: true,
                    ..SupervisionCase::new(&[Supervised, Supervised], 1, 1)
                },
            ),
            (
                "a large one that was placed",
                SupervisionCase {
                    are_values_large: true,
                    ..SupervisionCase::new(&[Supervised, Placed(1)], 1, 1)
                },
            ),
            ("an unsupervised task", SupervisionCase::new(&[Supervised, Unsupervised], 1, 1)),
            ("a task that was placed", SupervisionCase::new(&[Supervised, Placed(1)], 1, 1)),
            (
                "a task of another PE than the root",
                SupervisionCase { pes: 5, home: 1, ..SupervisionCase::new(&[Supervised], 3, 1) },
            ),
            (
                "two tasks, and both workers die",
                SupervisionCase { pes: 3, ..SupervisionCase::new(&[Supervised, Supervised], 2, 1) },
            ),
        ]
    }

    /// The cases that take minutes.
    pub fn large() -> Vec<(&'static str, SupervisionCase)> {
        use Task::{Placed, Supervised, Unsupervised};
        let with_two_deaths = |tasks: &[Task], are_values_large| SupervisionCase {
            are_values_large,
            ..SupervisionCase::new(tasks, 2, 1)
        };
        let five = SupervisionCase { pes: 5, ..SupervisionCase::new(&[Supervised], 3, 2) };
        vec![
            ("a task that wanders, and all workers die", SupervisionCase::new(&[Supervised], 3, 4)),
            ("a task that moves, and all workers die", SupervisionCase::new(&[Supervised], 3, 3)),
            ("two tasks, two deaths", with_two_deaths(&[Supervised, Supervised], false)),
            (
                "two tasks that are lost in two turns, two deaths",
                SupervisionCase {
                    losses_per_turn: 1,
                    ..with_two_deaths(&[Supervised, Supervised], false)
                },
            ),
            ("two large tasks, two deaths", with_two_deaths(&[Supervised, Supervised], true)),
            (
                "a large one that was placed, two deaths",
                with_two_deaths(&[Supervised, Placed(1)], true),
            ),
            (
                "an unsupervised task, two deaths",
                with_two_deaths(&[Supervised, Unsupervised], false),
            ),
            (
                "a task that was placed, two deaths",
                with_two_deaths(&[Supervised, Placed(1)], false),
            ),
            ("a task on five PEs", five),
            (
                "a task, and the dead live on",
                SupervisionCase::new(&[Supervised], 2, 2).accused_live_on(),
            ),
            (
                "two tasks, and all workers die",
                SupervisionCase::new(&[Supervised, Supervised], 3, 1),
            ),
            (
                "a placed one, and all workers die",
                SupervisionCase::new(&[Supervised, Placed(1)], 3, 2),
            ),
        ]
    }

    fn accused_live_on(self) -> SupervisionCase {
        SupervisionCase { accused_live_on: true, ..self }
    }

    /// The PEs that can die.
    pub(super) fn mortals(&self) -> impl Iterator<Item = u32> {
        let home = self.home;
        (0..self.pes).filter(move |pe| *pe != Pe::ROOT.number() && *pe != home)
    }

    pub(super) fn settings(&self) -> ProtocolSettings {
        let fishing = FishingSettings {
            // A thief gets whatever there is.
            min_sched: 0,
            ..FishingSettings::for_threads(1)
        };
        // More replicas than a task can need here.
        let max_replicas = 3 * self.pes;
        let (losses_per_turn, mutant) = (self.losses_per_turn, self.mutant);
        ProtocolSettings { max_replicas, losses_per_turn, mutant, ..ProtocolSettings::new(fishing) }
    }
}
