//! The classes of faults: what each does to a job, and what must hold then.
//!
//! | class | the fault | what must hold |
//! |---|---|---|
//! | `kill` | PEs but the root are killed | the right result |
//! | `root` | PEs are killed, roots among them; the main task starts again | the right result |
//! | `stop` | a PE, the root too, is stopped for 3 to 10 s | the right result, no PE lost |
//! | `cut` | no packet passes between two hosts, with an answer or not | … one of the two lost at most |
//! | `loss` | 10 to 30 % (briefly: 15 %) of all packets between hosts are lost | … no PE lost |
//! | `overload` | 100 to 300 busy processes compute beside it | … no PE lost |
//! | `stderr` | standard error is full, closed, or not read | … no PE lost |
//! | `memory` | the host has 4 to 64 MiB of shared memory for 4 to 16 PEs | … no PE lost |
//! | `journal` | the journal is cut to half, moved or removed while the job runs | … no PE lost |
//! | `odd` | a task exits, becomes another program, … | … no other PE lost |
//! | `descriptors` | 16 to 24 PEs on the TCP lane may open 40 files more | … no PE lost |
//! | `launcher` | mpiexec is killed | the job ends |
//! | `proxy` | mpiexec's proxy on a host is killed | the right result, or the job ends |
//! | `guard` | the guard of a PE, the root's too, is killed | the right result, or the job ends |
//! | `start-up` | a process is killed, stopped or fails while the job starts | … by its deadline |
//!
//! In all of them the job ends in time and leaves nothing behind.

use std::time::Duration;

use clap::ValueEnum;
use fastrand::Rng;

use super::configuration::{ODD_TASKS, Program};
use super::deed::{Act, Answer, Deed, Harm, Target};
use super::draw::{self, moment};
use super::hosts;
use crate::mpi::Family;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Class {
    Kill,
    Root,
    Stop,
    Cut,
    Loss,
    Overload,
    Stderr,
    Memory,
    Journal,
    Odd,
    Descriptors,
    Launcher,
    Proxy,
    Guard,
    StartUp,
}

/// What a job may end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Right,
    /// An error will do, if something was done to it.
    End,
}

/// Where a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hosting {
    Here,
    /// A process on each host of [`super::hosts`].
    Hosts,
}

/// What is drawn for a job.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) deeds: Vec<Deed>,
    pub(crate) pes: u32,
    pub(crate) expected: Expected,
    /// What each process runs before the program, in words and as a line of shell.
    pub(crate) before: Option<(String, String)>,
    /// What runs before the launcher, likewise, in a mount namespace of the job's own.
    pub(crate) around: Option<(String, String)>,
    /// Whether the program keeps a journal.
    pub(crate) has_journal: bool,
    /// The last PE may be lost.
    pub(crate) is_last_lost: bool,
    /// More flags of the program.
    pub(crate) flags: &'static str,
    /// How long the job may take in addition because of all this.
    pub(crate) delay: Duration,
    /// Whether what its processes log can be read.
    pub(crate) is_heard: bool,
}

/// What is known of a job before a plan for it is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobFacts {
    /// Processes, where the class does not say how many.
    pub(crate) pes: u32,
    /// How long such a job takes from its beginning if it is left alone.
    pub(crate) usual: Duration,
    /// How long it takes to begin.
    pub(crate) start: Duration,
    /// Whether the shortest times are drawn.
    pub(crate) is_brief: bool,
}

/// The deadline of jobs that are disturbed while they start; they should not take a minute.
const START_DEADLINE: &str = "--set start_deadline=8s";

/// The end of one path is found out and agreed on after `dead_after` (2 s), and once more if the
/// root asks back.
const CUT_DELAY: Duration = Duration::from_secs(10);

/// TCP waits longer and longer before it sends again what is lost again.
const LOSS_DELAY: Duration = Duration::from_mins(1);

/// What a task does, and whether its PE is lost by that.
const DEEDS: [(&str, bool); 6] = [
    ("--deed exec", true),
    ("--deed exit", true),
    ("--deed abort", true),
    ("--deed overflow", true),
    ("--deed panic", false),
    ("--deed output", false),
];

/// The end waits for a while for who keeps standard output.
const ODD_DELAY: Duration = Duration::from_secs(5);

/// The size of a pipe.
const PIPE_BYTES: u32 = 64 << 10;

impl Class {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether a job of this class needs the TCP lane.
    pub(crate) fn needs_tcp(self) -> bool {
        self == Class::Descriptors
    }

    /// Whether its job may run this program.
    pub(crate) fn fits(self, program: &Program) -> bool {
        match self {
            Class::Journal => program.has_journal(),
            Class::Odd => *program == ODD_TASKS,
            // On several hosts.
            Class::Cut | Class::Loss | Class::Proxy => !program.has_arena(),
            _ => true,
        }
    }

    /// Where its job runs. Open MPI has a proxy on other hosts only.
    pub(crate) fn hosting(self, family: Family, random: &mut Rng) -> Hosting {
        match self {
            Class::Cut | Class::Loss => Hosting::Hosts,
            Class::Proxy if family == Family::OpenMpi || random.bool() => Hosting::Hosts,
            _ => Hosting::Here,
        }
    }

    pub(crate) fn plan(self, random: &mut Rng, facts: JobFacts) -> Plan {
        let JobFacts { pes, usual, start, is_brief } = facts;
        let mut plan = Plan::undisturbed(pes);
        let mut seconds = |random: &mut Rng, from, to| {
            let seconds = random.u32(from..=if is_brief { from } else { to });
            plan.delay = Duration::from_secs(seconds.into());
            seconds
        };
        // What comes after the job's end does nothing.
        let before_the_end = usual.mul_f64(0.75);
        match self {
            Class::Kill => plan.deeds = draw::kills(random, 1..pes, usual),
            Class::Root => {
                plan.deeds = draw::kills(random, 0..pes, usual);
                plan.flags = "--restartable";
                // Each root may begin again, and is alone with the work in the end.
                plan.delay = usual * pes * plan.deeds.len() as u32;
            }
            Class::Stop => {
                let time = Duration::from_secs(seconds(random, 3, 10).into());
                let target = Target::Pe(random.u32(0..pes));
                plan.act(moment(random, before_the_end), Act::Stop(target, Some(time)));
            }
            Class::Cut => {
                let from = random.u32(0..hosts::COUNT);
                let to = (from + random.u32(1..hosts::COUNT)) % hosts::COUNT;
                plan.delay = CUT_DELAY;
                let answer = Answer::ALL[random.usize(..3)];
                plan.act(
                    moment(random, before_the_end),
                    Act::Cut { from, to, both_ways: random.bool(), answer },
                );
            }
            Class::Loss => {
                plan.delay = LOSS_DELAY;
                let percent = random.u32(10..=if is_brief { 15 } else { 30 });
                plan.act(moment(random, usual / 2), Act::Lose { percent });
            }
            Class::Overload => {
                let seconds = seconds(random, if is_brief { 6 } else { 20 }, 30);
                // To start and to end them takes its time, too.
                plan.delay *= 3;
                plan.pes = random.u32(8..=16);
                let processes = random.u32(100..=300);
                plan.act(moment(random, usual / 2), Act::Burn { processes, seconds });
            }
            Class::Stderr => {
                plan.before = Some(spoilt_stderr(random));
                plan.is_heard = false;
            }
            Class::Memory => {
                plan.pes = random.u32(4..=16);
                let mib = 4 << random.u32(..5);
                let line = format!("mount -t tmpfs -o size={mib}m tmpfs /dev/shm");
                plan.around = Some((format!("{mib} MiB of shared memory"), line));
            }
            Class::Journal => {
                plan.has_journal = true;
                let harm = Harm::ALL[random.usize(..3)];
                plan.act(moment(random, before_the_end), Act::Harm(harm));
            }
            Class::Odd => {
                let (deed, is_deadly) = DEEDS[random.usize(..DEEDS.len())];
                (plan.flags, plan.is_last_lost) = (deed, is_deadly);
                plan.delay = ODD_DELAY;
            }
            Class::Descriptors => {
                plan.pes = random.u32(16..=24);
                plan.before = Some(few_descriptors());
                // Where all speak with all (tables), most messages wait for a dial: `puzzle` takes
                // 8 s with 19 PEs on 2 cores, and then 27 s.
                plan.delay = usual * plan.pes;
            }
            Class::Launcher => {
                plan.end_by_killing(moment(random, before_the_end), Target::Launcher);
            }
            Class::Proxy => {
                let number = random.u32(0..hosts::COUNT);
                plan.end_by_killing(moment(random, before_the_end), Target::Proxy(number));
            }
            Class::Guard => {
                let target = Target::Guard(random.u32(0..pes));
                plan.end_by_killing(moment(random, before_the_end), target);
            }
            Class::StartUp => {
                plan.expected = Expected::End;
                plan.flags = START_DEADLINE;
                plan.delay = Duration::from_secs(8);
                let (after, number) = (moment(random, start), random.u32(0..2 * pes));
                let target = Target::Starting(number);
                match random.u32(..4) {
                    0 => plan.act(after, Act::Kill(target)),
                    1 => plan.act(after, Act::Stop(target, None)),
                    2 => {
                        let time = Duration::from_secs(random.u32(1..=3).into());
                        plan.act(after, Act::Stop(target, Some(time)));
                    }
                    _ => plan.before = Some(failing_rank(number % pes, random)),
                }
            }
        }
        plan
    }
}

impl Plan {
    /// A job that is left alone.
    pub(crate) fn undisturbed(pes: u32) -> Self {
        Plan {
            deeds: Vec::new(),
            pes,
            expected: Expected::Right,
            before: None,
            around: None,
            has_journal: false,
            is_last_lost: false,
            flags: "",
            delay: Duration::ZERO,
            is_heard: true,
        }
    }

    fn act(&mut self, after: Duration, act: Act) {
        self.deeds.push(Deed { after, act });
    }

    fn end_by_killing(&mut self, after: Duration, target: Target) {
        self.expected = Expected::End;
        self.act(after, Act::Kill(target));
    }
}

/// A standard error that takes nothing. Other descriptors stay as they are: one leads to the
/// launcher.
fn spoilt_stderr(random: &mut Rng) -> (String, String) {
    let pipe = "f=$(mktemp -u) && mkfifo \"$f\"";
    let (name, line) = match random.u32(..4) {
        0 => ("a full disk", "exec 2>/dev/full".to_owned()),
        1 => ("closed", "exec 2>&-".to_owned()),
        2 => ("a pipe without a reader", format!("{pipe}; : <$f & exec 2>$f; wait; rm $f")),
        _ => {
            let fill = format!("head -c {PIPE_BYTES} /dev/zero >&2");
            ("a full pipe", format!("{pipe}; exec 2<>$f; rm $f; {fill}"))
        }
    };
    // Then there is more to write.
    (format!("stderr is {name}"), format!("export ULTRAMARINE_LOG=debug; {line}"))
}

/// So few that there cannot be a connection with each PE. Those that the launcher leaves open do
/// not count: MPICH's leaves two in each process for each that it has started before.
fn few_descriptors() -> (String, String) {
    let line = "ulimit -n $((40 + $(ls /proc/self/fd | wc -l)))";
    ("40 descriptors".to_owned(), line.to_owned())
}

/// A process that ends before it has become a PE, some with an error.
fn failing_rank(rank: u32, random: &mut Rng) -> (String, String) {
    let code = if random.bool() { 0 } else { 3 };
    let own = "${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-}}";
    let line = format!("if [ \"{own}\" = {rank} ]; then exit {code}; fi");
    (format!("rank {rank} ends with {code}"), line)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const USUAL: Duration = Duration::from_secs(2);

    /// What is drawn for some jobs of this class.
    fn plans(class: Class, is_brief: bool) -> Vec<Plan> {
        let facts = JobFacts { pes: 4, usual: USUAL, start: Duration::from_millis(200), is_brief };
        (0..200).map(|run| class.plan(&mut draw::random(7, run), facts)).collect()
    }

    fn deeds(class: Class) -> Vec<Deed> {
        plans(class, false).into_iter().flat_map(|plan| plan.deeds).collect()
    }

    #[test]
    fn something_is_done_to_every_job_in_its_time() {
        for class in Class::value_variants() {
            for plan in plans(*class, false) {
                let is_spoilt =
                    plan.before.is_some() || plan.around.is_some() || *class == Class::Odd;
                assert!(!plan.deeds.is_empty() || is_spoilt, "{class:?}");
                assert!(plan.deeds.iter().all(|deed| deed.after < USUAL), "{class:?}");
            }
        }
    }

    #[test]
    fn the_root_is_stopped_too_and_each_goes_on() {
        let stopped = |deed: Deed| match deed.act {
            Act::Stop(Target::Pe(pe), Some(time)) => {
                assert!((3..=10).contains(&time.as_secs()), "{deed}");
                pe
            }
            other => panic!("{other} stops none for a while"),
        };
        let victims: BTreeSet<u32> = deeds(Class::Stop).into_iter().map(stopped).collect();
        assert_eq!(victims, BTreeSet::from([0, 1, 2, 3]));
        let longest = plans(Class::Stop, true).into_iter().map(|plan| plan.delay).max();
        assert_eq!(longest, Some(Duration::from_secs(3)), "briefly");
    }

    #[test]
    fn a_path_has_two_ends_and_is_cut_in_either_direction_or_both() {
        let (mut paths, mut answers) = (BTreeSet::new(), BTreeSet::new());
        for deed in deeds(Class::Cut) {
            let Act::Cut { from, to, both_ways, answer } = deed.act else {
                panic!("{deed} cuts nothing")
            };
            assert!(from != to && from < hosts::COUNT && to < hosts::COUNT, "{deed}");
            paths.insert((from, to, both_ways));
            answers.insert(answer);
        }
        assert_eq!((paths.len(), answers.len()), (24, 3));
    }

    #[test]
    fn only_where_the_job_may_end_an_error_will_do() {
        let may_end = |class: &&Class| plans(**class, false)[0].expected == Expected::End;
        let ending: Vec<Class> = Class::value_variants().iter().filter(may_end).copied().collect();
        assert_eq!(ending, [Class::Launcher, Class::Proxy, Class::Guard, Class::StartUp]);
    }
}
