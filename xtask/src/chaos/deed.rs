//! One fault of a job: which of its processes, files or connections it hits, how, and when.

use std::fmt;
use std::time::Duration;

/// Something that is done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deed {
    /// Since the job has begun; since its launcher was started if the [target](Target::Starting) is
    /// a process that starts.
    pub(crate) after: Duration,
    pub(crate) act: Act,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    /// With a signal that cannot be caught.
    Kill(Target),
    /// For this time, or for good.
    Stop(Target, Option<Duration>),
    /// No packet from one host reaches the other; if `both_ways`, nor back.
    Cut { from: u32, to: u32, both_ways: bool, answer: Answer },
    /// All hosts lose this share of what they send.
    Lose { percent: u32 },
    /// Something happens to the job's journal.
    Harm(Harm),
    /// This number of processes compute beside the job.
    Burn { processes: u32, seconds: u32 },
}

/// What comes back over a path that is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Nothing,
    /// The ICMP message of a firewall that rejects: calls are refused.
    Refusal,
    /// A TCP reset, as the host itself would send it.
    Reset,
}

/// What happens to a journal that a job writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Harm {
    /// Half of it is cut off.
    Halve,
    /// It gets another name.
    Move,
    Remove,
}

impl Harm {
    pub(crate) const ALL: [Harm; 3] = [Harm::Halve, Harm::Move, Harm::Remove];
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Harm::Halve => "halve",
            Harm::Move => "move",
            Harm::Remove => "remove",
        })
    }
}

impl Answer {
    pub(crate) const ALL: [Answer; 3] = [Answer::Nothing, Answer::Refusal, Answer::Reset];
}

/// A process of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Pe(u32),
    /// What stands between this PE and the launcher.
    Guard(u32),
    Launcher,
    /// What the launcher has on each host, numbered modulo how many there are.
    Proxy(u32),
    /// A process of the program before the job has begun, numbered likewise.
    Starting(u32),
}

impl Act {
    /// The process that it is done to.
    pub(crate) fn target(self) -> Option<Target> {
        match self {
            Act::Kill(target) | Act::Stop(target, _) => Some(target),
            Act::Cut { .. } | Act::Lose { .. } | Act::Harm(_) | Act::Burn { .. } => None,
        }
    }

    /// Whether it is done before the job has begun.
    pub(crate) fn is_early(self) -> bool {
        matches!(self.target(), Some(Target::Starting(_)))
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.3} s", self.act, self.after.as_secs_f64())
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Kill(target) => write!(f, "kill {target}"),
            Act::Stop(target, None) => write!(f, "stop {target} for good"),
            Act::Stop(target, Some(time)) => {
                write!(f, "stop {target} for {:.1} s", time.as_secs_f64())
            }
            Act::Cut { from, to, both_ways: true, answer } => {
                write!(f, "cut PE {from} from PE {to}{answer}")
            }
            Act::Cut { from, to, both_ways: false, answer } => {
                write!(f, "cut the way PE {from} → PE {to}{answer}")
            }
            Act::Lose { percent } => write!(f, "lose {percent} % of the packets"),
            Act::Harm(harm) => write!(f, "{harm} the journal"),
            Act::Burn { processes, seconds } => {
                write!(f, "{processes} busy processes for {seconds} s")
            }
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Nothing => "",
            Answer::Refusal => " (refused)",
            Answer::Reset => " (reset)",
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Pe(pe) => write!(f, "PE {pe}"),
            Target::Guard(pe) => write!(f, "the guard of PE {pe}"),
            Target::Launcher => f.write_str("the launcher"),
            Target::Proxy(number) => write!(f, "proxy {number}"),
            Target::Starting(number) => write!(f, "starting process {number}"),
        }
    }
}
