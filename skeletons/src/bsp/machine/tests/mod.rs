//! Machines in a world where messages come in any order, PEs die, and become the root.

mod program;
mod schedules;

use self::program::{Toy, first, step};
use super::*;
use std::mem::take;
use ultramarine_testkit::world::{Actor, Outgoing, World};

/// A PE, with what it has yet to do.
struct Processor {
    me: Pe,
    machine: Machine<Toy>,
    /// What the program got in the end, and how often.
    ended: Vec<BTreeMap<u32, u64>>,
    failed: Vec<Trouble>,
    /// The supersteps whose results were lost.
    lost: Vec<u64>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Event {
    Told(Told<Toy>),
    Job(Work, JobOf<Toy>),
    Restore(Work, u32, Option<JobOf<Toy>>),
}

impl Processor {
    fn post(&mut self, out: &mut Outgoing<Event>) {
        for effect in self.machine.take_effects() {
            match effect {
                Effect::Send(to, told) => out.send(to, Event::Told(told)),
                Effect::Run(work, jobs) => {
                    jobs.into_iter().for_each(|job| out.later(Event::Job(work, job)));
                }
                Effect::Restore(work, ranks) => ranks
                    .into_iter()
                    .for_each(|(rank, saved)| out.later(Event::Restore(work, rank, saved))),
                Effect::Fail(trouble) => self.failed.push(trouble),
                Effect::Lost(superstep) => self.lost.push(superstep),
                Effect::End(outputs) => self.ended.push(outputs),
            }
        }
        drop(self.machine.take_waste());
    }
}

impl Actor for Processor {
    type Message = Event;

    fn receive(&mut self, from: Pe, event: Event, out: &mut Outgoing<Event>) {
        let machine = &mut self.machine;
        match event {
            Event::Told(told) => machine.receive(from, told),
            Event::Job(work, job) => {
                let rank = job.rank;
                if work.is_saved {
                    let back = (!job.is_stepping).then_some(job.state);
                    machine.saved(work, rank, job.clone(), back);
                }
                if job.is_stepping {
                    machine.stepped(work, rank, step(machine.ranks, work, job));
                }
            }
            Event::Restore(work, rank, None) => {
                machine.restored(work, rank, first(rank), Vec::new(), Vec::new());
            }
            Event::Restore(work, rank, Some(Job { state, letters, results, .. })) => {
                machine.restored(work, rank, state, letters, results);
            }
        }
        self.post(out);
    }

    fn died(&mut self, dead: Pe, root: Pe, out: &mut Outgoing<Event>) {
        self.machine.died(dead);
        if root != self.machine.home {
            self.machine.move_home(root);
        }
        self.post(out);
    }
}

/// A job in which nobody has begun.
fn world(topology: &Arc<Topology>, ranks: u32, saving: Saving) -> World<Processor> {
    World::new((0..topology.pes()).map(Pe::new).map(|me| Processor {
        me,
        machine: Machine::new(me, ranks, topology.clone(), saving, Pe::ROOT),
        ended: Vec::new(),
        failed: Vec::new(),
        lost: Vec::new(),
    }))
}

fn begin(world: &mut World<Processor>, pe: Pe) {
    world.act(pe, |processor, out| {
        processor.machine.begin();
        processor.post(out);
    });
}
