//! All orders in which things can come in a small job, with all deaths.

use super::*;
use stateright::{Checker, Model, Property};

/// A group that the root opens. If the root dies, the next root opens it again.
#[derive(Clone, Copy)]
struct Job {
    pes: u32,
    tells_all: bool,
    deaths: u32,
    root_dies: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    world: World<Program>,
    deaths_left: u32,
}

#[derive(Clone, PartialEq, Debug)]
enum Step {
    Comes(usize),
    /// And of what it has sent to each other PE this number of messages still arrives.
    Dies(Pe, usize),
    OpensAgain,
}

impl State {
    fn opens_again(&self) -> bool {
        let root = self.world.actor(self.world.root());
        self.world.root() != Pe::ROOT && root.is_some_and(|root| !root.has_opened)
    }

    fn is_quiet(&self) -> bool {
        self.world.choices() == 0 && !self.opens_again()
    }
}

impl Model for Job {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut world = world(self.pes);
        open(&mut world, Pe::ROOT, false, 1, inviting(self.pes, self.tells_all));
        vec![State { world, deaths_left: self.deaths }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        steps.extend((0..state.world.choices()).map(Step::Comes));
        if state.opens_again() {
            steps.push(Step::OpensAgain);
        }
        if state.deaths_left > 0 && state.world.living().count() > 1 {
            let may_die = |pe: &Pe| self.root_dies || *pe != Pe::ROOT;
            let mortal = state.world.living().filter(may_die);
            steps.extend(mortal.flat_map(|pe| (0..3).map(move |keeps| Step::Dies(pe, keeps))));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let State { mut world, mut deaths_left } = last.clone();
        match step {
            Step::Comes(choice) => _ = world.step(choice),
            Step::Dies(pe, keeps) => {
                world.kill(pe, |sent| keeps.min(sent));
                deaths_left -= 1;
            }
            Step::OpensAgain => {
                let root = world.root();
                open(&mut world, root, false, 2, inviting(self.pes, self.tells_all));
            }
        }
        Some(State { world, deaths_left })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let ends_well = |_: &Job, state: &State| {
            let root = state.world.root();
            !state.is_quiet()
                || ended(&state.world, root) == Some(Ok(())) && kept(&state.world).is_empty()
        };
        let is_joined = |_: &Job, State { world, .. }: &State| {
            world.root() != Pe::ROOT && ended(world, world.root()) == Some(Ok(()))
        };
        let ends = |_: &Job, state: &State| state.is_quiet();
        let mut properties = vec![
            Property::always("it is complete, and closed everywhere", ends_well),
            Property::sometimes("it ends", ends),
        ];
        if self.root_dies {
            properties.push(Property::sometimes("the next root joins it", is_joined));
        }
        properties
    }
}

fn holds(job: Job) {
    let checker = job.checker().threads(2).spawn_dfs().join();
    println!("{} states, depth {}", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

#[test]
fn four_pes_of_which_any_but_the_root_die() {
    holds(Job { pes: 4, tells_all: false, deaths: 2, root_dies: false });
}

#[test]
fn three_pes_of_which_any_die() {
    for (tells_all, root_dies) in [(true, false), (false, true), (true, true)] {
        holds(Job { pes: 3, tells_all, deaths: 2, root_dies });
    }
}
