//! The runs to be searched.

use super::mutant::SuperstepsMutant;
use super::program::{Habit, Program};
use ultramarine_skeletons::bsp::machine::{Saving, When};

/// A run to be searched: its PEs, its program, and how much goes wrong.
#[derive(Clone, Debug)]
pub struct SuperstepsCase {
    /// The number of PEs, including the root. At most 32.
    pub pes: u32,
    /// What the ranks do.
    pub program: Program,
    /// When checkpoints are taken.
    pub saving: Saving,
    /// The most PEs that die. One lives.
    pub deaths: u32,
    /// Whether the root may die. The next PE takes its place, and its program waits then.
    pub root_dies: bool,
    /// Whether the other PEs begin when they are invited, at any moment.
    pub are_invited: bool,
    /// A rule to leave out.
    pub mutant: Option<SuperstepsMutant>,
}

impl SuperstepsCase {
    /// Ranks in a ring, this many supersteps, a checkpoint in each if it is due, and one death.
    pub fn new(pes: u32, ranks: u32, supersteps: u64) -> Self {
        let habit = Habit::Ring(1);
        let program = Program { ranks, supersteps, habit, collects: false, is_uneven: false };
        let saving = Saving::in_memory(When::Every(1));
        let (deaths, root_dies, are_invited, mutant) = (1, false, false, None);
        SuperstepsCase { pes, program, saving, deaths, root_dies, are_invited, mutant }
    }

    fn that(self, habit: Habit) -> Self {
        SuperstepsCase { program: Program { habit, ..self.program }, ..self }
    }

    fn collecting(self) -> Self {
        SuperstepsCase { program: Program { collects: true, ..self.program }, ..self }
    }

    fn uneven(self) -> Self {
        SuperstepsCase { program: Program { is_uneven: true, ..self.program }, ..self }
    }

    fn unsaved(self) -> Self {
        SuperstepsCase { saving: Saving::in_memory(When::Never), ..self }
    }

    fn mortal_root(self) -> Self {
        SuperstepsCase { root_dies: true, ..self }
    }

    fn invited(self) -> Self {
        SuperstepsCase { are_invited: true, ..self }
    }

    fn dying(self, deaths: u32) -> Self {
        SuperstepsCase { deaths, ..self }
    }

    /// The cases that take seconds.
    pub fn quick() -> Vec<(&'static str, SuperstepsCase)> {
        let new = SuperstepsCase::new;
        let far = Habit::Ring(3);
        vec![
            ("two PEs", new(2, 3, 5).mortal_root().invited()),
            ("two PEs with sums", new(2, 3, 4).collecting().mortal_root()),
            ("two PEs that sleep", new(2, 3, 5).that(Habit::Wakes).collecting().mortal_root()),
            ("two PEs that stall", new(2, 3, 2).that(Habit::Sleeps).mortal_root()),
            ("two PEs without checkpoints", new(2, 3, 3).unsaved().mortal_root()),
            ("two PEs whose ranks move", new(2, 3, 3).uneven().mortal_root()),
            ("three PEs", new(3, 3, 3).mortal_root()),
            ("three PEs, longer", new(3, 3, 4)),
            ("three PEs that sleep", new(3, 3, 4).that(Habit::Wakes).mortal_root()),
            ("three PEs that are invited", new(3, 3, 2).collecting().mortal_root().invited()),
            ("three PEs, two deaths", new(3, 3, 2).mortal_root().dying(2)),
            ("three PEs without checkpoints", new(3, 3, 3).unsaved().mortal_root().dying(2)),
            ("four PEs that live", new(4, 4, 3).that(far).collecting().dying(0)),
            ("four PEs", new(4, 4, 2).that(far).unsaved()),
        ]
    }

    /// The cases that take minutes.
    pub fn large() -> Vec<(&'static str, SuperstepsCase)> {
        let new = SuperstepsCase::new;
        let far = Habit::Ring(3);
        vec![
            ("two PEs, many ranks", new(2, 5, 5).mortal_root().invited()),
            ("three PEs, many ranks", new(3, 5, 3).mortal_root()),
            ("three PEs, two deaths, longer", new(3, 3, 4).mortal_root().dying(2)),
            ("three PEs whose ranks move", new(3, 4, 3).uneven().mortal_root()),
            ("four PEs, the root dies", new(4, 4, 2).that(far).unsaved().mortal_root()),
            ("four PEs with checkpoints", new(4, 4, 3).that(far)),
        ]
    }
}
